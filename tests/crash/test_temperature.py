"""The power cut at every sync of a store that spills, loads and purges, and of its target; and what was erased is in no file of either."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import Store
from agentir_ray.lexical.query import Bm25
from tests.crash.invariants import Op, after, check, plan
from tests.crash.shim import Journal, JournalFiles, JournalVFS, Keep, journalled, reconstruct
from tests.crash.test_erasure import found, secret
from tests.crash.test_power_cut import History
from tests.spill_targets import WEEK_US

NAMESPACES = ("acme/alice", "acme/bob")
LIMITS = Limits(seal_at=6, max_unsealed=12, checkpoint_pages=24, decent=6, largest=40, temper_from_bytes=0)
BUDGET = 1_000  # of postings and texts: two segments


@dataclass
class Disk:
    """The store and its target: what one is promised depends on the other."""

    root: Path
    journal: Journal
    vfs: JournalVFS
    clock: ManualClock

    def open(self) -> Memory:
        files = JournalFiles(self.journal)
        store = Store(
            self.root / "store", clock=self.clock, background=False, limits=LIMITS, vfs=self.vfs.name, files=files, memory_budget_bytes=BUDGET, spill=self.root / "target"
        )
        return Memory(store, "acme/alice", None, Bm25(), owns_store=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    root = tmp_path / "disk"
    with journalled(root) as (journal, vfs):
        yield Disk(root, journal, vfs, ManualClock())


def reopen(folder: Path) -> Memory:
    return Memory.open(folder / "store", background=False, durability="process", limits=LIMITS, memory_budget_bytes=BUDGET, spill=folder / "target")


def workload(disk: Disk, ops: list[Op]) -> History:
    """Each verb a week after the last one, so that only the last segments belong to the newest partition; and a search now and then, which loads."""
    history = History()
    memory = disk.open()
    for n, op in enumerate(ops):
        if n == len(ops) // 2:
            memory.close()
            memory = disk.open()
        op.run(memory, wait=n % 2 == 0)
        history.worlds.append(after(history.worlds[-1], [op]))
        history.promised.append(len(disk.journal.events))
        if n % 5 == 0 and op.verb != "drop":
            memory.use(op.namespace).search("common", k=1_000)
        disk.clock.advance(WEEK_US / 1e6)
    memory.close()
    return history


@pytest.mark.crash
def test_a_power_cut_at_any_sync_loses_nothing_and_tears_nothing(disk: Disk, tmp_path: Path, long_form: bool, caplog: pytest.LogCaptureFixture) -> None:
    history = workload(disk, list(plan(random.Random(5), {}, NAMESPACES, "p", 150 if long_form else 60, crowd=60, drops=False)))
    assert not caplog.records
    syncs = disk.journal.syncs()
    paths = [disk.journal.events[at - 1].path for at in syncs]
    assert sum(path.startswith("target/") and ".spilled" in path for path in paths) > 5
    assert [event for event in disk.journal.events if event.verb == "unlink" and event.path.startswith("target/") and event.path.endswith(".spilled")]
    keeps: list[tuple[Keep, int]] = [("nothing", 0), ("some", 1)] + ([("everything", 0), ("some", 2), ("some", 3)] if long_form else [])
    # What the store promises without a target is another test's: of its own syncs a few will do.
    syncs = [at for n, (at, path) in enumerate(zip(syncs, paths, strict=True)) if long_form or n % 10 == 0 or path.startswith("target/") or "SPILL" in path]
    for cut in sorted({0, *syncs, *(at - 1 for at in syncs), len(disk.journal.events)}):
        done = sum(at <= cut for at in history.promised)
        for keep, seed in keeps:
            folder = tmp_path / "after"
            reconstruct(disk.journal, cut, random.Random(1_000_003 * seed + cut), folder, keep)
            with reopen(folder) as memory:
                try:
                    check(memory, history.worlds[done : done + 2], random.Random(cut))
                    assert not caplog.records, "a file or an object that the manifest names was not there"
                    check_target(memory, folder / "target")
                except BaseException as error:
                    error.add_note(f"power cut before event {cut}, keeping {keep} (seed {seed}) of what was not synced, after {done} acknowledgements")
                    raise
            shutil.rmtree(folder)


def check_target(memory: Memory, target: Path) -> None:
    """Once the store was swept, what lies there is what manifests name."""
    memory._store.maintenance.request(None, purge=True)
    assert memory._store.wait_purged(0)
    there = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert {name for name in there if "/SPILL" not in name} == memory._store._named_objects()  # the marker of an identity that came to nothing may be left


@pytest.mark.crash
def test_what_was_erased_is_on_no_target(tmp_path: Path) -> None:
    clock = ManualClock()
    with Memory.open(tmp_path / "store", clock=clock, background=False, limits=LIMITS, memory_budget_bytes=BUDGET, spill=tmp_path / "target") as memory:
        for i in range(60):
            memory.add(**secret(i))
            clock.advance(WEEK_US / 1e6)
        assert memory.stats()["namespace"]["temperature"]["cold_segments"] > 3
        assert found(tmp_path / "target", "qzvq7longtext") and not found(tmp_path / "store" / "segments", "qzvq7longtext ")
        assert len(memory.search("vault", k=100)) == 60  # which loads them
        memory.get("id-3")
        for erased in (["id-1", "id-7", "id-27"], ["id-2", "id-59"]):
            assert memory.forget(ids=erased, wait=True).purged
            needles = [f"qzvq{id[3:]}{what}" for id in erased for what in ("secretword", "longtext", "session", "card", "key")]
            assert found(tmp_path, *needles) == []
        assert len(memory.search("vault", k=100)) == 55 and memory.verify() == []
