"""Compile every kernel, and cache what was compiled, by sending a few records through the whole path once.

Numba compiles a kernel at its first call and keeps the result on disk; a process that finds it there starts in a fraction of a second. Whoever must not be slow at first calls
this before.
"""

import tempfile
import time

from agentir_ray.client.memory import Memory
from agentir_ray.engine.policy import Limits

_RECORDS = 40


def warm_up() -> float:
    """Run every kernel on a throw-away store; returns the seconds that it took."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, limits=Limits(seal_at=8, max_unsealed=16), background=False) as memory:
        for i in range(_RECORDS):
            memory.add(
                f"warm up record {i}", id=f"r{i}", session=f"s{i % 2}", importance=i / _RECORDS, metadata={"n": i}, expires_at="9000-01-01", supersedes="r0" if i == 9 else None
            )
            memory.search("warm record", k=3)
        memory.update("r1", text="warm again")
        memory.forget(ids=["r2", "r39"], wait=True)
        memory.search("warm record", where={"metadata.n": {"gte": 3}, "importance": {"gt": 0.1}}, session="s1", recency=(0.1, "30d"), importance=0.1, explain=True)
        memory.search("warm record", since="2000-01-01", until="9000-01-01", as_of="8000-01-01")
        memory.recent(3, session="s1")
    return time.perf_counter() - start
