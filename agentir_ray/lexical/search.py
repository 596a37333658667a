"""Top k of a snapshot: newest parts first, each under the threshold already reached.

Exact: equal to scoring every document (see `kernels.topk`). A segment whose bound lies strictly below the threshold is skipped and counted; what a deadline cuts is counted too.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.bm25 import SLACK, add_priors, segment_bound
from agentir_ray.kernels.heap import sort_heap
from agentir_ray.kernels.invert import WINDOW
from agentir_ray.kernels.topk import search_buffer, search_long_segment, search_segment
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.index import NO_FILTER, Snapshot
from agentir_ray.lexical.query import Priors, Scoring
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US

LONG_POSTINGS = 65_536  # some 0.2 ms of work; with less the GIL is kept, as getting it back beside a busy writer would cost more
_local = threading.local()


class Visibility(NamedTuple):
    """What the query may see.

    `as_of_us` is its now; `written_until_us` is the same where the caller named it, else no limit at all: what was acknowledged is there, whatever the clocks say.
    """

    as_of_us: int
    written_until_us: int = NEVER_US - 1
    since_us: int = MIN_TIME_US
    until_us: int = MAX_TIME_US


class Found(NamedTuple):
    """One document of the answer. `part` counts the snapshot's segments first, then its buffers."""

    score: float
    seq: int
    part: int
    doc: int


class TopK(NamedTuple):
    found: list[Found]
    searched: int
    skipped_by_bound: int
    not_searched: int


def top_k(
    snapshot: Snapshot,
    scoring: Scoring,
    k: int,
    visibility: Visibility,
    expression: Expression = EVERYTHING,
    priors: Priors = Priors(),
    min_score: float = -np.inf,
    expired: Callable[[], bool] | None = None,
) -> TopK:
    """The k best visible documents, best first, equal scores newer first; k >= 1. `expired` is asked before each part whether the time is up."""
    heap = np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.int64)
    scratch = _scratch(max([WINDOW, *(view.documents for view in snapshot.buffers)]))
    query = scoring.gain, scoring.base, scoring.slope, priors.recency_weight, priors.tau_us, priors.importance_weight, visibility.as_of_us, min_score
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    size = searched = skipped = 0
    segments = len(snapshot.segments)

    for i in reversed(range(len(snapshot.buffers))):
        view = snapshot.buffers[i]
        if view.documents:
            arguments: tuple[Any, ...] = (
                view.head, *query, view.documents, visibility.since_us, visibility.until_us, snapshot.buffer_filters[i], *times,
                view.posting_doc, view.posting_tf, view.posting_next, view.length, view.seq, view.timestamp, view.created_at, view.expires_at, view.importance,
                *view.changes, segments + i, size, *heap, *scratch,
            )  # fmt: skip
            size = search_buffer(*arguments)
            searched += 1

    is_long = sum(snapshot.statistics.df) > LONG_POSTINGS
    not_searched = 0
    newest_first = sorted(range(segments), key=lambda i: -snapshot.segments[i].span_us[1]) if segments > 1 else range(segments)
    for i in newest_first:
        if expired is not None and expired():
            not_searched += 1
            continue
        segment, ordinal = snapshot.segments[i], snapshot.ordinals[i]
        first, end = _time_range(segment, visibility)
        if first == end or (expression is not EVERYTHING and ordinal.max(initial=-1) < 0):
            searched += 1
            continue
        # A lone segment is as fast read as bounded: the kernel bounds each window.
        if size == k and segments > 1 and _reach(segment, ordinal, scoring, priors, visibility, first, end) < heap[0][0]:
            skipped += 1
            continue
        words = NO_FILTER if expression is EVERYTHING else segment.passing(expression)
        arguments = (ordinal, *query, first, end, words, *times, *segment.searched, segment.largest_importance, *snapshot.changes[i], i, size, *heap, *scratch)
        size = search_long_segment(arguments) if is_long else search_segment(*arguments)
        searched += 1

    sort_heap(size, *heap)
    score, seq, ref = (values[:size].tolist() for values in heap)
    return TopK([Found(score[j], seq[j], ref[j] >> 32, ref[j] & 0xFFFFFFFF) for j in range(size)], searched, skipped, not_searched)


def _time_range(segment: Segment, visibility: Visibility) -> tuple[int, int]:
    if visibility.since_us == MIN_TIME_US and visibility.until_us == MAX_TIME_US:
        return 0, segment.documents
    first, end = segment.time_range(visibility.since_us, visibility.until_us)
    return first, max(first, end)


def _reach(segment: Segment, ordinal: npt.NDArray[np.int64], scoring: Scoring, priors: Priors, visibility: Visibility, first: int, end: int) -> float:
    """What the segment can reach at most for this query."""
    block, window, _, skyline, skyline_tf, skyline_length = segment.searched[:6]
    bound = segment_bound(ordinal, scoring.gain, scoring.base, scoring.slope, first, end, block, window, skyline, skyline_tf, skyline_length)
    extra = add_priors(
        0.0, int(segment.array("timestamp")[end - 1]), segment.largest_importance, visibility.as_of_us, priors.recency_weight, priors.tau_us, priors.importance_weight
    )
    return float(bound + extra * SLACK)


def _scratch(documents: int) -> tuple[Any, Any]:
    """This thread's accumulator, always left zero, and its list of touched documents."""
    scratch: tuple[Any, Any] | None = getattr(_local, "scratch", None)
    if scratch is None or len(scratch[0]) < documents:
        scratch = _local.scratch = np.zeros(documents, np.float64), np.empty(documents, np.int32)
    return scratch
