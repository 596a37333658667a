"""Top k of many queries on one snapshot, over threads: what an evaluation or a batch job asks.

Each answer is that of `search.top_k` on the same snapshot, to the last bit. What Python does a query is little: the terms of all queries are looked up and weighed together, and
a kernel without the GIL answers a run of queries at a time. Threads take the next run when they are done with one, so that none waits for a slow query of another.
"""

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels import topk
from agentir_ray.kernels.heap import FEW, sort_heap, sort_late
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.index import Index, Snapshot
from agentir_ray.lexical.query import Bm25, Priors, Query, Scoring, inverse_document_frequencies
from agentir_ray.lexical.search import Found, TopK, Visibility, look_at, scoring_arguments, scratch, search_buffers
from agentir_ray.lexical.segment import ColdSegmentError

Array = npt.NDArray[Any]
MAX_K = 10_000
MAX_THREADS = 1_024
MAX_WEIGHT = 1e100  # of a term, and 1 / MAX_WEIGHT the least: products with it stay far from overflow, and above zero
RUN = 32  # queries of a run at most: a few milliseconds
RUNS_A_THREAD = 16  # at least, so that threads end together


class TopKMany(NamedTuple):
    """The answers: of query i the first size[i] entries of row i, best first. score float64, seq int64, ref int64 = part << 32 | document (queries, width); size int64.

    `width` is k, or the number of the snapshot's documents where that is less. Rows are not defined beyond their size. The snapshot is the one that refs point into.
    """

    snapshot: Snapshot
    score: Array
    seq: Array
    ref: Array
    size: Array

    def of(self, query: int) -> TopK:
        """The answer of one query. Segments that were skipped by their bound are counted as searched."""
        size = self.size[query]
        none = np.zeros(len(self.snapshot.segments), bool)
        return TopK(self.score[query, :size], self.seq[query, :size], self.ref[query, :size], none, none)

    def found(self, query: int) -> list[Found]:
        return self.of(query).found


class _Batch(NamedTuple):
    """Query i has the terms start[i]:start[i + 1] of `chosen`, places among the snapshot's, and of `gain`."""

    start: Array
    chosen: Array
    gain: Array
    base: float
    slope: float


def top_k_many(
    index: Index,
    queries: Sequence[Query],
    k: int,
    visibility: Visibility,
    bm25: Bm25 = Bm25(),
    expression: Expression = EVERYTHING,
    priors: Priors = Priors(),
    min_score: float = -np.inf,
    threads: int = 1,
) -> TopKMany:
    """The k best visible documents for each query, all on the snapshot that is taken now, in `threads` threads (this one among them).

    The answers are found in their place, and what they do not fill is not touched: beside them it needs memory for the terms of the queries, and 1 MiB a thread. Raises
    InvalidInputError for arguments that mean nothing.
    """
    _check(queries, k, bm25, priors, min_score, threads)
    terms = list(itertools.chain.from_iterable([query.terms for query in queries]))
    distinct = dict(zip(dict.fromkeys(terms), itertools.count(), strict=False))
    snapshot = index.snapshot(tuple(distinct), expression)
    if snapshot.cold.any():
        raise ColdSegmentError(*[segment for segment in snapshot.segments if segment.cold])
    batch = _prepare(snapshot, queries, terms, distinct, bm25)
    documents = sum(segment.documents for segment in snapshot.segments) + sum(view.documents for view in snapshot.buffers)
    shape = len(queries), max(1, min(k, documents))
    answer = TopKMany(snapshot, np.empty(shape, np.float64), np.empty(shape, np.int64), np.empty(shape, np.int64), np.zeros(len(queries), np.int64))
    if documents:
        _search(answer, batch, visibility, expression, priors, min_score, threads)
    return answer


