"""Search by vectors: parts (segments with their sidecars) from the first to the last as the caller orders them, and the young rows.

Exact: a record's score is the canonical dot product (`kernels.flat`) of its best row, plus the record's prior; the order is by score, then by sequence number, newer first. What
the caller's clock cuts is named. A record is named by its ref, part number << 32 | document.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.sidecar import DenseSidecar
from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.flat import score_documents

Array = npt.NDArray[Any]
_NO_PRIOR = np.empty(0, np.float64)


class DensePart(NamedTuple):
    """What of a segment is searched: the documents first..end - 1 that `visible` has (uint64 words; none: all of them).

    `number` is what refs call the part, seq int64 (documents), prior float64 (documents), or empty where there is none.
    """

    sidecar: DenseSidecar
    number: int
    first: int
    end: int
    visible: Array
    seq: Array
    prior: Array = _NO_PRIOR


class YoungRows(NamedTuple):
    """Records that no sidecar has, those alone that are visible: seq, ref int64 (n), start int64 (n + 1), vectors float32 (rows, dim), prior float64 (n) or empty."""

    seq: Array
    ref: Array
    start: Array
    vectors: Array
    prior: Array = _NO_PRIOR


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
    asked = _checked(parts, young, query)
    found = [_of_young(young, asked)] if young is not None else []
    left = np.zeros(len(parts), bool)
    for i, part in enumerate(parts):
        if expired is not None and expired():
            left[i] = True
            continue
        found.append(_of_part(part, asked))
    score, seq, ref = (np.concatenate(columns) for columns in zip(*found, strict=True)) if found else (np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    order = np.lexsort((-seq, -score))
    order = order[score[order] >= min_score][:k]
    return DenseTop(score[order], seq[order], ref[order], left)


def scores(parts: Sequence[DensePart], young: YoungRows | None, query: Array, refs: Array) -> Array:
    """float64: the score of each record of `refs` (int64), in any order; NaN where it has no vector. Whether it may be seen is not asked."""
    asked = _checked(parts, young, query)
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
    """How many records come before (score, seq): those of a larger score, or of an equal one and newer."""
    if math.isnan(score):
        raise ValueError("score is NaN, which comes neither before nor after anything")
    asked = _checked(parts, young, query)
    found = [_of_part(part, asked) for part in parts] + ([_of_young(young, asked)] if young is not None else [])
    return sum(int(((scored > score) | ((scored == score) & (seqs > seq))).sum()) for scored, seqs, _ in found)


def _checked(parts: Sequence[DensePart], young: YoungRows | None, query: Array) -> Array:
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


def _of_part(part: DensePart, query: Array) -> tuple[Array, Array, Array]:
    """(score, seq, ref) of every visible record that has a vector."""
    docs = np.arange(part.first, part.end)
    if len(part.visible):
        docs = docs[(part.visible[docs >> 6] >> (docs & 63).astype(np.uint64)) & np.uint64(1) != 0]
    docs = docs[part.sidecar.has(docs)]
    return _scores(part.sidecar.row_start, part.sidecar.vectors, docs, query, part.prior), part.seq[docs], part.number << 32 | docs


def _of_young(young: YoungRows, query: Array) -> tuple[Array, Array, Array]:
    records = np.flatnonzero(np.diff(young.start))
    return _scores(young.start, young.vectors, records, query, young.prior), young.seq[records], young.ref[records]
