"""Exact BM25 top-k over one segment or the buffer (DESIGN 4): windowed MaxScore.

**The score is one canonical function.** With gain = weight * idf * (k1 + 1), base = k1 * (1 - b) and slope = k1 * b / average length, a term adds `gain * (tf / (tf + (base +
slope * length)))`, in float64; contributions are added in the order of the query's terms, then `+ recency`, then `+ importance`. `contribution` and `add_priors` below are the
only places that compute it.

**Pruning never decides a tie.** Sums used to prune may be added in another order, so bounds are raised by 1 + 1e-6 and a document is dropped only when strictly below the k-th
score; survivors are scored canonically. Equal scores are ordered by sequence number, newer first.

A segment is read in windows of 65,536 documents. Lists are added into an accumulator, strongest first; those that cannot reach the threshold together are not: the
documents touched so far are probed in them.
"""

import math
from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.invert import TF_LIMIT, WINDOW
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I32, READ_I64, READ_U8, READ_U16, READ_U32, READ_U64, WRITE_F64, WRITE_I32, WRITE_I64

SLACK = 1.0 + 1e-6


@numba.njit(cache=True, nogil=True, inline="always")
def contribution(gain: Any, tf: Any, length: Any, base: Any, slope: Any) -> Any:
    """What a term with this tf adds to a document of this length. Grows with tf, falls with length."""
    return gain * (tf / (tf + (base + slope * length)))


@numba.njit(cache=True, nogil=True, inline="always")
def add_priors(score: Any, timestamp_us: Any, importance: Any, as_of_us: Any, recency_weight: Any, tau_us: Any, importance_weight: Any) -> Any:
    """score + recency_weight * exp(-age / tau) + importance_weight * importance; a weight of 0 adds nothing."""
    if recency_weight > 0.0:
        score += recency_weight * math.exp(-max(0.0, float(as_of_us - timestamp_us)) / tau_us)
    if importance_weight > 0.0:
        score += importance_weight * importance
    return score


@numba.njit(cache=True, nogil=True)
def _worse(score_a: Any, seq_a: Any, score_b: Any, seq_b: Any) -> Any:
    return score_a < score_b or (score_a == score_b and seq_a < seq_b)


@numba.njit(cache=True, nogil=True)
def offer(score: Any, seq: Any, ref: Any, size: Any, heap_score: Any, heap_seq: Any, heap_ref: Any) -> Any:
    """Offer a document to the heap of the k best, the worst at its root; returns the new size."""
    k = len(heap_score)
    if size < k:
        i = size
        size += 1
        while i > 0:
            parent = (i - 1) >> 1
            if not _worse(score, seq, heap_score[parent], heap_seq[parent]):
                break
            heap_score[i], heap_seq[i], heap_ref[i] = heap_score[parent], heap_seq[parent], heap_ref[parent]
            i = parent
    else:
        if not _worse(heap_score[0], heap_seq[0], score, seq):
            return size
        i = 0
        while True:
            child = 2 * i + 1
            if child >= k:
                break
            if child + 1 < k and _worse(heap_score[child + 1], heap_seq[child + 1], heap_score[child], heap_seq[child]):
                child += 1
            if not _worse(heap_score[child], heap_seq[child], score, seq):
                break
            heap_score[i], heap_seq[i], heap_ref[i] = heap_score[child], heap_seq[child], heap_ref[child]
            i = child
    heap_score[i], heap_seq[i], heap_ref[i] = score, seq, ref
    return size


@numba.njit([numba.void(INT, WRITE_F64, WRITE_I64, WRITE_I64)], cache=True, nogil=True)
def sort_heap(size: Any, heap_score: Any, heap_seq: Any, heap_ref: Any) -> None:
    """Turn the heap into a list, best first, in place."""
    for end in range(size - 1, 0, -1):
        score, seq, ref = heap_score[end], heap_seq[end], heap_ref[end]
        heap_score[end], heap_seq[end], heap_ref[end] = heap_score[0], heap_seq[0], heap_ref[0]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= end:
                break
            if child + 1 < end and _worse(heap_score[child + 1], heap_seq[child + 1], heap_score[child], heap_seq[child]):
                child += 1
            if not _worse(heap_score[child], heap_seq[child], score, seq):
                break
            heap_score[i], heap_seq[i], heap_ref[i] = heap_score[child], heap_seq[child], heap_ref[child]
            i = child
        heap_score[i], heap_seq[i], heap_ref[i] = score, seq, ref


