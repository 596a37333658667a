"""What appending batches means, inside a transaction that `sqlite_log` began and will commit.

Everything that can keep a batch out is decided before it changes a row, so that no savepoint is needed: a refused batch leaves nothing because it did nothing. Entries that meet
their own id (a retry, a conflict, an erased id) get that as their status and leave no gap; the others of the batch are appended.

This is the meaning, one entry at a time; `sqlite_bulk` is the short cut for entries that are all new.
"""

from collections.abc import Iterable

import apsw

from agentir_ray.errors import AgentIRError, FencedError, InvalidInputError
from agentir_ray.storage.protocol import Appended, Batch, CommitResult, EntryKind, NewEntry, Status
from agentir_ray.storage.sqlite_rows import row_crc
from agentir_ray.storage.sqlite_schema import MAX_SEQ, fetch, key_of, seq_of

OPERATION_KEPT_US = 7 * 24 * 3600 * 1_000_000

INSERT = """
    INSERT INTO entries (key, namespace, id, version, kind, epoch, created_at_us, timestamp_us, digest, body, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id, version) DO NOTHING
"""
TAKE_SEQUENCE_NUMBERS = "UPDATE namespaces SET next_seq = next_seq + ? WHERE number = ? AND owner = ? AND epoch = ? RETURNING next_seq"


def append(connection: apsw.Connection, owner: bytes, batch: Batch, now_us: int) -> CommitResult:
    """Append `batch` if (owner, epoch) still own its namespace. SQLite's errors pass through: they end the whole transaction."""
    if refusal := _refusal(batch):
        return CommitResult(error=refusal)
    wanted = len(batch.entries)
    taken = fetch(connection, TAKE_SEQUENCE_NUMBERS, (wanted, batch.number, owner, batch.epoch))
    if not taken:
        return CommitResult(error=FencedError(f"namespace {batch.number} is no longer owned by {owner.decode()} at epoch {batch.epoch}; reload it before writing"))
    next_seq = first = taken[0][0] - wanted
    result = _operation_result(connection, batch, now_us)
    appended = []
    if result is None:
        for entry in batch.entries:
            outcome = _append_entry(connection, batch, entry, next_seq)
            next_seq += outcome.status is Status.APPENDED
            appended.append(outcome)
        _remember_operation(connection, batch, appended, now_us)
    if next_seq != first + wanted:
        connection.execute("UPDATE namespaces SET next_seq = ? WHERE number = ?", (next_seq, batch.number))
    return CommitResult(appended, result)


def _refusal(batch: Batch) -> AgentIRError | None:
    for entry in batch.entries:
        if (entry.id is None) != (entry.kind is EntryKind.FORGET) or (entry.version > 0) != (entry.kind is EntryKind.UPDATE):
            return InvalidInputError(f"a {entry.kind.name} entry with id {entry.id!r} and version {entry.version} is malformed")
    return None


def _append_entry(connection: apsw.Connection, batch: Batch, entry: NewEntry, seq: int) -> Appended:
    id = None if entry.id is None else entry.id.encode()
    if entry.kind is EntryKind.UPDATE and (refusal := _update_refusal(connection, batch.number, id, entry)):
        return refusal
    if entry.up_to_seq is not None and (changed := _changed_since(connection, batch.number, entry.erase_ids, entry.up_to_seq)):
        return Appended(Status.CONFLICT, changed)
    key = key_of(batch.number, seq)
    kind = int(entry.kind)
    crc = row_crc(key, id, entry.version, kind, batch.epoch, entry.created_at_us, entry.timestamp_us, entry.digest, entry.body)
    connection.execute(INSERT, (key, batch.number, id, entry.version, kind, batch.epoch, entry.created_at_us, entry.timestamp_us, entry.digest, entry.body, crc))
    if not connection.changes():
        return _existing(connection, batch.number, id, entry)
    if entry.kind is EntryKind.FORGET:
        connection.execute("INSERT OR REPLACE INTO unpurged (namespace, seq) VALUES (?, ?)", (batch.number, seq))
        for erased in entry.erase_ids:
            _wipe(connection, batch.number, erased.encode())
    return Appended(Status.APPENDED, seq)


