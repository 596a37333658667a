"""The short cut of a commit: batches of new records, many rows a statement.

What it saves is not SQLite's time but Python's: each statement gives the GIL away, and when 32 callers wait it takes two thread switches to get it back. So a whole group
commit takes its sequence numbers with one statement a namespace and inserts its rows with one statement for 64 of them.

It hopes that every entry is an ADD of an id that the log has never seen, and that nobody is fenced. Where that fails it says so, and the caller rolls back and goes through
`sqlite_append`.
"""

from collections.abc import Sequence

import apsw

from agentir_ray.storage.protocol import Appended, Batch, CommitResult, EntryKind, Status
from agentir_ray.storage.sqlite_append import TAKE_SEQUENCE_NUMBERS
from agentir_ray.storage.sqlite_rows import row_crc
from agentir_ray.storage.sqlite_schema import fetch, key_of

Value = int | bytes | None

INSERT = "INSERT INTO entries (key, namespace, id, version, kind, epoch, created_at_us, timestamp_us, digest, body, crc) VALUES "
UNLESS_TAKEN = " ON CONFLICT (namespace, id, version) DO NOTHING"
COLUMNS = 11
ROWS = 64  # beyond it a statement's own cost is lost in that of its rows
STATEMENTS = [INSERT + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * rows) + UNLESS_TAKEN for rows in range(ROWS + 1)]


def append_new(connection: apsw.Connection, owner: bytes, batches: Sequence[Batch]) -> list[CommitResult] | None:
    """Append all of `batches`, or None when one needs the long way; the transaction is then to be rolled back."""
    counts: dict[tuple[int, int], int] = {}
    for batch in batches:
        if batch.operation is not None or any(entry.kind is not EntryKind.ADD or entry.version or entry.id is None for entry in batch.entries):
            return None
        place = batch.number, batch.epoch
        counts[place] = counts.get(place, 0) + len(batch.entries)
    next_seq: dict[int, int] = {}
    for (number, epoch), count in counts.items():
        taken = fetch(connection, TAKE_SEQUENCE_NUMBERS, (count, number, owner, epoch))
        if not taken:
            return None
        next_seq[number] = taken[0][0] - count
    results = []
    values: list[Value] = []
    for batch in batches:
        first = next_seq[batch.number]
        next_seq[batch.number] += len(batch.entries)
        _add_rows(values, batch, first)
        results.append(CommitResult([Appended(Status.APPENDED, seq) for seq in range(first, next_seq[batch.number])]))
    return results if _insert(connection, values) else None


def _add_rows(values: list[Value], batch: Batch, first: int) -> None:
    number, epoch, kind = batch.number, batch.epoch, int(EntryKind.ADD)
    key = key_of(number, first)
    for entry in batch.entries:
        assert entry.id is not None
        id = entry.id.encode()
        crc = row_crc(key, id, 0, kind, epoch, entry.created_at_us, entry.timestamp_us, entry.digest, entry.body)
        values += (key, number, id, 0, kind, epoch, entry.created_at_us, entry.timestamp_us, entry.digest, entry.body, crc)
        key += 1


def _insert(connection: apsw.Connection, values: list[Value]) -> bool:
    """False as soon as an id turns out to be taken."""
    for start in range(0, len(values), ROWS * COLUMNS):
        chunk = values[start : start + ROWS * COLUMNS]
        rows = len(chunk) // COLUMNS
        connection.execute(STATEMENTS[rows], chunk)
        if connection.changes() != rows:
            return False
    return True
