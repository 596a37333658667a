"""Scores of records in the light of their neighbours: in a dialogue what answers a question often stands beside what resembles it.

It knows no session and no index: it is told which records are neighbours of which.
"""

import numpy as np
import numpy.typing as npt

Float64s = npt.NDArray[np.float64]


def mean_of_neighbours(own: Float64s, neighbours: npt.NDArray[np.int64]) -> Float64s:
    """float64 (n): the mean of the scores own[neighbours[i]] (int64 (n, w), -1: none), summed from the first neighbour to the last; NaN where a record has no neighbour."""
    total, count = np.zeros(len(neighbours)), np.zeros(len(neighbours))
    for column in neighbours.T:
        there = column >= 0
        total[there] += own[column[there]]
        count += there
    with np.errstate(invalid="ignore"):
        mean: Float64s = total / count
    return mean


def smoothed(own: Float64s, context: Float64s, weight: float) -> Float64s:
    """float64: (1 - weight) * own + weight * context; `own` where the context is NaN."""
    mixed: Float64s = np.where(np.isnan(context), own, (1.0 - weight) * own + weight * context)
    return mixed
