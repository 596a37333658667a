"""The recency prior: how steeply the ages of answers fall, and whether that may be trusted to leave partitions out.

Facts in, decision out: no I/O, no clock, nothing of records or segments. A prior that is fed by its own searches sees what it chose to see, so three things must hold before it is *supported*, each of which failing means
that everything is searched. The flat law is rejected: the interval of lambda, which is the likelihood-ratio test turned round (Wilks 1938), lies above 0. The geometric law is not rejected: Pearson's chi-square on
the complete observations. And, whatever the law, the share of complete answers within the partitions searched is at least 1 - eps by the one-sided 95% bound of Clopper and Pearson (1934). The number of partitions is k*
at the lower limit of lambda, raised to the least at which that bound holds, which is the one-sided tolerance limit of Wilks (1941): choosing it after having looked costs no confidence.

**How much is looked at** decides how soon a change is noticed. `decide` takes the latest complete answers, as few as can prove eps at all (59 for 5%, 299 for 1%; no more than 15 beyond), so that usually one answer outside
takes the proof away, and the partitions searched are raised to include it. Of n answers that are exchangeable the next is beyond all of them with a probability of at most 1 / (n + 1) = 1.7%, whatever the law. After any
change the j-th audit sees the j-th answer of the new law, and until the next one each answer is missed with at most 1 / (j + 1): with audits of a share of the searches the misses of a whole change are expected
below (1 + ln n) / share, 170 at 3% and eps = .05, however the law changed. Looking at twice as many answers would allow two to lie outside and three times the misses. A life of fewer than some 3,400 searches can
therefore miss more than 5% by one ill-timed change that no test notices; beyond, it cannot on average.

What it does not see: answers to one question are not independent, and an exact search's best hit need not be what its asker wanted.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from agentir_ray.temporal.geometric import Floats, expected_work, log_normalizer, mass, mean_age, partitions_for
from agentir_ray.temporal.statistics import BLOCK, BLOCKS, LIMIT, AgeStatistics, Sample

__all__ = ["AgeStatistics", "Decision", "Fit", "decide", "expected_work", "fit", "mass", "partitions_for"]

CONFIDENCE = 0.95
_CHI_SQUARE_95 = 3.841458820694124  # with one degree of freedom
GEOMETRIC_REJECTED = 0.01  # p of the test of fit. It is repeated at every observation, and the bound that counts misses stands behind it: at 5% a true geometric law would be searched exactly for one search in twenty
MIN_EXPECTED = 5.0  # answers in a cell of the chi-square; 1 in the last one, which is as far out as a surprise can be (Cochran 1954)
MIN_EXPECTED_LAST = 1.0
_STEEP = 40.0  # exp(-40) is below the rounding of 1: steeper laws cannot be told from one another


class Fit(NamedTuple):
    """Maximum likelihood, and the ends of the 95% interval. `observations`: those that say anything, with two partitions to choose from. Without any: 0, between minus and plus infinity."""

    lambda_: float
    lower: float
    upper: float
    observations: int


class Decision(NamedTuple):
    """Search the `partitions` newest ones. `mass`: the share of answers that lies there by the law at the lower limit of lambda, 1.0 for all partitions. `reason`: why the prior is not supported; empty if it is."""

    partitions: int
    supported: bool
    mass: float
    reason: str


def fit(statistics: AgeStatistics) -> Fit:
    """Of everything that is remembered."""
    return _fit(_Likelihood(statistics.sample(), complete_only=False))


def observations_needed(eps: float) -> int:
    """How many complete answers, none of them outside, prove that at most a share of eps is: 59 for 5%."""
    if not 0 < eps < 1:
        raise ValueError(f"eps is {eps}; it is a share of answers, between 0 and 1")
    return math.ceil(math.log(1 - CONFIDENCE) / math.log1p(-eps))


def decide(statistics: AgeStatistics, partitions: int, eps: float) -> Decision:
    """How many of `partitions` to search so that at most a share of eps of the answers is missed. Takes about a millisecond: keep the decision until something is observed."""
    needed = observations_needed(eps)
    if partitions < 2:
        return _everything(partitions, "there is nothing to leave out: all records lie in one time partition")
    if needed > BLOCK * (BLOCKS - 1):
        return _everything(partitions, f"a promise of {1 - eps:.2%} takes {needed:,} answers to complete searches, more than are remembered; ask for less, or for an exact search")
    sample = statistics.sample(needed)
    seen = sample.complete.total()
    if seen < needed:
        return _everything(partitions, f"only {seen} of the {needed} answers to complete searches are known that a promise of {1 - eps:.2%} takes; feedback on exact searches adds to them")
    fitted = _fit(_Likelihood(sample, complete_only=False))
    if not fitted.lower > 0:
        return _everything(partitions, f"recent records are not clearly preferred: lambda is {fitted.lambda_:.3g}, its 95% interval begins at {fitted.lower:.3g}")
    p = _p_of_geometric(sample)
    if p < GEOMETRIC_REJECTED:
        return _everything(partitions, f"answers do not thin out steadily with age: a geometric law is rejected with p = {p:.2g}")
    k = _least_proven(sample, partitions_for(fitted.lower, eps, partitions), partitions, eps)
    if k is None:
        return _everything(partitions, f"too many of the last {seen} answers to complete searches are old: no part of the {partitions} time partitions is proven to hold {1 - eps:.2%}")
    return Decision(k, True, mass(fitted.lower, k, partitions), "")


def _everything(partitions: int, reason: str) -> Decision:
    return Decision(partitions, False, 1.0, reason)


class _Likelihood:
    """Of lambda, given each observation's own horizon: -lambda * (sum of ages) - sum of ln Z(lambda, horizon)."""

    def __init__(self, sample: Sample, complete_only: bool) -> None:
        counts = sample.complete if complete_only else sample.complete + sample.truncated
        self.horizons: Floats = np.array([horizon for horizon in counts if horizon > 1], np.float64)
        self.counts: Floats = np.array([count for horizon, count in counts.items() if horizon > 1], np.float64)
        self.observations = int(self.counts.sum())
        self.ages = sum(age * count for age, count in sample.ages.items()) + (0 if complete_only else sample.truncated_ages)
        self.oldest = int(self.counts @ (self.horizons - 1))  # what `ages` is at most

    def slope(self, lambda_: float) -> float:
        """The derivative: falls as lambda rises."""
        return float(self.counts @ mean_age(lambda_, self.horizons)) - self.ages

    def log(self, lambda_: float) -> float:
        if lambda_ < 0:  # ages counted from the other end: nothing grows without limit, and nothing large cancels
            return lambda_ * (self.oldest - self.ages) - float(self.counts @ log_normalizer(-lambda_, self.horizons))
        return -lambda_ * self.ages - float(self.counts @ log_normalizer(lambda_, self.horizons))

    def maximum(self) -> float:
        if self.ages == 0:
            return math.inf
        if self.ages == self.oldest:
            return -math.inf
        rising = self.slope(0.0) > 0
        return _crossing(self.slope, 0.0, self._step() if rising else -self._step())

    def _step(self) -> float:
        return 1 / float(self.horizons.max())


