"""Exact top-k over segments (`docs/pruning.md` explains it).

**Pruning never decides a tie.** What a document can still reach is bounded from above, whatever the statistics are, and it is dropped only when that is strictly below the k-th
score; survivors are scored by the one canonical function. Equal scores are ordered by sequence number, newer first.

Segments are read in slices, at most a window each. In a slice, the lists of the terms that can reach the threshold are added into an accumulator, strongest first; the terms that
are left cannot lift a document over it by themselves, so only documents touched so far are looked up in them: first whether they are there at all (a bit), which drops most,
then where, to score the rest. All that is added on the way is float32, in units of the largest gain, from what the classes of postings can reach at most.

A search starts from the caller's threshold, or from what the k-th best posting of a single term is worth at least (`best_worth`), if that is more.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.bm25 import add_priors, contribution
from agentir_ray.kernels.candidates import (
    IN_STEP,
    NOWHERE,
    ONCE,
    add_list,
    add_to_touched,
    ask_bitmap,
    ask_list,
    collect,
    keep_passing,
    keep_visible,
    lead,
    locate_by_bitmap,
    locate_by_reading,
    locate_in_list,
)  # fmt: skip
from agentir_ray.kernels.classes import RANKS
from agentir_ray.kernels.heap import FEW, late_room, merge_late, offer, sort_heap, sort_late
from agentir_ray.kernels.invert import WINDOW
from agentir_ray.kernels.memory import prefetch
from agentir_ray.kernels.postings import (
    bitmap_start,
    exact_contribution,
    exact_tf,
    find_posting,
    lower_bound,
    reach_of_block,
    reach_of_classes,
)  # fmt: skip
from agentir_ray.kernels.rows import BM25, END, FIRST, HIDDEN, NEWEST_CREATED, NUMBER, documents_of, postings_of
from agentir_ray.kernels.signatures import (
    FLOAT,
    INT,
    READ_F64,
    READ_I64,
    READ_I64_2D,
    WRITE_F32,
    WRITE_F64,
    WRITE_F64_2D,
    WRITE_I64,
    WRITE_I64_2D,
    WRITE_U16,
    together,
)  # fmt: skip

FIRST_SLICE, FIRST_SLICES_RESULTS = 4_096, 64  # documents, and documents a result, where no threshold is known; each slice is twice the one before, up to a window
READ_THROUGH = 8  # a list is read through, rather than searched, to locate as many documents as this times fewer than its postings
STREAM = 16  # a list without a bitmap is read through, rather than searched, when it has fewer postings than this times the documents to look up
CHUNK, MOST_PLACES = 1_024, 2**20  # survivors located and then scored together, fewer where there are so many terms that the places would take megabytes
SMALLEST_GAIN = 1e-20  # of the largest one: keeps sums of float32 above zero

# The types of a search's arguments: what is searched (rows, their order, ordinals (terms, segments)), how it is scored, what may be seen.
_SEGMENTS = (READ_I64_2D, READ_I64, READ_I64_2D)
_SCORING = (READ_F64, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, INT, FLOAT)
_SNAPSHOT = (INT, INT, INT)
_HEAP = (INT, WRITE_F64, WRITE_I64, WRITE_I64)
_SCRATCH = (WRITE_F32, WRITE_U16, WRITE_F32)


@numba.njit(cache=True, nogil=True)
def _segment_reach(postings: Any, ordinals: Any, which: Any, gain: Any, reach: Any, first: Any, end: Any) -> Any:
    """What a document of [first, end) can have of these terms at most: the sum of each term's best block."""
    total = np.float32(0.0)
    for i in range(len(gain)):
        ordinal = ordinals[i, which]
        if ordinal < 0 or gain[i] <= 0.0:
            continue
        best = np.float32(0.0)
        for b in range(postings.term_block[ordinal], postings.term_block[ordinal + 1]):
            start = np.int64(postings.block_window[b]) * WINDOW
            if start < end and start + WINDOW > first:
                best = max(best, reach_of_block(postings, b, reach))
        total += gain[i] * best
    return total


