"""What is loaded at the first use, once, whichever thread comes first, and what is said when it cannot be: a package that is not there, a file that is damaged."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from agentir_ray.errors import AgentIRError, EncoderMissingError

T = TypeVar("T")


class Lazy(Generic[T]):
    """`get()` gives what `make()` gave, which loads `what`. A `make` that failed is called again the next time; what it raised becomes an EncoderMissingError."""

    def __init__(self, make: Callable[[], T], what: object) -> None:
        self._make = make
        self._what = what
        self._made: list[T] = []
        self._lock = threading.Lock()

    def get(self) -> T:
        if not self._made:
            with self._lock:
                if not self._made:
                    try:
                        self._made.append(self._make())
                    except AgentIRError:
                        raise
                    except Exception as error:  # whatever a framework raises over a file that it cannot read
                        raise EncoderMissingError(f"{self._what} cannot be loaded: {error}. Get the model again, or name another.") from error
        return self._made[0]


@contextmanager
def needs(install: str, what: str) -> Iterator[None]:
    """Around imports: a package that is missing becomes an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EncoderMissingError(f"{what} needs the package {error.name!r}, which is not installed: {install}") from error
