"""Exact top-k over the growing buffer.

It is searched after the segments, under the threshold that they have set. Terms that cannot reach it together, by their largest tf in the shortest document, are not walked: only
the documents of the other ones are scored, by reading their own postings, which lie together. Without a threshold every posting is added up. Either way a document's score is the
canonical one, and one is dropped only when its bound lies strictly below the threshold.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.bm25 import add_priors, contribution
from agentir_ray.kernels.heap import offer
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I32, READ_I64, READ_U64, WRITE_F64, WRITE_I32, WRITE_I64
from agentir_ray.kernels.visible import passes, visible

ABOVE = 1.0 + 1e-12  # what sums of float64 in another order may be rounded by


@numba.njit(cache=True, nogil=True)
def _essential(gain: Any, head: Any, most_tf: Any, shortest: Any, base: Any, slope: Any, extra: Any, threshold: Any, walked: Any) -> Any:
    """walked[i] = whether the i-th term's postings must be walked; returns what the other terms can add together."""
    rest = 0.0
    left = 0
    for i in range(len(gain)):
        walked[i] = 1 if head[i] >= 0 and gain[i] > 0.0 else 0
        left += walked[i]
    while left > 0:
        weakest, least = -1, np.inf
        for i in range(len(gain)):
            if walked[i] == 1:
                bound = contribution(gain[i], float(most_tf[i]), shortest, base, slope)
                if bound < least:
                    weakest, least = i, bound
        if not (rest + least) * ABOVE + extra < threshold:
            break
        rest += least
        walked[weakest] = 0
        left -= 1
    return rest


@numba.njit(cache=True, nogil=True)
def _canonical(d: Any, number: Any, gain: Any, length: Any, base: Any, slope: Any, doc_posting: Any, posting_term: Any, posting_tf: Any, part: Any) -> Any:
    """The score of a document, its terms in the query's order, from its own postings."""
    for i in range(len(gain)):
        part[i] = 0.0
    for p in range(doc_posting[d], doc_posting[d + 1]):
        for i in range(len(gain)):
            if posting_term[p] == number[i] and gain[i] > 0.0:
                part[i] = contribution(gain[i], float(posting_tf[p]), length, base, slope)
    score = 0.0
    for i in range(len(gain)):
        score += part[i]
    return score


@numba.njit(
    [
        INT(
            READ_I32, READ_I32, READ_I32, READ_F64, *[FLOAT] * 5, INT, FLOAT, INT, INT, INT, READ_U64, INT, INT, INT, *[READ_I32] * 4, READ_I64, *[READ_I64] * 5, READ_F64,
            FLOAT, INT, FLOAT, *[READ_I64] * 4, INT, INT, WRITE_F64, WRITE_I64, WRITE_I64, WRITE_F64, WRITE_I32,
        )
    ],
    cache=True,
)  # fmt: skip
def search_buffer(
    head: Any,
    number: Any,
    most_tf: Any,
    gain: Any,
    base: Any,
    slope: Any,
    recency_weight: Any,
    tau_us: Any,
    importance_weight: Any,
    as_of_us: Any,
    min_score: Any,
    documents: Any,
    since_us: Any,
    until_us: Any,
    filter_words: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    posting_doc: Any,
    posting_term: Any,
    posting_tf: Any,
    posting_next: Any,
    doc_posting: Any,
    doc_length: Any,
    seq: Any,
    timestamp: Any,
    created_at: Any,
    expires_at: Any,
    importance: Any,
    shortest: Any,
    newest_us: Any,
    largest_importance: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
    segment: Any,
    size: Any,
    heap_score: Any,
    heap_seq: Any,
    heap_ref: Any,
    accumulator: Any,
    touched: Any,
) -> Any:
    """Offer the buffer's documents to the heap of the k best so far; returns its new size. It needs scratch for all of them, zeros that are left zero again.

    Of the i-th term of the query: head[i] is its newest posting (-1 for none), number[i] its number in the buffer, most_tf[i] its largest tf. shortest, newest_us and
    largest_importance bound the buffer's documents.
    """
    k = len(heap_score)
    threshold = max(min_score, heap_score[0]) if size == k else min_score
    extra = add_priors(0.0, newest_us, largest_importance, as_of_us, recency_weight, tau_us, importance_weight)
    walked, part = np.empty(len(gain), np.int64), np.empty(len(gain), np.float64)
    rest = _essential(gain, head, most_tf, shortest, base, slope, extra, threshold, walked)
    found = 0
    for i in range(len(head)):
        p = np.int64(head[i]) if walked[i] == 1 else np.int64(-1)
        while p >= 0:
            d = np.int64(posting_doc[p])
            if timestamp[d] >= since_us and timestamp[d] <= until_us and passes(d, filter_words):
                added = contribution(gain[i], float(posting_tf[p]), float(doc_length[d]), base, slope)
                if accumulator[d] == 0.0 and added > 0.0:  # a part that vanished must not list the document again
                    touched[found] = d
                    found += 1
                accumulator[d] += added
            p = np.int64(posting_next[p])
    for c in range(found):
        d = np.int64(touched[c])
        score = accumulator[d]
        accumulator[d] = 0.0
        if (score + rest) * ABOVE + extra < threshold:
            continue
        if rest > 0.0:
            score = _canonical(d, number, gain, float(doc_length[d]), base, slope, doc_posting, posting_term, posting_tf, part)
        score = add_priors(score, timestamp[d], importance[d], as_of_us, recency_weight, tau_us, importance_weight)
        if score < min_score or (size == k and score < heap_score[0]):
            continue
        if d < documents and visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us):
            size = offer(score, seq[d], np.int64(segment) << 32 | d, size, heap_score, heap_seq, heap_ref)
            if size == k:
                threshold = max(threshold, heap_score[0])
    return size
