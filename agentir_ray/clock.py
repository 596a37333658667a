"""Where "now" comes from.

Nothing in the package reads the wall clock directly: whoever needs a time is given a `Clock`, so that tests and replays decide what now is. Wall times are UTC microseconds since
1970-01-01; durations are measured with `monotonic_ns`, which never goes back.
"""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """The present, twice: as a date (for records) and as a stopwatch (for deadlines and timings)."""

    def now_us(self) -> int:
        """UTC microseconds since 1970-01-01."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds of a clock that never goes back; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_ns(self) -> int:
        return time.perf_counter_ns()


class ManualClock:
    """A clock that moves only when told to; for tests and replays."""

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self._lock = threading.Lock()
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def monotonic_ns(self) -> int:
        return self._now_us * 1_000

    def advance(self, seconds: float) -> None:
        """Move both clocks forward; `seconds` may be a fraction."""
        with self._lock:
            self._now_us += round(seconds * 1_000_000)
