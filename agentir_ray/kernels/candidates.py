"""The candidates of a slice: the documents that some list has touched, and what is known of each so far.

They are lows (a document's place in its window, uint16) in `touched`, with what each reaches at most in `reached` (float32, in units of the largest gain). Lists are added to them,
lists are asked about them, and who cannot reach what is needed leaves, in place; whoever stays is located in the lists, for its exact score (`kernels.topk`). Each step does one
thing for all of them: neither branches nor cache misses wait for one another.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.memory import prefetch
from agentir_ray.kernels.postings import place_in_bitmap
from agentir_ray.kernels.visible import passes, visible

IN_STEP = 64  # documents searched for in step, so that the memory they wait for is fetched together
NOWHERE, ONCE = -1, -2  # in the place of a posting: there is none; its tf is 1, that is all one needs to know


@numba.njit(cache=True, nogil=True)
def add_list(posting_doc: Any, posting_class: Any, start: Any, stop: Any, gain: Any, reach: Any, accumulator: Any, touched: Any, found: Any) -> Any:
    """Add a list into the accumulator; returns how many documents are touched by now."""
    for p in range(start, stop):
        low = posting_doc[p]
        so_far = accumulator[low]
        touched[found] = low
        found += 1 if so_far == 0.0 else 0
        accumulator[low] = so_far + gain * reach[posting_class[p]]
    return found


@numba.njit(cache=True, nogil=True)
def add_to_touched(posting_doc: Any, posting_class: Any, start: Any, stop: Any, gain: Any, reach: Any, accumulator: Any) -> None:
    """The same for a list that cannot lift a document over the threshold by itself: it adds to those that other lists touched."""
    for p in range(start, stop):
        low = posting_doc[p]
        so_far = accumulator[low]
        if so_far != 0.0:
            accumulator[low] = so_far + gain * reach[posting_class[p]]


@numba.njit(cache=True, nogil=True)
def lead(count: Any, touched: Any, reached: Any, k: Any) -> Any:
    """Put the documents that reach as much as the k-th of them to the front; returns how many."""
    best = np.empty(k, np.float32)  # a heap of numbers alone, the least at its root
    size = 0
    for c in range(count):
        value = reached[c]
        if size < k:
            i = size
            size += 1
            while i > 0 and value < best[(i - 1) >> 1]:
                best[i] = best[(i - 1) >> 1]
                i = (i - 1) >> 1
            best[i] = value
        elif value > best[0]:
            i = 0
            child = 1
            while child < k:
                if child + 1 < k and best[child + 1] < best[child]:
                    child += 1
                if best[child] >= value:
                    break
                best[i] = best[child]
                i = child
                child = 2 * i + 1
            best[i] = value
    enough = best[0]
    leaders = 0
    for c in range(count):
        if reached[c] >= enough:
            touched[c], touched[leaders] = touched[leaders], touched[c]
            reached[c], reached[leaders] = reached[leaders], reached[c]
            leaders += 1
    return leaders


@numba.njit(cache=True, nogil=True)
def collect(found: Any, touched: Any, accumulator: Any, reached: Any, extra: Any, rest: Any, needed: Any) -> Any:
    """Empty the accumulator and keep, in place, the touched documents that would reach what is needed with all the `rest`; returns how many. reached[c] is what each has."""
    kept = 0
    for c in range(found):
        low = touched[c]
        so_far = accumulator[low] + extra
        accumulator[low] = 0.0
        touched[kept] = low
        reached[kept] = so_far
        kept += 1 if so_far + rest >= needed else 0
    return kept


@numba.njit(cache=True, nogil=True)
def keep_passing(count: Any, touched: Any, reached: Any, origin: Any, words: Any) -> Any:
    kept = 0
    for c in range(count):
        touched[kept], reached[kept] = touched[c], reached[c]
        kept += 1 if passes(origin + np.int64(touched[c]), words) else 0
    return kept


@numba.njit(cache=True, nogil=True)
def keep_visible(count: Any, touched: Any, reached: Any, origin: Any, documents: Any, snapshot_seq: Any, expiry_now_us: Any, written_until_us: Any) -> Any:
    kept = 0
    for c in range(count):
        if visible(
            origin + np.int64(touched[c]), documents.created_at, documents.expires_at,
            documents.deleted_seq, documents.deleted_at, documents.superseded_seq, documents.superseded_at, snapshot_seq, expiry_now_us, written_until_us,
        ):  # fmt: skip
            touched[kept], reached[kept] = touched[c], reached[c]
            kept += 1
    return kept


@numba.njit(cache=True, nogil=True)
def ask_bitmap(count: Any, touched: Any, reached: Any, bitmap: Any, pairs: Any, bound: Any, weak_bound: Any, rest: Any, needed: Any) -> Any:
    """Add what a term can bring to those that have it, and keep who can still reach what is needed with the rest. `pairs`: where the window's words begin in the bitmap."""
    kept = 0
    for c in range(count):
        low = np.int64(touched[c])
        at = 2 * (pairs + (low >> 6))
        bit = np.uint64(low & 63)
        has = (bitmap[at] >> bit) & np.uint64(1)
        strong = (bitmap[at + 1] >> bit) & np.uint64(1)
        most = reached[c] + ((bound if strong else weak_bound) if has else np.float32(0.0))
        touched[kept] = low
        reached[kept] = most
        kept += 1 if most + rest >= needed else 0
    return kept


