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
    """The non-empty partitions: their buckets, int64, ascending, of which the first `total` lie at or before some now. The age of one of these is how many of them are newer."""

    buckets: Array
    width_us: int
    total: int

    def age(self, timestamp_us: int) -> int | None:
        """The age of the partition of a record; None if it is not at or before the now."""
        bucket = timestamp_us // self.width_us
        place = int(np.searchsorted(self.buckets, bucket))
        return self.total - 1 - place if place < self.total and self.buckets[place] == bucket else None

    def since_us(self, hottest: int) -> int:
        """Where the oldest of the `hottest` newest partitions at or before the now begins."""
        return int(self.buckets[self.total - hottest]) * self.width_us

    def from_on(self, hottest: int) -> Array:
        """The buckets of the `hottest` newest ones at or before the now, and of all after it."""
        return self.buckets[self.total - hottest :]

    def within(self, since_us: int, until_us: int) -> "Partitions":
        low, high = int(np.searchsorted(self.buckets, since_us // self.width_us)), int(np.searchsorted(self.buckets, until_us // self.width_us, "right"))
        return Partitions(self.buckets[low:high], self.width_us, max(0, min(self.total, high) - low))
