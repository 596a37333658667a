"""The k best documents so far, in three arrays with the worst in front: few of them as a binary heap; many in no order, to which those found late are merged from time to time.

A heap moves an entry through ten levels of three arrays for each that comes; for k = 1,000 that was half of a search. Selecting the k best of the old and of as many new ones
costs a quarter of it, and the threshold lags little.

The order is total: by score, then by sequence number, newer first; so equal scores never depend on who came first.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_F64, READ_I64, WRITE_F64, WRITE_I64

FEW = 128  # results that are kept as a heap
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


@numba.njit(cache=True, nogil=True)
def largest(values: Any, size: Any, rank: Any) -> Any:
    """The rank-th largest (1 is the first) of values[:size]: quickselect that copies who is above or below, without a branch on what it reads."""
    among, other = values[:size].copy(), np.empty(size, values.dtype)
    while True:
        first, middle, last = among[0], among[size >> 1], among[size - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        above = equal = 0
        for i in range(size):
            value = among[i]
            other[above] = value
            above += 1 if value > pivot else 0
            equal += 1 if value == pivot else 0
        if rank > above and rank <= above + equal:
            return pivot
        if rank > above:
            rank -= above + equal
            above = 0
            for i in range(size):
                value = among[i]
                other[above] = value
                above += 1 if value < pivot else 0
        among, other = other, among
        size = above


@numba.njit(cache=True, nogil=True)
def late_room(k: Any) -> Any:
    """How many late documents are gathered before they are merged into k."""
    return k if k > FEW else 0


@numba.njit(cache=True, nogil=True)
def merge_late(size: Any, score: Any, seq: Any, ref: Any, late: Any, late_score: Any, late_seq: Any, late_ref: Any) -> Any:
    """Merge `late` documents into the best `size` of at most k = len(score); returns their new number. When there are k of them, the worst is in front, the rest in no order."""
    k = len(score)
    taken = min(k - size, late)
    for j in range(taken):
        score[size + j], seq[size + j], ref[size + j] = late_score[j], late_seq[j], late_ref[j]
    size += taken
    if size < k:
        return size
    if taken < late:
        both = np.empty(k + late - taken, np.float64)
        both[:k] = score
        both[k:] = late_score[taken:late]
        least = largest(both, len(both), k)
        above = equal = 0
        for value in both:
            above += 1 if value > least else 0
            equal += 1 if value == least else 0
        oldest = np.int64(-(2**63))
        if above + equal > k:
            tied = np.empty(equal, np.int64)
            equal = 0
            for i in range(k):
                if score[i] == least:
                    tied[equal] = seq[i]
                    equal += 1
            for j in range(taken, late):
                if late_score[j] == least:
                    tied[equal] = late_seq[j]
                    equal += 1
            oldest = largest(tied, equal, k - above)
        j = taken
        for i in range(k):
            if score[i] < least or (score[i] == least and seq[i] < oldest):
                while late_score[j] < least or (late_score[j] == least and late_seq[j] < oldest):
                    j += 1
                score[i], seq[i], ref[i] = late_score[j], late_seq[j], late_ref[j]
                j += 1
    worst = 0
    for i in range(1, k):
        if _worse(score[i], seq[i], score[worst], seq[worst]):
            worst = i
    score[0], score[worst] = score[worst], score[0]
    seq[0], seq[worst] = seq[worst], seq[0]
    ref[0], ref[worst] = ref[worst], ref[0]
    return size


@numba.njit(cache=True, nogil=True)
def sort_late(size: Any, score: Any, seq: Any, ref: Any) -> None:
    """`sort_heap` of many documents in any order."""
    order = np.argsort(-score[:size])
    order_ties(score, seq, order)
    score[:size], seq[:size], ref[:size] = score[order], seq[order], ref[order]
