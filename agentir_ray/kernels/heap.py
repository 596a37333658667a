"""The k best documents so far, as a binary heap in three arrays with the worst at its root.

The order is total: by score, then by sequence number, newer first; so equal scores never depend on who came first.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_F64, READ_I64, WRITE_F64, WRITE_I64

FEW_TIES = 32  # that many are sorted by insertion


@numba.njit(cache=True, nogil=True)
def _worse(score_a: Any, seq_a: Any, score_b: Any, seq_b: Any) -> Any:
    return score_a < score_b or (score_a == score_b and seq_a < seq_b)


@numba.njit(cache=True, nogil=True)
def _sift_down(score: Any, seq: Any, ref: Any, size: Any, heap_score: Any, heap_seq: Any, heap_ref: Any) -> None:
    """Put a document in the place of the root of the heap's first `size`."""
    i = 0
    child = 1
    while child < size:
        if child + 1 < size and _worse(heap_score[child + 1], heap_seq[child + 1], heap_score[child], heap_seq[child]):
            child += 1
        if not _worse(heap_score[child], heap_seq[child], score, seq):
            break
        heap_score[i], heap_seq[i], heap_ref[i] = heap_score[child], heap_seq[child], heap_ref[child]
        i = child
        child = 2 * i + 1
    heap_score[i], heap_seq[i], heap_ref[i] = score, seq, ref


@numba.njit(cache=True, nogil=True)
def offer(score: Any, seq: Any, ref: Any, size: Any, heap_score: Any, heap_seq: Any, heap_ref: Any) -> Any:
    """Offer a document to the heap of the k best, the worst at its root; returns the new size."""
    if size == len(heap_score):
        if _worse(heap_score[0], heap_seq[0], score, seq):
            _sift_down(score, seq, ref, size, heap_score, heap_seq, heap_ref)
        return size
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if not _worse(score, seq, heap_score[parent], heap_seq[parent]):
            break
        heap_score[i], heap_seq[i], heap_ref[i] = heap_score[parent], heap_seq[parent], heap_ref[parent]
        i = parent
    heap_score[i], heap_seq[i], heap_ref[i] = score, seq, ref
    return size + 1


@numba.njit([numba.void(INT, WRITE_F64, WRITE_I64, WRITE_I64)], cache=True)
def sort_heap(size: Any, heap_score: Any, heap_seq: Any, heap_ref: Any) -> None:
    """Turn the heap into a list, best first, in place."""
    for end in range(size - 1, 0, -1):
        score, seq, ref = heap_score[end], heap_seq[end], heap_ref[end]
        heap_score[end], heap_seq[end], heap_ref[end] = heap_score[0], heap_seq[0], heap_ref[0]
        _sift_down(score, seq, ref, end, heap_score, heap_seq, heap_ref)


@numba.njit([numba.void(READ_F64, READ_I64, WRITE_I64)], cache=True)
def order_ties(score: Any, seq: Any, order: Any) -> None:
    """`order` lists places by descending score; put those of equal scores in the order of descending sequence number, in place."""
    first = 0
    for i in range(1, len(order) + 1):
        if i < len(order) and score[order[i]] == score[order[first]]:
            continue
        if i - first > FEW_TIES:
            tied = order[first:i].copy()
            order[first:i] = tied[np.argsort(-seq[tied])]
        else:
            for j in range(first + 1, i):
                moved = order[j]
                while j > first and seq[order[j - 1]] < seq[moved]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = moved
        first = i
