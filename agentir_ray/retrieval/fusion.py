"""Several rankings of the same records as one: reciprocal ranks and convex combinations.

It knows no channel, no index and no query: a list is the sequence numbers of records, best first, and a record is known by its sequence number. Lists become a table, one row a
list and one column a record that some list has; a fusion gives each column a score; `best_first` orders them, equal scores newer first. So the order of the lists' entries is all
that counts, and a record that a list lacks gets 0 from it. Sums run over the lists in their order, in float64, so that an explanation can repeat them to the last bit.

Reciprocal rank fusion: Cormack et al., SIGIR 2009. Convex combination of scores normalised by their theoretical minimum and the list's maximum ("tmm"): arXiv:2210.11934. The
addition of recency and importance to ranks, `agent_rrf`: DESIGN 7.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

KAPPA = 60.0  # of the paper: how little the first ranks are ahead of the next
RECENCY_WEIGHT, RECENCY_TAU_US, IMPORTANCE_WEIGHT = 0.002, 30 * 86_400e6, 0.001  # of `agent_rrf`: well below the largest reciprocal rank, 1/61


class Table(NamedTuple):
    """`seq` int64 (n): the records that some list has, ascending; `rank` int64 (lists, n): their places from 1 on, 0 where a list lacks them."""

    seq: Int64s
    rank: Int64s


def table_of(lists: Sequence[Int64s]) -> Table:
    """Of lists of distinct sequence numbers, best first; at least one list, which may be empty."""
    seq = np.unique(np.concatenate(lists)).astype(np.int64, copy=False)
    rank = np.zeros((len(lists), len(seq)), np.int64)
    for row, listed in zip(rank, lists, strict=True):
        row[np.searchsorted(seq, listed)] = np.arange(1, len(listed) + 1)
    return Table(seq, rank)


def reciprocal_ranks(rank: Int64s, weights: Sequence[float], kappa: float = KAPPA) -> Float64s:
    """float64, as `rank`: what each list adds, weight / (kappa + rank), 0 where the rank is 0. Raises ValueError for a weight below 0."""
    _check(weights, len(rank))
    added: Float64s = np.array(weights, np.float64)[:, None] / (kappa + rank)
    added[rank == 0] = 0.0
    return added


def normalised(score: Float64s, lowest: float, highest: float) -> Float64s:
    """float64, as `score`: where each lies between `lowest`, the least that the list's kind of score can be, and `highest`, the list's maximum; 0 for NaN, which stands for none.

    A list whose maximum is the least possible tells nothing, and gives 0.
    """
    if not highest > lowest:
        return np.zeros(len(score), np.float64)
    with np.errstate(invalid="ignore"):
        between: Float64s = np.maximum((score - lowest) / (highest - lowest), 0.0)
    between[np.isnan(score)] = 0.0
    return between


def convex(between: Float64s, weights: Sequence[float]) -> Float64s:
    """float64, as `between` (lists, n; what `normalised` gave): what each list adds. Raises ValueError for a weight below 0."""
    _check(weights, len(between))
    added: Float64s = np.array(weights, np.float64)[:, None] * between
    return added


def summed(added: Sequence[Float64s] | Float64s, records: int) -> Float64s:
    """float64 (records): the rows of `added` one after the other."""
    total = np.zeros(records, np.float64)
    for row in added:
        total += row
    return total


def recency(age_us: Int64s, weight: float, tau_us: float) -> Float64s:
    """float64: weight * exp(-age / tau), an age below 0 counting as 0."""
    # `exp` of a number at a time: numpy's may differ from `math.exp` in the last bit, and explanations repeat the sum
    return np.fromiter((weight * math.exp(-max(0.0, float(age)) / tau_us) for age in age_us.tolist()), np.float64, len(age_us))


def best_first(score: Float64s, seq: Int64s) -> npt.NDArray[np.intp]:
    """The order of (score, tie key): larger scores first, equal ones newer first."""
    return np.lexsort((-seq, -score))


def _check(weights: Sequence[float], lists: int) -> None:
    if len(weights) != lists or not all(weight >= 0.0 for weight in weights):
        raise ValueError(f"{lists} lists need as many weights from 0 on, not {list(weights)}")