def _check(queries: Sequence[Query], k: int, bm25: Bm25, priors: Priors, min_score: float, threads: int) -> None:
    for name, value, most in (("k", k, MAX_K), ("threads", threads, MAX_THREADS)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
            raise InvalidInputError(f"{name} is {value!r}; give a whole number from 1 to {most:,}")
    if not (0.0 <= bm25.k1 < math.inf and 0.0 <= bm25.b <= 1.0):
        raise InvalidInputError(f"bm25 is {tuple(bm25)}; k1 is 0 or more, and b from 0 to 1")
    if not (0.0 <= priors.recency_weight < math.inf and 0.0 <= priors.importance_weight < math.inf and priors.tau_us > 0.0):
        raise InvalidInputError(f"priors are {tuple(priors)}; weights are 0 or more, and tau_us is above 0")
    if math.isnan(min_score):
        raise InvalidInputError("min_score is NaN; give a number, or leave it out")
    for i, query in enumerate(queries):
        if len(query.terms) != len(query.weights):
            raise InvalidInputError(f"query {i} has {len(query.terms)} terms and {len(query.weights)} weights; give one a term")


def _prepare(snapshot: Snapshot, queries: Sequence[Query], terms: list[str], distinct: dict[str, int], bm25: Bm25) -> _Batch:
    statistics = snapshot.statistics
    start = np.zeros(len(queries) + 1, np.int64)
    np.cumsum([len(query.terms) for query in queries], out=start[1:])
    chosen = np.fromiter(map(distinct.__getitem__, terms), np.int64, len(terms))
    weights = np.fromiter(itertools.chain.from_iterable([query.weights for query in queries]), np.float64, len(terms))
    sound = (np.abs(weights) <= MAX_WEIGHT) & ((weights <= 0.0) | (weights >= 1.0 / MAX_WEIGHT))
    if not sound.all():
        wrong = int(np.argmin(sound))
        raise InvalidInputError(f"the weight of the term {terms[wrong]!r} is {weights[wrong]}; give one from {1 / MAX_WEIGHT} to {MAX_WEIGHT}, or 0 to leave it out")
    # As `query.scoring` has it, in the same order of operations.
    gain = weights * inverse_document_frequencies(statistics.documents, np.array(statistics.df, np.int64))[chosen] * (bm25.k1 + 1.0)
    return _Batch(start, chosen, gain, bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / statistics.average_length)


def _search(answer: TopKMany, batch: _Batch, visibility: Visibility, expression: Expression, priors: Priors, min_score: float, threads: int) -> None:
    snapshot = answer.snapshot
    queries = len(answer.size)
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    look = look_at(snapshot, visibility, expression)
    run = max(1, min(RUN, queries // (threads * RUNS_A_THREAD)))
    firsts = iter(range(0, queries, run))  # every thread takes from it, which the GIL makes safe

    def work() -> None:
        for first in firsts:
            end = min(first + run, queries)
            start = batch.start[first : end + 1]
            mine = slice(start[0], start[-1])
            start, chosen = start - start[0], batch.chosen[mine]
            query = scoring_arguments(Scoring(batch.gain[mine], batch.base, batch.slope), priors, visibility, min_score)
            size, score, seq, ref = answer.size[first:end], answer.score[first:end], answer.seq[first:end], answer.ref[first:end]
            for i in range(end - first) if snapshot.buffers else ():
                own = slice(start[i], start[i + 1])
                size[i] = search_buffers(snapshot, chosen[own], (query[0][own], *query[1:]), visibility, 0, (score[i], seq[i], ref[i]))
            if snapshot.segments:
                segments = look.rows, look.order, look.ordinals[chosen]
                arguments: tuple[Any, ...] = *segments, start, *query, *times, 0, end - first, size, score, seq, ref, *scratch()
                topk.search_many(*arguments)
            else:
                for i in range(end - first):
                    (sort_heap if answer.score.shape[1] <= FEW else sort_late)(size[i], score[i], seq[i], ref[i])

    helpers = min(threads, -(-queries // run)) - 1
    if helpers < 1:
        work()
        return
    with ThreadPoolExecutor(helpers) as pool:
        futures = [pool.submit(work) for _ in range(helpers)]
        work()
        for future in futures:
            future.result()
