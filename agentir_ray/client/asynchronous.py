"""`AsyncMemory`: the verbs of `Memory` for asyncio, each run in a thread. No second implementation: it knows the names of the verbs and nothing else.

The kernels release the GIL and a commit waits for the disk, so threads are what asynchronous callers would want underneath anyway.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Self

from agentir_ray.client.memory import Memory
from agentir_ray.types import Record

_WRITING = {"add", "add_many", "import_", "update", "forget", "feedback", "repartition", "retain", "drop", "wait_encoded", "reembed", "build_graphs"}
_READING = {"search", "get", "recent", "namespaces", "backup", "verify", "stats", "close"}
VERBS = frozenset(_WRITING | _READING)  # all of Memory's but open, use and export, which return what is not a plain answer


class AsyncMemory:
    """Wraps a `Memory`: `await memory.search(...)` is `Memory.search(...)`, arguments, answers and errors included."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> Self:
        """As `Memory.open`."""
        return cls(await asyncio.to_thread(Memory.open, *arguments, **options))

    @property
    def namespace(self) -> str:
        return self._memory.namespace

    def use(self, namespace: str) -> "AsyncMemory":
        """As `Memory.use`."""
        return AsyncMemory(self._memory.use(namespace))

    def __getattr__(self, verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if verb not in VERBS:
            raise AttributeError(f"AsyncMemory has no verb {verb!r}; it has {', '.join(sorted(VERBS))}")
        return functools.partial(asyncio.to_thread, getattr(self._memory, verb))

    async def export(self, *, salvage: bool = False) -> AsyncIterator[Record]:
        """As `Memory.export`, one record at a time."""
        records = self._memory.export(salvage=salvage)
        done = object()
        while (record := await asyncio.to_thread(next, records, done)) is not done:
            assert isinstance(record, Record)
            yield record

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
