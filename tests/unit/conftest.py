"""Unit tests do not sleep and do not start Ray: time is passed in, and what an actor runs is tested without one."""

import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest


@pytest.fixture(autouse=True)
def no_sleep_and_no_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real_sleep = time.sleep

    def refuse_sleep(seconds: float) -> None:
        if sys._getframe(1).f_globals["__name__"] == "subprocess":  # how it waits for a child with a time-out
            return real_sleep(seconds)
        raise AssertionError(f"a unit test slept for {seconds} s; use ManualClock, or wait on an event")

    def refuse_ray(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError("a unit test started Ray; test what the actor runs instead")

    monkeypatch.setattr(time, "sleep", refuse_sleep)
    if "ray" in sys.modules:
        monkeypatch.setattr(sys.modules["ray"], "init", refuse_ray)
    yield
    ray = sys.modules.get("ray")
    assert ray is None or not ray.is_initialized(), "a unit test started Ray; test what the actor runs instead"
