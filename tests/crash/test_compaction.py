"""Rewriting a namespace's files: how little a load replays, which analyzer a rebuild takes, and what an interrupt may leave."""

import logging
import random
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.engine import compaction, replaying
from agentir_ray.engine.compaction import Compactor
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import ConflictError, StorageFullError
from agentir_ray.lexical import bulk
from agentir_ray.lexical.bulk import BulkBuilder
from agentir_ray.lexical.index import Index
from agentir_ray.storage.sqlite_log import SqliteLog

ALICE = "acme/alice"
LIMITS = Limits(seal_at=20, max_unsealed=40)
UNLIMITED = Limits(seal_at=10**9, max_unsealed=10**9)


class Stop(BaseException):
    """An interrupt."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def fill(memory: Memory, seed: int = 3, operations: int = 300) -> None:
    """Every verb, so that later entries change what earlier ones wrote."""
    rng = random.Random(seed)
    for i in range(operations):
        memory.add(f"a note about {rng.choice(('rain', 'snow', 'fog'))} {i}", id=f"r{i}", supersedes=f"r{rng.randrange(i)}" if i % 5 == 4 and i % 7 else None)
        if i % 6 == 5 and i % 7:  # else it is forgotten
            memory.update(f"r{i - 1}", text="changed: wind")
        if i % 7 == 6:
            memory.forget(ids=[f"r{i}"])


def answers(memory: Memory) -> list[Any]:
    return [[(hit.record, hit.score) for hit in memory.search(query, k=500).hits] for query in ("rain snow", "wind", "note fog")] + [
        memory.recent(500).records,
        list(memory.export()),
    ]


def unsealed(memory: Memory) -> int:
    return int(memory.stats()["namespace"]["unsealed_entries"])


def test_a_load_seals_what_it_replays(path: Path) -> None:
    """However the tail came about, the next load need not replay it again, and the answers are those of an index that was never sealed."""
    with Memory.open(path, ALICE, limits=UNLIMITED, background=False, durability="process") as memory:
        fill(memory)
        before, tail = answers(memory), unsealed(memory)
    assert tail > 300
    for _ in range(2):
        with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
            assert answers(memory) == before
            assert unsealed(memory) < LIMITS.max_unsealed
            assert memory.verify() == []


@pytest.mark.parametrize("swaps", range(1, 6))
def test_an_interrupted_rebuild_goes_on_at_the_next_load(path: Path, monkeypatch: pytest.MonkeyPatch, swaps: int) -> None:
    with Memory.open(path, ALICE, limits=LIMITS, background=False, durability="process") as memory:
        fill(memory)
    with Memory.open(path, ALICE, limits=LIMITS, background=False, analyzer="english") as memory:
        swap, left = SqliteLog.swap_manifest, [swaps]

        def interrupted(log: SqliteLog, *arguments: Any) -> int:
            if not left[0]:
                raise Stop
            left[0] -= 1
            return swap(log, *arguments)

        with monkeypatch.context() as patch, pytest.raises(Stop):
            patch.setattr(SqliteLog, "swap_manifest", interrupted)
            memory.search("rain")
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        resumed = answers(memory)
        assert memory.stats()["namespace"]["analyzer"] == "english"
        assert unsealed(memory) < LIMITS.max_unsealed
        assert memory.verify() == []
    (segment, *_) = path.glob("segments/*/*")
    segment.write_bytes(b"")
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        assert answers(memory) == resumed


def test_what_is_loaded_can_be_read_though_the_disk_is_full(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(path, ALICE, limits=UNLIMITED, background=False, durability="process") as memory:
        fill(memory)
        before = answers(memory)

    def full(*_: Any) -> None:
        raise StorageFullError("the disk is full")

    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(Compactor, "_write", full)
            assert answers(memory) == before
        memory.add("room again", id="last")
        assert unsealed(memory) <= LIMITS.max_unsealed


@pytest.mark.parametrize("manifest", [b"", b"garbage"])
@pytest.mark.parametrize("analyzer", ["english", "standard"])
def test_a_damaged_manifest_does_not_change_the_analyzer(path: Path, caplog: pytest.LogCaptureFixture, analyzer: str, manifest: bytes) -> None:
    with Memory.open(path, ALICE, limits=LIMITS, background=False, analyzer=analyzer, durability="process") as memory:
        fill(memory, operations=60)
        before = answers(memory)
    database = sqlite3.connect(path / "log.sqlite3")
    with database:
        database.execute("UPDATE manifests SET manifest = ?", (manifest,))
    database.close()
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        assert answers(memory) == before
        assert memory.stats()["namespace"]["analyzer"] == analyzer
    assert any(record.levelno == logging.WARNING and f"with the analyzer {analyzer}" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("when", ["after the swap", "before the index changes"])
def test_an_interrupt_of_a_rewrite_costs_nobody_a_later_one(path: Path, monkeypatch: pytest.MonkeyPatch, when: str, background: bool) -> None:
    with Memory.open(path, ALICE, limits=LIMITS, background=background, durability="process") as memory:
        for i in range(30):
            memory.add(f"rain {i}", id=f"r{i}")
        assert memory._store.wait_purged(10)
        memory.add("rain", id="there is something to seal")
        swap = SqliteLog.swap_manifest

        def swapped(log: SqliteLog, *arguments: Any) -> int:
            swap(log, *arguments)
            raise Stop

        def install(*_: Any) -> None:
            raise Stop

        with memory._store.namespace(ALICE) as namespace, monkeypatch.context() as patch, pytest.raises(Stop):
            if when == "after the swap":
                patch.setattr(SqliteLog, "swap_manifest", swapped)
            else:
                patch.setattr(namespace.index, "install", install)
            memory._store.compactor.seal(namespace)
        for i in range(30, 130):
            memory.add(f"rain {i}", id=f"r{i}")
        assert memory._store.wait_purged(10)
        assert unsealed(memory) < LIMITS.max_unsealed
        assert len(memory.search("rain", k=500).hits) == 131
        before = answers(memory)
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        assert answers(memory) == before


def test_a_manifest_newer_than_ours_is_met_once(path: Path) -> None:
    with Memory.open(path, ALICE, limits=LIMITS, background=False, durability="process") as memory:
        for i in range(30):
            memory.add(f"rain {i}", id=f"r{i}")
        with memory._store.namespace(ALICE) as namespace:
            namespace.generation -= 1
        for i in range(30, 130):
            memory.add(f"rain {i}", id=f"r{i}")
        assert unsealed(memory) < LIMITS.max_unsealed
        assert len(memory.search("rain", k=500).hits) == 130
        assert memory.verify() == []


def test_supersessions_alone_do_not_make_the_manifest_grow(path: Path) -> None:
    with Memory.open(path, ALICE, limits=LIMITS, background=False, durability="process") as memory:
        for i in range(200):
            memory.add(f"rain {i}", id=f"r{i}")
        for i in range(150):
            memory.add(f"snow {i}", supersedes=f"r{i}")
        with memory._store.namespace(ALICE) as namespace:
            for segment in namespace.index.segments:
                assert len(segment.overlay.since_written()) <= 0.25 * segment.documents
        assert len(memory.search("rain", k=500).hits) == 50


def fill_in_rows(memory: Memory) -> None:
    """Many new records in a row, before and after others that are updated or forgotten, and after one that is superseded."""
    for row in range(4):
        memory.add_many({"id": f"{row}-{i}", "text": f"rain {i}", "session": f"s{i % 3}", "importance": i % 2 / 2, "metadata": {"n": i}} for i in range(150))
        memory.update(f"{row}-3", text="wind")
        memory.forget(ids=[f"{row}-5", f"{row}-149"])
        if row == 2:
            memory.add("snow", id="new", supersedes="1-7")


def test_new_records_in_a_row_go_straight_into_segments(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(path, ALICE, limits=UNLIMITED, background=False, durability="process") as memory:
        fill_in_rows(memory)
        before = answers(memory)
        filtered = [(hit.record, hit.score) for hit in memory.search("rain", where={"metadata.n": {"gte": 140}}, session="s1", k=500).hits]
    added: list[str] = []
    add = Index.add
    monkeypatch.setattr(Index, "add", lambda index, seq, document: (added.append(document.id), add(index, seq, document)))
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        assert answers(memory) == before
        assert len(added) < 2 * LIMITS.max_unsealed + 150  # the last row comes after a supersession
        assert [(hit.record, hit.score) for hit in memory.search("rain", where={"metadata.n": {"gte": 140}}, session="s1", k=500).hits] == filtered
        assert unsealed(memory) < LIMITS.max_unsealed
        assert memory.verify() == []


@pytest.mark.parametrize("written", range(6))
def test_building_in_bulk_may_meet_a_full_disk_or_a_conflict(path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    with Memory.open(path, ALICE, limits=UNLIMITED, background=False, durability="process") as memory:
        fill_in_rows(memory)
        before = answers(memory)
    write, left = Compactor._write, [written]

    def full(*arguments: Any) -> Any:
        if not left[0]:
            raise StorageFullError("the disk is full")
        left[0] -= 1
        return write(*arguments)

    monkeypatch.setattr(compaction, "BulkBuilder", partial(BulkBuilder, limits=bulk.Limits(documents=1)))  # a segment a batch
    monkeypatch.setattr(replaying, "BATCH", 40)
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(Compactor, "_write", full)
            assert answers(memory) == before
        memory.add("room again", id="last")
        assert unsealed(memory) <= LIMITS.max_unsealed
    swap = SqliteLog.swap_manifest
    left[0] = written

    def conflict(log: SqliteLog, *arguments: Any) -> int:
        left[0] -= 1
        if left[0] == -1:
            raise ConflictError("a newer manifest is there")
        return swap(log, *arguments)

    with Memory.open(path, ALICE, limits=LIMITS, background=False, analyzer="english") as memory:
        with monkeypatch.context() as patch:
            patch.setattr(SqliteLog, "swap_manifest", conflict)
            if written:  # the first swap, which begins the rebuild, would be a conflict for the caller
                assert len(memory.search("rain", k=900).hits) == 587
        assert len(memory.search("rain", k=900).hits) == 587
        assert memory.verify() == []