def _fit(likelihood: _Likelihood) -> Fit:
    if not likelihood.observations:
        return Fit(0.0, -math.inf, math.inf, 0)
    best = likelihood.maximum()
    log_best = likelihood.log(best) if math.isfinite(best) else 0.0
    start, step = max(-_STEEP, min(best, _STEEP)), likelihood._step()

    def inside(lambda_: float) -> float:
        return _CHI_SQUARE_95 / 2 - (log_best - likelihood.log(lambda_))

    lower = -math.inf if best == -math.inf else _crossing(inside, start, -step)
    upper = math.inf if best == math.inf else _crossing(inside, start, step)
    return Fit(best, lower, upper, likelihood.observations)


def _crossing(function: Callable[[float], float], start: float, step: float) -> float:
    """Where a function that changes its sign once on that side of `start` does so: steps that double until it has, then regula falsi (the Illinois form)."""
    near, far = start, start + step
    at_near, at_far = function(near), function(far)
    while at_near * at_far > 0:
        step *= 2
        near, far = far, far + step
        at_near, at_far = at_far, function(far)
    for _ in range(100):
        if not at_far or abs(far - near) <= 1e-10 * max(1.0, abs(far)):
            break
        middle = far - at_far * (far - near) / (at_far - at_near)
        at_middle = function(middle)
        if at_middle * at_far < 0:
            near, at_near = far, at_far
        else:
            at_near /= 2
        far, at_far = middle, at_middle
    return far


