"""The baseline of the temporal experiments: a question answered by reading every document once, in one thread, with no index at all.

Documents are their terms, packed: uint32, ascending within a document, end to end. A block of terms is compared with the question's (eight at a time, without branches, at the
speed of memory); only documents in which one matched are scored, by the same canonical function as the engine's, so that the best score must be equal to the last bit.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.bm25 import contribution
from agentir_ray.kernels.heap import offer, sort_heap
from agentir_ray.lexical.query import Scoring

Array = npt.NDArray[Any]
BLOCK = 1_024  # terms whose marks fit the first-level cache
MOST_TERMS = 8  # of a question
NO_TERM = 0xFFFFFFFF


def scan(terms: Array, start: Array, wanted: Array, scoring: Scoring, k: int = 10) -> Array:
    """The best k scores, best first; document d is terms[start[d] : start[d + 1]], `wanted` the question's terms in its order."""
    padded = np.full(MOST_TERMS, NO_TERM, np.uint32)
    padded[: len(wanted)] = wanted
    heap = np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.int64)
    size = _scan(terms, start, padded, len(wanted), scoring.gain, scoring.base, scoring.slope, np.zeros(BLOCK, np.uint8), *heap)
    return heap[0][:size]


@numba.njit(cache=True, nogil=True)
def _scan(terms: Any, start: Any, q: Any, count: Any, gain: Any, base: Any, slope: Any, mark: Any, heap_score: Any, heap_doc: Any, heap_ref: Any) -> Any:
    a, b, c, d, e, f, g, h = q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]
    marks = mark.view(np.uint64)
    tf = np.zeros(len(q), np.int64)
    doc, end, size = 0, start[1], 0
    for first in range(0, len(terms), BLOCK):
        part = terms[first : first + BLOCK]
        if len(part) < BLOCK:
            mark[:] = 0
        for i in range(len(part)):
            t = part[i]
            mark[i] = (t == a) | (t == b) | (t == c) | (t == d) | (t == e) | (t == f) | (t == g) | (t == h)
        for w in range(len(marks)):
            if marks[w] == 0:
                continue
            for i in range(8 * w, 8 * w + 8):
                if mark[i] == 0:
                    continue
                if first + i >= end:
                    size = _finish(doc, start, tf, count, gain, base, slope, size, heap_score, heap_doc, heap_ref)
                    while start[doc + 1] <= first + i:
                        doc += 1
                    end = start[doc + 1]
                for j in range(count):
                    tf[j] += part[i] == q[j]
    size = _finish(doc, start, tf, count, gain, base, slope, size, heap_score, heap_doc, heap_ref)
    sort_heap(size, heap_score, heap_doc, heap_ref)
    return size


@numba.njit(cache=True, nogil=True, inline="always")
def _finish(doc: Any, start: Any, tf: Any, count: Any, gain: Any, base: Any, slope: Any, size: Any, heap_score: Any, heap_doc: Any, heap_ref: Any) -> Any:
    """Score a document of which all terms were seen, and offer it."""
    score = 0.0
    for j in range(count):
        if tf[j]:
            score += contribution(gain[j], tf[j], start[doc + 1] - start[doc], base, slope)
            tf[j] = 0
    if score > 0.0 and (size < len(heap_score) or score >= heap_score[0]):
        size = offer(score, doc, doc, size, heap_score, heap_doc, heap_ref)
    return size
