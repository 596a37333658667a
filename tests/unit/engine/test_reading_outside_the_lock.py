"""What takes long is done without the namespace's lock: while many records are named, looked for or listed, nobody waits."""

import tracemalloc
from collections.abc import Iterator

import pytest

from agentir_ray import Memory
from agentir_ray.lexical.segment import Segment


@pytest.fixture
def unlocked(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A namespace of sealed records; it fails when a stored field is read from a file under its lock. The documents read so far."""
    memory.add_many({"text": f"note {i}", "id": f"n{i}", "session": f"s{i % 2}", "timestamp": i} for i in range(3_000))
    read: list[int] = []
    with memory._store.namespace(memory.namespace) as namespace:
        assert sum(segment.documents for segment in namespace.index.segments) > 1_500
        stored = Segment.stored

        def watched(segment: Segment, doc: int) -> bytes:
            assert not namespace.index.lock.locked()
            read.append(doc)
            return stored(segment, doc)

        monkeypatch.setattr(Segment, "stored", watched)
        yield read


def test_forgetting_ids_reads_no_file_under_the_lock(memory: Memory, unlocked: list[int]) -> None:
    receipt = memory.forget(ids=[f"n{i}" for i in range(0, 3_000, 3)])
    assert len(receipt.ids) == 1_000 and unlocked
    assert memory.stats()["namespace"]["records"] == 2_000 and memory.forget(ids=receipt.ids, dry_run=True).ids == ()


def test_forgetting_by_filter_reads_no_file_under_the_lock(memory: Memory, unlocked: list[int]) -> None:
    receipt = memory.forget({"session": {"eq": "s1"}})
    assert receipt.ids == tuple(f"n{i}" for i in range(1, 3_000, 2)) and unlocked
    assert memory.stats()["namespace"]["records"] == 1_500


def test_a_page_of_recent_records_reads_no_whole_column(memory: Memory, unlocked: list[int]) -> None:
    """The newest records come first in a walk from the end: neither arrays of the segment's size are made, nor more records read than shown."""
    with memory._store.namespace(memory.namespace) as namespace:
        sealed = namespace.index.segments[0]
        oldest = memory.recent(20, until=sealed.documents - 1)
        unlocked.clear()
        tracemalloc.start()
        page = memory.recent(20, until=sealed.documents - 1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert page == oldest and [record.id for record in page.records] == [f"n{i}" for i in range(sealed.documents - 1, sealed.documents - 21, -1)]
    assert len(unlocked) <= 40 and peak < 10 * 3_000 * 8
