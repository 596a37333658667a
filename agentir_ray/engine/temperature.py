"""Carries out what `temperature_policy` decides: copies into memory, spills, and lets loaded segments go, over all loaded namespaces of a store.

It runs in maintenance, after the files were rewritten, and after searches loaded cold segments; never on a search's path. A store that is only read has no maintenance: there it
runs after a load, and once more with the first use after what was loaded is not wanted any more. A target that fails is tried again ever more rarely,
and whoever waits for something else comes first: only a single object is ever on its way. Namespaces that are not loaded are as they were when they were let go.
"""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

import numpy as np

from agentir_ray.clock import Clock
from agentir_ray.engine.compaction import Compactor, has_damaged_segment
from agentir_ray.engine.covering import AUTO_EPS
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.residents import Residents
from agentir_ray.engine.spilling import Spiller
from agentir_ray.engine.temperature_policy import DECAY, HALF_LIFE_S, HOT_SHARE, WANTED_S, Facts, Temperature, choose_temperatures
from agentir_ray.errors import AgentIRError, DamagedError
from agentir_ray.lexical.segment import Segment
from agentir_ray.sections import SectionFile

RETRY_S, MAX_RETRY_S = 1.0, 300.0  # after a failure of the target, twice as long each time
logger = logging.getLogger("agentir_ray")

Placed = tuple[Namespace, Segment]


def temperature_of(segment: Segment) -> Temperature:
    return Temperature.COLD if segment.cold else Temperature.HOT if segment.hot else Temperature.WARM


