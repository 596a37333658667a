"""Which format a file has is told by its content."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import detect, read
from agentir_ray.ingest.source import open_source

MESSAGE = {"role": "user", "content": "hello"}
TURN = {"sample_id": "x", "qa": [], "conversation": {}}
CASES: list[tuple[str, Any]] = [
    ("own", {"format": "agentir-export", "version": 1, "namespace": "n"}),
    ("openai", [MESSAGE]),
    ("openai", MESSAGE),
    ("openai", {"messages": [MESSAGE]}),
    ("openai", [{"messages": [MESSAGE]}]),
    ("locomo", [TURN]),
    ("locomo", TURN),
    ("beam", [{"batch_number": 1, "turns": []}]),
]


@pytest.mark.parametrize(("name", "value"), CASES)
@pytest.mark.parametrize("indent", [None, 2])
def test_detect(tmp_path: Path, name: str, value: Any, indent: int | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(json.dumps(value, indent=None if name == "own" else indent).encode()))
    with open_source(path) as source:
        assert detect(source) == name


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", '{"text": "x"}', "plain text"])
def test_an_unknown_file_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(InvalidInputError):
        list(read(path))


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    for format in ("auto", "own", "openai"):
        with pytest.raises(InvalidInputError, match="empty"):
            list(read(path, format))


def test_f07_an_export_with_a_torn_header_is_still_an_export(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"format": "agentir-export", "ver\n{"id": "a", "text": "t"}\n')
    assert len(list(read(path))) == 3


def test_unknown_format_and_folder_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="known are"):
        list(read(tmp_path, "csv"))
    with pytest.raises(InvalidInputError, match="only BEAM"):
        list(read(tmp_path, "own"))