@numba.njit(cache=True, nogil=True)
def visible(
    doc: Any,
    created_at: Any,
    expires_at: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
) -> Any:
    """Whether the query sees the document: written by `written_until_us`, and not expired, deleted or superseded then, as far as the snapshot knows.

    Empty arrays stand for "none is". Erasures carry the earliest time as deleted_at: they hold for every `as_of`.
    """
    if created_at[doc] > written_until_us:
        return False
    if len(expires_at) > 0 and expires_at[doc] <= expiry_now_us:
        return False
    if len(deleted_seq) > 0:
        if deleted_seq[doc] <= snapshot_seq and deleted_at[doc] <= written_until_us:
            return False
        if superseded_seq[doc] <= snapshot_seq and superseded_at[doc] <= written_until_us:
            return False
    return True


@numba.njit(cache=True, nogil=True, inline="always")
def _passes(doc: Any, words: Any) -> Any:
    return len(words) == 0 or (words[doc >> 6] >> np.uint64(doc & 63)) & np.uint64(1) != 0


@numba.njit(cache=True, nogil=True)
def _lower_bound(posting_doc: Any, lo: Any, hi: Any, doc: Any) -> Any:
    while lo < hi:
        mid = (lo + hi) >> 1
        if posting_doc[mid] < doc:
            lo = mid + 1
        else:
            hi = mid
    return lo


@numba.njit(cache=True, nogil=True)
def exact_tf(posting: Any, posting_tf: Any, overflow_posting: Any, overflow_tf: Any) -> Any:
    """The tf of a posting, through the overflow table where the byte is full."""
    tf = np.int64(posting_tf[posting])
    if tf == TF_LIMIT:
        return np.int64(overflow_tf[np.searchsorted(overflow_posting, posting)])
    return tf


@numba.njit([INT(INT, INT, READ_I64, READ_U32, READ_I64, READ_U16, READ_U8, READ_I64, READ_U32)], cache=True, nogil=True)
def term_tf(ordinal: Any, doc: Any, term_block: Any, block_window: Any, block_posting: Any, posting_doc: Any, posting_tf: Any, overflow_posting: Any, overflow_tf: Any) -> Any:
    """tf of a term in a document, 0 where it does not occur."""
    window = doc // WINDOW
    for b in range(term_block[ordinal], term_block[ordinal + 1]):
        if block_window[b] == window:
            p = _lower_bound(posting_doc, block_posting[b], block_posting[b + 1], doc - window * WINDOW)
            if p < block_posting[b + 1] and posting_doc[p] == doc - window * WINDOW:
                return exact_tf(p, posting_tf, overflow_posting, overflow_tf)
    return 0


@numba.njit(cache=True, nogil=True)
def _block_bound(block: Any, gain: Any, base: Any, slope: Any, block_skyline: Any, skyline_tf: Any, skyline_length: Any) -> Any:
    bound = 0.0
    for s in range(block_skyline[block], block_skyline[block + 1]):
        bound = max(bound, contribution(gain, float(skyline_tf[s]), float(skyline_length[s]), base, slope))
    return bound


@numba.njit([FLOAT(READ_I64, READ_F64, FLOAT, FLOAT, INT, INT, READ_I64, READ_U32, READ_I64, READ_U32, READ_U32)], cache=True, nogil=True)
def segment_bound(
    ordinal: Any, gain: Any, base: Any, slope: Any, first_doc: Any, end_doc: Any, term_block: Any, block_window: Any, block_skyline: Any, skyline_tf: Any, skyline_length: Any
) -> Any:
    """An upper bound of the BM25 part of any document of [first_doc, end_doc): the sum of the terms' best blocks, raised by the slack."""
    total = 0.0
    for i in range(len(ordinal)):
        best = 0.0
        if ordinal[i] >= 0:
            for b in range(term_block[ordinal[i]], term_block[ordinal[i] + 1]):
                start = np.int64(block_window[b]) * WINDOW
                if start < end_doc and start + WINDOW > first_doc:
                    best = max(best, _block_bound(b, gain[i], base, slope, block_skyline, skyline_tf, skyline_length))
        total += best
    return total * SLACK


@numba.njit(cache=True, nogil=True)
def _kth_best(
    k: Any,
    found: Any,
    touched: Any,
    accumulator: Any,
    origin: Any,
    created_at: Any,
    expires_at: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
) -> Any:
    """The k-th largest of what the visible documents have accumulated, -inf where there are fewer: at least k documents will score as much, but for rounding."""
    best = np.empty(k, np.float64)
    size = 0
    for c in range(found):
        score = accumulator[touched[c]]
        if size == k and score <= best[0]:
            continue
        d = origin + np.int64(touched[c])
        if not visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us):
            continue
        if size < k:
            i = size
            size += 1
            while i > 0 and score < best[(i - 1) >> 1]:
                best[i] = best[(i - 1) >> 1]
                i = (i - 1) >> 1
        else:
            i = 0
            child = 1
            while child < k:
                if child + 1 < k and best[child + 1] < best[child]:
                    child += 1
                if best[child] >= score:
                    break
                best[i] = best[child]
                i = child
                child = 2 * i + 1
        best[i] = score
    return best[0] if size == k else -np.inf


