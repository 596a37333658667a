"""The geometric law of ages: pi(a) ~ exp(-lambda a) over the ages a = 0 .. h-1, and what follows from it for a search that goes from the newest partition backwards.

It knows nothing of observations, nor whether the law holds. A lambda of 0 is the flat law, a negative one prefers the old, an infinite one puts everything into the newest
partition. Ages count non-empty partitions. Source: AgentIR (arXiv:2605.25092), whose k* = min(K, ceil(ln(1/eps) / lambda)) is for an endless past; cut off at K partitions the law
only puts more into the first k*.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_FLAT = 1e-12  # a lambda this small is flat: over 1,024 partitions the difference is below the rounding of a float


def mass(lambda_: float, k: int, partitions: int) -> float:
    """The share of answers in the k newest of `partitions` partitions."""
    if not 0 <= k <= partitions:
        raise ValueError(f"k is {k}; it goes from 0 to the number of partitions, {partitions}")
    if k in (0, partitions):
        return float(k > 0)
    if lambda_ < 0:  # the same seen from the other end
        return 1 - mass(-lambda_, partitions - k, partitions)
    if lambda_ < _FLAT:
        return k / partitions
    return math.expm1(-lambda_ * k) / math.expm1(-lambda_ * partitions)


def partitions_for(lambda_: float, eps: float, partitions: int) -> int:
    """k*: how many of the newest partitions hold at least 1 - eps of the answers."""
    if not 0 < eps < 1:
        raise ValueError(f"eps is {eps}; it is a share of answers, between 0 and 1")
    endless = math.log(1 / eps)
    if lambda_ * partitions <= endless:
        return partitions
    return min(partitions, max(1, math.ceil(endless / lambda_)))


def expected_work(lambda_: float, sizes: Sequence[int], eps: float) -> float:
    """How many records are searched on average, newest partition first, until the answer's partition is done, or k* of them.

    `sizes`: the partitions' records, newest first. At most k* times the largest.
    """
    hot = sizes[: partitions_for(lambda_, eps, len(sizes))]
    return math.fsum(size * (1 - mass(lambda_, age, len(sizes))) for age, size in enumerate(hot))


def log_normalizer(lambda_: float, horizons: Floats) -> Floats:
    """ln of the sum of exp(-lambda a) over a = 0 .. h-1, for each h."""
    if lambda_ < 0:
        return log_normalizer(-lambda_, horizons) - lambda_ * (horizons - 1)
    if lambda_ < _FLAT:
        return np.log(horizons)
    return np.log(-np.expm1(-lambda_ * horizons)) - math.log(-math.expm1(-lambda_))


def mean_age(lambda_: float, horizons: Floats) -> Floats:
    """The mean of the law, for each h."""
    if lambda_ < 0:
        return horizons - 1 - mean_age(-lambda_, horizons)
    if lambda_ < _FLAT:
        return (horizons - 1) / 2
    beyond = lambda_ * horizons
    exact = -1 / math.expm1(-lambda_) - 1 - horizons * np.exp(-beyond) / -np.expm1(-beyond)
    return np.where(beyond < 1e-3, (horizons - 1) / 2 - lambda_ * (horizons**2 - 1) / 12, exact)  # the two terms of `exact` cancel there; the series is off by beyond^3 / 720
