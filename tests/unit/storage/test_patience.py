"""Whoever waits for something that hangs waits so long and no longer."""

import threading

import pytest

from agentir_ray.errors import SpilledError
from agentir_ray.storage.patience import Patience


def test_results_and_errors_come_through() -> None:
    patience = Patience("it")
    assert patience.call(lambda: 3, 10) == 3
    with pytest.raises(KeyError):
        patience.call(lambda: {}[1], 10)  # type: ignore[index]
    assert patience.call(lambda: 4, 10) == 4 and patience.waited_s == 0.0


def test_a_call_that_hangs_is_given_up_and_the_next_ones_do_not_wait_for_it() -> None:
    patience, gate = Patience("it"), threading.Event()
    with pytest.raises(SpilledError, match="has not answered within"):
        patience.call(gate.wait, 0.01)
    with pytest.raises(SpilledError, match="an earlier request"):
        patience.call(lambda: 1, 1_000)
    assert patience.waited_s > 0.0
    gate.set()
    while patience.waited_s:  # it ends in a thread of its own
        pass
    assert patience.call(lambda: 1, 10) == 1


def test_calls_come_one_after_the_other() -> None:
    patience, gate, inside, most = Patience("it"), threading.Event(), [], []

    def work() -> None:
        inside.append(1)
        most.append(len(inside))
        gate.wait(10)
        inside.pop()

    callers = [threading.Thread(target=patience.call, args=(work, 30)) for _ in range(5)]
    for caller in callers:
        caller.start()
    gate.set()
    for caller in callers:
        caller.join()
    assert most == [1] * 5


def test_at_the_end_nobody_waits() -> None:
    patience, gate, failed = Patience("it"), threading.Event(), threading.Event()

    def wait() -> None:
        with pytest.raises(SpilledError):
            patience.call(gate.wait, 1_000)
        failed.set()

    caller = threading.Thread(target=wait)
    caller.start()
    patience.end(0.0)
    assert failed.wait(10)
    with pytest.raises(SpilledError):
        patience.call(lambda: 1, 1_000)
    gate.set()
    caller.join()