def _existing(connection: apsw.Connection, number: int, id: bytes | None, entry: NewEntry) -> Appended:
    """What to answer when (id, version) is taken."""
    query = "SELECT key, digest FROM entries WHERE namespace = ? AND id = ? AND version = ?"
    key, digest = fetch(connection, query, (number, id, entry.version))[0]
    status = Status.ERASED if digest is None else Status.DUPLICATE if digest == entry.digest else Status.CONFLICT
    return Appended(status, seq_of(key))


def _update_refusal(connection: apsw.Connection, number: int, id: bytes | None, entry: NewEntry) -> Appended | None:
    query = "SELECT key, version, digest FROM entries WHERE namespace = ? AND id = ? ORDER BY version DESC LIMIT 1"
    newest = fetch(connection, query, (number, id))
    if not newest:
        return Appended(Status.MISSING, 0)
    key, version, digest = newest[0]
    if digest is None:
        return Appended(Status.ERASED, seq_of(key))
    if entry.version <= version:
        return _existing(connection, number, id, entry)
    return None if entry.version == version + 1 else Appended(Status.CONFLICT, seq_of(key))


def _changed_since(connection: apsw.Connection, number: int, ids: Iterable[str], seq: int) -> int:
    """The sequence number of a version later than `seq` of one of the ids; 0 if there is none."""
    query = "SELECT key FROM entries WHERE namespace = ? AND id = ? AND key > ? LIMIT 1"
    return next((seq_of(found[0][0]) for id in ids if (found := fetch(connection, query, (number, id.encode(), key_of(number, seq))))), 0)


def _wipe(connection: apsw.Connection, number: int, id: bytes) -> None:
    """Take body and digest out of every version of a record. The rows stay: they are why the id never comes back."""
    query = "SELECT key, version, kind, epoch, created_at_us, timestamp_us FROM entries WHERE namespace = ? AND id = ? AND digest IS NOT NULL"
    for key, version, kind, epoch, created_at_us, timestamp_us in fetch(connection, query, (number, id)):
        crc = row_crc(key, id, version, kind, epoch, created_at_us, timestamp_us, None, None)
        connection.execute("UPDATE entries SET digest = NULL, body = NULL, crc = ? WHERE key = ?", (crc, key))


def _operation_result(connection: apsw.Connection, batch: Batch, now_us: int) -> bytes | None:
    if batch.operation is None:
        return None
    connection.execute("DELETE FROM operations WHERE created_at_us <= ?", (now_us - OPERATION_KEPT_US,))
    found = fetch(connection, "SELECT result FROM operations WHERE namespace = ? AND operation = ?", (batch.number, batch.operation.encode()))
    return bytes(found[0][0]) if found else None


def _remember_operation(connection: apsw.Connection, batch: Batch, appended: list[Appended], now_us: int) -> None:
    """Only a verb that did all it set out to do is remembered: its result was made before the commit and says so."""
    if batch.operation is not None and all(one.status <= Status.DUPLICATE for one in appended):
        row = (batch.number, batch.operation.encode(), now_us, batch.operation_result)
        connection.execute("INSERT INTO operations (namespace, operation, created_at_us, result) VALUES (?, ?, ?, ?)", row)


def drop(connection: apsw.Connection, name: bytes) -> bool:
    """Delete a namespace with all that belongs to it."""
    rows = fetch(connection, "DELETE FROM namespaces WHERE name = ? RETURNING number", (name,))
    for (number,) in rows:
        connection.execute("DELETE FROM entries WHERE key BETWEEN ? AND ?", (key_of(number, 0), key_of(number, MAX_SEQ)))
        connection.execute("DELETE FROM operations WHERE namespace = ?", (number,))
        connection.execute("DELETE FROM manifests WHERE namespace = ?", (number,))
        connection.execute("DELETE FROM priors WHERE namespace = ?", (number,))
        connection.execute("DELETE FROM unpurged WHERE namespace = ?", (number,))
    return bool(rows)
