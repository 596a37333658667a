"""`build_graphs` and `approximate=True`: what an answer by graphs says of itself, and that graphs go with what they were built over."""

import gc
import weakref
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.dense import approximate
from agentir_ray.dense.approximate import HnswGraph
from agentir_ray.encoders.hashing import HashingEncoder
from agentir_ray.engine import graphs
from agentir_ray.engine.channel import DENSE
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import InvalidInputError, ReadOnlyError, StoreClosedError

pytest.importorskip("faiss")
LIMITS = Limits(seal_at=200, max_unsealed=200)
HNSW = "the list by dense is approximate (FAISS HNSW)"


def open_memory(path: Path, **options: Any) -> Memory:
    return Memory.open(path, **({"clock": ManualClock(), "background": False, "limits": LIMITS, "encoder": HashingEncoder(16)} | options))


def fill(memory: Memory, records: int = 200, first: int = 0) -> None:
    memory.add_many([{"id": f"r{number}", "text": f"record {number} of the river bank", "session": f"s{number % 4}"} for number in range(first, first + records)])
    memory.wait_encoded()


def sidecars(memory: Memory) -> list[Any]:
    with memory._store.namespace(memory.namespace) as namespace:
        return [segment.sidecars[DENSE] for segment in namespace.index.segments if DENSE in segment.sidecars]


def test_only_who_asks_for_it_is_answered_by_graphs_and_told_so(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        exact = memory.search("river 17", mode="dense", approximate=True)
        assert exact.coverage.exact and "HNSW" not in exact.coverage.reason  # there are no graphs
        assert memory.build_graphs(least_rows=201) == 0
        assert memory.build_graphs(least_rows=100, threads=2) == 200
        assert memory.stats()["namespace"]["channels"]["dense"]["graph_vectors"] == 200
        found = memory.search("river 17", mode="dense", approximate=True)
        assert not found.coverage.exact and found.coverage.reason.endswith(HNSW) and found.stages == ("dense",)
        again = memory.search("river 17", mode="dense")
        assert again.coverage.exact and again.hits == exact.hits
        scores = {hit.record.id: hit.score for hit in memory.search("river 17", mode="dense", k=200).hits}
        assert len(found.hits) == 10 and all(scores[hit.record.id] == hit.score for hit in found.hits)
        for mode in ("rrf", "convex", "agent_rrf"):
            fused = memory.search("river 17", mode=mode, depth=10, approximate=True)
            assert not fused.coverage.exact and HNSW in fused.coverage.reason
            assert HNSW not in memory.search("river 17", mode=mode, depth=10).coverage.reason
        narrow = memory.search("river 17", mode="dense", session="s1", approximate=True)
        assert narrow.coverage.exact and {hit.record.session for hit in narrow.hits} == {"s1"}
        assert memory.search("river 17", mode="dense", recency=(0.1, "30d"), approximate=True).coverage.exact


def test_young_records_are_found_beside_graphs(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.build_graphs(least_rows=1)
        memory.add("a zebra crossing", id="new")
        memory.wait_encoded()
        found = memory.search("a zebra crossing", mode="dense", k=1, approximate=True)
        assert [hit.record.id for hit in found.hits] == ["new"] and not found.coverage.exact


@pytest.mark.parametrize("options", [{}, {"mode": "bm25"}, {"mode": "sparse"}, {"mode": "rrf", "weights": {"bm25": 1}}, {"mode": "convex", "weights": {"dense": 0, "bm25": 1}}])
def test_a_search_without_the_dense_channel_is_never_approximate(tmp_path: Path, options: dict[str, Any]) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(InvalidInputError, match="approximate is for the channel 'dense'"):
        memory.search("river", approximate=True, **options)


def test_what_was_erased_leaves_the_graph_with_its_sidecar(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.build_graphs(least_rows=1)
        (before,) = sidecars(memory)
        graph, file = weakref.ref(before.graph), before.path
        del before
        best = memory.search("river 17", mode="dense", k=1, approximate=True).hits[0].record
        assert memory.forget(ids=[best.id], wait=True).purged
        gc.collect()
        assert graph() is None and not file.exists()
        (after,) = sidecars(memory)
        assert after.graph is None and memory.search("river 17", mode="dense", approximate=True).coverage.exact
        assert memory.build_graphs(least_rows=1) == 199
        found = memory.search("river 17", mode="dense", k=10, approximate=True)
        assert not found.coverage.exact and best.id not in {hit.record.id for hit in found.hits}


def test_an_erased_record_is_not_found_before_the_purge(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        memory.build_graphs(least_rows=1)
        with patch.object(memory._store, "look_after"):
            for _ in range(5):
                best = memory.search("river 17", mode="dense", k=1, approximate=True)
                assert not best.coverage.exact
                memory.forget(ids=[best.hits[0].record.id])
                assert best.hits[0].record.id not in {hit.record.id for hit in memory.search("river 17", mode="dense", approximate=True).hits}


def test_a_merge_drops_graphs_and_reembed_too(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        assert memory.build_graphs(least_rows=1) == 200
        fill(memory, first=200)
        (merged,) = sidecars(memory)
        assert merged.rows == 400 and merged.graph is None
        assert memory.build_graphs(least_rows=1) == 400
        memory.reembed(encoder=HashingEncoder(8))
        assert memory.search("river 17", mode="dense", approximate=True).coverage.exact
        assert memory.build_graphs(least_rows=1) == 400
        assert not memory.search("river 17", mode="dense", approximate=True).coverage.exact


def test_graphs_are_no_files_and_a_reader_builds_its_own(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        before = {path for path in tmp_path.rglob("*") if path.is_file()}
        memory.build_graphs(least_rows=1)
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == before
        with open_memory(tmp_path, read_only=True) as reader:
            assert reader.search("river 17", mode="dense", approximate=True).coverage.exact
            assert reader.build_graphs(least_rows=1) == 200
            assert not reader.search("river 17", mode="dense", approximate=True).coverage.exact
            with pytest.raises(ReadOnlyError):
                reader.wait_encoded()


def test_graphs_count_for_the_budget_and_are_refused_beyond_it(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        fill(memory)
        before = memory._store.memory_bytes()
        memory.build_graphs(least_rows=1)
        assert memory._store.memory_bytes() - before >= 200 * 16 * 4
    with open_memory(tmp_path, memory_budget_bytes=2**20) as memory:
        memory.search("river")
        with patch.object(graphs, "graph_bytes", lambda _: 2**21), pytest.raises(InvalidInputError, match="memory_budget_bytes"):
            memory.build_graphs(least_rows=1)


def test_a_store_that_is_closed_ends_the_building(tmp_path: Path) -> None:
    memory = open_memory(tmp_path)
    fill(memory)
    building, closed = Event(), Event()
    raised: list[Exception] = []
    looks = 0

    def watched(sidecar: Any, threads: int, check: Any) -> HnswGraph:
        def look() -> None:
            nonlocal looks
            looks += 1
            if looks == 2:
                building.set()
                assert closed.wait(30)
            check()

        return HnswGraph(sidecar, threads=threads, check=look)

    def build() -> None:
        try:
            memory.build_graphs(least_rows=1)
        except StoreClosedError as error:
            raised.append(error)

    with patch.object(approximate, "STEP_ROWS", 50), patch.object(graphs, "HnswGraph", watched):
        thread = Thread(target=build)
        thread.start()
        assert building.wait(30)
        memory.close()
        closed.set()
        thread.join(30)
    assert not thread.is_alive() and len(raised) == 1 and looks == 2
