"""A spill target as a test wants it: full, missing, hanging, damaged. Nothing sleeps: what hangs waits for an event."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from agentir_ray.client.memory import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import SpilledError
from agentir_ray.storage.files import Chunk
from agentir_ray.storage.spill import MissingObjectError

LIMITS = Limits(seal_at=30, max_unsealed=60, decent=30, largest=1_000, temper_from_bytes=0)  # so that each week of a few records ends in a segment of its own
BUDGET = 300_000
WEEK_US = 7 * 86_400 * 1_000_000
START_US = 1_600_000_000_000_000


class FakeTarget:
    """`objects` by name. `refuses` names the verbs that raise, with why; while `gate` is clear, every call waits for it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.refuses: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []
        self.gate = threading.Event()
        self.gate.set()

    def __str__(self) -> str:
        return "memory of a test"

    def _enter(self, verb: str, name: str) -> None:
        self.calls.append((verb, name))
        assert self.gate.wait(30), "a test forgot to open the gate"
        if verb in self.refuses:
            raise SpilledError(f"the spill target {self} {self.refuses[verb]}")

    def fail(self, why: str, *verbs: str) -> None:
        self.refuses = dict.fromkeys(verbs or ("prepare", "put", "get", "delete", "names"), why)

    def prepare(self) -> None:
        self._enter("prepare", "")

    def put(self, name: str, chunks: Iterable[Chunk]) -> None:
        self._enter("put", name)
        self.objects[name] = b"".join(map(bytes, chunks))

    def get(self, name: str) -> Iterator[bytes]:
        self._enter("get", name)
        if name not in self.objects:
            raise MissingObjectError(f"{self} has no {name}")
        yield self.objects[name]

    def delete(self, name: str) -> None:
        self._enter("delete", name)
        self.objects.pop(name, None)

    def names(self, prefix: str) -> list[str]:
        self._enter("names", prefix)
        return sorted(name for name in self.objects if name.startswith(f"{prefix}/"))

    @property
    def segments(self) -> list[str]:
        return sorted(name for name in self.objects if name.endswith(".spilled"))


def write_weeks(memory: Memory, weeks: int, first: int = 0, records: int = 30) -> None:
    """Records that hardly compress, each week's in one segment."""
    for week in range(first, first + weeks):
        random = Random(week)
        memory.add_many(
            [
                {
                    "id": f"w{week}-{i}",
                    "text": f"common token{week}x{i} " + " ".join(f"{random.getrandbits(32):x}" for _ in range(150)),
                    "timestamp": START_US + week * WEEK_US + i * 1_000,
                    "session": f"s{i % 3}",
                }
                for i in range(records)
            ]
        )


def temperatures(memory: Memory) -> dict[str, Any]:
    found: dict[str, Any] = memory.stats()["namespace"]["temperature"]
    return found


def files_holding(root: Path, *needles: str) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.is_file() for needle in needles if needle.encode() in path.read_bytes()]