@numba.njit(cache=True, nogil=True)
def _first_threshold(rows: Any, order: Any, ordinals: Any, gain: Any, base: Any, slope: Any, written_until_us: Any, k: Any) -> Any:
    """A score that k documents have at least, -inf where none is known.

    `best_worth` was taken at other statistics: tf / (tf + norm) shrinks by the growth of the norm at most. The hidden documents may all be among the best.
    """
    best = -np.inf
    for o in order:
        row = rows[o]
        postings, documents = postings_of(row), documents_of(row)
        if postings.kind != BM25 or row[NEWEST_CREATED] > written_until_us or len(documents.expires_at) > 0:
            continue
        r = 0
        while r < len(RANKS) and RANKS[r] < k + row[HIDDEN]:
            r += 1
        if r == len(RANKS):
            continue
        kept = 1.0 - 1e-9
        if base > postings.sealed_base:
            kept = min(kept, kept * (postings.sealed_base / base))
        if slope > postings.sealed_slope:
            kept = min(kept, (1.0 - 1e-9) * (postings.sealed_slope / slope))
        for i in range(len(gain)):
            if ordinals[i, o] >= 0 and gain[i] > 0.0:
                worth = postings.best_worth[len(RANKS) * ordinals[i, o] + r]
                if worth > 0:
                    best = max(best, gain[i] * (worth / 255.0) * kept)
    return best


@numba.njit(cache=True, nogil=True)
def _ask_ahead(rows: Any, order: Any, ordinals: Any) -> None:
    """Ask for what tells where the terms' postings lie and what they can reach, in all segments at once: each is a wait for memory, and they overlap."""
    for o in order:
        postings = postings_of(rows[o])
        for i in range(len(ordinals)):
            if ordinals[i, o] >= 0:
                prefetch(postings.term_block, ordinals[i, o])
                prefetch(postings.best_worth, len(RANKS) * ordinals[i, o])
    for o in order:
        postings = postings_of(rows[o])
        for i in range(len(ordinals)):
            if ordinals[i, o] >= 0:
                b = postings.term_block[ordinals[i, o]]
                prefetch(postings.block_window, b)
                prefetch(postings.block_skyline, b)
                prefetch(postings.block_posting, b)
    for o in order:
        postings = postings_of(rows[o])
        for i in range(len(ordinals)):
            if ordinals[i, o] >= 0:
                b = postings.term_block[ordinals[i, o]]
                prefetch(postings.skyline, np.int64(postings.block_skyline[b]))
                prefetch(postings.posting_doc, np.int64(postings.block_posting[b]))
                prefetch(postings.posting_class, np.int64(postings.block_posting[b]))


@numba.njit(cache=True, nogil=True)
def _needed(threshold: Any, slack: Any, unit: Any) -> Any:
    """What a document must reach for the threshold, in float32 units of the largest gain: a little less, and nothing where the threshold is no number to compare with."""
    return np.float32((threshold - abs(threshold) * slack) / unit) if abs(threshold) < np.inf else np.float32(-np.inf)


