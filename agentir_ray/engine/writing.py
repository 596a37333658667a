"""The verbs that write: add, update, forget. All records, from whatever caller or importer, go through `add_records` (F10).

Failures are per record: one bad record of many does not keep the others out (F04).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentir_ray.engine.namespace import Namespace, WriteBatch
from agentir_ray.engine.prepare import FIELDS, Encoded, Prepared, analysed, check_fields, check_name, encode_record, prepare
from agentir_ray.engine.store import Store
from agentir_ray.errors import AgentIRError, ConflictError, ErasedError, InvalidInputError, NotFoundError, UnknownOutcomeError
from agentir_ray.lexical.batch import count_many
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.lexical.index import Located
from agentir_ray.storage.codec import decode_body
from agentir_ray.storage.protocol import Appended, EntryKind, NewEntry, Status
from agentir_ray.types import Record

COMMIT_RECORDS = 1_000  # records of one commit: large enough that its sync is cheap a record, small enough that searches see them soon and other writers need not wait long
COMMIT_CHARACTERS = 8 * 2**20  # of texts
FORGET_IDS = 10_000  # ids of one FORGET entry
UPDATABLE = FIELDS - {"id", "created_at"}


class Outcome(NamedTuple):
    """What became of one item: the record as it is now, or why it was not stored. `added` is False for a record that was there already."""

    item: Mapping[str, Any]
    result: Record | AgentIRError
    added: bool = False


def add_records(store: Store, name: str, items: Iterable[Mapping[str, Any]], *, analyzer: str | None = None, check_superseded: bool = True) -> Iterator[Outcome]:
    """Store `items` in the namespace `name`, which is made if need be; yields one outcome an item, in order.

    A commit that fails is the outcome of its items: what was stored before it stays told. What is wrong before anything was stored, with the store or the namespace as a whole,
    is raised. `check_superseded` refuses a record that supersedes one that never was.

    `items` is read while nothing is held, so that it may use the store itself, or wait for whom it likes.
    """
    store.check()
    store.writer  # noqa: B018 - raises ReadOnlyError, also when there are no items
    begun = False
    for chunk in _commits(items):
        outcomes = add_chunk(store, name, chunk, analyzer=analyzer, check_superseded=check_superseded, begun=begun)
        begun = True
        yield from outcomes
    if not begun:  # no item at all: an index may begin empty
        with store.namespace(name, create=True, analyzer=analyzer):
            pass


def add_chunk(store: Store, name: str, chunk: Sequence[Mapping[str, Any]], *, analyzer: str | None = None, check_superseded: bool = True, begun: bool = False) -> list[Outcome]:
    """One commit of `add_records`: one outcome an item. Raises only if the namespace cannot be had at all and nothing was `begun`."""
    store.writer  # noqa: B018 - raises ReadOnlyError
    prepared: list[Prepared | AgentIRError] = []
    try:
        with store.namespace(name, create=True, analyzer=analyzer) as namespace:
            prepared += _prepared(store, namespace, chunk, check_superseded)
            outcomes = _commit(store, namespace, prepared)
    except AgentIRError as error:
        if not begun and not prepared:
            raise
        outcomes = [(_failure(error, item), False) for item in (*prepared, *[None] * (len(chunk) - len(prepared)))]
    return [Outcome(item, result, added) for item, (result, added) in zip(chunk, outcomes, strict=True)]


def _commits(items: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The items of each commit."""
    chunk: list[Mapping[str, Any]] = []
    characters = 0
    for item in items:
        chunk.append(item)
        text = item.get("text") if isinstance(item, Mapping) else None
        characters += len(text) if isinstance(text, str) else 0
        if len(chunk) >= COMMIT_RECORDS or characters >= COMMIT_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _prepared(store: Store, namespace: Namespace, items: Iterable[Mapping[str, Any]], check_superseded: bool) -> list[Prepared | AgentIRError]:
    """Each item checked by itself; then the texts of all are analysed at once."""
    seen: set[str] = set()
    encoded: list[Encoded | AgentIRError] = []
    for item in items:
        try:
            checked = encode_record(item, store.clock.now_us())
            if check_superseded and checked.record.supersedes not in seen:
                _check_superseded(store, namespace, checked.record)
        except AgentIRError as error:
            encoded.append(error)
        else:
            seen.add(checked.record.id)
            encoded.append(checked)
    counted = iter(count_many(namespace.analyzer, [item.record.text for item in encoded if isinstance(item, Encoded)]))
    return [analysed(item, next(counted)) if isinstance(item, Encoded) else item for item in encoded]


