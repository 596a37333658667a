"""Exact BM25 top-k over one segment or the buffer (DESIGN 4): windowed MaxScore.

**Pruning never decides a tie.** Bounds are safe whatever the order of addition (`kernels.bm25`), and a document is dropped only when strictly below the k-th score; survivors are
scored canonically. Equal scores are ordered by sequence number, newer first.

A segment is read in windows of 65,536 documents. Lists are added into an accumulator, strongest first; those that cannot reach the threshold together are not: the
documents touched so far are probed in them.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.bm25 import SLACK, add_priors, block_bound, contribution, exact_tf, lower_bound
from agentir_ray.kernels.heap import offer
from agentir_ray.kernels.invert import WINDOW
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I32, READ_I64, READ_U8, READ_U16, READ_U32, READ_U64, WRITE_F64, WRITE_I32, WRITE_I64, together
from agentir_ray.kernels.visible import passes, visible

# The types of the two searches' arguments, in groups as they are commented there.
_SCORING = (READ_F64, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, INT, FLOAT)
_SNAPSHOT = (READ_U64, INT, INT, INT)
_POSTINGS = (READ_I64, READ_U32, READ_I64, READ_I64, READ_U32, READ_U32, READ_U16, READ_U8, READ_I64, READ_U32)
_TIMES = (READ_I64, READ_I64, READ_I64, READ_I64)
_OVERLAY = (READ_I64, READ_I64, READ_I64, READ_I64)
_HEAP_AND_SCRATCH = (INT, INT, WRITE_F64, WRITE_I64, WRITE_I64, WRITE_F64, WRITE_I32)
_SEGMENT = (READ_I64, *_SCORING, INT, INT, *_SNAPSHOT, *_POSTINGS, READ_U32, *_TIMES, READ_F64, FLOAT, *_OVERLAY, *_HEAP_AND_SCRATCH)


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
    """The k-th largest of what the visible documents have accumulated, -inf where there are fewer: at least k documents will score as much, but for rounding.

    A heap of scores alone: with that of `heap.offer`, which moves three arrays, a search costs 5% more.
    """
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


@numba.njit([INT(*_SEGMENT)], cache=True)
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
                p = lower_bound(posting_doc, p, q, lo)
            if hi < WINDOW:
                q = lower_bound(posting_doc, p, q, hi)
            if p == q:
                continue
            active[n] = i
            start[n] = p
            stop[n] = q
            bound[n] = block_bound(b, gain[i], base, slope, block_skyline, skyline_tf, skyline_length) * SLACK
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
                if not passes(d, filter_words):
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
                p = lower_bound(posting_doc, start[a], stop[a], low)
                if p < stop[a] and posting_doc[p] == low:
                    tf = exact_tf(p, posting_tf, overflow_posting, overflow_tf)
                    score += contribution(gain[active[a]], float(tf), float(doc_length[d]), base, slope)
            if score * SLACK + weaker[rest] + extra < threshold:
                continue
            if probed > 0 or postings > k:
                score = 0.0
                for a in range(n):
                    p = lower_bound(posting_doc, start[a], stop[a], low)
                    if p < stop[a] and posting_doc[p] == low:
                        tf = exact_tf(p, posting_tf, overflow_posting, overflow_tf)
                        score += contribution(gain[active[a]], float(tf), float(doc_length[d]), base, slope)
            score = add_priors(score, timestamp[d], importance[d] if len(importance) > 0 else 0.0, as_of_us, recency_weight, tau_us, importance_weight)
            if score >= threshold:
                size = offer(score, seq[d], np.int64(segment) << 32 | d, size, heap_score, heap_seq, heap_ref)
    return size


@numba.njit([INT(together(_SEGMENT))], cache=True, nogil=True)
def search_long_segment(arguments: Any) -> Any:
    """`search_segment`, its arguments in one tuple, without the GIL: for queries with so much to do that giving it away and getting it back is small beside it."""
    return search_segment(*arguments)


@numba.njit([INT(READ_I32, *_SCORING, INT, INT, INT, *_SNAPSHOT, READ_I32, READ_I32, READ_I32, READ_I64, *_TIMES, READ_F64, *_OVERLAY, *_HEAP_AND_SCRATCH)], cache=True)
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
            if timestamp[d] >= since_us and timestamp[d] <= until_us and passes(d, filter_words):
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