def _p_of_geometric(sample: Sample) -> float:
    """p of Pearson's chi-square that the complete ages are geometric, lambda fitted to them; 1.0 where they are too few or too young to tell."""
    likelihood = _Likelihood(sample, complete_only=True)
    lambda_ = likelihood.maximum() if likelihood.observations else math.inf
    if lambda_ == math.inf:
        return 1.0
    if lambda_ <= 0:
        return 0.0  # recency is in the truncated observations alone
    expected = _expected(lambda_, likelihood)
    observed = np.bincount(list(sample.ages), list(sample.ages.values()), len(expected))
    observed[0] -= sample.complete[1]  # where there was but one partition, an age of 0 says nothing
    cells = _pool(expected)
    if len(cells) < 3:
        return 1.0
    wanted, found = np.add.reduceat(expected, cells), np.add.reduceat(observed, cells)
    return chi_square_tail(float(((found - wanted) ** 2 / wanted).sum()), len(cells) - 2)


def _expected(lambda_: float, likelihood: _Likelihood) -> Floats:
    """How many complete answers of each age the law expects: exp(-lambda a) * sum of 1 / Z(h) over the observations whose horizon is beyond a."""
    by_horizon = np.zeros(int(likelihood.horizons.max()))
    by_horizon[likelihood.horizons.astype(np.int64) - 1] = likelihood.counts * np.exp(-log_normalizer(lambda_, likelihood.horizons))
    return np.asarray(np.exp(-lambda_ * np.arange(len(by_horizon))) * np.cumsum(by_horizon[::-1])[::-1])


def _pool(expected: Floats) -> list[int]:
    """Where cells begin so that each is expected to hold MIN_EXPECTED, the last MIN_EXPECTED_LAST."""
    left = float(expected.sum())
    starts, held = [0], 0.0
    for age, answers in enumerate(expected):
        if held >= MIN_EXPECTED and left >= MIN_EXPECTED_LAST:
            starts.append(age)
            held = 0.0
        held += answers
        left -= answers
    if held < MIN_EXPECTED_LAST and len(starts) > 1:
        starts.pop()
    return starts


def _least_proven(sample: Sample, k: int, partitions: int, eps: float) -> int | None:
    """The least number of partitions, at least k and fewer than all of them, in which Clopper and Pearson find a share of 1 - eps; None if there is none.

    An answer to a search of no more than k partitions lies within k for want of others: it is not counted.
    """
    for candidate in [k, *sorted(age + 1 for age in sample.ages if age >= k)]:
        if candidate >= min(partitions, LIMIT):
            return None
        could = sum(count for horizon, count in sample.complete.items() if horizon > candidate)
        outside = sum(count for age, count in sample.ages.items() if age >= candidate)
        if binomial_tail(outside, could, eps) <= 1 - CONFIDENCE + 1e-12:
            return candidate
    return None


def binomial_tail(k: int, n: int, p: float) -> float:
    """The probability of at most k successes of n: the bound of Clopper and Pearson on the share is below p exactly where this is below 1 - CONFIDENCE."""
    if k >= n * p:
        return 1.0  # at least about a half: not what is asked for
    term = math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p))
    total = 0.0
    while k >= 0 and term > 1e-18 * total:
        total += term
        term *= k * (1 - p) / ((n - k + 1) * p)
        k -= 1
    return total


def chi_square_tail(x: float, degrees: int) -> float:
    """The probability that a chi-square of so many degrees of freedom exceeds x, by its finite sum."""
    half, odd = x / 2, degrees % 2
    if half > 700:
        return 0.0  # for degrees below 1,024
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.exp(-half) * (math.sqrt(half) / math.gamma(1.5) if odd else 1.0)
    for i in range(degrees // 2):
        total += term
        term *= half / (i + 1 + odd / 2)
    return total
