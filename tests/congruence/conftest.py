"""One interface for whatever can be asked: the embedded `Memory`, and `AsyncMemory` in an event loop. Others that answer the same questions join `WAYS`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import AsyncMemory, Memory
from agentir_ray.clock import ManualClock

Ask = Callable[..., Any]


class Embedded:
    def __init__(self, path: Path, clock: ManualClock) -> None:
        self._memory = Memory.open(path, "acme/alice", clock=clock, background=False)

    def ask(self, namespace: str, verb: str, *arguments: Any, **options: Any) -> Any:
        answer = getattr(self._memory.use(namespace), verb)(*arguments, **options)
        return list(answer) if isinstance(answer, Iterator) else answer

    def close(self) -> None:
        self._memory.close()


class Asynchronous:
    def __init__(self, path: Path, clock: ManualClock) -> None:
        self._runner = asyncio.Runner()
        self._memory = self._runner.run(AsyncMemory.open(path, "acme/alice", clock=clock, background=False))

    def ask(self, namespace: str, verb: str, *arguments: Any, **options: Any) -> Any:
        async def ask() -> Any:
            answer = getattr(self._memory.use(namespace), verb)(*arguments, **options)
            return [each async for each in answer] if isinstance(answer, AsyncIterator) else await answer

        return self._runner.run(ask())

    def close(self) -> None:
        self._runner.run(self._memory.close())
        self._runner.close()


WAYS = {"embedded": Embedded, "asynchronous": Asynchronous}


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[dict[str, Ask]]:
    """`ask(namespace, verb, ...)` for each way, each over a store of its own, all at the same time."""
    opened = {name: way(tmp_path / name, ManualClock()) for name, way in WAYS.items()}
    yield {name: way.ask for name, way in opened.items()}
    for way in opened.values():
        way.close()
