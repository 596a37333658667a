"""A revision changes with every file and setting, and costs little."""

import os
from pathlib import Path

import pytest

from agentir_ray.encoders.revision import revision


def test_it_changes_with_files_and_settings(tmp_path: Path) -> None:
    weights, other = tmp_path / "model.safetensors", tmp_path / "other"
    weights.write_bytes(os.urandom(3 << 20))
    first = revision([weights, other], window=256)
    assert first == revision([weights], window=256) and len(first) == 16
    assert first != revision([weights], window=128)
    other.write_bytes(b"x")
    assert first != revision([weights, other], window=256)


@pytest.mark.parametrize("size", [10, 1 << 20, 3 << 20])
@pytest.mark.parametrize("where", [0, -1])
def test_it_reads_both_ends(size: int, where: int, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    content = bytearray(size)
    file.write_bytes(content)
    before = revision([file])
    content[where] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(0, 0))
    assert revision([file]) != before


def test_a_file_that_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(bytes(2 << 20))
    before = revision([file])
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("read again"))
    assert revision([file]) == before
