"""The whole engine with the power cut at every sync, of the log, of segments and of folders; and with a disk that refuses any write or sync.

Without a maintenance thread the workload is the same every time; small limits make a few dozen verbs seal, merge and purge many times.
"""

import errno
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.clock import SystemClock
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import Store
from agentir_ray.errors import StorageFullError, UnknownOutcomeError
from agentir_ray.lexical.query import Bm25
from tests.crash.invariants import Op, World, after, check, plan
from tests.crash.shim import Fault, Journal, JournalFiles, JournalVFS, Keep, journalled, reconstruct

NAMESPACES = ("acme/alice", "acme/bob")
LIMITS = Limits(seal_at=6, max_unsealed=12, checkpoint_pages=24)


@dataclass
class Disk:
    root: Path
    journal: Journal
    vfs: JournalVFS

    def open(self, analyzer: str | None = None) -> Memory:
        store = Store(self.root / "store", clock=SystemClock(), background=False, limits=LIMITS, vfs=self.vfs.name, files=JournalFiles(self.journal))
        return Memory(store, "acme/alice", analyzer, Bm25(), owns_store=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    root = tmp_path / "disk"
    with journalled(root) as (journal, vfs):
        yield Disk(root, journal, vfs)


def reopen(folder: Path) -> Memory:
    return Memory.open(folder, background=False, durability="process")


@dataclass
class History:
    """The worlds that were acknowledged one after the other, and how long the journal was then."""

    worlds: list[World] = field(default_factory=lambda: [{}])
    promised: list[int] = field(default_factory=list)


def workload(disk: Disk, ops: list[Op]) -> History:
    history = History()
    memory = disk.open()
    for n, op in enumerate(ops):
        if n == len(ops) // 2:
            memory.close()
            memory = disk.open("english")  # which rebuilds each namespace at its next use
        op.run(memory, wait=n % 2 == 0)
        history.worlds.append(after(history.worlds[-1], [op]))
        history.promised.append(len(disk.journal.events))
    memory.close()
    return history


@pytest.mark.crash
def test_a_power_cut_at_any_sync_loses_nothing_and_tears_nothing(disk: Disk, tmp_path: Path, long_form: bool, caplog: pytest.LogCaptureFixture) -> None:
    history = workload(disk, list(plan(random.Random(3), {}, NAMESPACES, "p", 100 if long_form else 45, drops=True)))
    syncs = disk.journal.syncs()
    paths = {disk.journal.events[at - 1].path for at in syncs}
    assert any(path.endswith("-wal") for path in paths) and any(".segment" in path for path in paths) and "store/segments/1" in paths
    keeps: list[tuple[Keep, int]] = [("nothing", 0), ("some", 1)] + ([("everything", 0), ("some", 2), ("some", 3)] if long_form else [])
    for cut in sorted({0, *syncs, *(at - 1 for at in syncs), len(disk.journal.events)}):
        done = sum(at <= cut for at in history.promised)
        for keep, seed in keeps:
            folder = tmp_path / "after"
            reconstruct(disk.journal, cut, random.Random(1_000_003 * seed + cut), folder, keep)
            with reopen(folder / "store") as memory:
                try:
                    check(memory, history.worlds[done : done + 2], random.Random(cut))
                    assert not caplog.records, "a file that the manifest names was not there"
                except BaseException as error:
                    error.add_note(f"power cut before event {cut}, keeping {keep} (seed {seed}) of what was not synced, after {done} acknowledgements")
                    raise
            shutil.rmtree(folder)


def shown(memory: Memory) -> dict[str, dict[str, str]]:
    """What a caller finds, by namespace."""
    return {name: {hit.record.id: hit.record.text for hit in memory.use(name).search("common", k=10_000).hits} for name in memory.namespaces()}


def texts(world: World) -> dict[str, dict[str, str]]:
    return {name: model.shown() for name, model in world.items()}


@pytest.mark.crash
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_refusing_disk_loses_nothing_and_leaves_nothing(disk: Disk, tmp_path: Path, code: int, lasting: bool, long_form: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever write or sync a verb met it at: it fails with a clear error or succeeds, what a caller finds is one or the other, and the next try succeeds."""
    rng = random.Random(100 * code + lasting)
    world: World = {}
    memory = disk.open()
    failed = 0
    for n, op in enumerate(plan(rng, {}, NAMESPACES, "d", 500 if long_form else 150, drops=True)):
        disk.journal.fail_at(Fault(rng.choice(("write", "write", "sync")), rng.choice((1, 2, 3, 4, 5, 7, 9, 12, 20, 40)), code, lasting, partial=rng.random() < 0.5))
        before, world = world, after(world, [op])
        try:
            op.run(memory, wait=bool(n % 2))
        except (StorageFullError, UnknownOutcomeError):
            failed += 1
            disk.journal.fault = None
            now = shown(memory)
            assert {name: found for name, found in now.items() if found} in [{name: found for name, found in texts(one).items() if found} for one in (before, world)], f"verb {n}"
            op.run(memory, wait=bool(n % 2))
        disk.journal.fault = None
        assert shown(memory) == texts(world), f"verb {n}"
        if n % 15 == 14:
            if rng.random() < 0.5:
                disk.journal.fail_at(Fault("write", rng.randint(1, 4), code, lasting))
            memory.close()
            disk.journal.fault = None
            for keep in ("nothing", "some"):
                folder = tmp_path / "after"
                reconstruct(disk.journal, len(disk.journal.events), rng, folder, keep)
                with reopen(folder / "store") as survivor:
                    check(survivor, [world], rng)
                shutil.rmtree(folder)
            memory = disk.open()
            check(memory, [world], rng)
    assert failed > 20
    assert not [record for record in caplog.records if "rebuilding" in record.message]
    memory.close()
