"""The score of a document.

**The score is one canonical function.** With gain = weight * idf * (k1 + 1), base = k1 * (1 - b) and slope = k1 * b / average length, a term adds `gain * (tf / (tf + (base +
slope * length)))`, in float64; contributions are added in the order of the query's terms, then `+ recency`, then `+ importance`. `contribution` and `add_priors` are the only
places that compute it.
"""

import math
from typing import Any

import numba


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
