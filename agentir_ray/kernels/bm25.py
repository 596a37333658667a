"""The score of a document, and what a score can reach at most.

**The score is one canonical function.** With gain = weight * idf * (k1 + 1), base = k1 * (1 - b) and slope = k1 * b / average length, a term adds `gain * (tf / (tf + (base +
slope * length)))`, in float64; contributions are added in the order of the query's terms, then `+ recency`, then `+ importance`. `contribution` and `add_priors` are the only
places that compute it.

Bounds are raised by `SLACK`, because sums used to prune may be added in another order.
"""

import math
from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.invert import TF_LIMIT, WINDOW
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I64, READ_U8, READ_U16, READ_U32

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
def lower_bound(posting_doc: Any, lo: Any, hi: Any, doc: Any) -> Any:
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


@numba.njit([INT(INT, INT, READ_I64, READ_U32, READ_I64, READ_U16, READ_U8, READ_I64, READ_U32)], cache=True)
def term_tf(ordinal: Any, doc: Any, term_block: Any, block_window: Any, block_posting: Any, posting_doc: Any, posting_tf: Any, overflow_posting: Any, overflow_tf: Any) -> Any:
    """tf of a term in a document, 0 where it does not occur."""
    window = doc // WINDOW
    for b in range(term_block[ordinal], term_block[ordinal + 1]):
        if block_window[b] == window:
            p = lower_bound(posting_doc, block_posting[b], block_posting[b + 1], doc - window * WINDOW)
            if p < block_posting[b + 1] and posting_doc[p] == doc - window * WINDOW:
                return exact_tf(p, posting_tf, overflow_posting, overflow_tf)
    return 0


@numba.njit(cache=True, nogil=True)
def block_bound(block: Any, gain: Any, base: Any, slope: Any, block_skyline: Any, skyline_tf: Any, skyline_length: Any) -> Any:
    bound = 0.0
    for s in range(block_skyline[block], block_skyline[block + 1]):
        bound = max(bound, contribution(gain, float(skyline_tf[s]), float(skyline_length[s]), base, slope))
    return bound


@numba.njit([FLOAT(READ_I64, READ_F64, FLOAT, FLOAT, INT, INT, READ_I64, READ_U32, READ_I64, READ_U32, READ_U32)], cache=True)
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
                    best = max(best, block_bound(b, gain[i], base, slope, block_skyline, skyline_tf, skyline_length))
        total += best
    return total * SLACK