@numba.njit(
    [
        INT(
            READ_I64,
            READ_F64,
            FLOAT,
            FLOAT,
            FLOAT,
            FLOAT,
            FLOAT,
            INT,
            FLOAT,
            INT,
            INT,
            READ_U64,
            INT,
            INT,
            INT,
            READ_I64,
            READ_U32,
            READ_I64,
            READ_I64,
            READ_U32,
            READ_U32,
            READ_U16,
            READ_U8,
            READ_I64,
            READ_U32,
            READ_U32,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_F64,
            FLOAT,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_I64,
            INT,
            INT,
            WRITE_F64,
            WRITE_I64,
            WRITE_I64,
            WRITE_F64,
            WRITE_I32,
        )
    ],
    cache=True,
    nogil=True,
)
def search_segment(
    # the query: one ordinal (-1: not in this segment) and gain a term, in the query's order
    ordinal: Any,
    gain: Any,
    base: Any,
    slope: Any,
    recency_weight: Any,
    tau_us: Any,
    importance_weight: Any,
    as_of_us: Any,
    min_score: Any,
    # which documents it may see
    first_doc: Any,
    end_doc: Any,
    filter_words: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    # the segment
    term_block: Any,
    block_window: Any,
    block_posting: Any,
    block_skyline: Any,
    skyline_tf: Any,
    skyline_length: Any,
    posting_doc: Any,
    posting_tf: Any,
    overflow_posting: Any,
    overflow_tf: Any,
    doc_length: Any,
    seq: Any,
    timestamp: Any,
    created_at: Any,
    expires_at: Any,
    importance: Any,
    largest_importance: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
    # the heap so far, and scratch: WINDOW zeros, and room for WINDOW documents
    segment: Any,
    size: Any,
    heap_score: Any,
    heap_seq: Any,
    heap_ref: Any,
    accumulator: Any,
    touched: Any,
) -> Any:
    """Offer the segment's documents to the heap; returns its new size. `importance` may be empty (all 0), a ref is segment << 32 | document."""
    terms = len(ordinal)
    k = len(heap_score)
    cursor = np.empty(terms, np.int64)
    for i in range(terms):
        cursor[i] = term_block[ordinal[i]] if ordinal[i] >= 0 else 0
    active = np.empty(terms, np.int64)
    start = np.empty(terms, np.int64)
    stop = np.empty(terms, np.int64)
    bound = np.empty(terms, np.float64)
    weaker = np.empty(terms + 1, np.float64)

    for window in range(first_doc // WINDOW, (end_doc + WINDOW - 1) // WINDOW):
        origin = window * WINDOW
        lo = max(0, first_doc - origin)
        hi = min(WINDOW, end_doc - origin)
        threshold = max(heap_score[0], min_score) if size == k else min_score
        n = 0
        total = 0.0
        postings = np.int64(0)
        for i in range(terms):
            if ordinal[i] < 0 or gain[i] <= 0.0:
                continue
            last = term_block[ordinal[i] + 1]
            while cursor[i] < last and block_window[cursor[i]] < window:
                cursor[i] += 1
            b = cursor[i]
            if b == last or block_window[b] != window:
                continue
            p, q = block_posting[b], block_posting[b + 1]
            if lo > 0:
                p = _lower_bound(posting_doc, p, q, lo)
            if hi < WINDOW:
                q = _lower_bound(posting_doc, p, q, hi)
            if p == q:
                continue
            active[n] = i
            start[n] = p
            stop[n] = q
            bound[n] = _block_bound(b, gain[i], base, slope, block_skyline, skyline_tf, skyline_length) * SLACK
            total += bound[n]
            postings += q - p
            n += 1
        if n == 0:
            continue
        # Documents are in time order, so the window's last one is its newest.
        extra = add_priors(0.0, timestamp[origin + hi - 1], largest_importance, as_of_us, recency_weight, tau_us, importance_weight) * SLACK
        if total + extra < threshold:
            continue

        # Lists are added strongest first, until those that are left cannot reach the threshold together: they are only probed. What k documents have reached so far raises the
        # threshold on the way. (With at most k postings there is nothing to drop, and the query's own order saves scoring again.)
        by_bound = np.argsort(bound[:n]) if postings > k else np.arange(n)[::-1].copy()
        weaker[0] = 0.0
        for j in range(n):
            weaker[j + 1] = weaker[j] + bound[by_bound[j]]
        found = 0
        postings_left = postings
        probed = n
        while probed > 0 and weaker[probed] + extra >= threshold:
            probed -= 1
            a = by_bound[probed]
            g = gain[active[a]]
            for p in range(start[a], stop[a]):
                low = np.int64(posting_doc[p])
                d = origin + low
                if not _passes(d, filter_words):
                    continue
                if accumulator[low] == 0.0:
                    touched[found] = low
                    found += 1
                tf = exact_tf(p, posting_tf, overflow_posting, overflow_tf)
                accumulator[low] += contribution(g, float(tf), float(doc_length[d]), base, slope)
            postings_left -= stop[a] - start[a]
            if found > k and (probed == 0 or postings_left > found):
                reached = _kth_best(
                    k, found, touched, accumulator, origin,
                    created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us,
                )  # fmt: skip
                threshold = max(threshold, reached / SLACK)

        floor = threshold
        for c in range(found):
            low = np.int64(touched[c])
            score = accumulator[low]
            accumulator[low] = 0.0
            threshold = max(heap_score[0], floor) if size == k else floor
            if score * SLACK + weaker[probed] + extra < threshold:
                continue
            d = origin + low
            if not visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us):
                continue
            # Strongest first, until what is left cannot lift it over the threshold.
            rest = probed
            while rest > 0 and score * SLACK + weaker[rest] + extra >= threshold:
                rest -= 1
                a = by_bound[rest]
                p = _lower_bound(posting_doc, start[a], stop[a], low)
                if p < stop[a] and posting_doc[p] == low:
                    tf = exact_tf(p, posting_tf, overflow_posting, overflow_tf)
                    score += contribution(gain[active[a]], float(tf), float(doc_length[d]), base, slope)
            if score * SLACK + weaker[rest] + extra < threshold:
                continue
            if probed > 0 or postings > k:
                score = 0.0
                for a in range(n):
                    p = _lower_bound(posting_doc, start[a], stop[a], low)
                    if p < stop[a] and posting_doc[p] == low:
                        tf = exact_tf(p, posting_tf, overflow_posting, overflow_tf)
                        score += contribution(gain[active[a]], float(tf), float(doc_length[d]), base, slope)
            score = add_priors(score, timestamp[d], importance[d] if len(importance) > 0 else 0.0, as_of_us, recency_weight, tau_us, importance_weight)
            if score >= threshold:
                size = offer(score, seq[d], np.int64(segment) << 32 | d, size, heap_score, heap_seq, heap_ref)
    return size


