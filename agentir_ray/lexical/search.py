"""Top k of a snapshot: segments from the newest on, then the buffers, each under the threshold already reached.

Exact: equal to scoring every document (see `kernels.topk`). A segment whose bound lies strictly below the threshold is skipped and named; what a deadline cuts is named, too, and
so are cold segments, which cannot be searched.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels import topk
from agentir_ray.kernels.heap import FEW, order_ties, sort_heap
from agentir_ray.kernels.invert import WINDOW
from agentir_ray.kernels.rows import CHANGES, END, FILTER, FIRST, HIDDEN, UNKNOWN, point_to
from agentir_ray.kernels.topk_buffer import search_buffer
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Priors, Scoring
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US

Array = npt.NDArray[Any]
Expired = Callable[[], bool]  # whether the time is up
LONG_POSTINGS = 65_536  # some 0.1 ms of work; with less the GIL is kept, as getting it back beside a busy writer would cost more
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
    """The answer, best first: score float64, seq int64, and ref int64 = part << 32 | document, one each a document.

    Bool (segments): `skipped` could not reach the answer, `left` were not searched, because the time was up or because they are cold. Buffers always are.
    """

    score: Array
    seq: Array
    ref: Array
    skipped: Array
    left: Array

    def listed(self, offset: int = 0) -> list[tuple[float, int, int, int]]:
        """(score, seq, part, doc) of each document, from some place on."""
        return [
            (score, seq, ref >> 32, ref & 0xFFFFFFFF) for score, seq, ref in zip(self.score[offset:].tolist(), self.seq[offset:].tolist(), self.ref[offset:].tolist(), strict=True)
        ]

    @property
    def found(self) -> list[Found]:
        """The same with names."""
        return [Found(*one) for one in self.listed()]


class Look(NamedTuple):
    """What of some segments a query may see: the kernel's `rows`, the `order` in which to search them, ordinals int64 (terms, rows), and the `segments`, as `order` goes."""

    rows: Array
    order: Array
    ordinals: Array
    segments: Array
    held: list[Array]  # what the rows point to beside the snapshot's own arrays


def top_k(
    snapshot: Snapshot,
    scoring: Scoring,
    k: int,
    visibility: Visibility,
    expression: Expression = EVERYTHING,
    priors: Priors = Priors(),
    min_score: float = -np.inf,
    expired: Expired | None = None,
) -> TopK:
    """The k best visible documents, best first, equal scores newer first; k >= 1. `expired` is asked before each segment whether the time is up."""
    heap = np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.int64)
    query = scoring_arguments(scoring, priors, visibility, min_score)
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    # Many results are kept as segments leave them, in no order, where the buffers want a heap: then these go first.
    size = search_buffers(snapshot, None, query, visibility, 0, heap) if k > FEW else 0
    look = look_at(snapshot, visibility, expression)
    skipped, left = np.zeros(len(snapshot.segments), np.int64), snapshot.cold.copy()
    if len(look.order):
        kernel = _search_long if sum(snapshot.statistics.df) > LONG_POSTINGS else topk.search
        passed_over = np.zeros(len(look.rows), np.int64)
        for part in (slice(None),) if expired is None else (slice(i, i + 1) for i in range(len(look.order))):
            if expired is not None and expired():
                left[look.segments[part]] = True
                continue
            arguments: tuple[Any, ...] = look.rows, look.order[part], look.ordinals, *query, *times, size, *heap, passed_over, *scratch()
            size = kernel(*arguments)
        skipped[look.segments] = passed_over[look.order]
    if k <= FEW:
        size = search_buffers(snapshot, None, query, visibility, size, heap)
    return TopK(*best_first(size, *heap), skipped.astype(bool), left)


def best_first(size: int, score: Array, seq: Array, ref: Array) -> tuple[Array, Array, Array]:
    """The first `size` places of a heap as lists, best first, equal scores newer first."""
    if len(score) <= FEW:
        sort_heap(size, score, seq, ref)
        return score[:size], seq[:size], ref[:size]
    order = np.argsort(-score[:size])  # numpy sorts numbers many at a time
    order_ties(score, seq, order)
    return score[order], seq[order], ref[order]


def _search_long(*arguments: Any) -> int:
    size: int = topk.search_long(arguments)
    return size


