"""Time partitions of a namespace: where records fall, how wide they are, and feedback that counts in them."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import InvalidInputError, NotFoundError, ReadOnlyError
from agentir_ray.temporal.partitions import Partitions, partitions_of

DAY_US = 86_400_000_000
NOW_US = 20_000 * DAY_US
LIMITS = Limits(seal_at=10, max_unsealed=12, decent=20, largest=30)


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path / "store", clock=ManualClock(NOW_US), background=False, limits=LIMITS) as memory:
        yield memory


def days(memory: Memory, *ages: int) -> None:
    for age in ages:
        memory.add(f"note of day {age}", id=f"d{age}", timestamp=NOW_US - age * DAY_US)


def test_partitions_of_ascending_timestamps() -> None:
    buckets, first = partitions_of(np.array([-11, -10, -1, 0, 9, 10, 35], np.int64), 10)
    assert (buckets.tolist(), first.tolist()) == ([-2, -1, 0, 1, 3], [0, 1, 3, 5, 6])
    buckets, first = partitions_of(np.empty(0, np.int64), 10)
    assert (len(buckets), len(first)) == (0, 0)


def test_ages_count_partitions_that_are_not_empty() -> None:
    partitions = Partitions(np.array([2, 3, 7, 9]), 10, 3)
    assert [partitions.age(time) for time in (79, 70, 39, 20)] == [0, 0, 1, 2]
    assert [partitions.age(time) for time in (80, 50, 19)] == [None, None, None]
    assert [partitions.since_us(hottest) for hottest in (1, 2, 3)] == [70, 30, 20]
    assert partitions.from_on(2).tolist() == [3, 7, 9], "what lies ahead is searched, too, and has no age"
    assert partitions.age(95) is None
    ranged = partitions.within(30, 99)
    assert (ranged.buckets.tolist(), ranged.total) == ([3, 7, 9], 2)
    assert (partitions.within(80, 99).total, partitions.within(0, 9).total) == (0, 0)


def test_late_records_land_in_the_partition_of_their_time(memory: Memory) -> None:
    days(memory, *range(40))
    days(memory, 401, 402, 800)
    stats = memory.stats()["namespace"]
    assert stats["partitions"] == len({(NOW_US - age * DAY_US) // (7 * DAY_US) for age in (*range(40), 401, 402, 800)})
    assert stats["partition_width"] == "7 days, 0:00:00"
    assert memory.search("note", coverage="exact", until=NOW_US - 400 * DAY_US, k=50).coverage.searched == 2


def test_segments_lie_one_after_the_other(memory: Memory) -> None:
    days(memory, *range(200, -1, -1))
    assert memory._store.wait_purged(0)
    with memory._store.namespace(memory.namespace) as namespace:
        spans = sorted(segment.span_us for segment in namespace.index.segments)
        assert len(spans) > 5
        for (_, newest), (oldest, _) in pairwise(spans):
            assert newest < oldest and newest // (7 * DAY_US) <= oldest // (7 * DAY_US)


def test_another_width_rewrites_nothing_and_learns_anew(memory: Memory, tmp_path: Path) -> None:
    days(memory, *range(60))
    result = memory.search("note", coverage="exact")
    for _ in range(100):
        memory.feedback(["d0"], result.query_id)
    assert not memory.search("note", k=1, coverage=0.9).coverage.exact
    with memory._store.namespace(memory.namespace) as namespace:
        files = [segment.path for segment in namespace.index.segments]
        memory.repartition("1d")
        assert [segment.path for segment in namespace.index.segments] == files
    assert memory.stats()["namespace"]["partitions"] == 60
    assert memory.search("note", k=1, coverage=0.9).coverage.exact, "what was learnt of weeks says nothing of days"
    memory.repartition(timedelta(days=1))
    memory.close()
    with Memory.open(tmp_path / "store", clock=ManualClock(NOW_US), read_only=True) as reader:
        assert reader.stats()["namespace"]["partitions"] == 60
        with pytest.raises(ReadOnlyError):
            reader.repartition("7d")


@pytest.mark.parametrize("width", ["1", "0d", "-1d", 59 * 60, "200y", None, "nan d", float("inf"), True])
def test_widths_that_are_none(memory: Memory, width: Any) -> None:
    with pytest.raises(InvalidInputError, match="width"):
        memory.repartition(width)


def test_feedback_that_means_nothing(memory: Memory) -> None:
    days(memory, 0, 1)
    result = memory.search("note")
    with pytest.raises(NotFoundError, match="no search 'x'"):
        memory.feedback(["d0"], "x")
    with pytest.raises(NotFoundError, match="no record 'nobody'"):
        memory.feedback(["d0", "nobody"], result.query_id)
    with pytest.raises(InvalidInputError, match="empty"):
        memory.feedback([], result.query_id)
    with pytest.raises(InvalidInputError):
        memory.feedback("d0", result.query_id)
    other = memory.use("other")
    other.add("something", id="d0")
    with pytest.raises(NotFoundError, match="no search"):
        other.feedback(["d0"], result.query_id)
    memory.feedback(["d0", "d1"], result.query_id)


def test_feedback_on_a_range_of_time_is_taken_and_not_learnt_from(memory: Memory) -> None:
    days(memory, *range(60))
    result = memory.search("note", since=NOW_US - 10 * DAY_US)
    for _ in range(100):
        memory.feedback(["d0"], result.query_id)
    assert memory.search("note", k=1, coverage=0.9).coverage.exact


def test_an_answer_from_beyond_what_was_searched_is_a_miss(memory: Memory) -> None:
    days(memory, *range(60))
    everything = memory.search("note", coverage="exact")
    for _ in range(100):
        memory.feedback(["d0"], everything.query_id)
    narrow = memory.search("note", k=1, coverage=0.9)
    assert not narrow.coverage.exact
    for _ in range(20):
        memory.feedback(["d59"], narrow.query_id)
    assert memory.search("note", k=1, coverage=0.9).coverage.exact


def test_a_reader_learns_nothing(memory: Memory, tmp_path: Path) -> None:
    days(memory, 0, 1)
    memory.close()
    with Memory.open(tmp_path / "store", read_only=True) as reader, pytest.raises(ReadOnlyError):
        reader.feedback(["d0"], reader.search("note").query_id)


def test_statistics_that_cannot_be_read_are_learnt_anew(memory: Memory, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    days(memory, *range(60))
    with memory._store.namespace(memory.namespace) as namespace:
        memory._store.writer.save_prior(namespace.number, namespace.epoch, (7 * DAY_US).to_bytes(8, "little") + b"\x01damaged")
    memory.close()
    with Memory.open(tmp_path / "store", clock=ManualClock(NOW_US), background=False) as again:
        assert again.search("note", coverage=0.9).coverage.exact
    assert "learnt anew" in caplog.text


def test_what_was_learnt_of_one_width_never_serves_another(memory: Memory, tmp_path: Path) -> None:
    days(memory, *range(60))
    everything = memory.search("note", coverage="exact")
    for _ in range(100):
        memory.feedback(["d0"], everything.query_id)
    with memory._store.namespace(memory.namespace) as namespace:
        saved = memory._store.log.prior(namespace.number)
    memory.repartition("1d")
    with memory._store.namespace(memory.namespace) as namespace:
        memory._store.writer.save_prior(namespace.number, namespace.epoch, saved)  # as if the second step of `repartition` had been lost
    for _ in range(100):
        memory.feedback(["d59"], everything.query_id)  # an age in weeks
    assert memory.stats()["namespace"]["recency"].endswith("0 are known; feedback on exact searches adds to them")
    memory.close()
    with Memory.open(tmp_path / "store", clock=ManualClock(NOW_US), read_only=True) as reader:
        assert reader.stats()["namespace"]["recency"].endswith("0 are known; feedback on exact searches adds to them")


def test_searches_of_a_part_teach_nothing_of_the_rest(memory: Memory) -> None:
    days(memory, *range(60))
    for i in range(70):
        memory.add(f"talk {i} of now", timestamp=NOW_US - i, session="now")
    for i in range(3_000):
        memory.search(f"talk {i % 70}", session="now", k=2)
        memory.search("note 7", min_score=0.1)
    assert memory.stats()["namespace"]["recency"].endswith("0 are known; feedback on exact searches adds to them")


def test_what_was_learnt_outlives_eviction(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "store", "a", clock=ManualClock(NOW_US), background=False, limits=LIMITS, memory_budget_bytes=1) as memory:
        days(memory, *range(60))
        for i in range(3_000):
            memory.search(f"note {i % 60}", k=2)
            if i % 100 == 0:
                memory.use("b").search("x") if "b" in memory.namespaces() else memory.use("b").add("x")
        assert " 0 are known" not in memory.stats()["namespace"]["recency"]


def test_a_follower_believes_what_the_writer_does(memory: Memory, tmp_path: Path) -> None:
    days(memory, *range(60))
    clock = ManualClock(NOW_US)
    with Memory.open(tmp_path / "store", clock=clock, read_only=True) as reader:
        assert reader.search("note", k=1, coverage=0.9).coverage.exact
        everything = memory.search("note", coverage="exact")
        for age, exact in ((0, False), (59, True)):
            for _ in range(100):
                memory.feedback([f"d{age}"], everything.query_id)
            clock.advance(1)
            assert reader.search("note", k=1, coverage=0.9).coverage.exact == exact == memory.search("note", k=1, coverage=0.9).coverage.exact


def test_records_ahead_of_now_are_searched_and_counted(memory: Memory) -> None:
    days(memory, 0, -30, -60)
    for coverage in ("auto", "exact", 0.9):
        found = memory.search("note", coverage=coverage)
        assert len(found) == 3 and found.coverage.exact and found.coverage.searched == 3
    early = memory.search("note", as_of="1990-01-01")
    assert early.hits == () and early.coverage.exact and early.coverage.searched == 3
    cut = memory.search("note", as_of="1990-01-01", deadline_ms=1e-9)
    assert cut.hits == ()


def test_wider_partitions_do_not_merge_all_at_once(memory: Memory) -> None:
    days(memory, *range(200, -1, -1))
    memory.repartition("100y")
    for i in range(60):
        memory.add(f"more {i}", timestamp=NOW_US)
        with memory._store.namespace(memory.namespace) as namespace:
            assert max(segment.documents for segment in namespace.index.segments) <= LIMITS.largest
