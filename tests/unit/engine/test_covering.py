"""What an answer says it covers where part of a memory is spilled: nothing that could matter is left out in silence, and nothing is loaded that could not."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.engine.recency import Observation
from agentir_ray.engine.store import Store
from agentir_ray.lexical.query import Bm25
from tests.spill_targets import BUDGET, LIMITS, START_US, WEEK_US, FakeTarget, temperatures, write_weeks

COVERAGES: list[Any] = ["exact", "auto", 0.9]


class Ticking(ManualClock):
    """A stopwatch that goes on whenever it is read."""

    read_ns = 0

    def monotonic_ns(self) -> int:
        self.read_ns += 1_000
        return self.read_ns


@pytest.fixture
def target() -> FakeTarget:
    return FakeTarget()


@pytest.fixture
def memory(tmp_path: Path, target: FakeTarget) -> Iterator[Memory]:
    """Twelve weeks of thirty records, the oldest spilled."""
    store = Store(tmp_path / "store", clock=ManualClock(), background=False, limits=LIMITS, memory_budget_bytes=BUDGET, spill=target, durability="process")
    with Memory(store, "acme/alice", None, Bm25(), owns_store=True) as memory:
        write_weeks(memory, 12)
        assert temperatures(memory)["cold_segments"] >= 4
        yield memory


def believe(memory: Memory) -> None:
    """The newest partition holds the answers."""
    with memory._store.namespace(memory.namespace) as namespace:
        namespace.recency.observe([Observation(0, 12, True)] * 400, namespace.partition_width_us)


def only_in_the_oldest(memory: Memory) -> str:
    records = memory.recent(1_000).records
    df = Counter(term for record in records for term in set(record.text.lower().split()))
    oldest = min(records, key=lambda record: record.timestamp_us)
    return next(term for term in oldest.text.lower().split() if df[term] == 1)


@pytest.mark.parametrize("coverage", COVERAGES)
def test_the_only_answer_is_found_wherever_it_lies(memory: Memory, coverage: Any) -> None:
    believe(memory)
    found = memory.search(only_in_the_oldest(memory), coverage=coverage)
    assert len(found) == 1 and found.coverage.exact


def test_auto_leaves_old_spilled_partitions_where_they_are_and_names_them(memory: Memory, target: FakeTarget) -> None:
    believe(memory)
    word = Counter(term for record in memory.recent(1_000).records for term in set(record.text.lower().split())).most_common(1)[0][0]
    asked = len(target.calls)
    found = memory.search(word, k=3).coverage
    assert len(target.calls) == asked, "nothing was loaded"
    if not found.exact:
        assert found.not_searched > 0 and found.mass is not None and found.mass >= 0.99 and "spilled" in found.reason


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("as_of", [None, START_US - WEEK_US, START_US + WEEK_US])
def test_what_cannot_be_loaded_is_said(memory: Memory, target: FakeTarget, coverage: Any, as_of: int | None) -> None:
    """Also where it lies wholly after the question's now: only its columns could tell that nothing of it is visible then."""
    term = only_in_the_oldest(memory)
    target.fail("is away")
    found = memory.search(term, coverage=coverage, as_of=as_of)
    assert found.hits == ()
    assert not found.coverage.exact and found.coverage.mass is None and found.coverage.not_searched >= 1 and "is away" in found.coverage.reason


@pytest.mark.parametrize("coverage", COVERAGES)
def test_a_deadline_in_the_past_is_said(memory: Memory, coverage: Any) -> None:
    term = only_in_the_oldest(memory)
    memory._store.clock = Ticking()
    for as_of in (None, START_US - WEEK_US):
        found = memory.search(term, coverage=coverage, deadline_ms=1e-9, as_of=as_of)
        assert found.hits == () and not found.coverage.exact and found.coverage.not_searched >= 1
        assert "deadline" in found.coverage.reason or "could not be loaded" in found.coverage.reason


def test_what_a_filter_keeps_out_is_not_loaded(memory: Memory, target: FakeTarget) -> None:
    term = only_in_the_oldest(memory)
    asked = len(target.calls)
    target.fail("is away")
    found = memory.search(term, session="no such session")
    assert found.hits == () and found.coverage.exact and len(target.calls) == asked


def test_a_probability_loads_within_its_partitions_before_it_widens(memory: Memory, target: FakeTarget) -> None:
    weeks, records = 12, 30
    with memory._store.namespace(memory.namespace) as namespace:
        ages = np.random.default_rng(1).geometric(1.0 - np.exp(-0.4), 600) - 1
        observations = [Observation(int(age), weeks, True) for age in ages if age < 8]
        namespace.recency.observe(observations, namespace.partition_width_us)
        hottest = namespace.recency.decide(weeks, 0.1).partitions
        here = sum(not segment.cold for segment in namespace.index.segments)
    assert here < hottest < weeks, "some of what the prior asks for is spilled, and not all is asked for"
    found = memory.search("common", k=here * records + 1, coverage=0.9)
    assert len(found) == here * records + 1 and found.coverage.not_searched == weeks - hottest
    target.fail("is away")
    assert len(memory.search("common", k=10, coverage=0.9)) == 10
