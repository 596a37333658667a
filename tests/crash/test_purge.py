"""What a receipt says of the files is true: beside damage, for dropped namespaces, beside namespaces that cannot be looked after, and however the store is used meanwhile."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import AgentIRError
from agentir_ray.sections import SectionFile
from tests.crash.test_erasure import found, secret

ALICE, BOB = "acme/alice", "acme/bob"
LIMITS = Limits(seal_at=20, max_unsealed=40)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(params=[False, True], ids=["foreground", "background"])
def memory(path: Path, request: pytest.FixtureRequest) -> Iterator[Memory]:
    with Memory.open(path, ALICE, limits=LIMITS, background=request.param) as memory:
        yield memory


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with one segment that has every optional section."""
    path = tmp_path_factory.mktemp("sealed") / "store"
    with Memory.open(path, ALICE, limits=Limits(seal_at=27, max_unsealed=54), background=False) as memory:
        for i in range(24):
            memory.add(**secret(i), importance=i / 24, expires_at="2200-01-01", supersedes="id-4" if i == 9 else None)
        memory.update("id-5", text="changed")
        memory.update("id-6", text="changed")
        memory.add("the last")
    return path


def sections(path: Path) -> list[tuple[str, int]]:
    """The sections of the store's one segment, and the middle byte of each."""
    (file,) = path.glob("segments/*/*")
    return [(name, offset + size // 2) for name, (_, _, offset, size) in SectionFile(file)._table.items() if size]


@pytest.mark.crash
@pytest.mark.parametrize("background", [False, True])
def test_purged_beside_damage_means_in_no_file(sealed: Path, path: Path, background: bool) -> None:
    for name, at in sections(sealed):
        shutil.copytree(sealed, path)
        (segment,) = path.glob("segments/*/*")
        raw = bytearray(segment.read_bytes())
        raw[at] ^= 0xFF
        segment.write_bytes(raw)
        with Memory.open(path, ALICE, limits=LIMITS, background=background) as memory:
            memory.stats()
            receipt = memory.forget(ids=["id-1", "id-9", "id-17"], wait=True)
            assert receipt.purged, name
            assert found(path, "qzvq1secret", "qzvq9card", "qzvq17long") == [], name
            assert len(memory.search("vault", k=100)) == 19, name
        shutil.rmtree(path)


def wait_until_gone(path: Path, needle: str) -> None:
    until = time.monotonic() + 10
    while found(path, needle):
        assert time.monotonic() < until
        time.sleep(0.01)  # for what another thread does by itself, without being waited for


def test_a_dropped_namespace_leaves_the_files_though_nobody_waits(memory: Memory, path: Path) -> None:
    for i in range(25):
        memory.add(**secret(i))
    assert memory._store.wait_purged(10)
    time.sleep(0.05)  # maintenance has sealed, and waits for the next request
    memory.drop()
    wait_until_gone(path, "qzvq")


def test_closing_purges_what_was_dropped(memory: Memory, path: Path) -> None:
    for i in range(15):
        memory.add(**secret(i))
    with pinned(path):
        memory.drop()
        assert not memory._store.wait_purged(0.05)
    memory.close()
    assert found(path, "qzvq") == []


class pinned:
    """A reader's transaction, which keeps the WAL."""

    def __init__(self, path: Path) -> None:
        self.reader = apsw.Connection(str(path / "log.sqlite3"), flags=apsw.SQLITE_OPEN_READONLY)

    def __enter__(self) -> None:
        self.reader.execute("BEGIN")
        self.reader.execute("SELECT count(*) FROM entries").fetchall()

    def __exit__(self, *_: object) -> None:
        self.reader.close()


def test_a_purge_goes_on_when_the_reader_is_gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentir_ray.engine.maintenance.RETRY_S", 0.02)
    with Memory.open(path, ALICE) as memory:
        memory.add(**secret(1))
        with pinned(path):
            memory.drop()
            assert not memory._store.wait_purged(0.1)
        assert memory._store.wait_purged(10)
        assert found(path, "qzvq") == []


@pytest.mark.parametrize("background", [False, True])
def test_a_namespace_that_cannot_be_purged_spoils_no_other_receipt_and_is_tried_ever_more_rarely(path: Path, monkeypatch: pytest.MonkeyPatch, background: bool) -> None:
    monkeypatch.setattr("agentir_ray.client.memory.PURGE_WAIT_S", 0.1)
    with Memory.open(path, ALICE, limits=LIMITS, background=background) as memory:
        for i in range(25):
            memory.add(**secret(i))
            memory.use(BOB).add(**secret(f"bob{i}"))
        assert memory._store.wait_purged(30)
        purge, tries = memory._store.compactor.purge, []

        def failing(namespace: Any) -> None:
            if namespace.name == BOB:
                tries.append(time.monotonic())
                raise AgentIRError("the disk is full")
            purge(namespace)

        monkeypatch.setattr(memory._store.compactor, "purge", failing)
        monkeypatch.setattr("agentir_ray.engine.maintenance.RETRY_S", 0.01)
        assert not memory.use(BOB).forget(ids=["id-bob1"], wait=True).purged
        assert memory.forget(ids=["id-1"], wait=True).purged
        assert found(path, "qzvq1secret") == [] != found(path, "qzvqbob1secret")
        time.sleep(0.3)
        assert len(tries) <= 8
        monkeypatch.setattr(memory._store.compactor, "purge", purge)
        monkeypatch.setattr("agentir_ray.client.memory.PURGE_WAIT_S", 10)
        assert memory.use(BOB).forget(ids=["id-bob2"], wait=True).purged
        assert found(path, "qzvq1secret", "qzvqbob1secret", "qzvqbob2secret") == []


def test_forgetting_nothing_waits_for_nobody_unless_told(path: Path) -> None:
    with Memory.open(path, ALICE) as memory:
        memory.add(**secret(1))
        with pinned(path):
            memory.forget(ids=["id-1"])
            started = time.monotonic()
            assert not memory.forget(ids=["unknown"]).purged
            assert time.monotonic() - started < 5
        assert memory.forget(ids=["unknown"], wait=True).purged
        assert found(path, "qzvq") == []


@pytest.mark.parametrize("background", [False, True])
def test_the_wal_of_many_small_namespaces_stays_bounded(path: Path, background: bool) -> None:
    limits = Limits(checkpoint_pages=100)
    with Memory.open(path, ALICE, limits=limits, background=background, durability="process") as memory:
        largest = 0
        for i in range(600):
            memory.use(f"many/{i}").add("a record of a namespace that is never sealed " * 20)
            largest = max(largest, memory._store.writer.wal_pages)
        assert largest < 1_000
        assert memory._store.wait_purged(10)
