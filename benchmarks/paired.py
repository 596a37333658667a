"""Measures of questions with several gold records, folds over chats, and paired differences with their intervals: arithmetic only, it knows no data set and no store."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MEASURES = ("any@5", "any@10", "all@5", "all@10")
MIN_CHATS = 8  # below, a bootstrap over chats has too few units to be one, and questions are drawn instead
DRAWS = 4_000
SEED = 4


def recall_any(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 if some gold record is among the first k."""
    return float(not set(gold).isdisjoint(ranked[:k]))


def recall_all(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 if all gold records are among the first k; 0 by necessity where there are more than k."""
    return float(set(gold) <= set(ranked[:k]))


def measured(ranked: Sequence[str], gold: Collection[str]) -> list[float]:
    """In the order of MEASURES."""
    return [recall(ranked, gold, k) for recall in (recall_any, recall_all) for k in (5, 10)]


def best_elsewhere(scores: Sequence[Array]) -> list[int]:
    """For each chat the setting that is best on the questions of all other chats, the first of equals; `scores` has an array (questions, settings) a chat."""
    if len(scores) < 2:
        raise ValueError("what is fitted on other chats needs two chats at least")
    totals = np.array([each.sum(axis=0) for each in scores])
    others = totals.sum(axis=0) - totals
    return [int(np.argmax(np.round(row, 9))) for row in others]  # rounded: sums in another order must not decide between equals


class Difference(NamedTuple):
    """`mean`, and its paired 95% bootstrap interval."""

    mean: float
    low: float
    high: float

    @property
    def words(self) -> str:
        if self.mean == self.low == self.high == 0.0:
            return "no difference"
        return "helps" if self.low > 0 else "costs" if self.high < 0 else "no difference shown"


def difference(first: Sequence[Sequence[Array]], second: Sequence[Sequence[Array]]) -> Difference:
    """second - first, means over the questions of a data set, then over data sets. `first[set][chat]` has a value a question, `second` those of the same questions."""
    rng = np.random.default_rng(SEED)
    means, draws = [], []
    for before, after in zip(first, second, strict=True):
        paired = [b - a for a, b in zip(before, after, strict=True)]
        units = paired if len(paired) >= MIN_CHATS else list(np.concatenate(paired)[:, None])
        sums, counts = np.array([unit.sum() for unit in units]), np.array([len(unit) for unit in units])
        picked = rng.integers(0, len(units), (DRAWS, len(units)))
        means.append(sums.sum() / counts.sum())
        draws.append(sums[picked].sum(axis=1) / counts[picked].sum(axis=1))
    low, high = np.quantile(np.mean(draws, axis=0), (0.025, 0.975))
    return Difference(float(np.mean(means)), float(low), float(high))