class Thermostat:
    def __init__(
        self,
        spiller: Spiller,
        compactor: Compactor | None,
        residents: Residents,
        memory_budget_bytes: int,
        limits: Limits,
        clock: Clock,
    ) -> None:
        """`compactor` is None in a store that is only read: then nothing is spilled."""
        self._spiller = spiller
        self._compactor = compactor
        self._residents = residents
        self._budget_bytes = memory_budget_bytes
        self._limits = limits
        self._clock = clock
        self._running = threading.Lock()
        self._cooled_ns = clock.monotonic_ns()
        self._again_ns: int | None = None  # when what was wanted for a moment is to be looked at again
        self._spilling, self._sweeping = _Attempts("spilling is put off"), _Attempts("what was spilled and is not needed any more stays on the target for now")

    def temper(self, interrupted: Callable[[], bool]) -> None:
        """Make every segment as warm as it is to be; `interrupted` is asked between two objects whether something else is due, which ends in another call."""
        if not self._running.acquire(blocking=self._compactor is None):  # without spills it is soon done, and nobody comes back to what was loaded meanwhile
            return
        try:
            self._again_ns, self._spilling.waiting = None, False
            with self._residents.all(lambda namespace: any(map(self._is_worth_it, namespace.index.segments))) as namespaces:
                placed = [(namespace, segment) for namespace in namespaces if not namespace.damaged for segment in namespace.index.segments if self._is_worth_it(segment)]
                if not placed:
                    return
                self._cool([segment for _, segment in placed])
                spills = []
                for (namespace, segment), temperature in zip(placed, self._choose(placed), strict=True):
                    if temperature is Temperature.COLD and not segment.spilled:
                        spills.append((namespace, segment))
                    elif temperature is not temperature_of(segment):
                        _notice_damage(namespace, partial(_exchange, namespace, segment, temperature))
            for n, (namespace, segment) in enumerate(sorted(spills, key=lambda one: one[1].span_us[1])):
                if not self._spilling.due or (n and interrupted()):  # one each time: else busy writers would put it off for ever
                    self._spilling.waiting = not self._spilling.due
                    break
                spill = partial(self._spiller.spill, namespace, segment, partial(self._leave_remainder, namespace, segment))
                _notice_damage(namespace, partial(self._spilling.attempt, spill))
        finally:
            self._running.release()

    def _is_worth_it(self, segment: Segment) -> bool:
        return bool(segment.spilled) or segment.bytes >= self._limits.temper_from_bytes

    def _leave_remainder(self, namespace: Namespace, segment: Segment, spilled: str) -> bool:
        """Nothing was held while the object was on its way: the namespace may be gone, and the segment merged away."""
        with self._residents.all(lambda one: one is namespace) as namespaces:
            return self._compactor is not None and namespace in namespaces and self._compactor.leave_remainder(namespace, segment, spilled)

    def _cool(self, segments: Sequence[Segment]) -> None:
        """What was answered lately counts half as much after HALF_LIFE_S."""
        now_ns = self._clock.monotonic_ns()
        factor = 0.5 ** ((now_ns - self._cooled_ns) / 1e9 / HALF_LIFE_S)
        self._cooled_ns = now_ns
        for segment in segments:
            segment.answers *= factor

    def _choose(self, placed: Sequence[Placed]) -> list[Temperature]:
        facts, now_ns = [], self._clock.monotonic_ns()
        present, partitions, decay = None, np.empty(0, np.int64), DECAY
        for namespace, segment in placed:
            if namespace is not present:
                present, partitions = namespace, namespace.partition_table(namespace.index.snapshot(()), namespace.partition_width_us).buckets
                decay = _decay(namespace, len(partitions))
            age = len(partitions) - int(np.searchsorted(partitions, segment.span_us[1] // namespace.partition_width_us, "right"))
            wanted = now_ns - segment.loaded_ns < WANTED_S * 1e9
            facts.append(Facts(segment.bytes, segment.heavy_bytes, age, segment.answers, temperature_of(segment), bool(segment.spilled), decay, wanted))
        self._again_ns = now_ns + int(WANTED_S * 1e9) if any(facts.wanted for facts in facts) else None
        copied = sum(facts.bytes for facts in facts if facts.temperature is Temperature.HOT)
        room = self._budget_bytes - (self._residents.memory_bytes - copied)  # copies go first when memory is short
        can_spill = self._spiller.configured and self._compactor is not None
        bounded = can_spill or any(facts.spilled for facts in facts)
        chosen = choose_temperatures(facts, max(0, min(self._budget_bytes // HOT_SHARE, room)), self._budget_bytes if bounded else None)
        if can_spill:
            return chosen
        # What is only loaded goes; what is only here stays.
        return [Temperature.WARM if new is Temperature.COLD and not one.spilled else new for new, one in zip(chosen, facts, strict=True)]

    @property
    def retries_s(self) -> list[float]:
        """When to look again: at what the target refused, and at what was wanted for a moment."""
        again_ns = self._again_ns
        again = [] if again_ns is None else [monotonic() + (again_ns - self._clock.monotonic_ns()) / 1e9]
        return again + [attempts.at_s for attempts in (self._spilling, self._sweeping) if attempts.waiting]

    def take_turn(self) -> bool:
        """Whether it is time to look again at what was wanted for a moment; told once."""
        again_ns = self._again_ns
        if again_ns is None or self._clock.monotonic_ns() < again_ns:
            return False
        self._again_ns = None
        return True

    def sweep(self) -> None:
        """Delete what the target holds and nobody names, if it is time to try."""
        if self._spiller.clean:
            self._sweeping.waiting = False
        elif self._sweeping.due:
            try:
                self._sweeping.attempt(self._spiller.sweep)
            except DamagedError as error:  # of a manifest: what it names is not known
                logger.warning("%s", error)

    def hurry(self) -> None:
        """Somebody waits for the target to be swept: try it with the next call."""
        self._sweeping.at_s = 0.0


def _decay(namespace: Namespace, partitions: int) -> float:
    """How fast the recency prior falls, where there is one: it says how many partitions leave AUTO_EPS of the answers out."""
    decision = namespace.recency.decide(partitions, AUTO_EPS)
    return math.log(1.0 / AUTO_EPS) / max(1, decision.partitions) if decision.supported else DECAY


class _Attempts:
    """When to try again what failed, and whether to say so again."""

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence
        self._delay_s = RETRY_S
        self._told = ""
        self.at_s = 0.0
        self.waiting = False  # for that time to come

    @property
    def due(self) -> bool:
        return monotonic() >= self.at_s

    def attempt(self, work: Callable[[], object]) -> None:
        self.waiting = False
        try:
            work()
            self._delay_s, self._told = RETRY_S, ""
        except DamagedError:
            raise
        except AgentIRError as error:
            self.waiting = True
            self.at_s, self._delay_s = monotonic() + self._delay_s, min(2 * self._delay_s, MAX_RETRY_S)
            if str(error) != self._told:
                self._told = str(error)
                logger.warning("%s: %s", self._consequence, error)


def _notice_damage(namespace: Namespace, work: Callable[[], None]) -> None:
    try:
        work()
    except DamagedError as error:
        logger.warning("%s", error)
        namespace.damaged = has_damaged_segment(namespace)


def _exchange(namespace: Namespace, segment: Segment, temperature: Temperature) -> None:
    """In memory alone: the manifest does not change."""
    with namespace.maintenance:
        if segment not in namespace.index.segments:
            return
        with suppress(MemoryError):  # then there is no room for a copy
            other = segment.over(None if temperature is Temperature.COLD else SectionFile(segment.path, copied=temperature is Temperature.HOT))
            other.touch()
            with namespace.index.lock:
                namespace.index.exchange(segment, other)
