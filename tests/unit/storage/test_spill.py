"""Spill targets: what was put is got, and an error says whether the object is gone or only the target."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentir_ray.errors import InvalidInputError, SpilledError
from agentir_ray.storage.files import Chunk, FileOps
from agentir_ray.storage.spill import PIECE_BYTES, FolderTarget, FsspecTarget, MissingObjectError, SpillTarget, open_target


@pytest.fixture(params=["folder", "file://", "memory://", "local-fsspec"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SpillTarget]:
    places = {"folder": str(tmp_path / "place"), "file://": f"file://{tmp_path}/place", "memory://": f"memory://{tmp_path}/place"}
    if request.param == "local-fsspec":
        yield FsspecTarget(f"local://{tmp_path}/place")
    else:
        yield open_target(places[request.param])


def got(target: SpillTarget, name: str) -> bytes:
    return b"".join(target.get(name))


def test_what_was_put_is_got(target: SpillTarget) -> None:
    target.prepare()
    target.prepare()
    large = bytes(range(256)) * (PIECE_BYTES // 128)
    target.put("a1/2/x.spilled", [b"one ", memoryview(b"object")])
    target.put("a1/3/y.spilled", [large])
    target.put("a12/3/z.spilled", [])
    assert got(target, "a1/2/x.spilled") == b"one object" and got(target, "a1/3/y.spilled") == large and got(target, "a12/3/z.spilled") == b""
    assert target.names("a1") == ["a1/2/x.spilled", "a1/3/y.spilled"] and target.names("a1/3") == ["a1/3/y.spilled"]
    assert target.names("nobody") == []
    target.delete("a1/2/x.spilled")
    target.delete("a1/2/x.spilled")
    assert target.names("a1") == ["a1/3/y.spilled"]
    with pytest.raises(MissingObjectError):
        got(target, "a1/2/x.spilled")


def test_names_stay_below_the_target(target: SpillTarget) -> None:
    target.prepare()
    for name in ("../x", "/etc/passwd", "a/../../x", "", "a//b", "a/.hidden", "a\0b", "a b"):
        for verb in (lambda name=name: target.put(name, [b""]), lambda name=name: got(target, name), lambda name=name: target.delete(name), lambda name=name: target.names(name)):
            with pytest.raises((InvalidInputError, SpilledError)) as raised:
                verb()
            assert not isinstance(raised.value, MissingObjectError)


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "mount")
    for verb in (lambda: target.put("a/x", [b""]), lambda: got(target, "a/x"), lambda: target.delete("a/x"), lambda: target.names("a")):
        with pytest.raises(SpilledError, match="is not there; mount it") as raised:
            verb()
        assert not isinstance(raised.value, MissingObjectError)
    assert not (tmp_path / "mount").exists()


class FullDisk(FileOps):
    def write(self, descriptor: int, data: Chunk) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_folder_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path, FullDisk())
    with pytest.raises(SpilledError, match="No space left"):
        target.put("a/x", [b"content"])
    assert target.names("a") == []


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SpilledError):
        FolderTarget(tmp_path / "file" / "place").prepare()


def test_an_object_is_complete_or_not_there(target: SpillTarget) -> None:
    target.prepare()

    def breaking() -> Iterator[Chunk]:
        yield b"half of it"
        raise SpilledError("the network went away")

    with pytest.raises(SpilledError):
        target.put("a/x", breaking())
    for name in target.names("a"):
        target.delete(name)
    assert target.names("a") == []


def test_what_fsspec_raises_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    target = FsspecTarget("memory://somewhere")

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    for verb in ("open", "rm_file", "find", "makedirs"):
        monkeypatch.setattr(target._fs, verb, refuse, raising=False)
    calls = (lambda: target.put("a/x", [b""]), lambda: got(target, "a/x"), lambda: target.delete("a/x"), lambda: target.names("a"), target.prepare)
    for call in calls:
        with pytest.raises(SpilledError, match="no route to host") as raised:
            call()
        assert not isinstance(raised.value, MissingObjectError)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_what_is_made_in_a_folder_is_its_users_alone(tmp_path: Path, umask: int) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o755)
    before = os.umask(umask)
    try:
        for root in (tmp_path / "theirs", tmp_path / "above" / "ours"):
            target = FolderTarget(root)
            target.prepare()
            target.put("a/1/x.spilled", [b"a text"])
    finally:
        os.umask(before)
    assert oct((tmp_path / "theirs").stat().st_mode & 0o777) == oct(0o755)
    made = [path for path in tmp_path.rglob("*") if path.name != "theirs"]
    assert len(made) == 8
    assert all(path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600) for path in made)


SECRET_URLS = [
    ("memory://user:secret@host/path", "memory://host/path"),
    ("memory://user:se/cr@secret@host/path", "memory://host/path"),
    ("memory://host/path?token=secret", "memory://host/path..."),
    ("memory://user:secret@host/path?token=secret", "memory://host/path..."),
    ("memory://host/path?who=a@b&token=secret", "memory://..."),
    ("memory://user:secret?secret@host/path", "memory://..."),
]


@pytest.mark.parametrize(("url", "shown"), SECRET_URLS)
def test_a_message_shows_no_secret(url: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = FsspecTarget(url)
    assert str(target) == shown

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError(f"401 for '{url}/x', see there")

    monkeypatch.setattr(target._fs, "open", refuse)
    with pytest.raises(SpilledError) as failed:
        got(target, "a/x")
    with pytest.raises(InvalidInputError) as unknown:
        open_target(url.replace("memory:", "nosuchprotocol:"))
    for message in (str(failed.value), str(unknown.value)):
        assert "secret" not in message and "user" not in message


@pytest.mark.parametrize("place", ["", "nosuchprotocol://x/y"])
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(InvalidInputError):
        open_target(place)