def _failure(error: AgentIRError, item: Prepared | AgentIRError | None) -> AgentIRError:
    """Why an item of a commit that failed was not stored: its own fault, if it had one, or the commit's."""
    if isinstance(item, AgentIRError):
        return item
    if item is None or not isinstance(error, UnknownOutcomeError):
        return error
    named = UnknownOutcomeError(f"{error} (id={item.record.id!r})")  # the id may have been made here
    named.ids = (item.record.id,)
    named.__cause__ = error
    return named


def check_items(items: object) -> None:
    """`items` is what `add_records` takes; each of them is checked later, for itself."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidInputError(f"items is {shown(items)}; give an iterable of dicts")


def check_ids(ids: object) -> list[str]:
    """Ids without repetition, in order."""
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InvalidInputError(f"ids is {shown(ids)}; give a list of ids")
    return list(dict.fromkeys(check_name(id, "id") for id in ids))


def _check_superseded(store: Store, namespace: Namespace, record: Record) -> None:
    if record.supersedes is not None and store.writer.find(namespace.number, record.supersedes) is None:
        raise NotFoundError(f"record {record.id!r} supersedes {record.supersedes!r}, which is not in namespace {namespace.name!r}")


def _commit(store: Store, namespace: Namespace, prepared: Sequence[Prepared | AgentIRError]) -> list[tuple[Record | AgentIRError, bool]]:
    """The result of each item, and whether it was new."""
    valid = [item for item in prepared if isinstance(item, Prepared)]
    appended: Iterator[Appended] = iter(())
    if valid:
        batch = WriteBatch(namespace.number, namespace.epoch, [item.entry for item in valid], prepared=valid, namespace=namespace)
        appended = iter(store.submit(batch).appended)
    return [_result_of(store, namespace, item, next(appended)) if isinstance(item, Prepared) else (item, False) for item in prepared]


def _result_of(store: Store, namespace: Namespace, item: Prepared, appended: Appended) -> tuple[Record | AgentIRError, bool]:
    record = item.record
    if appended.status is Status.APPENDED:
        return record._replace(seq=appended.seq), True
    try:
        return _already_there(store, namespace, record, appended), False
    except AgentIRError as error:  # of this record alone: the others are stored
        return error, False


def _already_there(store: Store, namespace: Namespace, record: Record, appended: Appended) -> Record:
    """The record of that id as it is now, if it is what the caller gave."""
    stored = None if appended.status is Status.ERASED else store.log.find(namespace.number, record.id)
    if stored is None or stored.body is None:
        raise ErasedError(f"record {record.id!r} was erased; an erased id does not come back: use a new one")
    present = decode_body(stored.body, stored.seq)
    # The digest is of what the caller gave; a record that was exported and comes back now gives all its fields.
    if appended.status is Status.DUPLICATE or present._replace(created_at_us=record.created_at_us, seq=0) == record:
        return present
    raise ConflictError(f"id {record.id!r} is taken by a record with other content; use another id, or update it")


def update_record(store: Store, namespace: Namespace, id: str, changes: Mapping[str, Any], operation_id: str | None) -> Record:
    """Write a new version of a record. Tried again when another caller changed the record meanwhile.

    A repeated operation returns the record as it is now.
    """
    check_fields(changes, UPDATABLE)
    check_name(id, "id")
    if operation_id is not None:
        check_name(operation_id, "operation_id")
    with namespace.updating:
        pass  # whoever lost a race keeps newcomers out until it has won; it can lose only to those who are past this line, each of them once
    record = _try_update(store, namespace, id, changes, operation_id)
    if record is None:
        with namespace.updating:
            while record is None:
                record = _try_update(store, namespace, id, changes, operation_id)
    return record


def _try_update(store: Store, namespace: Namespace, id: str, changes: Mapping[str, Any], operation: str | None) -> Record | None:
    """None when another version came first."""
    stored = store.writer.find(namespace.number, id)
    if stored is None:
        raise NotFoundError(f"there is no record {id!r} in namespace {namespace.name!r}")
    if stored.body is None:
        raise ErasedError(f"record {id!r} was erased")
    present = decode_body(stored.body, stored.seq)
    # A clock that was set back must not make the new version older than the one it replaces.
    now_us = max(store.clock.now_us(), present.created_at_us)
    fields = {
        "id": id, "text": present.text, "timestamp": present.timestamp_us, "importance": present.importance, "session": present.session, "role": present.role,
        "metadata": present.metadata, "expires_at": present.expires_at_us, "supersedes": present.supersedes,
    } | dict(changes)  # fmt: skip
    checked = encode_record(fields, now_us)
    if "supersedes" in changes:
        _check_superseded(store, namespace, checked.record)
    prepared = prepare(checked.record, namespace.analyzer, stored.version + 1, checked.record.timestamp_us)
    # The result of an operation names the record and holds none of it: an erasure would miss it there.
    batch = WriteBatch(namespace.number, namespace.epoch, [prepared.entry], operation, operation_result("update", id), prepared=[prepared], namespace=namespace)
    result = store.submit(batch)
    if result.operation_result is not None:
        if done(result.operation_result, "update", operation) != id:
            raise ConflictError(f"operation_id {operation!r} belongs to the update of another record; give each operation its own")
        return present
    appended = result.appended[0]
    return prepared.record._replace(seq=appended.seq) if appended.status in (Status.APPENDED, Status.DUPLICATE) else None


def forget_ids(store: Store, namespace: Namespace, ids: Sequence[str], operation_id: str | None) -> Sequence[str]:
    """Erase records by id, in one commit; returns the ids (those of the first call, for a repeated operation). Hidden when this returns."""
    operation = None if operation_id is None else check_name(operation_id, "operation_id")
    now_us = store.clock.now_us()
    entries, located = [], []
    for start in range(0, len(ids), FORGET_IDS):
        entry, where = forget_entry(namespace, ids[start : start + FORGET_IDS], now_us)
        entries.append(entry)
        located.append(where)
    if not entries and operation is None:
        return ids
    batch = WriteBatch(namespace.number, namespace.epoch, entries, operation, operation_result("forget", list(ids)), prepared=located, namespace=namespace)
    result = store.submit(batch)
    return ids if result.operation_result is None else list(done(result.operation_result, "forget", operation_id))


def forget_entry(namespace: Namespace, ids: Sequence[str], now_us: int) -> tuple[NewEntry, Located]:
    """What is logged to erase records, and where they lie now."""
    named = tuple(ids)
    return NewEntry(EntryKind.FORGET, None, 0, now_us, now_us, b"", json.dumps(named, ensure_ascii=False).encode(), named), namespace.index.locate(named)


def operation_result(verb: str, value: object) -> bytes:
    return json.dumps({verb: value}, ensure_ascii=False).encode()


def done(result: bytes, verb: str, operation_id: str | None) -> Any:
    """What an operation did when it was first called."""
    outcome = json.loads(result)
    if verb not in outcome:
        raise ConflictError(f"operation_id {operation_id!r} belongs to another {', '.join(outcome)}; give each operation its own")
    return outcome[verb]