@numba.njit(cache=True, nogil=True)
def _walk(
    rows: Any,
    order: Any,
    ordinals: Any,
    gain: Any,
    base: Any,
    slope: Any,
    recency_weight: Any,
    tau_us: Any,
    importance_weight: Any,
    as_of_us: Any,
    floor: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    counted_seq: Any,
    size: Any,
    heap_score: Any,
    heap_seq: Any,
    heap_ref: Any,
    skipped: Any,
    accumulator: Any,
    touched: Any,
    reached: Any,
) -> Any:
    """The heap's new size. Without a heap (length 0) it counts instead: the documents before (floor, counted_seq)."""
    k = len(heap_score)
    terms = len(gain)
    unit = 0.0
    for i in range(terms):
        unit = max(unit, gain[i])
    if unit <= 0.0:
        return size
    small = np.empty(terms, np.float32)
    for i in range(terms):
        small[i] = max(gain[i] / unit, SMALLEST_GAIN) if gain[i] > 0.0 else 0.0
    slack = 1e-6 + 2.5e-7 * terms  # float32 sums of this many terms, in any order
    above = np.float32(1.0 + slack)
    if len(order) > 1:
        _ask_ahead(rows, order, ordinals)
    least = floor if k == 0 else max(floor, _first_threshold(rows, order, ordinals, gain, base, slope, written_until_us, k))
    reach = np.empty(256, np.float32)
    cursor, bitmap_at = np.empty(terms, np.int64), np.empty(terms, np.int64)
    block_start, start, stop = np.empty(terms, np.int64), np.empty(terms, np.int64), np.empty(terms, np.int64)
    by_bound, bound, weaker = np.empty(terms, np.int64), np.empty(terms, np.float32), np.empty(terms + 1, np.float32)
    weak_bound = np.empty(terms, np.float32)
    chunk = max(1, min(CHUNK, MOST_PLACES // terms))
    kept, place, in_step = np.empty(chunk, np.uint16), np.empty((terms, chunk), np.int64), np.empty(IN_STEP, np.int64)
    late = 0  # of many results, those that wait to be merged
    late_score, late_seq, late_ref = np.empty(late_room(k), np.float64), np.empty(late_room(k), np.int64), np.empty(late_room(k), np.int64)
    slice_length = np.int64(WINDOW if least > -np.inf else min(WINDOW, max(FIRST_SLICE, FIRST_SLICES_RESULTS * k)))

    for o in order:
        row = rows[o]
        first, end = row[FIRST], row[END]
        if first >= end:
            continue
        postings, documents = postings_of(row), documents_of(row)
        posting_doc, posting_class, bitmap, bitmap_rank = postings.posting_doc, postings.posting_class, postings.bitmap, postings.bitmap_rank
        hides = row[NEWEST_CREATED] > written_until_us or len(documents.expires_at) > 0 or len(documents.deleted_seq) > 0
        reach_of_classes(postings, base, slope, reach)
        threshold = least
        if size == k and k > 0:
            threshold = max(threshold, heap_score[0])
        if len(rows) > 1 and threshold > -np.inf:
            extra = add_priors(0.0, documents.timestamp[end - 1], documents.largest_importance, as_of_us, recency_weight, tau_us, importance_weight)
            if (_segment_reach(postings, ordinals, o, small, reach, first, end) + np.float32(extra / unit)) * above < threshold / unit:
                skipped[o] = 1
                continue
        weak_reach = np.float32(0.0)
        for c in range(postings.weak_classes):
            weak_reach = max(weak_reach, reach[c])
        for i in range(terms):
            ordinal = ordinals[i, o]
            weak_bound[i] = small[i] * weak_reach
            cursor[i] = postings.term_block[ordinal] if ordinal >= 0 else 0
            bitmap_at[i] = bitmap_start(postings, ordinal) if ordinal >= 0 else -1

        position = first
        while position < end:
            window = position // WINDOW
            origin = window * WINDOW
            lo = position - origin
            hi = min(np.int64(WINDOW), end - origin, lo + slice_length)
            slice_length = min(2 * slice_length, np.int64(WINDOW))
            position = origin + hi
            threshold = least
            if size == k and k > 0:
                threshold = max(threshold, heap_score[0])
            needed = _needed(threshold, slack, unit)
            extra64 = add_priors(0.0, documents.timestamp[origin + hi - 1], documents.largest_importance, as_of_us, recency_weight, tau_us, importance_weight)
            extra = np.float32(extra64 / unit) * above

            # The lists of this slice, the strongest last.
            n = 0
            for i in range(terms):
                place_of_term = ordinals[i, o]
                start[i] = stop[i] = 0
                if place_of_term < 0 or small[i] == 0.0:
                    continue
                last = postings.term_block[place_of_term + 1]
                while cursor[i] < last and postings.block_window[cursor[i]] < window:
                    cursor[i] += 1
                b = cursor[i]
                if b == last or postings.block_window[b] != window:
                    continue
                p, q = np.int64(postings.block_posting[b]), np.int64(postings.block_posting[b + 1])
                block_start[i] = p
                if lo > 0:
                    p = lower_bound(posting_doc, p, q, lo)
                if hi < WINDOW:
                    q = lower_bound(posting_doc, p, q, hi)
                if p == q:
                    continue
                start[i], stop[i] = p, q
                highest = small[i] * reach_of_block(postings, b, reach)
                j = n
                while j > 0 and bound[j - 1] > highest:
                    bound[j], by_bound[j] = bound[j - 1], by_bound[j - 1]
                    j -= 1
                bound[j], by_bound[j] = highest, i
                n += 1
            weaker[0] = 0.0
            for j in range(n):
                weaker[j + 1] = weaker[j] + bound[j]
            if n == 0 or weaker[n] + extra < needed:
                continue

            rest = n
            found = 0
            while rest > 0 and weaker[rest] + extra >= needed:
                rest -= 1
                i = by_bound[rest]
                found = add_list(posting_doc, posting_class, start[i], stop[i], small[i], reach, accumulator, touched, found)
            while rest > 0 and bitmap_at[by_bound[rest - 1]] < 0 and stop[by_bound[rest - 1]] - start[by_bound[rest - 1]] < STREAM * found:
                rest -= 1
                i = by_bound[rest]
                add_to_touched(posting_doc, posting_class, start[i], stop[i], small[i], reach, accumulator)

            # Who can still reach the threshold, given which of the weaker terms are there.
            survivors = collect(found, touched, accumulator, reached, extra, weaker[rest], needed)
            if len(documents.filter) > 0:
                survivors = keep_passing(survivors, touched, reached, origin, documents.filter)
            if hides:
                survivors = keep_visible(survivors, touched, reached, origin, documents, snapshot_seq, expiry_now_us, written_until_us)
            while rest > 0 and survivors > 0:
                rest -= 1
                i = by_bound[rest]
                if bitmap_at[i] >= 0:
                    pairs = bitmap_at[i] + (origin >> 6)
                    survivors = ask_bitmap(survivors, touched, reached, bitmap, pairs, bound[rest], min(bound[rest], weak_bound[i]), weaker[rest], needed)
                else:
                    survivors = ask_list(survivors, touched, reached, posting_doc, posting_class, start[i], stop[i], small[i], reach, weaker[rest], needed, in_step)

            # Many are scored best first: the k most promising alone tell what the others must reach.
            leaders = lead(survivors, touched, reached, k) if 0 < 2 * k < survivors else survivors
            following = 0
            while following < survivors:
                first_of = following
                following = min(first_of + chunk, leaders if first_of < leaders else survivors)
                those = 0
                for c in range(first_of, following):
                    if reached[c] >= needed:
                        kept[those] = touched[c]
                        reached[first_of + those] = reached[c]
                        prefetch(postings.length, origin + np.int64(touched[c]))
                        prefetch(documents.seq, origin + np.int64(touched[c]))
                        those += 1
                if those == 0:
                    continue
                for c in range(those):
                    accumulator[kept[c]] = c + 1  # where to write what a list that is read through has of it
                for i in range(terms):
                    if start[i] == stop[i]:
                        place[i, :those] = NOWHERE
                    elif bitmap_at[i] >= 0:
                        locate_by_bitmap(those, kept, bitmap, bitmap_rank, bitmap_at[i], origin, block_start[i], postings.kind == BM25, posting_class, place[i])
                    elif stop[i] - start[i] < READ_THROUGH * those:
                        place[i, :those] = NOWHERE
                        locate_by_reading(posting_doc, start[i], stop[i], accumulator, place[i])
                    else:
                        for c in range(0, those, IN_STEP):
                            locate_in_list(min(IN_STEP, those - c), kept[c:], posting_doc, start[i], stop[i], place[i, c:])
                for c in range(those):
                    accumulator[kept[c]] = 0.0
                for c in range(those):
                    if reached[first_of + c] < needed:
                        continue
                    d = origin + np.int64(kept[c])
                    length = float(postings.length[d])
                    score = 0.0
                    for i in range(terms):
                        p = place[i, c]
                        if p == ONCE:
                            score += contribution(gain[i], 1.0, length, base, slope)
                        elif p >= 0:
                            score += exact_contribution(postings, p, gain[i], base, slope, length)
                    timestamp = documents.timestamp[d] if recency_weight > 0.0 else as_of_us
                    of_document = documents.importance[d] if len(documents.importance) > 0 else 0.0
                    score = add_priors(score, timestamp, of_document, as_of_us, recency_weight, tau_us, importance_weight)
                    if score < threshold:
                        continue
                    seq = documents.seq[d]
                    if k == 0:
                        size += 1 if score > floor or seq > counted_seq else 0
                        continue
                    ref = row[NUMBER] << 32 | d
                    if k <= FEW:
                        size = offer(score, seq, ref, size, heap_score, heap_seq, heap_ref)
                    else:
                        late_score[late], late_seq[late], late_ref[late] = score, seq, ref
                        late += 1
                        if late == len(late_score) or size + late == k:
                            size = merge_late(size, heap_score, heap_seq, heap_ref, late, late_score, late_seq, late_ref)
                            late = 0
                    if size == k and heap_score[0] > threshold:
                        threshold = heap_score[0]
                        needed = _needed(threshold, slack, unit)
    if late > 0:
        size = merge_late(size, heap_score, heap_seq, heap_ref, late, late_score, late_seq, late_ref)
    return size


@numba.njit([INT(*_SEGMENTS, *_SCORING, *_SNAPSHOT, *_HEAP, WRITE_I64, *_SCRATCH)], cache=True)
def search(
    rows: Any,
    order: Any,
    ordinals: Any,
    gain: Any,
    base: Any,
    slope: Any,
    recency_weight: Any,
    tau_us: Any,
    importance_weight: Any,
    as_of_us: Any,
    min_score: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    size: Any,
    heap_score: Any,
    heap_seq: Any,
    heap_ref: Any,
    skipped: Any,
    accumulator: Any,
    touched: Any,
    reached: Any,
) -> Any:
    """Offer the documents of some segments to the heap of the k best so far; returns its new size.

    `rows` (`kernels.rows`) are segments', `order` int64 those to search, the most promising first; ordinals int64 (terms, rows): -1 where a term does not occur;
    gain float64 (terms), in the query's order. A ref is row[NUMBER] << 32 | document. skipped[row] becomes 1 where a segment could not reach the threshold. Scratch: WINDOW
    zeros (left zero again), WINDOW + 1, WINDOW.
    """
    return _walk(
        rows, order, ordinals, gain, base, slope, recency_weight, tau_us, importance_weight, as_of_us, min_score, snapshot_seq, expiry_now_us, written_until_us,
        np.int64(0), size, heap_score, heap_seq, heap_ref, skipped, accumulator, touched, reached,
    )  # fmt: skip


@numba.njit([INT(together((*_SEGMENTS, *_SCORING, *_SNAPSHOT, *_HEAP, WRITE_I64, *_SCRATCH)))], cache=True, nogil=True)
def search_long(arguments: Any) -> Any:
    """`search`, its arguments in one tuple, without the GIL: for queries with so much to do that giving it away and getting it back is small beside it."""
    return search(*arguments)


@numba.njit([numba.void(*_SEGMENTS, READ_I64, *_SCORING, *_SNAPSHOT, INT, INT, WRITE_I64, WRITE_F64_2D, WRITE_I64_2D, WRITE_I64_2D, *_SCRATCH)], cache=True, nogil=True)
def search_many(
    rows: Any,
    order: Any,
    ordinals: Any,
    query_start: Any,
    gain: Any,
    base: Any,
    slope: Any,
    recency_weight: Any,
    tau_us: Any,
    importance_weight: Any,
    as_of_us: Any,
    min_score: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    first_query: Any,
    end_query: Any,
    size: Any,
    heap_score: Any,
    heap_seq: Any,
    heap_ref: Any,
    accumulator: Any,
    touched: Any,
    reached: Any,
) -> None:
    """`search` for some queries, without the GIL. Query i has the terms query_start[i]..query_start[i + 1] - 1, and row i of the heaps, which end sorted."""
    skipped = np.zeros(len(rows), np.int64)
    for i in range(first_query, end_query):
        a, b = query_start[i], query_start[i + 1]
        size[i] = search(
            rows, order, ordinals[a:b], gain[a:b], base, slope, recency_weight, tau_us, importance_weight, as_of_us, min_score, snapshot_seq, expiry_now_us, written_until_us,
            size[i], heap_score[i], heap_seq[i], heap_ref[i], skipped, accumulator, touched, reached,
        )  # fmt: skip
        if len(heap_score[i]) <= FEW:
            sort_heap(size[i], heap_score[i], heap_seq[i], heap_ref[i])
        else:
            sort_late(size[i], heap_score[i], heap_seq[i], heap_ref[i])


@numba.njit([INT(*_SEGMENTS, *_SCORING, *_SNAPSHOT, INT, *_SCRATCH)], cache=True, nogil=True)
def count_before(
    rows: Any,
    order: Any,
    ordinals: Any,
    gain: Any,
    base: Any,
    slope: Any,
    recency_weight: Any,
    tau_us: Any,
    importance_weight: Any,
    as_of_us: Any,
    score: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    seq: Any,
    accumulator: Any,
    touched: Any,
    reached: Any,
) -> Any:
    """How many of the documents come before (score, seq) in the order of `search`."""
    nothing = np.empty(0, np.int64)
    counted = _walk(
        rows, order, ordinals, gain, base, slope, recency_weight, tau_us, importance_weight, as_of_us, score, snapshot_seq, expiry_now_us, written_until_us,
        seq, np.int64(0), np.empty(0, np.float64), nothing, nothing, np.zeros(len(rows), np.int64), accumulator, touched, reached,
    )  # fmt: skip
    return counted


@numba.njit([numba.void(READ_I64_2D, INT, READ_I64_2D, READ_F64, FLOAT, FLOAT, READ_I64, WRITE_F64)], cache=True, nogil=True)
def score_documents(rows: Any, which: Any, ordinals: Any, gain: Any, base: Any, slope: Any, docs: Any, out: Any) -> None:
    """out[j] = what the terms give document docs[j] of segment `which`, by the canonical function; whether it may be seen is not asked."""
    postings = postings_of(rows[which])
    for j in range(len(docs)):
        score = 0.0
        length = float(postings.length[docs[j]])
        for i in range(len(gain)):
            if ordinals[i, which] >= 0 and gain[i] > 0.0:
                p = find_posting(postings, ordinals[i, which], docs[j])
                if p >= 0:
                    score += exact_contribution(postings, p, gain[i], base, slope, length)
        out[j] = score


@numba.njit([numba.void(READ_I64_2D, READ_I64_2D, READ_F64, FLOAT, FLOAT, WRITE_F64)], cache=True, nogil=True)
def reach_of_segments(rows: Any, ordinals: Any, gain: Any, base: Any, slope: Any, out: Any) -> None:
    """out[s] = what no document in the range of segment s has more of from these terms (float64, in units of the score)."""
    unit = 0.0
    for i in range(len(gain)):
        unit = max(unit, gain[i])
    small = np.empty(len(gain), np.float32)
    for i in range(len(gain)):
        small[i] = max(gain[i] / unit, SMALLEST_GAIN) if gain[i] > 0.0 else 0.0
    reach = np.empty(256, np.float32)
    for s in range(len(rows)):
        out[s] = 0.0
        if unit > 0.0:
            postings = postings_of(rows[s])
            reach_of_classes(postings, base, slope, reach)
            total = _segment_reach(postings, ordinals, s, small, reach, rows[s, FIRST], rows[s, END])
            out[s] = float(total) * unit * (1.0 + 1e-6 + 2.5e-7 * len(gain))


@numba.njit([INT(READ_I64_2D, INT, INT, INT)], cache=True)
def term_tf(rows: Any, which: Any, ordinal: Any, doc: Any) -> Any:
    """tf of a term in a document, 0 where it does not occur."""
    postings = postings_of(rows[which])
    p = find_posting(postings, ordinal, doc)
    return exact_tf(postings, p) if p >= 0 else np.int64(0)