@numba.njit(
    [
        INT(
            READ_I32,
            READ_F64,
            FLOAT,
            FLOAT,
            FLOAT,
            FLOAT,
            FLOAT,
            INT,
            FLOAT,
            INT,
            INT,
            INT,
            READ_U64,
            INT,
            INT,
            INT,
            READ_I32,
            READ_I32,
            READ_I32,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_F64,
            READ_I64,
            READ_I64,
            READ_I64,
            READ_I64,
            INT,
            INT,
            WRITE_F64,
            WRITE_I64,
            WRITE_I64,
            WRITE_F64,
            WRITE_I32,
        )
    ],
    cache=True,
    nogil=True,
)
def search_buffer(
    head: Any,
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
    posting_tf: Any,
    posting_next: Any,
    doc_length: Any,
    seq: Any,
    timestamp: Any,
    created_at: Any,
    expires_at: Any,
    importance: Any,
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
    """The same over the growing buffer, exhaustively: it is meant for a few thousand documents, and needs scratch for all of them.

    head[i] is the newest posting of the i-th term, -1 for none.
    """
    found = 0
    for i in range(len(head)):
        p = np.int64(head[i]) if gain[i] > 0.0 else np.int64(-1)
        while p >= 0:
            d = np.int64(posting_doc[p])
            if timestamp[d] >= since_us and timestamp[d] <= until_us and _passes(d, filter_words):
                if accumulator[d] == 0.0:
                    touched[found] = d
                    found += 1
                accumulator[d] += contribution(gain[i], float(posting_tf[p]), float(doc_length[d]), base, slope)
            p = np.int64(posting_next[p])
    k = len(heap_score)
    for c in range(found):
        d = np.int64(touched[c])
        score = accumulator[d]
        accumulator[d] = 0.0
        score = add_priors(score, timestamp[d], importance[d], as_of_us, recency_weight, tau_us, importance_weight)
        if score < min_score or (size == k and score < heap_score[0]):
            continue
        if d < documents and visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us):
            size = offer(score, seq[d], np.int64(segment) << 32 | d, size, heap_score, heap_seq, heap_ref)
    return size
