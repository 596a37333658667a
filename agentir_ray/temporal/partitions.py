"""Time partitions: the records of one namespace whose timestamps fall into one bucket of its width.

They are logical: a segment's documents lie in time order, so a partition is a range of them, found by binary search. Nothing is stored per partition, and a late record is in the
partition of its time, whatever segment it lies in. Buckets are counted from 1970, so that they do not move.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DAY_US = 86_400_000_000
PARTITION_WIDTH_US = 7 * DAY_US
MIN_WIDTH_US = 60_000_000  # a minute: below, partitions are no larger than a conversation's turn, and there may be millions
MAX_WIDTH_US = 36_525 * DAY_US


def partitions_of(timestamp: Array, width_us: int) -> tuple[Array, Array]:
    """(buckets, first): the distinct buckets of ascending timestamps (int64, microseconds), ascending, and the position of each one's first timestamp.

    Reads O(log n) timestamps a partition.
    """
    buckets: list[int] = []
    first: list[int] = []
    position, end = 0, len(timestamp)
    while position < end:
        bucket = int(timestamp[position]) // width_us
        buckets.append(bucket)
        first.append(position)
        position += int(np.searchsorted(timestamp[position:], (bucket + 1) * width_us, "left"))
    return np.array(buckets, np.int64), np.array(first, np.int64)
