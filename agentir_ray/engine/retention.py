"""What a namespace keeps: the records beyond the newest `keep_last`, and those older than `max_age`, are erased unless they are pinned.

The order is that of time, (timestamp, sequence number), so both rules come to one point in it, and what goes lies before that point: `choose` finds it, from columns alone.
A `Plan` is that point with the sequence number up to which the log was seen. It names the same records at any later time: a record that was added or updated since has a later
number and stays, and so does one that is pinned. It holds for the namespace that it was made of alone: not for another, nor for one that took the name after a drop. Each commit
erases `FORGET_IDS` records at most, and nothing at all if one of them was updated a moment before it (`NewEntry.up_to_seq`); then the others are tried again. What was not erased
when a call ended early is erased by the same plan, or the same operation, again.

It counts every record that is not deleted, whatever its expiry or supersession, as `forget` does. Replaced versions of a record that stays are none of its business.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.listing import Key
from agentir_ray.engine.namespace import Namespace, WriteBatch
from agentir_ray.engine.prepare import check_name
from agentir_ray.engine.request import Duration, duration_us, whole_number
from agentir_ray.engine.store import Store
from agentir_ray.engine.writing import FORGET_IDS, done, forget_entry, operation_result
from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.bitmap import Words
from agentir_ray.lexical.buffer import BufferView
from agentir_ray.lexical.filters import EVERYTHING, Expression, parse_filter
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.lexical.index import NO_FILTER, Snapshot
from agentir_ray.lexical.overlay import NO_CHANGES
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.codec import decode_id
from agentir_ray.storage.protocol import Status
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US, Time, to_time_us

Array = npt.NDArray[Any]
FIRST = Key(MIN_TIME_US, 0)  # nothing lies before it


class Rules(NamedTuple):
    """`keep_last` None: however many; `cutoff_us`: what happened before it is too old; `pinned` None: nothing is."""

    keep_last: int | None
    cutoff_us: int
    pinned: Expression | None


class Plan(NamedTuple):
    """All of namespace `number` that lies before the point `before` and is not pinned, as it was when the log ended with `seq`. `pins` tells one `pinned` from another."""

    number: int  # never given twice, whatever the name
    before: Key
    seq: int
    pins: str

    def __str__(self) -> str:
        return f"{self.number}.{self.before.timestamp_us}.{self.before.seq}.{self.seq}.{self.pins}"


class Choice(NamedTuple):
    """What a plan would erase: how many, and when the first and the last of them happened (None: there is none); how many are spared as pinned, and how many stay in all."""

    plan: Plan
    records: int
    oldest_us: int | None
    newest_us: int | None
    pinned: int
    kept: int


def check_rules(keep_last: int | None, max_age: Duration | None, pinned: Mapping[str, Any] | None, now_us: int, as_of: Time | None) -> Rules:
    if keep_last is None and max_age is None:
        raise InvalidInputError("say what to keep: keep_last, max_age or both")
    if keep_last is not None:
        whole_number(keep_last, "keep_last", 1)
    as_of_us = now_us if as_of is None else to_time_us(as_of, "as_of")
    cutoff_us = MIN_TIME_US if max_age is None else max(MIN_TIME_US, as_of_us - round(duration_us(max_age, "max_age")))
    return Rules(keep_last, cutoff_us, check_pinned(pinned))


def check_pinned(pinned: Mapping[str, Any] | None) -> Expression | None:
    if pinned is None:
        return None
    expression = parse_filter(pinned)
    if expression == EVERYTHING:
        raise InvalidInputError("an empty filter would pin everything; say what is pinned, or leave it out")
    return expression


def pins_of(pinned: Mapping[str, Any] | None) -> str:
    """Short enough to be carried along; what it stands for is in no log."""
    return hashlib.blake2b(json.dumps(pinned, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


def parse_plan(text: object, pinned: Mapping[str, Any] | None) -> Plan:
    plan = _read(text)
    if plan.pins != pins_of(pinned):
        raise InvalidInputError("pinned is not that of the dry run whose plan this is; give the same one")
    return plan


def _read(text: object) -> Plan:
    try:
        number, timestamp, seq, up_to, pins = str.split(text, ".")  # type: ignore[arg-type]
        plan = Plan(int(number), Key(int(timestamp), int(seq)), int(up_to), pins)
    except (TypeError, ValueError):
        raise _no_plan(text) from None
    within = MIN_TIME_US <= plan.before.timestamp_us <= MAX_TIME_US and all(0 <= number <= NEVER_US for number in (plan.number, plan.before.seq, plan.seq))
    if not within or str(plan) != text:
        raise _no_plan(text)
    return plan


def _no_plan(text: object) -> InvalidInputError:
    return InvalidInputError(f"plan is {shown(text)}; give the plan of a dry run")


def _check_number(plan: Plan, namespace: Namespace) -> None:
    if plan.number != namespace.number:
        raise InvalidInputError(f"the plan was made of another namespace than this {namespace.name!r}, or before it was dropped and created anew; make a dry run of this one")


def cut(timestamp: Array, seq: Array, keep_last: int | None, cutoff_us: int) -> Key:
    """The point in (timestamp, seq) before which records (int64, in any order) go: behind the newest `keep_last`, or at `cutoff_us`, whichever is later."""
    too_old = Key(cutoff_us, 0)
    if keep_last is None or keep_last >= len(timestamp):
        return max(FIRST, too_old)
    place = len(timestamp) - keep_last
    time_us = int(np.partition(timestamp, place)[place])  # of the oldest one that is kept
    at_that_time = np.sort(seq[timestamp == time_us])
    newer = int(np.count_nonzero(timestamp > time_us))
    return max(Key(time_us, int(at_that_time[len(at_that_time) - (keep_last - newer)])), too_old)


def choose(namespace: Namespace, rules: Rules, pins: str) -> Choice:
    """What the rules come to now."""
    snapshot = _snapshot(namespace, rules.pinned)
    none = np.empty(0, np.int64)
    timestamps, seqs = [none], [none]
    if rules.keep_last is not None:
        for _, timestamp, seq, docs, _ in _live(snapshot, None):
            timestamps.append(timestamp[docs])
            seqs.append(seq[docs])
    before = cut(np.concatenate(timestamps), np.concatenate(seqs), rules.keep_last, rules.cutoff_us)
    return _described(snapshot, Plan(namespace.number, before, snapshot.seq, pins), rules.pinned)


def describe(namespace: Namespace, plan: Plan, pinned: Expression | None) -> Choice:
    """What the plan would erase now."""
    _check_number(plan, namespace)
    return _described(_snapshot(namespace, pinned), plan, pinned)


def _described(snapshot: Snapshot, plan: Plan, pinned: Expression | None) -> Choice:
    count = spared = total = 0
    bounds: list[int] = []
    for _, timestamp, seq, docs, pins in _live(snapshot, pinned):
        total += len(docs)
        named = _before(plan, timestamp, seq, docs)
        going = named[~_are_members(pins, named)]
        spared += len(named) - len(going)
        count += len(going)
        if len(going):
            bounds += [int(timestamp[going].min()), int(timestamp[going].max())]
    return Choice(plan, count, min(bounds, default=None), max(bounds, default=None), spared, total - count)


def carry_out(store: Store, namespace: Namespace, plan: Plan, pinned: Expression | None) -> int:
    """Erase what the plan names and nothing else, and say how many these were."""
    erased = 0
    names = _named(_snapshot(namespace, pinned), plan, pinned)
    while chunk := tuple(islice(names, FORGET_IDS)):
        erased += _erase(store, namespace, chunk, plan.seq)
    return erased


def settle(store: Store, namespace: Namespace, plan: Plan, operation_id: str | None) -> Plan:
    """The plan of this operation: a repeated one has that of its first call, which may not have been carried out to the end."""
    _check_number(plan, namespace)  # the name may have gone to another since the plan was made
    if operation_id is None:
        return plan
    operation = check_name(operation_id, "operation_id")
    result = store.submit(WriteBatch(namespace.number, namespace.epoch, [], operation, operation_result("retain", str(plan)), namespace=namespace))
    if result.operation_result is None:
        return plan
    first = _read(done(result.operation_result, "retain", operation))
    if first.pins != plan.pins:
        raise InvalidInputError(f"operation_id {operation!r} belongs to a call with another pinned; give the same one")
    return first


def _erase(store: Store, namespace: Namespace, ids: Sequence[str], up_to_seq: int) -> int:
    while ids:
        entry, located = forget_entry(namespace, ids, store.clock.now_us())
        batch = WriteBatch(namespace.number, namespace.epoch, [entry._replace(up_to_seq=up_to_seq)], prepared=[located], namespace=namespace)
        if store.submit(batch).appended[0].status is Status.APPENDED:
            break
        newest = [(id, store.writer.find(namespace.number, id)) for id in ids]
        ids = tuple(id for id, entry in newest if entry is not None and entry.seq <= up_to_seq)
    return len(ids)


def _snapshot(namespace: Namespace, pinned: Expression | None) -> Snapshot:
    return namespace.index.snapshot((), EVERYTHING if pinned is None else pinned)


def _live(snapshot: Snapshot, pinned: Expression | None) -> Iterator[tuple[Segment | BufferView, Array, Array, Array, Words]]:
    """Of each part: timestamps, sequence numbers, the documents that are not deleted, and the bitmap of the pinned ones."""
    for part, segment in enumerate(snapshot.segments):
        changes = snapshot.changes.get(part, NO_CHANGES)
        pins = NO_FILTER if pinned is None else segment.passing(pinned)
        yield segment, segment.array("timestamp"), segment.array("seq"), _not_deleted(segment.documents, changes.deleted_seq, snapshot.seq), pins
    for view, pins in zip(snapshot.buffers, snapshot.buffer_filters, strict=True):
        yield view, view.timestamp, view.seq, _not_deleted(view.documents, view.changes.deleted_seq, snapshot.seq), NO_FILTER if pinned is None else pins


def _not_deleted(documents: int, deleted_seq: Array, seq: int) -> Array:
    return np.flatnonzero(deleted_seq[:documents] > seq) if len(deleted_seq) else np.arange(documents)


def _before(plan: Plan, timestamp: Array, seq: Array, docs: Array) -> Array:
    at, number = timestamp[docs], seq[docs]
    earlier = (at < plan.before.timestamp_us) | ((at == plan.before.timestamp_us) & (number < plan.before.seq))
    named: Array = docs[earlier & (number <= plan.seq)]
    return named


def _are_members(words: Words, docs: Array) -> Array:
    if not len(words):
        return np.zeros(len(docs), bool)
    inside: Array = (words[docs >> 6] >> (docs & 63).astype(np.uint64)) & np.uint64(1) != 0
    return inside


def _named(snapshot: Snapshot, plan: Plan, pinned: Expression | None) -> Iterator[str]:
    for part, timestamp, seq, docs, pins in _live(snapshot, pinned):
        named = _before(plan, timestamp, seq, docs)
        for doc in named[~_are_members(pins, named)].tolist():
            yield part.id(doc) if isinstance(part, Segment) else decode_id(part.stored(doc))
