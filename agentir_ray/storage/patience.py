"""Calls of something that may hang, made in a thread and waited for so long and no longer.

One call at a time; the others wait for their turn. A call that is given up goes on in its thread, which dies with the process, and keeps the turn until it ends: while it hangs,
nobody else waits for what hangs, too.
"""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

from agentir_ray.errors import SpilledError

T = TypeVar("T")


class _Call(Generic[T]):
    value: T
    error: BaseException | None = None
    given_up = False
    done = False

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s


class Patience:
    """`name` is what messages call the other side."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._present: _Call[object] | None = None
        self._end_s = float("inf")  # nobody waits any more

    @property
    def waited_s(self) -> float:
        """For how long the present call has been unanswered."""
        present = self._present
        return 0.0 if present is None else monotonic() - present.began_s

    def end(self, seconds: float) -> None:
        """In so many seconds nobody waits any more, whatever they were promised."""
        with self._changed:
            self._end_s = monotonic() + seconds
            self._changed.notify_all()

    def call(self, work: Callable[[], T], patience_s: float) -> T:
        """What `work` returns or raises. Raises SpilledError when that takes longer than `patience_s`, the wait for the turn included; at once if the turn hangs."""
        until_s = monotonic() + patience_s
        with self._changed:
            self._wait(lambda: self._present is None or self._present.given_up, until_s)
            if self._present is not None or monotonic() >= self._end_s:
                raise SpilledError(f"{self._name} is slow: an earlier request to it is still unanswered")
            call: _Call[T] = _Call(monotonic())
            self._present = call  # type: ignore[assignment]
        try:
            threading.Thread(target=self._run, args=(call, work), name="agentir-spill", daemon=True).start()
        except BaseException:
            self._end(call)
            raise
        with self._changed:
            self._wait(lambda: call.done, until_s)
            if not call.done:
                call.given_up = True
                self._changed.notify_all()
                raise SpilledError(f"{self._name} is slow: it has not answered within {patience_s:.3g} s")
        if call.error is not None:
            raise call.error
        return call.value

    def _wait(self, enough: Callable[[], bool], until_s: float) -> None:
        while not enough() and (left_s := min(until_s, self._end_s) - monotonic()) > 0:
            self._changed.wait(left_s)

    def _run(self, call: _Call[T], work: Callable[[], T]) -> None:
        try:
            call.value = work()
        except BaseException as error:
            call.error = error
        finally:
            self._end(call)

    def _end(self, call: _Call[T]) -> None:
        with self._changed:
            call.done = True
            self._present = None
            self._changed.notify_all()
