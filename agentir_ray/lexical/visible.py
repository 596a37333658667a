"""What a query sees of a snapshot, for channels that score documents by themselves: they see what a search by words sees, document by document.

A document is seen when it lies in the time range, passes the filter, and is not expired, deleted or superseded as of the query's now (`kernels.visible`). It is named by its ref,
part << 32 | document, as in `search.TopK`. Nothing here needs postings, so cold segments are told of as any other. The expression is the one that the snapshot was taken with.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.bitmap import Words, word_count
from agentir_ray.kernels.seen import mark_seen, which_seen
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.index import NO_FILTER, Snapshot
from agentir_ray.lexical.overlay import NO_CHANGES
from agentir_ray.lexical.search import Visibility

Array = npt.NDArray[Any]


def documents_seen(snapshot: Snapshot, part: int, visibility: Visibility, expression: Expression = EVERYTHING) -> tuple[int, int, Words]:
    """(first, end, words): of segment `part` the documents first..end - 1 lie in the time range, and of them the query sees those in the bitmap `words`, which holds no others.

    Empty words: it sees all of the range. So it is wherever nothing is filtered, nothing happened to the segment's documents, none of them expires and all were written in time.
    """
    segment = snapshot.segments[part]
    first, end = segment.time_range(visibility.since_us, visibility.until_us)
    end = max(first, end)
    expires_at, changes = segment.array("expires_at"), snapshot.changes.get(part, NO_CHANGES)
    hides = len(expires_at) > 0 or len(changes.deleted_seq) > 0 or segment.newest_created_us > visibility.written_until_us
    if first == end or (expression is EVERYTHING and not hides):
        return first, end, NO_FILTER
    passing = NO_FILTER if expression is EVERYTHING else segment.passing(expression)
    words = np.zeros(word_count(segment.documents), np.uint64)
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    mark_seen(first, end, passing, *times, segment.array("created_at"), expires_at, *changes, words)
    return first, end, words


def refs_seen(snapshot: Snapshot, refs: Array, visibility: Visibility, expression: Expression = EVERYTHING) -> npt.NDArray[np.bool_]:
    """bool: which of the documents `refs` (int64, any order; -1: none, which is never seen) the query sees. Raises IndexError for a ref of nothing."""
    refs = np.ascontiguousarray(refs, np.int64)
    out = np.zeros(len(refs), bool)
    part, segments = refs >> 32, len(snapshot.segments)
    asked = visibility.since_us, visibility.until_us
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    for which in np.unique(part).tolist():
        if which < 0:
            continue
        chosen = np.flatnonzero(part == which)
        docs = refs[chosen] & 0xFFFFFFFF
        check_ref(snapshot, which, int(docs.max()))
        seen = np.empty(len(docs), bool)
        if which < segments:
            segment = snapshot.segments[which]
            words = NO_FILTER if expression is EVERYTHING else segment.passing(expression)
            columns = segment.array("timestamp"), segment.array("created_at"), segment.array("expires_at")
            arguments: tuple[Any, ...] = docs, *asked, words, *times, *columns, *snapshot.changes.get(which, NO_CHANGES), seen
        else:
            view = snapshot.buffers[which - segments]
            arguments = docs, *asked, snapshot.buffer_filters[which - segments], *times, view.timestamp, view.created_at, view.expires_at, *view.changes, seen
        which_seen(*arguments)
        out[chosen] = seen
    return out


def check_ref(snapshot: Snapshot, part: int, doc: int) -> None:
    """Raise IndexError unless part `part` of the snapshot has the document `doc`."""
    sizes = [*(segment.documents for segment in snapshot.segments), *(view.documents for view in snapshot.buffers)]
    if not 0 <= part < len(sizes) or doc >= sizes[part]:
        raise IndexError(f"a ref names document {doc} of part {part}, but the snapshot's parts have {sizes} documents")


def refs_of(snapshot: Snapshot, seqs: Array) -> npt.NDArray[np.int64]:
    """The ref of the document with each sequence number (int64, any order), -1 where the snapshot has none; one that was deleted or erased has its ref until it is merged away."""
    seqs = np.ascontiguousarray(seqs, np.int64)
    out = np.full(len(seqs), -1, np.int64)
    missing = np.arange(len(seqs))
    segments = len(snapshot.segments)
    for i, view in enumerate(snapshot.buffers):  # asked for is mostly what is new
        missing = _find(seqs, missing, view.seq[: view.documents], None, segments + i, out)
    for i, segment in enumerate(snapshot.segments):
        if not len(missing):
            break
        least, most = segment.seq_span
        if ((seqs[missing] >= least) & (seqs[missing] <= most)).any():
            missing = _find(seqs, missing, segment.array("seq"), segment.by_seq, i, out)
    return out


def column_of(snapshot: Snapshot, name: str, refs: Array) -> Array:
    """A column's values of documents (int64 refs, any order)."""
    part, doc = refs >> 32, refs & 0xFFFFFFFF
    out: Array = np.zeros(len(refs), np.float64 if name == "importance" else np.int64)
    segments = len(snapshot.segments)
    for i in np.unique(part).tolist():
        here = np.flatnonzero(part == i)
        column = snapshot.segments[i].array(name) if i < segments else getattr(snapshot.buffers[i - segments], name)
        if len(column):  # a segment of records without importance has none
            out[here] = column[doc[here]]
    return out


def _find(seqs: Array, missing: Array, own: Array, by_seq: Array | None, part: int, out: Array) -> Array:
    """Write the refs of those of seqs[missing] that a part has, and return the places of the others. `by_seq` orders its sequence numbers `own`, None: they ascend."""
    wanted = seqs[missing]
    at = np.minimum(np.searchsorted(own, wanted, sorter=by_seq), len(own) - 1)
    docs = at if by_seq is None else by_seq[at]
    found = own[docs] == wanted
    out[missing[found]] = part << 32 | docs[found]
    left: Array = missing[~found]
    return left
