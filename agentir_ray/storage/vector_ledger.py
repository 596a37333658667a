"""What encoders have made of the texts of a store's records: paid for once, kept durably, looked up by text or by record. Everything else that holds vectors is a cache of it.

One SQLite database beside the log, set up as that is. It knows bytes and digests: neither what a vector is nor what the log holds. A text is one row a namespace, whatever the
number of records that have it; per encoder (by its identity) a text has one value, which is empty where the encoder refuses the text. Namespaces share nothing.

Invariants:
- what `put` acknowledged survives a power cut, all of a call or nothing of it;
- a value's checksum covers the digest of its text: none is ever given for another text;
- the cursor of (namespace, encoder) moves in the same transaction as the values that it speaks of;
- a record that is erased (`erase`) leaves no row, and a text that no record has any more leaves none either; after `purge` no file holds them.

Losing it loses no record: what it held is encoded again.
"""

import contextlib
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import apsw

from agentir_ray.storage.files import SYSTEM_FILES, FileOps
from agentir_ray.storage.sqlite_backup import backup
from agentir_ray.storage.sqlite_errors import REFUSED_WRITES, translate, translated
from agentir_ray.storage.sqlite_pool import ConnectionPool
from agentir_ray.storage.sqlite_purge import purge, truncate_wal
from agentir_ray.storage.sqlite_schema import MAX_SEQ, Durability, Tables, fetch, key_of, open_writer, seq_of

FORMAT_VERSION = 1
TEXT_BITS = 40  # 1e12 texts and 8e6 encoders in a store's life
CHUNK_ROWS = 256
CHECKPOINT_PAGES = 2_048  # of 16 KiB: the WAL is copied into the database at 32 MiB

SCHEMA = """
CREATE TABLE encoders (
    id INTEGER PRIMARY KEY,
    identity BLOB NOT NULL UNIQUE
);
CREATE TABLE texts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace INTEGER NOT NULL,
    digest BLOB NOT NULL,
    UNIQUE (namespace, digest)
);
CREATE TABLE records (
    key INTEGER PRIMARY KEY, -- namespace number << 36 | seq
    text INTEGER NOT NULL
);
CREATE INDEX records_by_text ON records (text);
CREATE TABLE vectors (
    key INTEGER PRIMARY KEY, -- encoder << 40 | text
    data BLOB NOT NULL,      -- empty: the encoder refuses the text
    crc INTEGER NOT NULL     -- of the text's digest and the data
);
CREATE TABLE cursors (
    namespace INTEGER NOT NULL,
    encoder INTEGER NOT NULL,
    seq INTEGER NOT NULL,    -- every entry of the log up to it was encoded, or need not be
    PRIMARY KEY (namespace, encoder)
) WITHOUT ROWID;
"""
LEDGER = Tables(0x41475645, FORMAT_VERSION, SCHEMA, 16_384)  # "AGVE"; the vectors of a text's tokens take some 50 KB, which small pages would scatter

T = TypeVar("T")
Digest = bytes
_COLUMNS = "r.key, t.digest, v.data, v.crc"
_JOINED = f"SELECT {_COLUMNS} FROM records r JOIN texts t ON t.id = r.text JOIN vectors v ON v.key = (?1 << {TEXT_BITS} | r.text)"


class Encoded(NamedTuple):
    """What one encoder made of some texts, by digest. `seen` = (from, to): of a namespace's log it has now seen all up to entry `to`, if it had seen all up to `from`."""

    vectors: Mapping[Digest, bytes]
    seen: tuple[int, int] | None = None


