"""A `Memory` whose time stands still, and which seals and merges in the calls that write."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(tmp_path: Path, clock: ManualClock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "store", namespace="acme/alice", clock=clock, background=False) as memory:
        yield memory
