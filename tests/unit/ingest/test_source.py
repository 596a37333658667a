"""Files as bytes, lines and JSON: gzip by its magic, limits, and errors that name the place."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from agentir_ray.errors import InvalidInputError, NotFoundError
from agentir_ray.ingest.items import Skipped
from agentir_ray.ingest.source import Source, open_source


def source(content: bytes, **limits: int) -> Source:
    return Source(io.BytesIO(content), "file", **limits)


def values(content: bytes) -> list[object]:
    return [value for _, value in source(content).values()]


def test_gzip_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "named_like_plain.json"
    path.write_bytes(gzip.compress(b"[1, 2]"))
    with open_source(path) as opened:
        assert opened.document() == [1, 2]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1]")))
    with open_source("-") as opened:
        assert opened.document() == [1]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[1, 2]", [1, 2]),
        (b'{"a": 1}\n\n{"a": 2}\r\n', [{"a": 1}, {"a": 2}]),
        (b'{\n "a": 1\n}', [{"a": 1}]),
        (b'\n \n{"a": 1}', [{"a": 1}]),
        ('\ufeff{"a": 1}\n{"a": 2}'.encode(), [{"a": 1}, {"a": 2}]),
        ("\ufeff[1]".encode(), [1]),
    ],
)
def test_values_are_list_elements_lines_or_the_one_object(content: bytes, expected: list[object]) -> None:
    assert values(content) == expected


def test_looking_ahead_consumes_nothing() -> None:
    lines = b'{"a": 1}\n{"a": 2}'
    opened = source(lines)
    assert opened.first_line() == b'{"a": 1}\n'
    assert opened.first_value() == {"a": 1}
    assert [value for _, value in opened.values()] == [{"a": 1}, {"a": 2}]


def test_line_numbers_count_blank_lines() -> None:
    assert [number for number, _ in source(b"\na\n\nb\n").lines()] == [2, 4]


def test_f07_a_torn_line_costs_one_value() -> None:
    first, torn, last = values(b'{"a": 1}\n{"a": \n{"a": 3}')
    assert (first, last) == ({"a": 1}, {"a": 3})
    assert isinstance(torn, Skipped)
    assert torn.where == "file, line 2"


def test_a_line_over_the_limit_is_refused_and_the_next_is_read() -> None:
    opened = source(b'{"a": 1}\n' + b"x" * 500 + b'\n{"a": 3}\n', max_line_bytes=100)
    found = [value for _, value in opened.values()]
    assert [isinstance(value, Skipped) for value in found] == [False, True, False]


def test_a_document_over_the_limit_is_refused_before_it_is_held() -> None:
    bomb = gzip.compress(b"[" + b"0," * 1_000_000 + b"0]")
    with pytest.raises(InvalidInputError, match="larger than"):
        source(bomb, max_line_bytes=1_000, max_document_bytes=10_000).document()


@pytest.mark.parametrize(
    "content",
    [b"[1,", b"", b"[" * 100_000, b"[" + b"9" * 10_000 + b"]", b'["\xff"]', gzip.compress(b"[1]")[:-6], b"\x1f\x8bnonsense"],
    ids=["torn", "empty", "deep", "huge number", "not utf-8", "torn gzip", "not gzip"],
)
def test_whatever_is_wrong_is_one_error_that_names_the_file(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"^file"):
        source(content).document()


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"), open_source(tmp_path / "absent"):
        pass
    with pytest.raises(InvalidInputError, match="cannot be opened"), open_source(tmp_path):
        pass


def test_a_ten_megabyte_text_passes() -> None:
    text = "é" * 5_000_000
    assert values(json.dumps({"text": text}).encode()) == [{"text": text}]
