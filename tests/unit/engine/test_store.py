"""A store's bounds and its edges: open files, memory, segments and WAL under many writers, and the folder that it makes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import Memory, UnsupportedFileSystemError
from agentir_ray.clock import ManualClock
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import Store
from agentir_ray.errors import StoreError
from agentir_ray.sections import SectionFile

FAST: dict[str, Any] = {"durability": "process", "clock": ManualClock(), "background": False}

MANY_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from agentir_ray import Memory
from agentir_ray.engine.policy import Limits

with Memory.open(sys.argv[1], background=False, durability="process", limits=Limits(2, 4)) as memory:
    for i in range(200):
        memory.use(f"n{i}").add_many({"text": f"rain {j}", "id": f"{i}-{j}"} for j in range(3))
    for read_only in (False, True):
        for i in range(200):
            assert len(memory.use(f"n{i}").search("rain").hits) == 3
    assert memory.use("n7").stats()["namespace"]["segments"]
with Memory.open(sys.argv[1], read_only=True) as memory:
    for i in range(200):
        assert len(memory.use(f"n{i}").search("rain").hits) == 3
"""


def test_namespaces_with_segments_do_not_use_up_the_files_that_a_process_may_open(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", MANY_FILES, str(tmp_path / "store")], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


def open_files(folder: Path) -> list[str]:
    """Files of a folder that this process holds open or mapped; a mapping shows where descriptors are listed."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        if name.startswith(str(folder)):
            found.append(name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="lists descriptors as Linux does")
@pytest.mark.parametrize("read_only", [False, True])
def test_closing_lets_go_of_every_file(tmp_path: Path, read_only: bool) -> None:
    with Memory.open(tmp_path / "store", **FAST, limits=Limits(2, 4)) as memory:
        memory.add_many({"text": f"rain {i}"} for i in range(9))
    memory = Memory.open(tmp_path / "store", **FAST, read_only=read_only)
    memory.search("rain")
    assert any(name.endswith(".segment") for name in open_files(tmp_path))
    memory.close()
    assert open_files(tmp_path) == [] and memory._store.loaded_namespaces() == 0


@pytest.mark.parametrize(("number", "way_out"), [(24, "ulimit -n"), (23, "ulimit -n"), (13, "may read it"), (12, "memory")])
def test_a_segment_that_the_system_does_not_open_is_named_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, way_out: str) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(StoreError, match=way_out) as caught:
        SectionFile(tmp_path / "1.segment")
    assert type(caught.value) is StoreError and str(tmp_path / "1.segment") in str(caught.value)


def loaded(memory: Memory) -> Namespace:
    with memory._store.namespace(memory.namespace) as namespace:
        return namespace


def test_the_budget_counts_what_deletions_and_known_terms_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentir_ray.lexical.directory.FEW_SEGMENTS", 0)  # terms are remembered where segments are many
    with Memory.open(tmp_path / "store", **FAST, limits=Limits(1_000, 2_000)) as memory:
        memory.add_many({"text": f"rain w{i}", "id": f"n{i}"} for i in range(1_000))
        assert len(loaded(memory).index.segments) == 1
        before = memory._store.memory_bytes()
        memory.update("n3", text="snow")
        deleted = memory._store.memory_bytes()
        assert deleted - before >= 32 * 1_000 + 4 * 1_000
        for i in range(1_000):
            memory.search(f"w{i} x{i}")
        assert memory._store.memory_bytes() - deleted >= 2 * 960 * 100


def test_writers_that_find_a_namespace_full_seal_it_once(tmp_path: Path) -> None:
    """With a limit of 64, 1,280 records are at most 20 seals, however many writers find it full at the same time."""
    seals = []
    limits = Limits(seal_at=10**9, max_unsealed=64)
    with Memory.open(tmp_path / "store", durability="process", background=False, limits=limits) as memory:
        seal = memory._store.compactor.seal
        memory._store.compactor.seal = lambda namespace: (seals.append(namespace.unsealed), seal(namespace))  # type: ignore[method-assign,assignment,func-returns-value]
        threads = [threading.Thread(target=lambda: [memory.add("rain") for _ in range(80)]) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(memory.search("rain", k=2_000).hits) == 1_280
    assert min(seals) >= 64 and len(seals) <= 20


def test_the_wal_is_copied_into_the_database_also_when_no_namespace_is_ever_sealed(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "store", **FAST, limits=Limits(checkpoint_pages=100)) as memory:
        for i in range(600):
            memory.use(f"n{i % 150}").add("rain " * 200)
        wal = tmp_path / "store" / "log.sqlite3-wal"
        assert wal.stat().st_size < 3 * 100 * 4_096


def test_the_wal_is_asked_about_again_only_when_it_has_grown_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path / "store", **FAST, limits=Limits(checkpoint_pages=100)) as memory:
        store, asked = memory._store, []
        monkeypatch.setattr(store.maintenance, "request", lambda namespace, **options: asked.append(store.writer.wal_pages))  # a reader pins the WAL: it does not shrink
        for i in range(600):
            memory.add("rain", id=str(i))
            if len(asked) == 3:
                break
    assert len(asked) == 3 and all(100 <= after - before < 120 for before, after in zip([0, *asked], asked, strict=False))


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_new_stores_folder_is_its_users_alone_and_one_that_is_there_stays_as_it_is(tmp_path: Path, open_umask: None) -> None:
    Memory.open(tmp_path / "made" / "store").close()
    assert (tmp_path / "made" / "store").stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir(mode=0o750)
    Memory.open(tmp_path / "shared").close()
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o750


def test_nothing_is_made_on_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:40 / {tmp_path} rw - nfs4 host:/x rw\n"
    monkeypatch.setattr("agentir_ray.storage.filesystem.read_mount_table", lambda: table)
    with pytest.raises(UnsupportedFileSystemError):
        Store(tmp_path / "a" / "store", clock=ManualClock())
    assert list(tmp_path.iterdir()) == []
