"""Which time partitions the parts of a namespace's index hold: made once for a list of segments, and followed for the growing buffers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.buffer import BufferView
from agentir_ray.lexical.segment import Segment
from agentir_ray.temporal.partitions import Partitions, partitions_of

Array = npt.NDArray[Any]


NONE = frozenset[int]()


class _Followed(NamedTuple):
    """The buckets of a buffer's first `documents` documents."""

    documents: int
    buckets: frozenset[int]


class PartitionTable:
    """`buckets` int64 (P) ascending: the partitions that `segments` hold; `holds` bool (P, segments): which of them have documents of which."""

    def __init__(self, segments: tuple[Segment, ...], width_us: int, before: "PartitionTable | None" = None) -> None:
        """What `before` knows of the same segments is taken over, if its width is the same: their timestamps are read once. It keeps no segment alive."""
        self.width_us = width_us
        known = {} if before is None or before.width_us != width_us else before._of_segment
        each = [known[segment.serial] if segment.serial in known else partitions_of(segment.array("timestamp"), width_us)[0] for segment in segments]
        self._of_segment: dict[int, Array] = {segment.serial: buckets for segment, buckets in zip(segments, each, strict=True)}
        self.buckets: Array = np.unique(np.concatenate([*each, np.empty(0, np.int64)]))
        holds = np.zeros((len(self.buckets), len(segments)), bool)
        for i, buckets in enumerate(each):
            holds[np.searchsorted(self.buckets, buckets), i] = True
        self.holds: Array = holds
        self._known = frozenset(self.buckets.tolist())
        self._followed: dict[int, _Followed] = {}  # by a buffer's first sequence number
        self._last: tuple[int, frozenset[int], Partitions] | None = None

    def at(self, views: Sequence[BufferView], as_of_us: int) -> Partitions:
        """The partitions that are not empty, those of the buffers included; ages count back from `as_of_us`."""
        now = as_of_us // self.width_us
        beyond = NONE
        for view in views:
            held = self._in_buffer(view)
            if not held <= self._known:
                beyond = beyond | (held - self._known)
        last = self._last
        if last is not None and last[0] == now and last[1] == beyond:
            return last[2]
        buckets = np.union1d(self.buckets, list(beyond)) if beyond else self.buckets
        partitions = Partitions(buckets, self.width_us, int(np.searchsorted(buckets, now, "right")))
        self._last = now, beyond, partitions
        return partitions

    def _in_buffer(self, view: BufferView) -> frozenset[int]:
        key = int(view.seq[0])
        seen = self._followed.get(key, _Followed(0, frozenset()))
        if seen.documents < view.documents:
            found = np.unique(view.timestamp[seen.documents : view.documents] // self.width_us).tolist()
            seen = self._followed[key] = _Followed(view.documents, seen.buckets.union(found))
        return seen.buckets

    def apart(self, passed_over: Array, left: Array, views: Sequence[BufferView]) -> tuple[Array, Array]:
        """Of segments (bool), some passed over and some left out: the buckets all of whose documents lie in the former, and those of which some lie in the latter."""
        some_left = self.buckets[(self.holds & left).any(axis=1)] if np.count_nonzero(left) else self.buckets[:0]
        alone = self.buckets[~(self.holds & ~passed_over).any(axis=1)]
        for view in views if len(alone) else ():
            alone = alone[[bucket not in self._in_buffer(view) for bucket in alone.tolist()]]
        return alone, some_left
