"""Vectors and crashes: none that was paid for is lost, none is on the wrong record, and what is erased is in no file; with the power cut at every sync and with kill -9.

The workload encodes a batch, or all, after many of its verbs, and exchanges the encoder now and then.
"""

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.clock import SystemClock
from agentir_ray.encoders.hashing import HashingEncoder
from agentir_ray.engine import encoding
from agentir_ray.engine.encoders_in_use import EncodersInUse
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import Store
from agentir_ray.lexical.query import Bm25
from agentir_ray.storage.codec import decode_body
from tests.crash.invariants import Op, World, after, check, plan
from tests.crash.shim import Journal, JournalFiles, JournalVFS, Keep, journalled, reconstruct
from tests.crash.vector_invariants import Counting, check_vectors

NAMESPACES = ("acme/alice", "acme/bob")
LIMITS = Limits(seal_at=6, max_unsealed=12, checkpoint_pages=24)
DIMS = (8, 4)
ENCODERS = [HashingEncoder(dim) for dim in DIMS]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "BATCH", 3)


@dataclass
class Disk:
    root: Path
    journal: Journal
    vfs: JournalVFS

    def open(self, encoder: Counting) -> Memory:
        encoders = EncodersInUse(encoder, token_vectors=True)
        store = Store(
            self.root / "store", clock=SystemClock(), background=False, limits=LIMITS, vfs=self.vfs.name, files=JournalFiles(self.journal), encoders=encoders
        )  # fmt: skip
        return Memory(store, "acme/alice", None, Bm25(), owns_store=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    root = tmp_path / "disk"
    with journalled(root) as (journal, vfs):
        yield Disk(root, journal, vfs)


@dataclass
class History:
    """The worlds that were acknowledged one after the other and how long the journal was then; and the same of what each encoder was paid for."""

    worlds: list[World] = field(default_factory=lambda: [{}])
    promised: list[int] = field(default_factory=list)
    paid: list[tuple[int, int, str]] = field(default_factory=list)  # (length of the journal, which encoder, text)


def workload(disk: Disk, ops: list[Op], rng: random.Random) -> History:
    history = History()
    encoders = [Counting(dim) for dim in DIMS]
    present = 0
    memory = disk.open(encoders[present])

    def paid() -> None:
        for which, encoder in enumerate(encoders):
            history.paid += [(len(disk.journal.events), which, text) for text in encoder.encoded]
            encoder.encoded.clear()

    for n, op in enumerate(ops):
        if n % 12 == 7:
            memory.close()
            memory = disk.open(encoders[present])
        op.run(memory, wait=n % 2 == 0)
        history.worlds.append(after(history.worlds[-1], [op]))
        history.promised.append(len(disk.journal.events))
        name = rng.choice(memory.namespaces())
        if n % 17 == 16:
            present = 1 - present
            for each in memory.namespaces():
                memory.use(each).reembed(encoders[present])
                paid()
        elif rng.random() < 0.7:
            assert memory.use(name).wait_encoded(rng.choice((0, 0, 60))) in (False, True)
            paid()
    memory.close()
    return history


def reopen(folder: Path, encoder: Counting, background: bool = False) -> Memory:
    return Memory.open(folder, background=background, durability="process", encoder=encoder, token_vectors=True)


@pytest.mark.crash
def test_a_power_cut_at_any_sync_loses_no_vector_that_was_paid_for(disk: Disk, tmp_path: Path, long_form: bool, caplog: pytest.LogCaptureFixture) -> None:
    ops = list(plan(random.Random(5), {}, NAMESPACES, "p", 90 if long_form else 36, drops=True))
    history = workload(disk, ops, random.Random(6))
    syncs = disk.journal.syncs()
    paths = {disk.journal.events[at - 1].path for at in syncs}
    assert any("vectors.sqlite3-wal" in path for path in paths) and any(".dense" in path for path in paths)
    cuts = sorted({0, *syncs, *(at - 1 for at in syncs), len(disk.journal.events)})
    if not long_form:
        cuts = cuts[:: max(1, len(cuts) // 60)]
    for cut in cuts:
        done = sum(at <= cut for at in history.promised)
        keeps: tuple[Keep, ...] = ("nothing", "some")
        for keep in keeps if long_form else random.Random(cut).sample(keeps, 1):
            folder = tmp_path / "after"
            reconstruct(disk.journal, cut, random.Random(cut), folder, keep)
            try:
                _check_after(folder / "store", history, done, cut)
            except BaseException as error:
                error.add_note(f"power cut before event {cut}, keeping {keep} of what was not synced, after {done} acknowledgements")
                raise
            shutil.rmtree(folder)
    assert not caplog.records, "a file that the manifest names was not there"


def _check_after(folder: Path, history: History, done: int, cut: int) -> None:
    with Memory.open(folder, background=False, durability="process") as memory:  # without an encoder: nothing is made, and what is there is right
        for name in memory.namespaces():
            check_vectors(memory, name, ENCODERS)
        check(memory, history.worlds[done : done + 2], random.Random(cut))
        channels = {name: (memory.use(name).stats()["namespace"] or {"channels": {}})["channels"] for name in memory.namespaces()}
    for which, dim in enumerate(DIMS):
        encoder = Counting(dim)
        identity = f"{encoder.name}@{encoder.revision}"
        with reopen(folder, encoder) as memory:
            for name, told in channels.items():
                if told and told["dense"]["encoder"] == identity:
                    assert memory.use(name).wait_encoded()
                    check_vectors(memory, name, ENCODERS, complete=True)
        # What was paid for before the encoders were exchanged, or in a namespace that was dropped, may be gone for good; the rest is not paid for twice.
        lately = [entry for entry in history.paid if entry[0] <= cut]
        since = next((i for i in range(len(lately) - 1, -1, -1) if lately[i][1] != which), -1) + 1
        paid = {text for _, _, text in lately[since:]}
        assert not paid.intersection(encoder.encoded), "something was paid for twice"


DRIVER = """
import os, random, sys
from pathlib import Path
from agentir_ray.client.memory import Memory
from agentir_ray.engine import encoding
from agentir_ray.engine.policy import Limits
from tests.crash.vector_invariants import Counting

folder, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
encoding.BATCH = rng.choice((2, 5, 40))
encoder = Counting(rng.choice((8, 8, 8, 4)))
with Memory.open(folder, durability="process", encoder=encoder, token_vectors=True, limits=Limits(5, 10), background=rng.random() < 0.7) as memory:
    memory.add(f"round {seed} begins", id=f"{seed}-begin")
    memory.reembed()
    print("encoder", encoder.dim, flush=True)
    for n in range(400):
        text = f"round {seed} number {n} {'rain ' * rng.randint(0, 40)}"
        memory.add(text, id=f"{seed}-{n}")
        if rng.random() < 0.2:
            memory.update(rng.choice(memory.recent(30).records).id, text=f"changed in round {seed} at {n}")
        if rng.random() < 0.1:
            memory.forget(ids=[f"{seed}-{rng.randrange(n + 1)}"])
        if rng.random() < 0.3:
            memory.wait_encoded()
            print("paid", memory.stats()["namespace"]["last_seq"], flush=True)
        if rng.random() < 0.02:
            encoder = Counting(12 - encoder.dim)
            print("reembed", encoder.dim, flush=True)
            memory.reembed(encoder)
            print("encoder", encoder.dim, flush=True)
"""


@pytest.mark.crash
def test_kill_9_loses_no_vector_that_was_paid_for(tmp_path: Path, long_form: bool) -> None:
    folder = tmp_path / "store"
    rng = random.Random(7)
    for seed in range(60 if long_form else 6):
        command = [sys.executable, "-c", DRIVER, str(folder), str(seed)]
        process = subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines: list[str] = []
        until = rng.randint(1, 60)
        for line in process.stdout:
            lines.append(line)
            if len(lines) >= until:
                break
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        assert process.wait() in (0, -signal.SIGKILL)
        _check_killed(folder, lines)


def _check_killed(folder: Path, lines: list[str]) -> None:
    told = [line.split() for line in lines]
    dims = [int(line[1]) for line in told if line[0] == "encoder"]
    paid = max((int(line[1]) for line in told if line[0] == "paid"), default=0)
    uncertain = bool(told) and told[-1][0] == "reembed"
    with Memory.open(folder, background=False, durability="process") as memory:
        assert memory.verify() == []
        check_vectors(memory, "default", ENCODERS)
        present = memory.stats()["namespace"]["channels"]["dense"]["encoder"]
        texts = {entry.seq: entry.body for entry in memory._store.log.read(1) if entry.id is not None}
    encoder = next(Counting(one.dim) for one in ENCODERS if f"{one.name}@{one.revision}" == present)
    assert uncertain or not dims or encoder.dim == dims[-1]
    with reopen(folder, encoder) as memory:
        assert memory.wait_encoded()
        check_vectors(memory, "default", ENCODERS, complete=True)
        assert memory.verify() == []
        if not uncertain:
            due = {decode_body(body, seq).text for seq, body in texts.items() if seq > paid and body is not None}
            assert set(encoder.encoded) <= due, "something was paid for twice"
