"""KeyboardInterrupt where the interpreter may raise one: when a function begins, and when a call into C has returned (its check of pending signals).

Not when `release` begins: a `finally` that calls a function of Python can be kept from it, and nothing that is written in Python can help that.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

UNAVOIDABLE = {"release", "<module>"}


def interrupted(work: Callable[[], Any], at: int, modules: tuple[str, ...] = ("agentir_ray.",)) -> bool:
    """Run `work` with an interrupt at the `at`-th such place in the modules; False when it has fewer of them."""
    left = at

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        if event in ("call", "c_return") and frame.f_globals.get("__name__", "").startswith(modules) and frame.f_code.co_name not in UNAVOIDABLE:
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return left < 0
