"""Records without a query: newest first, or all that a filter names. Filters are bitmaps, as in a search; only what is returned is decoded."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.request import whole_number
from agentir_ray.engine.searching import read_record
from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.bitmap import members
from agentir_ray.lexical.buffer import Buffer, BufferView
from agentir_ray.lexical.filters import EVERYTHING, Expression, evaluate
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.lexical.index import Snapshot
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
    found: list[tuple[int, int, int, int]] = []
    for part in range(len(snapshot.segments) + len(snapshot.buffers)):
        timestamp, seq, docs = _candidates(snapshot, part, visibility, expression)
        earlier = (timestamp < before.timestamp_us) | ((timestamp == before.timestamp_us) & (seq < before.seq))
        timestamp, seq, docs = timestamp[earlier], seq[earlier], docs[earlier]
        newest = np.lexsort((seq, timestamp))[::-1][: limit + 1]
        found += zip(timestamp[newest].tolist(), seq[newest].tolist(), [part] * len(newest), docs[newest].tolist(), strict=True)
    found.sort(reverse=True)
    records = tuple(read_record(snapshot, part, doc, seq) for _, seq, part, doc in found[:limit])
    return Page(records, f"{found[limit - 1][0]}.{found[limit - 1][1]}" if len(found) > limit else None)


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
    found: list[tuple[int, str]] = []
    index = namespace.index
    with index.lock:
        for part in index.parts:
            passing = members(evaluate(expression, part))
            deleted = part.column("deleted_seq") if isinstance(part, Buffer) else part.overlay.deleted_seq
            live = passing[deleted[passing] == NEVER_US] if len(deleted) else passing
            found += ((int(part.column("seq")[doc]), decode_id(part.stored[doc] if isinstance(part, Buffer) else part.stored(doc))) for doc in live.tolist())
    return [id for _, id in sorted(found)]


def known_ids(namespace: Namespace, ids: Sequence[str]) -> list[str]:
    """Those of `ids` whose records were not erased."""
    with namespace.index.lock:
        return [id for id in ids if namespace.index.find(id)]


def _candidates(snapshot: Snapshot, part: int, visibility: Visibility, expression: Expression) -> tuple[Array, Array, Array]:
    """timestamp, seq and number of the documents that pass the filter, the time range and `visible` (see kernels.visible), in one part."""
    source: Segment | BufferView
    if part < len(snapshot.segments):
        source = snapshot.segments[part]
        count = source.documents
        words = None if expression is EVERYTHING else source.passing(expression)
        columns = {name: source.column(name) for name in ("timestamp", "seq", "created_at", "expires_at")}
        deletions = list(snapshot.changes[part])
    else:
        source = snapshot.buffers[part - len(snapshot.segments)]
        count = source.documents
        words = None if expression is EVERYTHING else snapshot.buffer_filters[part - len(snapshot.segments)]
        columns = {name: getattr(source, name)[:count] for name in ("timestamp", "seq", "created_at", "expires_at")}
        deletions = [source.deleted_seq, source.deleted_at, source.superseded_seq, source.superseded_at]
    docs: Array = np.arange(count) if words is None else members(words)
    columns = {name: column[docs] for name, column in columns.items()}
    shown = (columns["timestamp"] >= visibility.since_us) & (columns["timestamp"] <= visibility.until_us)
    shown &= (columns["created_at"] <= visibility.written_until_us) & (columns["expires_at"] > visibility.as_of_us)
    if len(deletions[0]):
        deleted_seq, deleted_at, superseded_seq, superseded_at = (column[docs] for column in deletions)
        shown &= (deleted_seq > snapshot.seq) | (deleted_at > visibility.written_until_us)
        shown &= (superseded_seq > snapshot.seq) | (superseded_at > visibility.written_until_us)
    return columns["timestamp"][shown], columns["seq"][shown], docs[shown]
