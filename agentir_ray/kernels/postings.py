"""Reading postings: finding a document's posting of a term, what it contributes exactly, and what a class of postings can contribute at most.

Three things are asked of a posting. Whether a document has it: one load in a bitmap for terms in more than one document of 64, else a search in the block. What it can
contribute at most: its class says so (`kernels.classes`). What it contributes exactly: the canonical function (`kernels.bm25`), or the stored weight.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.bm25 import contribution
from agentir_ray.kernels.classes import ESCAPE
from agentir_ray.kernels.memory import ones
from agentir_ray.kernels.rows import BM25, CLASS_WEIGHT, U16_WEIGHT

SMALLEST = np.float32(1e-12)  # no class contributes less of a gain: what a document has touched is told by being above zero


@numba.njit(cache=True, nogil=True)
def lower_bound(posting_doc: Any, start: Any, stop: Any, low: Any) -> Any:
    """The first posting of start..stop - 1 whose document is `low` or later, `stop` if none is. Halves without branching on what it reads."""
    size = stop - start
    while size > 1:
        half = size >> 1
        start = start + half if posting_doc[start + half - 1] < low else start
        size -= half
    return start + 1 if size == 1 and posting_doc[start] < low else start


@numba.njit(cache=True, nogil=True)
def find_block(postings: Any, ordinal: Any, window: Any) -> Any:
    """The block of a term in a window, -1 if there is none."""
    first = postings.term_block[ordinal]
    size = postings.term_block[ordinal + 1] - first
    while size > 1:
        half = size >> 1
        first = first + half if postings.block_window[first + half] <= window else first
        size -= half
    return first if size == 1 and postings.block_window[first] == window else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def bitmap_start(postings: Any, ordinal: Any) -> Any:
    """Where the bitmap of a term begins, in pairs of words, -1 if it has none."""
    terms = len(postings.bitmap_term)
    if terms == 0:
        return np.int64(-1)
    i = np.searchsorted(postings.bitmap_term, np.uint32(ordinal))
    return i * (len(postings.bitmap) // (2 * terms)) if i < terms and postings.bitmap_term[i] == ordinal else np.int64(-1)


@numba.njit(cache=True, nogil=True, inline="always")
def place_in_bitmap(bitmap: Any, bitmap_rank: Any, start: Any, doc: Any, block_start: Any) -> Any:
    """The posting of a document in a term's bitmap that begins at `start`, -1 if it has none; `block_start` is the first posting of the document's block."""
    at = start + (doc >> 6)
    word = bitmap[2 * at]
    bit = np.uint64(doc & 63)
    if not (word >> bit) & np.uint64(1):
        return np.int64(-1)
    p = block_start + np.int64(bitmap_rank[at >> 3]) + ones(word & ((np.uint64(1) << bit) - np.uint64(1)))
    for before in range(at & ~7, at):
        p += ones(bitmap[2 * before])
    return p


@numba.njit(cache=True, nogil=True)
def find_posting(postings: Any, ordinal: Any, doc: Any) -> Any:
    """The posting of a term in a document, -1 if there is none."""
    block = find_block(postings, ordinal, doc >> 16)
    if block < 0:
        return np.int64(-1)
    stop = np.int64(postings.block_posting[block + 1])
    p = lower_bound(postings.posting_doc, np.int64(postings.block_posting[block]), stop, doc & 65_535)
    return p if p < stop and postings.posting_doc[p] == doc & 65_535 else np.int64(-1)


@numba.njit(cache=True, nogil=True, inline="always")
def exact_tf(postings: Any, p: Any) -> Any:
    c = postings.posting_class[p]
    if c == ESCAPE:
        return np.int64(postings.overflow_tf[np.searchsorted(postings.overflow_posting, np.uint32(p))])
    return np.int64(postings.class_tf[c])


@numba.njit(cache=True, nogil=True, inline="always")
def exact_contribution(postings: Any, p: Any, gain: Any, base: Any, slope: Any, length: Any) -> Any:
    """What posting p adds to the score of its document, which has this length."""
    if postings.kind == BM25:
        return contribution(gain, float(exact_tf(postings, p)), length, base, slope)
    if postings.kind == CLASS_WEIGHT:
        return gain * (postings.scale * float(postings.posting_class[p]))
    if postings.kind == U16_WEIGHT:
        return gain * (postings.scale * float(postings.posting_u16[p]))
    return gain * float(postings.posting_f32[p])


@numba.njit(cache=True, nogil=True)
def reach_of_classes(postings: Any, base: Any, slope: Any, reach: Any) -> None:
    """reach[c] (float32, 256) = what a posting of class c can contribute at most, for a gain of 1; rounding is left to the slack of whoever uses it."""
    for c in range(256):
        value = 0.0
        if postings.kind == BM25:
            if postings.class_tf[c] > 0:
                value = contribution(1.0, float(postings.class_tf[c]), float(postings.class_shortest[c]), base, slope)
        else:
            value = float(postings.class_weight[c])
        reach[c] = max(np.float32(value), SMALLEST)


@numba.njit(cache=True, nogil=True, inline="always")
def reach_of_block(postings: Any, block: Any, reach: Any) -> Any:
    """What a posting of the block can contribute at most, for a gain of 1."""
    best = np.float32(0.0)
    for s in range(postings.block_skyline[block], postings.block_skyline[block + 1]):
        best = max(best, reach[postings.skyline[s]])
    return best
