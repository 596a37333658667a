"""The steps that lead to our kernel, each in its plain textbook form: what `ablation` compares.

All read the same lists: documents int32, ascending, and impacts float32, tf / (tf + norm) computed beforehand. So they are spared what the engine does for every query, because
statistics move. All fill the same heap, the engine's own, whatever k; the engine itself keeps more than 128 results by selection (`kernels/heap.py`).
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.heap import offer, sort_heap

Array = npt.NDArray[Any]
WINDOW = 65_536  # documents whose scores fit the second-level cache
ABOVE = np.float32(1.0 + 1e-5)  # what sums of float32 may be rounded by


@numba.njit(cache=True, nogil=True)
def exhaustive(starts: Any, stops: Any, gains: Any, posting_doc: Any, posting_impact: Any, scores: Any, heap_score: Any, heap_doc: Any, heap_ref: Any) -> Any:
    """Add every posting to the score of its document, then offer every document to the heap. `scores`: zeros, one a document; left zero."""
    for i in range(len(starts)):
        for p in range(starts[i], stops[i]):
            scores[posting_doc[p]] += gains[i] * posting_impact[p]
    size = 0
    for d in range(len(scores)):
        score = scores[d]
        scores[d] = 0.0
        if score > 0.0 and (size < len(heap_score) or score >= heap_score[0]):
            size = offer(np.float64(score), d, d, size, heap_score, heap_doc, heap_ref)
    sort_heap(size, heap_score, heap_doc, heap_ref)
    return size


def vectorised(starts: Array, stops: Array, gains: Array, posting_doc: Array, posting_impact: Array, scores: Array, k: int) -> tuple[Array, Array]:
    """The same in numpy: one operation a list, then a partial selection. Returns (documents, scores), best first."""
    for start, stop, gain in zip(starts.tolist(), stops.tolist(), gains, strict=True):
        scores[posting_doc[start:stop]] += gain * posting_impact[start:stop]
    touched = np.flatnonzero(scores > 0.0)  # a selection among many zeros takes numpy ten times as long
    found = scores[touched]
    best = np.argpartition(found, len(found) - k)[len(found) - k :] if k < len(found) else np.arange(len(found))
    best = best[np.argsort(found[best])[::-1]]
    scores.fill(0.0)
    return touched[best], found[best]


@numba.njit(cache=True, nogil=True)
def windowed(
    starts: Any, stops: Any, gains: Any, posting_doc: Any, posting_impact: Any, scores: Any, chosen: Any, documents: Any, heap_score: Any, heap_doc: Any, heap_ref: Any
) -> Any:
    """`exhaustive`, a window after the other, so that scores stay in the cache; documents below the k-th best are left out without a branch. Scratch: WINDOW zeros, WINDOW + 1."""
    cursor = starts.copy()
    size = 0
    for origin in range(0, documents, WINDOW):
        end = min(origin + WINDOW, documents)
        for i in range(len(starts)):
            p = cursor[i]
            while p < stops[i] and posting_doc[p] < end:
                scores[posting_doc[p] - origin] += gains[i] * posting_impact[p]
                p += 1
            cursor[i] = p
        threshold = np.float32(heap_score[0]) if size == len(heap_score) else np.float32(0.0)
        found = 0
        for low in range(end - origin):
            chosen[found] = low
            found += 1 if (scores[low] >= threshold) & (scores[low] > 0.0) else 0
        for c in range(found):
            d = origin + np.int64(chosen[c])
            size = offer(np.float64(scores[chosen[c]]), d, d, size, heap_score, heap_doc, heap_ref)
        scores[: end - origin] = 0.0
    sort_heap(size, heap_score, heap_doc, heap_ref)
    return size


@numba.njit(cache=True, nogil=True, inline="always")
def _advance(posting_doc: Any, p: Any, stop: Any, doc: Any) -> Any:
    """The first posting from p on of a document that is not before `doc`: by steps that double, then by halving."""
    step = 1
    while p + step < stop and posting_doc[p + step] < doc:
        p += step
        step *= 2
    last = min(p + step, stop)
    while p < last:
        middle = (p + last) >> 1
        if posting_doc[middle] < doc:
            p = middle + 1
        else:
            last = middle
    return p


@numba.njit(cache=True, nogil=True)
def maxscore(starts: Any, stops: Any, gains: Any, bounds: Any, posting_doc: Any, posting_impact: Any, heap_score: Any, heap_doc: Any, heap_ref: Any) -> Any:
    """MaxScore a document at a time (Turtle and Flood 1995): lists whose maxima cannot reach the k-th best score together are only looked up. bounds[i]: of list i's impacts."""
    order = np.argsort(gains * bounds)
    terms = len(order)
    cursor, stop, gain, below = np.empty(terms, np.int64), np.empty(terms, np.int64), np.empty(terms, np.float32), np.zeros(terms + 1, np.float32)
    for j in range(terms):
        i = order[j]
        cursor[j], stop[j], gain[j] = starts[i], stops[i], gains[i]
        below[j + 1] = below[j] + gains[i] * bounds[i] * ABOVE
    size, first = 0, 0
    threshold = np.float32(0.0)
    while first < terms:
        doc = np.int64(2**62)
        for j in range(first, terms):
            if cursor[j] < stop[j]:
                doc = min(doc, np.int64(posting_doc[cursor[j]]))
        if doc == 2**62:
            break
        score = np.float32(0.0)
        for j in range(first, terms):
            p = cursor[j]
            if p < stop[j] and posting_doc[p] == doc:
                score += gain[j] * posting_impact[p]
                cursor[j] = p + 1
        for j in range(first - 1, -1, -1):
            if score * ABOVE + below[j + 1] < threshold:
                break
            p = _advance(posting_doc, cursor[j], stop[j], doc)
            cursor[j] = p
            if p < stop[j] and posting_doc[p] == doc:
                score += gain[j] * posting_impact[p]
        if size < len(heap_score) or score >= threshold:
            size = offer(np.float64(score), doc, doc, size, heap_score, heap_doc, heap_ref)
            if size == len(heap_score):
                threshold = np.float32(heap_score[0])
                while first < terms and below[first + 1] < threshold:
                    first += 1
    sort_heap(size, heap_score, heap_doc, heap_ref)
    return size
