"""The classes of a segment's postings: at most 255 pairs of a tf and a range of lengths, chosen so that postings spread evenly over them.

Where a segment has no more distinct pairs than that, a class is one pair. Otherwise each tf gets levels in proportion to the root of its postings, cut at quantiles of their
lengths. The tf of a class is exact; its length is the shortest of the range, so what a class is worth bounds each of its postings from above, whatever k1, b and the average
length are.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.classes import ESCAPE, LENGTHS, TFS, count_pairs

Array = npt.NDArray[Any]


class Classes(NamedTuple):
    """tf, shortest, longest uint32 (256): of each class, ascending by tf and descending by length; `of` uint8 (TFS * LENGTHS): the class of each pair.

    Class `ESCAPE` holds the rest: its tf is the largest there is (0: it is empty), its lengths the smallest and the largest.
    """

    tf: Array
    shortest: Array
    longest: Array
    of: Array

    @property
    def weak(self) -> int:
        """How many classes, the first ones, have a tf of 1: no rank need be looked up for what these postings contribute."""
        return int(np.count_nonzero(self.tf == 1))

    def least_worth(self, base: float, slope: float) -> Array:
        """uint8 (256): tf / (tf + base + slope * length) of each class, in 255ths, rounded down: no posting of the class is worth less."""
        tf = self.tf.astype(np.float64)
        tf[ESCAPE] = min(tf[ESCAPE], TFS)
        norm = base + slope * self.longest
        worth: Array = np.floor(255 * np.divide(tf, tf + norm, out=np.zeros(256), where=tf > 0)).astype(np.uint8)
        return worth


def choose_classes(doc_start: Array, tf: Array, length: Array) -> Classes:
    """For documents of these lengths (uint32), whose postings' tf are tf[doc_start[d]:doc_start[d + 1]] (int32)."""
    counts = np.zeros(TFS * LENGTHS, np.int64)
    count_pairs(doc_start, tf, length, counts)
    by_tf = counts.reshape(TFS, LENGTHS)
    lengths = [np.flatnonzero(row) for row in by_tf]
    pairs = sum(map(len, lengths))
    if pairs > ESCAPE:
        root = np.sqrt(by_tf.sum(axis=1))
        share = root / root.sum() * (ESCAPE - TFS)
        lengths = [_levels(row, found, max(1, int(levels))) if len(found) else found for row, found, levels in zip(by_tf, lengths, share, strict=True)]
    class_tf, shortest, longest = np.zeros(256, np.uint32), np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    longest_of_all = int(length.max(initial=0))
    of = np.full((TFS, LENGTHS), ESCAPE, np.uint8)
    number = 0
    for f in range(1, TFS):
        starts = lengths[f]
        if len(starts):
            level = np.searchsorted(starts, np.arange(LENGTHS), side="right") - 1
            of[f] = number + len(starts) - 1 - np.maximum(level, 0)
            class_tf[number : number + len(starts)] = f
            shortest[number : number + len(starts)] = starts[::-1]
            longest[number] = longest_of_all
            longest[number + 1 : number + len(starts)] = starts[:0:-1] - 1
            number += len(starts)
    if len(tf) and tf.max() >= TFS:
        class_tf[ESCAPE], shortest[ESCAPE], longest[ESCAPE] = tf.max(), length.min(), longest_of_all
    return Classes(class_tf, shortest, longest, of.reshape(-1))


def _levels(counts: Array, found: Array, levels: int) -> Array:
    """The lengths at which some levels begin that hold about as many postings each; `found` are the lengths with any."""
    if len(found) <= levels:
        return found
    before = np.cumsum(counts[found]) - counts[found]
    cuts = np.searchsorted(before, np.arange(levels) * (counts.sum() / levels))
    starts: Array = found[np.unique(np.minimum(cuts, len(found) - 1))]
    return starts if starts[0] == found[0] else np.concatenate([found[:1], starts])[:levels]
