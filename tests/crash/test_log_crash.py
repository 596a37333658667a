"""The log alone, with the power cut at every sync: what was acknowledged is there, once and whole; what was not is there whole or not at all."""

import errno
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentir_ray.errors import StorageFullError, UnknownOutcomeError
from agentir_ray.storage.protocol import Batch, NamespaceState, NewEntry, Status
from agentir_ray.storage.sqlite_log import SqliteLog
from tests.contracts.record_log import add, forget, statuses, update
from tests.crash.shim import Fault, Journal, JournalFiles, JournalVFS, Keep, journalled, reconstruct


@dataclass
class Disk:
    root: Path
    journal: Journal
    vfs: JournalVFS

    def open(self, durability: str = "power") -> SqliteLog:
        return SqliteLog(self.root / "log.db", vfs=self.vfs.name, files=JournalFiles(self.journal), durability=durability)  # type: ignore[arg-type]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    root = tmp_path / "store"
    with journalled(root) as (journal, vfs):
        yield Disk(root, journal, vfs)


Rows = list[tuple[int, str | None, int, bytes | None]]


@dataclass
class Workload:
    """Runs verbs against a log and notes, after each acknowledgement, how long the journal was and what the log then held."""

    log: SqliteLog
    journal: Journal
    state: NamespaceState
    promised: list[tuple[int, Rows]] = field(default_factory=list)

    def rows(self, log: SqliteLog) -> Rows:
        return [(entry.seq, entry.id, entry.version, entry.body) for entry in log.read(self.state.number)]

    def run(self, verb: Callable[[], object]) -> None:
        verb()
        self.promised.append((len(self.journal.events), self.rows(self.log)))

    def append(self, *entries: NewEntry) -> None:
        self.run(lambda: [statuses(result) for result in self.log.commit([Batch(self.state.number, self.state.epoch, entries)])])


def workload(disk: Disk) -> Workload:
    """Adds, updates, erasures, swaps of the manifest, checkpoints, a purge and a second opening, in every order that matters."""
    log = disk.open()
    work = Workload(log, disk.journal, log.claim("acme/alice"))
    work.append()
    for i in range(6):
        work.append(add(f"a{i}", f"content {i} " * 40))
    work.append(*(add(f"b{i}", "x" * (i * 300)) for i in range(12)))
    work.run(lambda: log.swap_manifest(work.state.number, work.state.epoch, 0, b"one" * 100))
    work.run(log.checkpoint)
    work.append(update("a1", 1, "anew"), add("long", "y" * 9_000))
    work.append(forget("a1", "b7", "long"))
    work.append(add("after", "z"))
    work.run(log.purge)
    for i in range(3):
        work.append(add(f"c{i}", "w" * 2_000))
    log.close()
    work.log = log = disk.open()
    work.append(add("d", "reopened"))
    work.append(forget("c1"))
    work.run(lambda: log.swap_manifest(work.state.number, work.state.epoch, 1, b"two" * 100))
    log.close()
    return work


@pytest.mark.crash
@pytest.mark.parametrize(("keep", "seed"), [("nothing", 0), ("everything", 0), ("some", 1), ("some", 2), ("some", 3)])
def test_a_power_cut_at_any_sync_loses_nothing_and_tears_nothing(disk: Disk, tmp_path: Path, keep: Keep, seed: int) -> None:
    work = workload(disk)
    histories = [[], *(rows for _, rows in work.promised)]
    cuts = sorted({0, *disk.journal.syncs(), *(at - 1 for at in disk.journal.syncs()), len(disk.journal.events)})
    assert len(cuts) > 40
    for cut in cuts:
        rng = random.Random(1_000_003 * seed + cut)
        after = tmp_path / "after"
        reconstruct(disk.journal, cut, rng, after, keep)
        done = sum(at <= cut for at, _ in work.promised)
        log = SqliteLog(after / "log.db", durability="process")
        assert log.verify() == [], f"cut at {cut}"
        found = work.rows(log)
        # Either exactly what was acknowledged, or that and the verb that was under way.
        assert found in histories[done : done + 2], f"cut at {cut} after {done} acknowledgements"
        state = log.claim("acme/alice")
        assert state.next_seq == len(found) + 1
        [result] = log.commit([Batch(state.number, state.epoch, [add("a0", "content 0 " * 40), add("fresh")])])
        assert result.appended[1].status is Status.APPENDED
        assert result.appended[0].status is (Status.DUPLICATE if found else Status.APPENDED), "acknowledged, so the retry finds it"
        log.close()
        shutil.rmtree(after)


