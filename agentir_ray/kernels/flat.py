"""The score of a vector: its dot product with the query, as one canonical function.

Products of two float32 are exact in float64, so the score depends on the order of the sum alone (and not on whether the machine fuses a product with its sum): lane j of 16 adds
the products of dimensions j, j + 16, j + 32, ... in this order, and the lanes are added in halves, j and j + 8, then j and j + 4, and so on. `tests/naive_dense.py` has the same.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.heap import FEW, late_room, merge_late, offer
from agentir_ray.kernels.memory import prefetch
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I64, WRITE_F64, WRITE_I64, reads, table

LANES = 16
READ_F32 = reads(numba.float32)
READ_F32_2D = table(numba.float32, readonly=True)


@numba.njit(cache=True, nogil=True)
def dot(vector: Any, query: Any, lane: Any) -> Any:
    """The canonical dot product of a float32 vector and a float64 query, whose values are float32; `lane` is scratch, float64 (LANES)."""
    lane[:] = 0.0
    whole = len(query) // LANES * LANES
    for i in range(0, whole, LANES):
        for j in range(LANES):
            lane[j] += np.float64(vector[i + j]) * query[i + j]
    for j in range(len(query) - whole):
        lane[j] += np.float64(vector[whole + j]) * query[whole + j]
    width = LANES >> 1
    while width > 0:
        for j in range(width):
            lane[j] += lane[j + width]
        width >>= 1
    return lane[0]


@numba.njit([numba.void(READ_I64, READ_F32_2D, READ_I64, READ_F64, READ_F64, WRITE_F64)], cache=True, nogil=True)
def score_documents(start: Any, vectors: Any, docs: Any, query: Any, prior: Any, out: Any) -> None:
    """out[j] = the score of document docs[j]: the best of its rows start[d]:start[d + 1], plus its prior (an empty array stands for zeros); NaN where it has no row."""
    lane = np.empty(LANES, np.float64)
    for j in range(len(docs)):
        d = docs[j]
        best = -np.inf
        for row in range(start[d], start[d + 1]):
            best = max(best, dot(vectors[row], query, lane))
        if start[d] == start[d + 1]:
            best = np.nan
        out[j] = best + prior[d] if len(prior) > 0 else best


@numba.njit([INT(READ_I64, READ_F32_2D, READ_I64, READ_F32, FLOAT, READ_F64, READ_F64, READ_I64, INT, FLOAT, INT, WRITE_F64, WRITE_I64, WRITE_I64)], cache=True, nogil=True)
def offer_documents(
    start: Any,
    vectors: Any,
    docs: Any,
    bound: Any,
    unit: Any,
    query: Any,
    prior: Any,
    seq: Any,
    number: Any,
    floor: Any,
    size: Any,
    heap_score: Any,
    heap_seq: Any,
    heap_ref: Any,
) -> Any:
    """Offer documents of score >= floor, each with a row at least, to the k = len(heap_score) best so far (`kernels.heap`); returns their new number.

    bound[j] * unit is what no row of docs[j] reaches more than; an empty `bound` stands for no bounds. One whose bound and prior lie below what the k best have is not scored.
    """
    k = len(heap_score)
    lane = np.empty(LANES, np.float64)
    room = late_room(k)
    late_score, late_seq, late_ref = np.empty(room, np.float64), np.empty(room, np.int64), np.empty(room, np.int64)
    late = 0
    threshold = max(floor, heap_score[0]) if size == k else floor
    for j in range(len(docs)):
        d = docs[j]
        if j + 1 < len(docs):
            ahead = start[docs[j + 1]]
            for i in range(0, len(query) if ahead < len(vectors) else 0, 16):
                prefetch(vectors[ahead], i)
        extra = prior[d] if len(prior) > 0 else 0.0
        if len(bound) > 0 and np.float64(bound[j]) * unit + extra < threshold:
            continue
        best = -np.inf
        for row in range(start[d], start[d + 1]):
            best = max(best, dot(vectors[row], query, lane))
        score = best + extra
        if score < threshold:
            continue
        ref = number << 32 | d
        if k <= FEW:
            size = offer(score, seq[d], ref, size, heap_score, heap_seq, heap_ref)
        else:
            late_score[late], late_seq[late], late_ref[late] = score, seq[d], ref
            late += 1
            if late == room or size + late == k:
                size = merge_late(size, heap_score, heap_seq, heap_ref, late, late_score, late_seq, late_ref)
                late = 0
        if size == k:
            threshold = max(threshold, heap_score[0])
    if late > 0:
        size = merge_late(size, heap_score, heap_seq, heap_ref, late, late_score, late_seq, late_ref)
    return size
