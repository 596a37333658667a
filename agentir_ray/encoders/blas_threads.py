"""How many threads numpy's BLAS uses while a small model runs. Left to itself it shares every product among all cores, and where these have other work each product waits for the
slowest.

BLAS has one number for the whole process: the first call that begins sets it, the last one that ends puts it back. Calls that overlap have the number of the first.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agentir_ray.encoders.lazy import Lazy, needs

INSTALL = "pip install 'agentir-ray[static]'"


def _controller() -> Any:
    with needs(INSTALL, "a model run by numpy"):
        from threadpoolctl import ThreadpoolController
    return ThreadpoolController().select(user_api="blas")


class _Limit:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._controller = Lazy(_controller, "threadpoolctl")
        self._inside = 0
        self._limited: Any = None

    @contextmanager
    def __call__(self, threads: int) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._limited = self._controller.get().limit(limits=threads)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._limited.restore_original_limits()


blas_threads = _Limit()
