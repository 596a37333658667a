"""What a namespace's answers have told of the ages of what is asked for, and what that allows: its prior in use.

Decisions are kept, so that a search only looks one up, until an observation could change them. It knows no clock and no log: who owns the namespace saves `encode()`.
"""

import threading
from collections.abc import Iterable
from typing import NamedTuple

from agentir_ray.temporal.prior import AgeStatistics, Decision, decide

OBSERVED_ANEW = 16  # observations that a decision may lag behind where none of them speaks against it: what they prove can wait, and takes a millisecond to work out
WIDTH_BYTES = 8
KEPT_DECISIONS = 8  # numbers of partitions and shares that are asked for in turn


class Observation(NamedTuple):
    """An answer of this age was found in a search of `horizon` partitions; `complete` if these were all."""

    age: int
    horizon: int
    complete: bool


class Recency:
    """Shared by the threads that use the namespace. Ages are of partitions `width_us` wide; `unsaved` counts the observations since it was last encoded."""

    def __init__(self, width_us: int, statistics: AgeStatistics | None = None) -> None:
        self.width_us = width_us
        self.unsaved = 0
        self._statistics = AgeStatistics() if statistics is None else statistics
        self._lock = threading.Lock()
        self._decisions: dict[tuple[int, float], Decision] = {}
        self._since = 0  # observations since the decisions were made

    def decide(self, partitions: int, eps: float) -> Decision:
        """How many of the newest partitions hold an answer with probability 1 - eps."""
        decision = self._decisions.get((partitions, eps))
        if decision is None:
            with self._lock:
                if len(self._decisions) >= KEPT_DECISIONS:
                    self._decisions = {}
                decision = self._decisions[partitions, eps] = decide(self._statistics, partitions, eps)
        return decision

    def observe(self, observations: Iterable[Observation], width_us: int) -> None:
        """Decisions that an observation speaks against, as they leave out partitions of its age, are made anew here, and not by the next search.

        Ages in partitions of another width say nothing.
        """
        if width_us != self.width_us:
            return
        with self._lock:
            oldest = -1
            for observation in observations:
                self._statistics.observe(*observation)
                self.unsaved += 1
                self._since += 1
                oldest = max(oldest, observation.age)
            anew = self._since >= OBSERVED_ANEW
            self._since = 0 if anew else self._since
            for key, decision in list(self._decisions.items()):
                if anew or (decision.supported and oldest >= decision.partitions):
                    self._decisions[key] = decide(self._statistics, *key)

    def encode(self) -> bytes:
        with self._lock:
            self.unsaved = 0
            return self.width_us.to_bytes(WIDTH_BYTES, "little") + self._statistics.encode()

    @staticmethod
    def decode(data: bytes, width_us: int) -> "Recency":
        """What `encode` gave, for a namespace whose partitions are `width_us` wide now: of other ones nothing is taken over. Raises ValueError."""
        if int.from_bytes(data[:WIDTH_BYTES], "little") != width_us:
            return Recency(width_us)
        return Recency(width_us, AgeStatistics.decode(data[WIDTH_BYTES:]))
