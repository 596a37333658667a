"""A backup is whole and durable when it is told, and leaves nothing when it fails."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.engine import transfer
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import AgentIRError, InvalidInputError, StorageFullError
from agentir_ray.storage.sqlite_log import SqliteLog

ALICE, BOB = "acme/alice", "acme/bob"
LIMITS = Limits(seal_at=20, max_unsealed=40)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "store", ALICE, limits=LIMITS, background=False, durability="process", analyzer="english") as memory:
        for name in (ALICE, BOB):
            for i in range(50):
                memory.use(name).add(f"raining {i}", id=f"r{i}")
        yield memory


def exported(path: Path) -> list[Any]:
    with Memory.open(path, ALICE, limits=LIMITS, background=False) as memory:
        found = [(memory.use(name).stats()["namespace"]["analyzer"], list(memory.use(name).export()), memory.use(name).search("rain", k=100).hits) for name in (ALICE, BOB)]
        assert memory.verify() == []
        return found


@pytest.mark.parametrize("made", [False, True])
def test_a_backup_is_the_store(memory: Memory, tmp_path: Path, made: bool) -> None:
    target = tmp_path / "new" / "copy"
    if made:
        target.mkdir(parents=True)
    memory.backup(target)
    assert sorted(path.name for path in target.parent.iterdir()) == ["copy"]
    memory.close()
    assert sorted(path.name for path in target.glob("segments/*/*")) == sorted(path.name for path in (tmp_path / "store").glob("segments/*/*")) != []
    assert exported(target) == exported(tmp_path / "store")


def test_a_backup_that_fails_leaves_nothing_and_can_be_tried_again(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise StorageFullError("the disk is full")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    def refused(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "copy"
    for what, error, fails in (
        ((SqliteLog, "backup"), StorageFullError, full),
        ((transfer, "write_file"), StorageFullError, full),
        ((transfer, "write_file"), KeyboardInterrupt, interrupted),
        ((transfer, "publish"), StorageFullError, refused),
    ):
        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(*what, fails)
            memory.backup(target)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
    memory.backup(target)
    memory.close()
    assert exported(target) == exported(tmp_path / "store")


def test_everything_of_a_backup_is_synced_before_it_has_its_name(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write_file = transfer.write_file

    def watched(path: str, *arguments: Any) -> int:
        written.append(Path(path).name)
        assert not (tmp_path / "copy").exists()
        return write_file(path, *arguments)  # which syncs the file and its folder

    monkeypatch.setattr(transfer, "write_file", watched)
    memory.backup(tmp_path / "copy")
    assert sorted(written) == sorted(path.name for path in (tmp_path / "copy").glob("segments/*/*"))


def test_one_damaged_manifest_does_not_keep_the_others_out(memory: Memory, tmp_path: Path) -> None:
    before = [list(memory.use(name).export()) for name in (ALICE, BOB)]
    memory.close()
    database = sqlite3.connect(tmp_path / "store" / "log.sqlite3")
    with database:
        database.execute("UPDATE manifests SET manifest = x'00' WHERE namespace = 1")
    database.close()
    with Memory.open(tmp_path / "store", BOB, limits=LIMITS, background=False) as memory:
        memory.backup(tmp_path / "copy")
    assert [(analyzer, records) for analyzer, records, _ in exported(tmp_path / "copy")] == [("english", before[0]), ("english", before[1])]


def test_a_missing_segment_is_rebuilt_in_the_copy(memory: Memory, tmp_path: Path) -> None:
    before = [list(memory.use(name).export()) for name in (ALICE, BOB)]
    shutil.rmtree(tmp_path / "store" / "segments" / "1")
    memory.backup(tmp_path / "copy")
    assert [records for _, records, _ in exported(tmp_path / "copy")] == before


def test_a_folder_with_something_in_it_is_left_alone(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "file").touch()
    with pytest.raises(InvalidInputError, match="empty"):
        memory.backup(tmp_path / "copy")
    with pytest.raises(AgentIRError):
        memory.backup(tmp_path / "copy" / "file")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["file"]
