"""The recency prior: whether the ages of answers may be trusted to leave partitions out, and how many to search then.

Facts in, decision out: no I/O, no clock, nothing of records or segments. A prior that is fed by its own searches sees what it chose to see. So four things must hold before it is
*supported*; where one fails, everything is searched:

- The flat law is rejected: the interval of lambda, which is the likelihood-ratio test turned round, lies above 0.
- The geometric law is not: Pearson's chi-square on the ages of complete observations.
- No surprise: none of the latest complete answers (1 to 16, a block) lies beyond k* and beyond all those before them.
- Whatever the law, the share of complete answers within the partitions searched is at least 1 - eps by the one-sided 95% bound of Clopper and Pearson (1934).

The number of partitions is k* at the lower limit of lambda, raised to the least at which the last holds: the tolerance limit of Wilks (1941), so choosing it after having looked
costs no confidence.

**How much is looked at** decides how soon a change is noticed. `decide` takes the latest complete answers, no more than can prove eps with none outside (59 for 5%, 299 for 1%, and
at most 15 beyond): an answer outside takes the proof away, and the partitions are raised to include it. Of n exchangeable answers and a next one, that one is older than all the
others with a probability of at most 1 / (n + 1) = 1.7%. After any change of the law the j-th audit sees its j-th answer, and until the next audit an answer is missed with at most
1 / (j + 1). So if a share of the searches is audited, a change costs fewer than (1 + ln n) / share misses in expectation, 170 at 3% and eps = .05, whatever changed; a memory of
twice as many answers would allow for two or three outside, and for as many times the misses. Pausing after a surprise took away a third to a half of them in simulated lives, for
6 to 10% of the time for which a steady prior is supported (.3% where exact searches get feedback). What remains: one ill-timed change can cost a life of a few thousand searches
more than eps = .05, and one of some twenty thousand more than .01.

Not seen here: that answers to one question are not independent, and that the best hit of a complete search need not be what its asker wanted.
"""

import math
from typing import NamedTuple

import numpy as np

from agentir_ray.temporal.geometric import Floats, expected_work, log_normalizer, mass, partitions_for
from agentir_ray.temporal.likelihood import Fit, Likelihood, fit
from agentir_ray.temporal.statistics import BLOCK, BLOCKS, LIMIT, AgeStatistics, Sample

__all__ = ["AgeStatistics", "Decision", "Fit", "decide", "expected_work", "fit", "mass", "observations_needed", "partitions_for"]

CONFIDENCE = 0.95
GEOMETRIC_REJECTED = 0.01  # p of the test, which is repeated all life long and has the bound on misses behind it: at .05 a law that is geometric lost support for 3% of its life
MIN_EXPECTED = 5.0  # answers in a cell of the chi-square,
MIN_EXPECTED_LAST = 1.0  # and in the last one, where the surprises are (Cochran 1954): on simulated samples of 59 to 300 p was then right


class Decision(NamedTuple):
    """Search the `partitions` newest ones; all of them where the prior is not `supported`, and `reason` says why it is not.

    `mass`: the share of answers that the law puts there, at the lower limit of lambda; 1.0 for all partitions.
    """

    partitions: int
    supported: bool
    mass: float
    reason: str


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
        return _everything(partitions, f"a promise of {1 - eps:.2%} takes {needed:,} answers to complete searches, more than are remembered; ask for less, or for exact")
    sample = statistics.sample(needed)
    seen = sample.complete.total()
    if seen < needed:
        return _everything(partitions, f"a promise of {1 - eps:.2%} takes {needed} answers to complete searches, and {seen} are known; feedback on exact searches adds to them")
    fitted = fit(sample)
    if not fitted.lower > 0:
        return _everything(partitions, f"recent records are not clearly preferred: lambda is {fitted.lambda_:.3g}, its 95% interval begins at {fitted.lower:.3g}")
    p = _p_of_geometric(sample)
    if p < GEOMETRIC_REJECTED:
        return _everything(partitions, f"answers do not thin out steadily with age: a geometric law is rejected with p = {p:.2g}")
    hot = partitions_for(fitted.lower, eps, partitions)
    latest = statistics.sample(1).ages
    before = sample.ages - latest
    if before and max(latest) >= max(hot, max(before) + 1):
        return _everything(partitions, f"one of the latest {latest.total()} answers is older than all {before.total()} before them: what is asked for may be changing")
    k = _least_proven(sample, hot, partitions, eps)
    if k is None:
        return _everything(partitions, f"too many of the last {seen} answers were old: no part of the {partitions} time partitions is proven to hold {1 - eps:.2%}")
    return Decision(k, True, mass(fitted.lower, k, partitions), "")


def _everything(partitions: int, reason: str) -> Decision:
    return Decision(partitions, False, 1.0, reason)


def _p_of_geometric(sample: Sample) -> float:
    """p of Pearson's chi-square that the complete ages are geometric, lambda fitted to them; 1.0 where they are too few or too young to tell."""
    likelihood = Likelihood(sample, complete_only=True)
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
    return _chi_square_tail(float(((found - wanted) ** 2 / wanted).sum()), len(cells) - 2)


def _expected(lambda_: float, likelihood: Likelihood) -> Floats:
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
        if _proven(outside, could, eps):
            return candidate
    return None


def _proven(outside: int, answers: int, eps: float) -> bool:
    """Whether the bound of Clopper and Pearson on the share outside is at most eps: so few outside have a probability of at most 1 - CONFIDENCE if that share is eps."""
    if outside >= answers * eps:
        return False
    inside = answers - outside
    choices = math.lgamma(answers + 1) - math.lgamma(outside + 1) - math.lgamma(inside + 1)
    term = math.exp(choices + outside * math.log(eps) + inside * math.log1p(-eps))
    tail = 0.0
    for k in range(outside, -1, -1):  # terms fall from here on
        tail += term
        term *= k * (1 - eps) / ((answers - k + 1) * eps)
        if term < 1e-18:
            break
    return tail <= 1 - CONFIDENCE


def _chi_square_tail(x: float, degrees: int) -> float:
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