def scoring_arguments(scoring: Scoring, priors: Priors, visibility: Visibility, min_score: float) -> tuple[Any, ...]:
    return scoring.gain, scoring.base, scoring.slope, priors.recency_weight, priors.tau_us, priors.importance_weight, visibility.as_of_us, min_score


def search_buffers(snapshot: Snapshot, chosen: Array | None, query: tuple[Any, ...], visibility: Visibility, size: int, heap: tuple[Array, Array, Array]) -> int:
    """Offer the buffers' documents to the heap; returns its new size. `chosen` are the places of the query's terms among the snapshot's, None: all, in order."""
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    for i in reversed(range(len(snapshot.buffers))):
        view = snapshot.buffers[i]
        terms = (view.head, view.number, view.most_tf) if chosen is None else (view.head[chosen], view.number[chosen], view.most_tf[chosen])
        arguments: tuple[Any, ...] = (
            *terms, *query, view.documents, visibility.since_us, visibility.until_us, snapshot.buffer_filters[i], *times,
            view.posting_doc, view.posting_term, view.posting_tf, view.posting_next, view.doc_posting,
            view.length, view.seq, view.timestamp, view.created_at, view.expires_at, view.importance, view.shortest, view.newest_us, view.largest_importance,
            *view.changes, len(snapshot.segments) + i, size, *heap, *_buffer_scratch(view.documents),
        )  # fmt: skip
        size = search_buffer(*arguments)
    return size


def look_at(snapshot: Snapshot, visibility: Visibility, expression: Expression = EVERYTHING, segments: Array | None = None) -> Look:
    """Of `segments` (default: those that can be searched and hold something of the time range, the newest first) what a query may see."""
    since_us, until_us = visibility.since_us, visibility.until_us
    all_times = since_us == MIN_TIME_US and until_us == MAX_TIME_US
    if segments is None:
        segments = snapshot.newest_first
        if not all_times:
            segments = segments[(snapshot.newest[segments] >= since_us) & (snapshot.oldest[segments] <= until_us)]
    if all_times and expression is EVERYTHING and not snapshot.changes:
        return Look(snapshot.rows, segments, snapshot.ordinals, segments, [])
    chosen = segments.tolist()
    rows, ordinals, held = snapshot.rows[segments], snapshot.ordinals.take(segments, axis=1), []
    if not all_times:
        for place, i in enumerate(chosen):
            segment = snapshot.segments[i]
            oldest_us, newest_us = segment.span_us
            if oldest_us < since_us or newest_us > until_us:
                first, end = segment.time_range(since_us, until_us)
                rows[place, FIRST], rows[place, END], rows[place, HIDDEN] = first, max(first, end), UNKNOWN
    for place, i in enumerate(chosen) if snapshot.changes else ():
        if i in snapshot.changes:
            rows[place, HIDDEN] += snapshot.segments[i].overlay.changed_at_most
            for j, column in enumerate(snapshot.changes[i]):
                point_to(rows[place], CHANGES + 2 * j, column)
    if expression is not EVERYTHING:
        for place, i in enumerate(chosen):
            if rows[place, FIRST] == rows[place, END] or ordinals[:, place].max(initial=-1) < 0:
                rows[place, END] = rows[place, FIRST]  # nothing is there to be filtered
                continue
            words = snapshot.segments[i].passing(expression)
            held.append(words)
            rows[place, HIDDEN] = UNKNOWN
            point_to(rows[place], FILTER, words)
    return Look(rows, np.arange(len(chosen)), ordinals, segments, held)


def scratch() -> tuple[Any, ...]:
    """This thread's accumulator, always left zero, and its lists of touched and of surviving documents."""
    arrays: tuple[Any, ...] | None = getattr(_local, "scratch", None)
    if arrays is None:
        arrays = _local.scratch = np.zeros(WINDOW, np.float32), np.empty(WINDOW + 1, np.uint16), np.empty(WINDOW, np.float32)
    return arrays


def _buffer_scratch(documents: int) -> tuple[Any, Any]:
    arrays: tuple[Any, Any] | None = getattr(_local, "buffer_scratch", None)
    if arrays is None or len(arrays[0]) < documents:
        room = max(4_096, 2 * documents)
        arrays = _local.buffer_scratch = np.zeros(room, np.float64), np.empty(room, np.int32)
    return arrays
