"""Search by vectors: parts (segments with their sidecars) from the first to the last as the caller orders them, and the young rows.

Exact: a record's score is the canonical dot product (`kernels.flat`) of its best row, plus the record's prior; the order is by score, then by sequence number, newer first. What
the caller's clock cuts is named. A record is named by its ref, part number << 32 | document.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.codes import QueryRotations
from agentir_ray.dense.parts import NO_PRIOR, CodedRows, DensePart, ScoredDocuments, open_part
from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.flat import score_documents

Array = npt.NDArray[Any]
YOUNG = -1  # what takes the place of a part's number until refs are told


class YoungRows(NamedTuple):
    """Records that no sidecar has, those alone that are visible: seq, ref int64 (n), start int64 (n + 1), vectors float32 (rows, dim), prior float64 (n) or empty."""

    seq: Array
    ref: Array
    start: Array
    vectors: Array
    prior: Array = NO_PRIOR


class DenseTop(NamedTuple):
    """The answer, best first: score float64, seq int64, ref int64; and of each part whether it was left out, as the time was up (bool)."""

    score: Array
    seq: Array
    ref: Array
    left: Array


def top_k(
    parts: Sequence[DensePart],
    young: YoungRows | None,
    query: Array,
    k: int,
    min_score: float = -np.inf,
    expired: Callable[[], bool] | None = None,
) -> DenseTop:
    """The k best records of score >= min_score; k >= 1. query float32 (dim). `expired` is asked before each part whether the time is up; young rows are always searched."""
    return _Search(parts, young, query).top_k(k, min_score, expired)


def scores(parts: Sequence[DensePart], young: YoungRows | None, query: Array, refs: Array) -> Array:
    """float64: the score of each record of `refs` (int64), in any order; NaN where it has no vector. Whether it may be seen is not asked."""
    asked = checked(parts, young, query)
    refs = np.ascontiguousarray(refs, np.int64)
    out = np.full(len(refs), np.nan)
    number = refs >> 32
    for part in parts:
        chosen = np.flatnonzero(number == part.number)
        out[chosen] = _scores(part.sidecar.row_start, part.sidecar.vectors, refs[chosen] & 0xFFFFFFFF, asked, part.prior)
    if young is not None:
        order = np.argsort(young.ref)
        place = np.searchsorted(young.ref, refs, sorter=order)
        there = np.flatnonzero(young.ref[order[np.minimum(place, len(order) - 1)]] == refs) if len(order) else np.empty(0, np.int64)
        out[there] = _scores(young.start, young.vectors, order[place[there]], asked, young.prior)
    return out


def count_before(parts: Sequence[DensePart], young: YoungRows | None, query: Array, score: float, seq: int) -> int:
    """How many records come before (score, seq): those of a larger score, or of an equal one and newer. The cost grows with their number."""
    _check_score(score)
    return sum(part.count_before(score, seq) for part in _Search(parts, young, query).opened())


def count_interval(parts: Sequence[DensePart], young: YoungRows | None, query: Array, score: float, seq: int) -> tuple[int, int]:
    """(no more than `count_before`, no less): without reading a vector of a part that has codes."""
    _check_score(score)
    intervals = [part.interval_before(score, seq) for part in _Search(parts, young, query).opened()]
    return sum(least for least, _ in intervals), sum(most for _, most in intervals)


class Deeper:
    """The exact order of all records, from the best on, as far as it is asked for. The whole costs no more than a few times the search for as many at once."""

    def __init__(self, parts: Sequence[DensePart], young: YoungRows | None, query: Array) -> None:
        """Arguments as in `top_k`."""
        self._search = _Search(parts, young, query, keep=True)
        self._found = DenseTop(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(len(parts), bool))
        self._given = 0
        self._all = False

    def next(self, count: int) -> DenseTop:
        """The next `count` records; fewer only at the end of the list."""
        end = self._given + count
        if end > len(self._found.score) and not self._all:
            wanted = max(end, 2 * len(self._found.score))  # doubling: each record is found twice on average, whatever the steps
            self._found = self._search.top_k(wanted, -np.inf, None)
            self._all = len(self._found.score) < wanted
        here = slice(self._given, end)
        self._given = min(end, len(self._found.score))
        score, seq, ref, left = self._found
        return DenseTop(score[here], seq[here], ref[here], left)


class _Search:
    """One query over some parts and young rows. To `keep` is to keep what was read of them for the next question."""

    def __init__(self, parts: Sequence[DensePart], young: YoungRows | None, query: Array, keep: bool = False) -> None:
        self._parts, self._young = parts, young
        self._query = checked(parts, young, query)
        self._rotations = QueryRotations(self._query)
        self._keep = keep
        self._kept: dict[int, ScoredDocuments | CodedRows] = {}

    def opened(self) -> Iterator[ScoredDocuments | CodedRows]:
        """Young rows, then every part; each is to be asked before the next one is taken."""
        if self._young is not None:
            yield self._open_young(self._young)
        for i in range(len(self._parts)):
            yield self._open(i)

    def top_k(self, k: int, min_score: float, expired: Callable[[], bool] | None) -> DenseTop:
        k = min(k, sum(part.end - part.first for part in self._parts) + (len(self._young.seq) if self._young is not None else 0))
        heap = np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.int64)
        left = np.zeros(len(self._parts), bool)
        size = self._open_young(self._young).best(min_score, 0, heap) if self._young is not None and k else 0
        for i in range(len(self._parts)):
            if expired is not None and expired():
                left[i] = True
            elif k:
                size = self._open(i).best(min_score, size, heap)
        score, seq, ref = heap[0][:size], heap[1][:size], heap[2][:size]
        order = np.lexsort((-seq, -score))
        ref = ref[order]
        of_young = np.flatnonzero(ref < 0)
        if self._young is not None:
            ref[of_young] = self._young.ref[ref[of_young] & 0xFFFFFFFF]
        return DenseTop(score[order], seq[order], ref, left)

    def _open(self, i: int) -> ScoredDocuments | CodedRows:
        if i in self._kept:
            return self._kept[i]
        opened = open_part(self._parts[i], self._query, self._rotations, self._keep)
        if self._keep:
            self._kept[i] = opened
        return opened

    def _open_young(self, young: YoungRows) -> ScoredDocuments:
        return ScoredDocuments(young.start, young.vectors, np.flatnonzero(np.diff(young.start)), young.seq, young.prior, YOUNG, self._query)


def _check_score(score: float) -> None:
    if math.isnan(score):
        raise ValueError("score is NaN, which comes neither before nor after anything")


def checked(parts: Sequence[DensePart], young: YoungRows | None, query: Array) -> Array:
    """The query as the kernels read it. Raises InvalidInputError where it is of another width than the vectors, or not finite."""
    query = np.asarray(query)
    dims = {part.sidecar.dim for part in parts} | ({young.vectors.shape[1]} if young is not None else set())
    if query.ndim != 1 or query.dtype != np.float32 or any(dim != len(query) for dim in dims):
        raise InvalidInputError(f"the query is {query.dtype} {query.shape}; the vectors searched are float32 of width {sorted(dims)}: encode it by their encoder")
    if not np.isfinite(query).all():
        raise InvalidInputError("the query's vector is not finite; see what the encoder makes of its text")
    return query.astype(np.float64)


def _scores(start: Array, vectors: Array, docs: Array, query: Array, prior: Array) -> Array:
    out = np.empty(len(docs), np.float64)
    score_documents(start, vectors, docs, query, prior, out)
    return out