class VectorReader(ConnectionPool):
    """The ledger at `path`, for reading. Raises NotFoundError, DamagedError, FormatError."""

    tables = LEDGER

    def _encoder(self, connection: apsw.Connection, identity: str) -> int | None:
        rows = fetch(connection, "SELECT id FROM encoders WHERE identity = ?", (identity.encode(),))
        return int(rows[0][0]) if rows else None

    def _rows(self, identity: str, query: Callable[[apsw.Connection, int], list[Any]]) -> list[Any]:
        """What a query finds of an encoder, nothing for one that is not known."""
        with translated(self.path), self._reading() as connection:
            encoder = self._encoder(connection, identity)
            return [] if encoder is None else query(connection, encoder)

    def known(self, number: int, identity: str, digests: Sequence[Digest]) -> dict[Digest, bytes]:
        """The values of those of these texts that have one; one that is damaged counts as none."""
        found: dict[Digest, bytes] = {}
        for start in range(0, len(digests), CHUNK_ROWS):
            chunk = digests[start : start + CHUNK_ROWS]
            wanted = ",".join(f"?{3 + i}" for i in range(len(chunk)))
            query = f"SELECT t.digest, v.data, v.crc FROM texts t JOIN vectors v ON v.key = (?1 << {TEXT_BITS} | t.id) WHERE t.namespace = ?2 AND t.digest IN ({wanted})"
            rows = self._rows(identity, lambda connection, encoder, query=query, chunk=chunk: fetch(connection, query, (encoder, number, *chunk)))  # type: ignore[misc]
            found |= {digest: data for digest, data, crc in rows if crc_of(digest, data) == crc}
        return found

    def get(self, number: int, identity: str, seqs: Sequence[int], check: bool = False) -> dict[int, bytes]:
        """The values of the texts of some records, by sequence number; those without one are left out, and with `check` those that are damaged (a query has no time for that)."""
        found: dict[int, bytes] = {}
        for start in range(0, len(seqs), CHUNK_ROWS):
            keys = [key_of(number, int(seq)) for seq in seqs[start : start + CHUNK_ROWS]]
            query = f"{_JOINED} WHERE r.key IN ({','.join(f'?{2 + i}' for i in range(len(keys)))})"
            rows = self._rows(identity, lambda connection, encoder, query=query, keys=keys: fetch(connection, query, (encoder, *keys)))  # type: ignore[misc]
            found |= {seq_of(key): data for key, digest, data, crc in rows if not check or crc_of(digest, data) == crc}
        return found

    def held(self, number: int, identity: str, after_seq: int = 0, up_to_seq: int = MAX_SEQ) -> Iterator[tuple[int, bytes]]:
        """(sequence number, value) of the records after `after_seq`, ascending; damaged values are left out."""
        while True:
            bindings = key_of(number, after_seq), key_of(number, up_to_seq)
            query = f"{_JOINED} WHERE r.key > ?2 AND r.key <= ?3 ORDER BY r.key LIMIT {CHUNK_ROWS}"
            rows = self._rows(identity, lambda connection, encoder, query=query, bindings=bindings: fetch(connection, query, (encoder, *bindings)))  # type: ignore[misc]
            for key, digest, data, crc in rows:
                if crc_of(digest, data) == crc:
                    yield seq_of(key), data
            if len(rows) < CHUNK_ROWS:
                return
            after_seq = seq_of(rows[-1][0])

    def cursor(self, number: int, identity: str) -> int | None:
        """Up to which entry the encoder has seen the namespace's log; None where it never did."""
        query = "SELECT seq FROM cursors WHERE encoder = ? AND namespace = ?"
        rows = self._rows(identity, lambda connection, encoder: fetch(connection, query, (encoder, number)))
        return int(rows[0][0]) if rows else None

    def cursors(self) -> dict[tuple[int, str], int]:
        """All cursors, by namespace number and encoder."""
        query = "SELECT namespace, identity, seq FROM cursors JOIN encoders ON id = encoder"
        with translated(self.path), self._reading() as connection:
            return {(number, identity.decode()): seq for number, identity, seq in fetch(connection, query)}

    def seqs(self, number: int) -> list[int]:
        """The records of a namespace that have a text here, ascending."""
        query = "SELECT key FROM records WHERE key BETWEEN ? AND ?"
        with translated(self.path), self._reading() as connection:
            return [seq_of(key) for (key,) in fetch(connection, query, (key_of(number, 0), key_of(number, MAX_SEQ)))]

    def numbers(self) -> set[int]:
        """Of the namespaces that have something here."""
        with translated(self.path), self._reading() as connection:
            return {number for (number,) in fetch(connection, "SELECT namespace FROM texts UNION SELECT namespace FROM cursors")}

    def verify(self) -> list[str]:
        """The database's own check and every checksum; one line a problem."""
        problems = []
        try:
            with translated(self.path), self._reading() as connection:
                problems += [f"{self.path}: {line}" for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
                query = f"SELECT v.key, t.digest, v.data, v.crc FROM vectors v LEFT JOIN texts t ON t.id = (v.key & {(1 << TEXT_BITS) - 1})"
                for key, digest, data, crc in connection.execute(query):
                    if digest is None:
                        problems.append(f"{self.path}: the vectors {key} are of no text")
                    elif crc_of(digest, data) != crc:
                        problems.append(f"{self.path}: the vectors {key} do not match their checksum")
        except Exception as error:
            problems.append(f"{self.path}: {error}")
        return problems


class VectorLedger(VectorReader):
    """The writable ledger, made if there is none. One process writes it, any number of its threads."""

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = "power", vfs: str | None = None, files: FileOps = SYSTEM_FILES) -> None:
        """`durability`, `vfs` and `files` as for the log."""
        self._durability = durability
        self._files = files
        self._write_lock = threading.Lock()
        self.wal_pages = 0
        super().__init__(path, vfs=vfs)

    def _prepare(self) -> None:
        with translated(self.path):
            self._writer = open_writer(self.path, self._durability, self._vfs, LEDGER)
            self._writer.set_wal_hook(self._after_commit)

    def _after_commit(self, connection: apsw.Connection, database: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _transact(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in one transaction. A commit that fails may have been made: whoever repeats it changes nothing."""
        with self._write_lock, translated(self.path):
            self._check_usable()
            writer = self._writer
            try:
                if writer.in_transaction:  # an interrupt struck
                    writer.execute("ROLLBACK")
                writer.execute("BEGIN IMMEDIATE")
                result = work(writer)
                writer.execute("COMMIT")
            except BaseException:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                raise
            if self.wal_pages >= CHECKPOINT_PAGES:
                with contextlib.suppress(apsw.BusyError, *REFUSED_WRITES):  # it stays in the WAL, and is tried again with the next
                    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            return result

    def put(self, number: int, records: Iterable[tuple[int, Digest]], encoded: Mapping[str, Encoded], gone: Callable[[Sequence[int]], Sequence[int]] = lambda _: ()) -> list[int]:
        """Keep the texts of records (sequence number, digest) and what encoders made of them, durably; returns the records that were left out.

        `gone` tells which of the records were erased meanwhile; it is asked while nothing else is written here, so that an `erase` that comes after the erasure finds all that
        there is to erase. What is there already, stays.
        """
        given = dict(records)
        return self._transact(lambda writer: self._put(writer, number, given, encoded, gone))

    def _put(self, writer: apsw.Connection, number: int, records: dict[int, Digest], encoded: Mapping[str, Encoded], gone: Callable[[Sequence[int]], Sequence[int]]) -> list[int]:
        left_out = list(gone(list(records))) if records else []
        for seq in left_out:
            records.pop(seq, None)
        texts: dict[Digest, int] = {}
        for digest in dict.fromkeys(records.values()):
            writer.execute("INSERT OR IGNORE INTO texts (namespace, digest) VALUES (?, ?)", (number, digest))
            texts[digest] = fetch(writer, "SELECT id FROM texts WHERE namespace = ? AND digest = ?", (number, digest))[0][0]
        writer.executemany("INSERT OR REPLACE INTO records (key, text) VALUES (?, ?)", [(key_of(number, seq), texts[digest]) for seq, digest in records.items()])
        for identity, (vectors, seen) in encoded.items():
            writer.execute("INSERT OR IGNORE INTO encoders (identity) VALUES (?)", (identity.encode(),))
            encoder = self._encoder(writer, identity)
            assert encoder is not None
            rows = [(encoder << TEXT_BITS | texts[digest], data, crc_of(digest, data)) for digest, data in vectors.items() if digest in texts]
            writer.executemany("INSERT OR REPLACE INTO vectors (key, data, crc) VALUES (?, ?, ?)", rows)
            present = fetch(writer, "SELECT seq FROM cursors WHERE namespace = ? AND encoder = ?", (number, encoder))
            if seen is not None and seen[0] == (present[0][0] if present else 0):  # else it was told to begin again meanwhile
                self._set_cursor(writer, number, encoder, seen[1])
        return left_out

    @staticmethod
    def _set_cursor(writer: apsw.Connection, number: int, encoder: int, seq: int) -> None:
        writer.execute("INSERT INTO cursors (namespace, encoder, seq) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq", (number, encoder, seq))

    def rewind(self, number: int, identity: str, seq: int) -> None:
        """The encoder is to see the log again from after this entry."""
        self._transact(lambda writer: self._rewind(writer, number, identity, seq))

    def _rewind(self, writer: apsw.Connection, number: int, identity: str, seq: int) -> None:
        encoder = self._encoder(writer, identity)
        if encoder is not None:
            self._set_cursor(writer, number, encoder, seq)

    def retry(self, number: int, identity: str) -> int | None:
        """Forget which texts the encoder refused; the entry before the first record that has one of them, from which it is to see the log again. None: it refused none."""
        return self._transact(lambda writer: self._retry(writer, number, identity))

    def _retry(self, writer: apsw.Connection, number: int, identity: str) -> int | None:
        encoder = self._encoder(writer, identity)
        if encoder is None:
            return None
        refused = f"SELECT v.key FROM texts t JOIN vectors v ON v.key = (?1 << {TEXT_BITS} | t.id) WHERE t.namespace = ?2 AND v.data = x''"
        keys = [key for (key,) in fetch(writer, refused, (encoder, number))]
        firsts = [fetch(writer, "SELECT min(key) FROM records WHERE text = ?", (key & ((1 << TEXT_BITS) - 1),))[0][0] for key in keys]
        writer.executemany("DELETE FROM vectors WHERE key = ?", [(key,) for key in keys])
        if not any(first is not None for first in firsts):
            return None
        before = min(seq_of(first) for first in firsts if first is not None) - 1
        self._set_cursor(writer, number, encoder, before)
        return before

    def erase(self, number: int, seqs: Iterable[int]) -> None:
        """Records are gone, and with them the texts that no other record has, whoever encoded them."""
        keys = [(key_of(number, seq),) for seq in seqs]
        if keys:
            self._transact(lambda writer: self._erase(writer, keys))

    @staticmethod
    def _erase(writer: apsw.Connection, keys: Sequence[tuple[int]]) -> None:
        texts = {text for key in keys for (text,) in fetch(writer, "DELETE FROM records WHERE key = ? RETURNING text", key)}
        lone = [text for text in sorted(texts) if not fetch(writer, "SELECT 1 FROM records WHERE text = ? LIMIT 1", (text,))]
        encoders = [encoder for (encoder,) in fetch(writer, "SELECT id FROM encoders")]
        writer.executemany("DELETE FROM vectors WHERE key = ?", [(encoder << TEXT_BITS | text,) for encoder in encoders for text in lone])
        writer.executemany("DELETE FROM texts WHERE id = ?", [(text,) for text in lone])

    def truncate(self, number: int, last_seq: int) -> None:
        """The log ends with this entry: what is said of later ones is of a log that lost them (durability "process", and a power cut)."""
        with translated(self.path), self._reading() as connection:
            records = fetch(connection, "SELECT key FROM records WHERE key > ? AND key <= ?", (key_of(number, last_seq), key_of(number, MAX_SEQ)))
            ahead = fetch(connection, "SELECT 1 FROM cursors WHERE namespace = ? AND seq > ? LIMIT 1", (number, last_seq))
        if records or ahead:
            self._transact(lambda writer: self._truncate(writer, number, last_seq, records))

    def _truncate(self, writer: apsw.Connection, number: int, last_seq: int, records: Sequence[tuple[int]]) -> None:
        self._erase(writer, records)
        writer.execute("UPDATE cursors SET seq = ? WHERE namespace = ? AND seq > ?", (last_seq, number, last_seq))

    def drop(self, number: int) -> None:
        """A namespace is gone."""
        self._transact(lambda writer: self._drop(writer, number))

    @staticmethod
    def _drop(writer: apsw.Connection, number: int) -> None:
        for (encoder,) in fetch(writer, "SELECT id FROM encoders"):
            writer.execute(f"DELETE FROM vectors WHERE key IN (SELECT ? << {TEXT_BITS} | id FROM texts WHERE namespace = ?)", (encoder, number))
        writer.execute("DELETE FROM records WHERE key BETWEEN ? AND ?", (key_of(number, 0), key_of(number, MAX_SEQ)))
        writer.execute("DELETE FROM texts WHERE namespace = ?", (number,))
        writer.execute("DELETE FROM cursors WHERE namespace = ?", (number,))

    def keep_only(self, number: int, identities: Iterable[str]) -> None:
        """Of a namespace, what other encoders than these made is not needed any more."""
        kept = {identity.encode() for identity in identities}
        self._transact(lambda writer: self._keep_only(writer, number, kept))

    @staticmethod
    def _keep_only(writer: apsw.Connection, number: int, kept: set[bytes]) -> None:
        for encoder, identity in fetch(writer, "SELECT id, identity FROM encoders"):
            if identity not in kept:
                writer.execute(f"DELETE FROM vectors WHERE key IN (SELECT ? << {TEXT_BITS} | id FROM texts WHERE namespace = ?)", (encoder, number))
                writer.execute("DELETE FROM cursors WHERE namespace = ? AND encoder = ?", (number, encoder))

    def purge(self) -> bool:
        """Make sure that no file of the ledger holds what was erased; False while a reader pins it: call again."""
        with translated(self.path):
            return purge(self._writer, self._write_lock, self._truncate_wal, self.path, self._vfs)

    def _truncate_wal(self) -> bool:
        self._check_usable()
        if not truncate_wal(self._writer):
            return False
        self.wal_pages = 0
        return True

    def backup(self, path: str) -> None:
        """A consistent copy. Raises InvalidInputError when `path` exists."""
        backup(self.path, path, self._vfs, self._files)

    def close(self) -> None:
        """Idempotent."""
        super().close()
        if not self._guard.forked:
            with self._write_lock, contextlib.suppress(*REFUSED_WRITES):
                try:
                    self._writer.close()
                except apsw.CorruptError as error:
                    raise translate(error, self.path) from error


def crc_of(digest: Digest, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(digest))