def test_an_add_costs_exactly_one_sync(disk: Disk) -> None:
    log = disk.open()
    state = log.claim("acme/alice")
    log.commit([Batch(state.number, state.epoch, [add("first")])])
    before = len(disk.journal.events)
    for i in range(50):
        log.commit([Batch(state.number, state.epoch, [add(f"{i}-{j}", "x" * 3_000) for j in range(40)]), Batch(state.number, state.epoch, [add(f"{i}")])])
    synced = [disk.journal.events[at - 1].path for at in disk.journal.syncs(before)]
    assert synced == ["log.db-wal"] * 50
    assert log.wal_pages > 1_000, "past SQLite's own threshold: no checkpoint came between"
    log.checkpoint()
    assert log.wal_pages == 0
    log.close()


def test_process_durability_does_not_sync(disk: Disk) -> None:
    log = disk.open("process")
    state = log.claim("acme/alice")
    before = len(disk.journal.events)
    for i in range(20):
        log.commit([Batch(state.number, state.epoch, [add(f"{i}")])])
    assert disk.journal.syncs(before) == []
    log.close()


@pytest.mark.crash
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("verb", ["write", "sync"])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_refusing_disk_loses_nothing_and_repeats_nothing(disk: Disk, tmp_path: Path, verb: str, code: int, lasting: bool) -> None:
    log = disk.open()
    state = log.claim("acme/alice")
    acknowledged: list[str] = []
    failures = 0
    for i in range(12):
        for count in (1, 2):
            id = f"{i}-{count}"
            batch = Batch(state.number, state.epoch, [add(id, "x" * 3_000), add(id + "'", "y")])
            disk.journal.fail_at(Fault(verb, count, code, lasting, partial=bool(i % 2)))  # type: ignore[arg-type]
            try:
                log.commit([batch])
            except (StorageFullError, UnknownOutcomeError) as error:
                failures += 1
                assert lasting or isinstance(error, StorageFullError), "one failure is settled at once"
            disk.journal.fault = None
            # Whatever the first answer, the retry makes it true, once.
            log.commit([batch])
            acknowledged += [id, id + "'"]
            assert [entry.id for entry in log.read(state.number)] == acknowledged
    assert failures >= 12
    keeps: tuple[Keep, ...] = ("nothing", "some", "everything")
    for keep in keeps:
        after = tmp_path / keep
        reconstruct(disk.journal, len(disk.journal.events), random.Random(7), after, keep)
        survivor = SqliteLog(after / "log.db", durability="process")
        assert survivor.verify() == []
        assert [entry.id for entry in survivor.read(state.number)] == acknowledged
        survivor.close()
    log.close()


@pytest.mark.crash
def test_a_commit_that_failed_is_void_after_a_power_cut_too(disk: Disk, tmp_path: Path) -> None:
    """Its frames were written, only their sync failed: without the settling transaction, recovery would find a whole commit that its caller was told had failed."""
    log = disk.open()
    state = log.claim("acme/alice")
    log.commit([Batch(state.number, state.epoch, [add("kept")])])
    disk.journal.fail_at(Fault("sync", 1, errno.EIO))
    with pytest.raises(StorageFullError):
        log.commit([Batch(state.number, state.epoch, [add("refused")])])
    reconstruct(disk.journal, len(disk.journal.events), random.Random(1), tmp_path / "after", "everything")
    survivor = SqliteLog(tmp_path / "after" / "log.db", durability="process")
    assert [entry.id for entry in survivor.read(state.number)] == ["kept"]
    survivor.close()
    log.close()


@pytest.mark.crash
def test_a_backup_survives_a_power_cut(disk: Disk, tmp_path: Path) -> None:
    log = disk.open()
    state = log.claim("acme/alice")
    log.commit([Batch(state.number, state.epoch, [add(str(i), "x" * 1_000) for i in range(50)])])
    log.backup(str(disk.root / "copy.db"))
    reconstruct(disk.journal, len(disk.journal.events), random.Random(1), tmp_path / "after", "nothing")
    copy = SqliteLog(tmp_path / "after" / "copy.db", durability="process")
    assert copy.verify() == [] and len(list(copy.read(state.number))) == 50
    copy.close()
    log.close()
