"""Reading a store's database: what a follower uses, and what the writer uses beside its one writing connection.

No connection that is borrowed from the pool outlives a call: a half-consumed `read` pins no snapshot and keeps no WAL alive.
"""

from collections.abc import Iterator, Sequence

from agentir_ray.errors import DamagedError
from agentir_ray.storage.protocol import Entry, NamespaceState, ReadableLog
from agentir_ray.storage.sqlite_errors import WAYS_OUT, translated
from agentir_ray.storage.sqlite_pool import ConnectionPool
from agentir_ray.storage.sqlite_rows import COLUMNS, Row, is_sound, to_entry
from agentir_ray.storage.sqlite_schema import LOG, MAX_SEQ, fetch, key_of, seq_of

STATE_COLUMNS = "number, name, owner, epoch, next_seq, generation, coalesce((SELECT manifest FROM manifests WHERE namespace = number), x'')"
CHUNK_ROWS = 256  # a chunk is one statement: at 1 MiB a body it stays within 256 MiB, at 200 bytes it costs 2 us a row


def to_state(row: tuple[int, bytes, bytes, int, int, int, bytes]) -> NamespaceState:
    number, name, owner, epoch, next_seq, generation, manifest = row
    try:
        if not all(isinstance(value, int) for value in (number, epoch, next_seq, generation)):
            raise TypeError("a number is none")
        return NamespaceState(number, name.decode(), owner.decode(), epoch, next_seq, generation, bytes(manifest))
    except (AttributeError, TypeError, ValueError) as error:
        raise DamagedError(f"the row of namespace {number} is damaged ({error}); {WAYS_OUT}") from error


class SqliteReader(ConnectionPool, ReadableLog):
    """A read-only view of the log at `path`."""

    tables = LOG

    def namespaces(self, prefix: str = "") -> list[str]:
        with translated(self.path), self._reading() as connection:
            if not prefix:
                rows = fetch(connection, "SELECT name FROM namespaces ORDER BY name")
            else:
                # "acme/" <= name < "acme0" are exactly the names that go on with another segment: "0" follows "/" in UTF-8.
                exact = prefix.encode()
                query = "SELECT name FROM namespaces WHERE name = ? OR (name >= ? AND name < ?) ORDER BY name"
                rows = fetch(connection, query, (exact, exact + b"/", exact + b"0"))
        return [name.decode(errors="replace") for (name,) in rows]

    def numbers(self) -> set[int]:
        """The numbers of all namespaces."""
        with translated(self.path), self._reading() as connection:
            return {number for (number,) in fetch(connection, "SELECT number FROM namespaces")}

    def lengths(self) -> list[tuple[str, int, int]]:
        """(name, number, last sequence number) of all namespaces."""
        with translated(self.path), self._reading() as connection:
            rows = fetch(connection, "SELECT name, number, next_seq - 1 FROM namespaces ORDER BY number")
        return [(name.decode(errors="replace"), number, seq) for name, number, seq in rows]

    def state(self, name: str) -> NamespaceState | None:
        with translated(self.path), self._reading() as connection:
            rows = fetch(connection, f"SELECT {STATE_COLUMNS} FROM namespaces WHERE name = ?", (name.encode(),))
        return to_state(rows[0]) if rows else None

    def read(self, number: int, after_seq: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """As the protocol says. Sequence numbers have no gaps: to skip a damaged entry, read again after it."""
        while limit is None or limit > 0:
            wanted = CHUNK_ROWS if limit is None else min(CHUNK_ROWS, limit)
            rows = self._chunk(number, after_seq, wanted)
            for row in rows:
                yield self._checked(number, row)
            if len(rows) < wanted:
                return
            after_seq = seq_of(rows[-1][0])
            limit = None if limit is None else limit - wanted

    def _chunk(self, number: int, after_seq: int, rows: int) -> list[Row]:
        # ">=", not ">": to look for what follows a damaged page must not lead through that page.
        query = f"SELECT {COLUMNS} FROM entries WHERE key >= ? AND key <= ? ORDER BY key LIMIT ?"
        with translated(self.path), self._reading() as connection:
            return fetch(connection, query, (key_of(number, after_seq) + 1, key_of(number, MAX_SEQ), rows))

    def find(self, number: int, id: str) -> Entry | None:
        query = f"SELECT {COLUMNS} FROM entries WHERE namespace = ? AND id = ? ORDER BY version DESC LIMIT 1"
        with translated(self.path), self._reading() as connection:
            rows: list[Row] = fetch(connection, query, (number, id.encode()))
        return self._checked(number, rows[0]) if rows else None

    def erased(self, number: int, seqs: Sequence[int]) -> list[int]:
        """Which of these entries are erased versions of records, or are not there; ascending."""
        found: set[int] = set()
        with translated(self.path), self._reading() as connection:
            for start in range(0, len(seqs), CHUNK_ROWS):
                keys = [key_of(number, seq) for seq in seqs[start : start + CHUNK_ROWS]]
                query = f"SELECT key FROM entries WHERE key IN ({','.join('?' * len(keys))}) AND body IS NOT NULL"
                found.update(seq_of(key) for (key,) in fetch(connection, query, tuple(keys)))
        return sorted(set(seqs) - found)

    def prior(self, number: int) -> bytes:
        with translated(self.path), self._reading() as connection:
            rows = fetch(connection, "SELECT statistics FROM priors WHERE namespace = ?", (number,))
        return bytes(rows[0][0]) if rows else b""

    def _checked(self, number: int, row: Row) -> Entry:
        if not is_sound(row):
            raise DamagedError(f"{self.path}: namespace {self._name(number)}, seq {seq_of(row[0])} does not match its checksum; {WAYS_OUT}")
        return to_entry(row)

    def _name(self, number: int) -> str:
        with translated(self.path), self._reading() as connection:
            rows = fetch(connection, "SELECT name FROM namespaces WHERE number = ?", (number,))
        return f"{number} ({rows[0][0].decode(errors='replace')})" if rows else str(number)

    def verify(self) -> list[str]:
        problems = []
        try:
            with translated(self.path), self._reading() as connection:
                problems += [f"{self.path}: {line}" for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        except DamagedError as error:  # so badly that SQLite's own check cannot go on; each namespace still gets its turn
            problems.append(str(error))
        try:
            with translated(self.path), self._reading() as connection:
                states = fetch(connection, "SELECT number, name, next_seq FROM namespaces ORDER BY number")
        except DamagedError as error:
            return [*problems, f"the list of namespaces cannot be read: {error}"]
        for number, name, next_seq in states:
            label = f"{self.path}: namespace {number} ({name.decode(errors='replace')})"
            problems += self._verify_namespace(number, label, next_seq)
        return problems

    def _verify_namespace(self, number: int, label: str, next_seq: int) -> list[str]:
        problems = []
        last = 0
        try:
            while rows := self._chunk(number, last, CHUNK_ROWS):
                for row in rows:
                    seq = seq_of(row[0])
                    if seq != last + 1:
                        problems.append(f"{label}: seq {last + 1} to {seq - 1} are missing")
                    if not is_sound(row):
                        problems.append(f"{label}, seq {seq} does not match its checksum")
                    last = seq
        except DamagedError as error:
            return [*problems, f"{label}, after seq {last}: {error}"]
        if last < next_seq - 1:
            problems.append(f"{label}: seq {last + 1} to {next_seq - 1} are missing")
        return problems