@numba.njit(cache=True, nogil=True)
def locate_in_list(count: Any, lows: Any, posting_doc: Any, start: Any, stop: Any, place: Any) -> None:
    """place[c] = the posting of document lows[c], NOWHERE if there is none. All are searched for in step, so that the memory they wait for is fetched together."""
    for c in range(count):
        place[c] = start
    size = stop - start
    while size > 1:
        half = size >> 1
        for c in range(count):
            p = place[c]
            place[c] = p + half if posting_doc[p + half - 1] < lows[c] else p
        size -= half
    for c in range(count):
        p = place[c]
        p += 1 if posting_doc[p] < lows[c] else 0
        place[c] = p if p < stop and posting_doc[p] == lows[c] else NOWHERE


@numba.njit(cache=True, nogil=True)
def locate_by_reading(posting_doc: Any, start: Any, stop: Any, number: Any, place: Any) -> None:
    """The same by reading the list through: number[low] - 1 (float32) says which of the documents it is, 0 that it is none. Places are as before where a document is not there."""
    for p in range(start, stop):
        n = number[posting_doc[p]]
        if n != 0.0:
            place[np.int64(n) - 1] = p


@numba.njit(cache=True, nogil=True)
def ask_list(count: Any, touched: Any, reached: Any, posting_doc: Any, posting_class: Any, start: Any, stop: Any, gain: Any, reach: Any, rest: Any, needed: Any, place: Any) -> Any:
    """`ask_bitmap` of a term without one."""
    kept = 0
    for first in range(0, count, IN_STEP):
        those = min(IN_STEP, count - first)
        locate_in_list(those, touched[first : first + those], posting_doc, start, stop, place)
        for c in range(those):
            most = reached[first + c]
            if place[c] >= 0:
                most += gain * reach[posting_class[place[c]]]
            touched[kept] = touched[first + c]
            reached[kept] = most
            kept += 1 if most + rest >= needed else 0
    return kept


@numba.njit(cache=True, nogil=True)
def locate_by_bitmap(count: Any, lows: Any, bitmap: Any, bitmap_rank: Any, start: Any, origin: Any, block_start: Any, once: Any, posting_class: Any, place: Any) -> None:
    """`locate_in_list` of a term with a bitmap; ONCE where the posting is weak, and that says it all (`once`)."""
    for c in range(count):
        d = origin + np.int64(lows[c])
        at = 2 * (start + (d >> 6))
        bit = np.uint64(1) << np.uint64(d & 63)
        place[c] = NOWHERE
        if bitmap[at] & bit:
            if once and not bitmap[at + 1] & bit:
                place[c] = ONCE
            else:
                place[c] = place_in_bitmap(bitmap, bitmap_rank, start, d, block_start)
                prefetch(posting_class, place[c])
