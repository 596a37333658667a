"""What users of other systems suffered from (each test is named after the number of its report), and the right behaviour here, through the public interface."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock

Open = Callable[..., Memory]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def open_memory(store: Path, clock: ManualClock) -> Iterator[Open]:
    """`Memory.open` on the test's store and clock; closed at the end."""
    with ExitStack() as opened:

        def open_memory(namespace: str = "acme/alice", **options: Any) -> Memory:
            return opened.enter_context(Memory.open(store, namespace, **{"clock": clock, "background": False} | options))

        yield open_memory


@pytest.fixture
def memory(open_memory: Open) -> Memory:
    return open_memory()
