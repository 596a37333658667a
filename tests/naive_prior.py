"""The oracle of the recency prior: every formula as the sum that it stands for, over lists of observations. No shared code, no thought of speed."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Seen(NamedTuple):
    age: int
    horizon: int
    complete: bool


def law(lambda_: float, horizon: int) -> list[float]:
    """The shares of the ages 0 .. horizon - 1."""
    largest = max(-lambda_ * age for age in (0, horizon - 1))
    weights = [math.exp(-lambda_ * age - largest) for age in range(horizon)]
    return [weight / math.fsum(weights) for weight in weights]


def mass(lambda_: float, k: int, partitions: int) -> float:
    return math.fsum(law(lambda_, partitions)[:k])


def expected_work(lambda_: float, sizes: Sequence[int], k: int) -> float:
    """Search the newest k partitions one by one, and stop after the answer's: what that costs, for an answer of each age."""
    return math.fsum(share * sum(sizes[: min(age + 1, k)]) for age, share in enumerate(law(lambda_, len(sizes))))


def log_likelihood(seen: Sequence[Seen], lambda_: float) -> float:
    """Each observation's share among the ages below its own horizon."""
    return math.fsum(_log_share(lambda_, age, horizon) for age, horizon, _ in seen)


def _log_share(lambda_: float, age: int, horizon: int) -> float:
    largest = max(-lambda_ * other for other in (0, horizon - 1))
    return -lambda_ * age - largest - math.log(math.fsum(math.exp(-lambda_ * other - largest) for other in range(horizon)))


def clopper_pearson_holds(outside: int, answers: int, eps: Fraction) -> bool:
    """Whether the one-sided 95% bound on the share of answers outside is at most eps: were it eps, so few would be outside in at most one case of twenty. In whole numbers."""
    return sum(math.comb(answers, k) * eps**k * (1 - eps) ** (answers - k) for k in range(outside + 1)) <= Fraction(1, 20)


def least_proven(seen: Sequence[Seen], least: int, partitions: int, eps: Fraction) -> int | None:
    for k in range(least, partitions):
        could = [one for one in seen if one.complete and one.horizon > k]
        if could and clopper_pearson_holds(sum(one.age >= k for one in could), len(could), eps):
            return k
    return None


def expected_counts(seen: Sequence[Seen], lambda_: float) -> list[float]:
    """How many complete observations of each age the law expects, of those that had a choice."""
    expected: Counter[int] = Counter()
    for one in seen:
        if one.complete and one.horizon > 1:
            expected.update(dict(enumerate(law(lambda_, one.horizon))))  # type: ignore[arg-type]  # a Counter adds floats as well
    return [expected[age] for age in range(len(expected))]


class NaiveStatistics:
    """All observations ever made, in order; a block ends before the complete observation that would be one too many."""

    def __init__(self, block: int, blocks: int) -> None:
        self.block, self.keep = block, blocks
        self.blocks: list[list[Seen]] = [[]]

    def observe(self, seen: Seen) -> None:
        if seen.complete and sum(one.complete for one in self.blocks[-1]) == self.block:
            self.blocks.append([])
        self.blocks[-1].append(seen)

    def latest(self, complete: int) -> list[Seen]:
        found: list[Seen] = []
        for block in reversed(self.blocks[-self.keep :]):
            if sum(one.complete for one in found) >= complete:
                break
            found = block + found
        return found
