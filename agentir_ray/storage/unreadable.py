"""The log of a store whose database cannot be read at all: every question is answered with the reason.

It lets such a store be opened read-only, so that it can be verified and what its segments hold can be saved.
"""

from collections.abc import Iterator
from typing import NoReturn

from agentir_ray.errors import DamagedError
from agentir_ray.storage.protocol import Entry, NamespaceState, ReadableLog


class UnreadableLog(ReadableLog):
    def __init__(self, error: DamagedError) -> None:
        self._error = error

    def _refuse(self) -> NoReturn:
        raise type(self._error)(*self._error.args) from self._error

    def namespaces(self, prefix: str = "") -> list[str]:
        self._refuse()

    def state(self, name: str) -> NamespaceState | None:
        self._refuse()

    def read(self, number: int, after_seq: int = 0, limit: int | None = None) -> Iterator[Entry]:
        self._refuse()

    def find(self, number: int, id: str) -> Entry | None:
        self._refuse()

    def prior(self, number: int) -> bytes:
        self._refuse()

    def verify(self) -> list[str]:
        return [str(self._error)]

    def close(self) -> None:
        pass
