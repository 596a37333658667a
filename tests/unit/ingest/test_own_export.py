"""Our own export: what is written is read again, and damage costs the damaged line."""

import io
import json
from collections.abc import Iterable

import pytest

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import Item, Skipped, record_to_dict, write_export
from agentir_ray.ingest.own_export import read
from agentir_ray.ingest.source import Source
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Record, to_time_us

PLAIN = Record(id="a", text="plain", timestamp_us=0, created_at_us=1)
FULL = Record("b", "日本 🌍\u2028\n", 1, 2, importance=0.25, session="s", role="user", expires_at_us=MAX_TIME_US, supersedes="a", metadata={"k": [1, None]}, seq=9)


def exported(records: Iterable[Record]) -> str:
    out = io.StringIO()
    write_export(records, out, "acme/alice")
    return out.getvalue()


def read_text(text: str) -> list[Item | Skipped]:
    return list(read(Source(io.BytesIO(text.encode()), "file")))


def test_what_is_written_is_read_again() -> None:
    items = read_text(exported([PLAIN, FULL]))
    assert [item.record for item in items if isinstance(item, Item)] == [record_to_dict(PLAIN), record_to_dict(FULL)]


@pytest.mark.parametrize("time_us", [MIN_TIME_US, -1, 0, 1_683_554_160_123_456, MAX_TIME_US])
def test_times_keep_their_microseconds(time_us: int) -> None:
    written = record_to_dict(PLAIN._replace(timestamp_us=time_us))["timestamp"]
    assert written.endswith("Z")
    assert to_time_us(written) == time_us


def test_absent_fields_are_left_out() -> None:
    assert record_to_dict(PLAIN).keys() == {"id", "text", "timestamp", "created_at"}


def test_one_record_is_one_line() -> None:
    assert len(exported([FULL, FULL]).splitlines()) == 3


def test_f07_a_torn_line_is_reported_and_the_rest_is_served() -> None:
    header, first, second = exported([PLAIN, FULL]).splitlines()
    torn, item = read_text("\n".join([header, first[:20], second]))
    assert isinstance(torn, Skipped)
    assert (torn.where, "not JSON" in torn.what) == ("file, line 2", True)
    assert isinstance(item, Item)
    assert item.record["id"] == "b"


def test_f07_a_torn_header_does_not_cost_the_records() -> None:
    header, first, second = exported([PLAIN, FULL]).splitlines()
    outcomes = read_text("\n".join([header[:10], first, second]))
    assert [outcome.record["id"] for outcome in outcomes if isinstance(outcome, Item)] == ["a", "b"]
    assert len(outcomes) == 4  # the torn line and the missing header are both told


def test_exports_can_be_concatenated() -> None:
    assert len(read_text(exported([PLAIN]) + exported([FULL]))) == 2


@pytest.mark.parametrize(
    ("line", "what"),
    [('{"id": "a", "text": "t", "colour": 1}', "unknown field 'colour'"), ('{"text": "t"}', "'id' is missing"), ('{"id": "a"}', "'text' is missing"), ("[1]", "not a record")],
)
def test_a_line_of_another_shape_is_reported(line: str, what: str) -> None:
    header = exported([]).strip()
    (skipped,) = read_text(f"{header}\n{line}")
    assert isinstance(skipped, Skipped)
    assert what in skipped.what


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="export version 2"):
        read_text(json.dumps({"format": "agentir-export", "version": 2}))
