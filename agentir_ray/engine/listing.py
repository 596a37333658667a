"""Records without a query: newest first, or all that a filter names. Filters are bitmaps, as in a search; only what is returned is decoded."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.request import whole_number
from agentir_ray.engine.searching import read_record
from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.bitmap import Words, everything, members
from agentir_ray.kernels.visible import last_visible
from agentir_ray.lexical.buffer import BufferView
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.lexical.index import NO_FILTER
from agentir_ray.lexical.overlay import NO_CHANGES
from agentir_ray.lexical.search import Visibility
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.codec import decode_id
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US, Page

Array = npt.NDArray[Any]
MAX_PAGE = 10_000


class Key(NamedTuple):
    """A record's place in time order; equal times are ordered by sequence number."""

    timestamp_us: int
    seq: int


NEWEST = Key(MAX_TIME_US, NEVER_US)


def recent(namespace: Namespace, limit: int, cursor: str | None, visibility: Visibility, expression: Expression) -> Page:
    """The `limit` newest visible records before `cursor`."""
    whole_number(limit, "limit", 1, MAX_PAGE)
    before = NEWEST if cursor is None else parse_cursor(cursor)
    snapshot = namespace.index.snapshot((), expression)
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    found: list[tuple[int, int, int, int]] = []  # one more than asked for of each part: they say whether there is another page
    for part, segment in enumerate(snapshot.segments):
        changes = snapshot.changes.get(part, NO_CHANGES)
        first, end = segment.time_range(visibility.since_us, visibility.until_us)
        words = NO_FILTER if expression is EVERYTHING else segment.passing(expression)
        docs: Array = np.empty(min(limit + 1, segment.documents), np.int64)
        docs = docs[: last_visible(first, min(end, _place(segment, before)), words, *times, segment.array("created_at"), segment.array("expires_at"), *changes, docs)]
        found += _keyed(segment.array("timestamp"), segment.array("seq"), part, docs)
    for part, (view, words) in enumerate(zip(snapshot.buffers, snapshot.buffer_filters, strict=True), len(snapshot.segments)):
        docs = np.empty(view.documents, np.int64)
        docs = docs[: last_visible(0, view.documents, words, *times, view.created_at, view.expires_at, *view.changes, docs)][::-1]
        timestamp, seq = view.timestamp[docs], view.seq[docs]
        within = (timestamp >= visibility.since_us) & (timestamp <= visibility.until_us)
        docs = docs[within & ((timestamp < before.timestamp_us) | ((timestamp == before.timestamp_us) & (seq < before.seq)))]
        # They came in the order of their sequence numbers, which a stable sort keeps among equal times.
        newest = docs[np.argsort(view.timestamp[docs], kind="stable")[::-1][: limit + 1]]
        found += _keyed(view.timestamp, view.seq, part, newest)
    found.sort(reverse=True)
    records = tuple(read_record(snapshot, part, doc, seq) for _, seq, part, doc in found[:limit])
    return Page(records, f"{found[limit - 1][0]}.{found[limit - 1][1]}" if len(found) > limit else None)


def _place(segment: Segment, before: Key) -> int:
    """The first document that is not before the key; documents lie in the order of keys."""
    timestamp = segment.array("timestamp")
    first, end = int(np.searchsorted(timestamp, before.timestamp_us, "left")), int(np.searchsorted(timestamp, before.timestamp_us, "right"))
    return first + int(np.searchsorted(segment.array("seq")[first:end], before.seq))


def _keyed(timestamp: Array, seq: Array, part: int, docs: Array) -> list[tuple[int, int, int, int]]:
    return list(zip(timestamp[docs].tolist(), seq[docs].tolist(), [part] * len(docs), docs.tolist(), strict=True))


def parse_cursor(cursor: object) -> Key:
    try:
        timestamp, seq = str.split(cursor, ".")  # type: ignore[arg-type]
        key = Key(int(timestamp), int(seq))
    except (TypeError, ValueError):
        key = NEWEST
    if not (MIN_TIME_US <= key.timestamp_us <= MAX_TIME_US and 0 < key.seq < NEVER_US):
        raise InvalidInputError(f"cursor is {shown(cursor)}; give the cursor of the previous page")
    return key


def matching_ids(namespace: Namespace, expression: Expression) -> list[str]:
    """The ids of all records that are not deleted and pass the filter, whatever their expiry or supersession, in the order of their sequence numbers."""
    snapshot = namespace.index.snapshot((), expression)
    found: list[tuple[int, str]] = []
    for part, segment in enumerate(snapshot.segments):
        changes = snapshot.changes.get(part, NO_CHANGES)
        found += _live(segment, segment.array("seq"), changes.deleted_seq, segment.passing(expression), snapshot.seq)
    for view, words in zip(snapshot.buffers, snapshot.buffer_filters, strict=True):
        found += _live(view, view.seq, view.changes.deleted_seq, everything(view.documents) if expression is EVERYTHING else words, snapshot.seq)
    return [id for _, id in sorted(found)]


def _live(part: Segment | BufferView, seq: Array, deleted_seq: Array, words: Words, snapshot_seq: int) -> list[tuple[int, str]]:
    docs = members(words)
    if len(deleted_seq):
        docs = docs[deleted_seq[docs] > snapshot_seq]
    id_of = part.id if isinstance(part, Segment) else lambda doc: decode_id(part.stored(doc))
    return [(at, id_of(doc)) for at, doc in zip(seq[docs].tolist(), docs.tolist(), strict=True)]


def known_ids(namespace: Namespace, ids: Sequence[str]) -> list[str]:
    """Those of `ids` whose records were not erased."""
    index = namespace.index
    located = index.locate(ids)
    with index.lock:
        return index.known(located)
