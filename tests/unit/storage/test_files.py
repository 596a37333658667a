"""Immutable files: complete or absent, whatever the disk does."""

import errno
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentir_ray.errors import StorageFullError
from agentir_ray.storage.files import clean_temporary, remove, write_file
from tests.crash.shim import Fault, Journal, JournalFiles, disk_after


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.seg"
    assert write_file(str(path), [b"one", bytearray(b"two"), memoryview(b"three"), b""]) == 11
    assert path.read_bytes() == b"onetwothree"
    assert write_file(str(path), []) == 0 and path.read_bytes() == b""
    assert [file.name for file in tmp_path.iterdir()] == ["a.seg"]


def test_syncs_come_in_the_order_that_makes_it_durable(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    write_file(str(tmp_path / "a"), [b"x", b"y"], JournalFiles(journal))
    assert [event.verb for event in journal.events] == ["create", "write", "write", "sync", "rename", "fsync_dir"]


def test_a_power_cut_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    files = JournalFiles(journal)
    old, new = random.Random(1).randbytes(5_000), random.Random(2).randbytes(7_000)
    write_file(str(tmp_path / "a"), [old], files)
    written = len(journal.events)
    write_file(str(tmp_path / "a"), [new[:3_000], new[3_000:]], files)
    for cut in range(len(journal.events) + 1):
        for seed in range(5):
            left = disk_after(journal, cut, random.Random(seed)).get("a")
            assert left in ([None, old] if cut < written else [old, new]), cut
    assert disk_after(journal, written, random.Random(0), "nothing") == {"a": old}
    assert disk_after(journal, len(journal.events), random.Random(0), "nothing") == {"a": new}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize(("verb", "count"), [("write", 1), ("write", 2), ("sync", 1), ("sync", 2)])
def test_a_refusing_disk_leaves_no_temporary(tmp_path: Path, code: int, verb: str, count: int) -> None:
    journal = Journal(tmp_path)
    journal.fail_at(Fault(verb, count, code, partial=True))  # type: ignore[arg-type]
    with pytest.raises(StorageFullError, match="make room"):
        write_file(str(tmp_path / "a"), [b"one", b"two"], JournalFiles(journal))
    assert [file.name for file in tmp_path.iterdir()] in ([], ["a"] if verb == "sync" and count == 2 else [])


def test_a_failing_source_leaves_nothing_and_its_own_error(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_file(str(tmp_path / "a"), chunks())
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StorageFullError, match="nowhere"):
        write_file(str(tmp_path / "nowhere" / "a"), [b"x"])


def test_removing_and_cleaning(tmp_path: Path) -> None:
    for name in ("a", "b.0.tmp", "c.17.tmp", "tmp"):
        (tmp_path / name).write_bytes(b"x")
    assert clean_temporary(str(tmp_path)) == ["b.0.tmp", "c.17.tmp"]
    assert remove(str(tmp_path / "a")) and not remove(str(tmp_path / "a"))
    assert [file.name for file in tmp_path.iterdir()] == ["tmp"]
