"""Time partitions: the records of one namespace whose timestamps fall into one bucket of its width.

They are logical: a segment's documents lie in time order, so a partition is a range of them, found by binary search. Nothing is stored per partition, and a late record is in the
partition of its time, whatever segment it lies in. Buckets are counted from 1970, so that they do not move.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DAY_US = 86_400_000_000
PARTITION_WIDTH_US = 7 * DAY_US
MIN_WIDTH_US = DAY_US // 24  # below, there may be millions of partitions
MAX_WIDTH_US = 36_525 * DAY_US


def partitions_of(timestamp: Array, width_us: int) -> tuple[Array, Array]:
    """(buckets, first): the distinct buckets of ascending timestamps (int64, microseconds), ascending, and the position of each one's first timestamp."""
    bucket = timestamp // width_us
    first = np.flatnonzero(np.diff(bucket, prepend=bucket[:1] - 1))
    return bucket[first], first


class Partitions(NamedTuple):
    """The non-empty partitions at or before some now: their buckets, int64, ascending. The age of one is how many of them are newer."""

    buckets: Array
    width_us: int

    @property
    def total(self) -> int:
        return len(self.buckets)

    def age(self, timestamp_us: int) -> int | None:
        """The age of the partition of a record; None if it is none of these."""
        bucket = timestamp_us // self.width_us
        place = int(np.searchsorted(self.buckets, bucket))
        return self.total - 1 - place if place < self.total and self.buckets[place] == bucket else None

    def since_us(self, hottest: int) -> int:
        """Where the oldest of the `hottest` newest partitions begins."""
        return int(self.buckets[self.total - hottest]) * self.width_us
