"""What is made at the first use, once, whichever thread comes first, and what is said when the package for it is not there."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from agentir_ray.errors import EncoderMissingError

T = TypeVar("T")


class Lazy(Generic[T]):
    """`get()` gives what `make()` gave. A `make` that failed is called again the next time."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = threading.Lock()

    def get(self) -> T:
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]


@contextmanager
def needs(install: str, what: str) -> Iterator[None]:
    """Around imports: a package that is missing becomes an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EncoderMissingError(f"{what} needs the package {error.name!r}, which is not installed: {install}") from error
