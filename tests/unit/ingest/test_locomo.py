"""LoCoMo: names, dates and texts of turns."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import Item, Skipped
from agentir_ray.ingest import read as read_path
from agentir_ray.ingest.locomo import parse_date, read
from agentir_ray.ingest.source import Source

SAMPLE = {
    "sample_id": "chat-1",
    "conversation": {
        "speaker_a": "Ann",
        "session_10_date_time": "12:05 am on 1 January, 2024",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Happy new year!"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a dog"}, {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice."}],
        "session_3_date_time": "a session that never was",
    },
}


def items(value: Any) -> list[Item | Skipped]:
    return list(read(Source(io.BytesIO(json.dumps(value).encode()), "file")))


def test_turns_in_the_order_of_the_sessions_numbers() -> None:
    assert [item.record["id"] for item in items([SAMPLE]) if isinstance(item, Item)] == ["chat-1/D2:1", "chat-1/D2:2", "chat-1/D10:1"]


def test_a_turn_is_a_dated_record_in_its_chats_namespace() -> None:
    first, second, _ = items([SAMPLE])
    assert isinstance(first, Item)
    assert isinstance(second, Item)
    assert first.namespace == "chat-1"
    assert first.record == {
        "id": "chat-1/D2:1",
        "text": "Ann: Look! [image: a dog]",
        "timestamp": datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
        "session": "session_2",
        "role": "Ann",
        "metadata": {"dia_id": "D2:1"},
    }
    assert second.record["text"] == "Bo: Nice."
    assert second.record["timestamp"] == datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC)


@pytest.mark.parametrize(("text", "hour"), [("12:00 am on 1 May, 2023", 0), ("1:00 am on 1 May, 2023", 1), ("12:00 pm on 1 May, 2023", 12), ("11:00 PM on 1 May, 2023", 23)])
def test_twelve_hour_clock(text: str, hour: int) -> None:
    assert parse_date(text, "here").hour == hour


@pytest.mark.parametrize("text", [None, 5, "", "8 May 2023", "1:00 pm on 8 Mai, 2023", "1:00 pm on 31 June, 2023", "1:75 pm on 8 May, 2023"])
def test_a_date_that_is_none_is_an_error_that_names_the_place(text: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^here"):
        parse_date(text, "here")


def test_a_turn_that_is_none_is_reported() -> None:
    broken = {"sample_id": "x", "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [{"text": "who?"}, "what?"]}}
    assert [type(outcome) for outcome in items([broken])] == [Skipped, Skipped]


@pytest.mark.parametrize("session", [None, 5, {"speaker": "x"}, "text"])
def test_a_session_that_is_none_is_reported(session: Any) -> None:
    broken = {"sample_id": "x", "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": session}}
    assert [type(outcome) for outcome in items([broken, SAMPLE, "none"])] == [Skipped, Item, Item, Item, Skipped]


def test_a_session_without_a_date_is_reported() -> None:
    undated, *rest = items([{"sample_id": "x", "conversation": {"session_1": []}}, SAMPLE])
    assert isinstance(undated, Skipped) and "date" in undated.what
    assert len(rest) == 3


def test_another_file_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="not a LoCoMo conversation"):
        items([{"role": "user", "content": "x"}])


def test_the_real_file(shared: Path) -> None:
    found = list(read_path(shared / "data/locomo/locomo10.json.gz"))
    turns = [item for item in found if isinstance(item, Item)]
    assert (len(found), len(turns)) == (5_882, 5_882)
    assert len({item.record["id"] for item in turns}) == 5_882
    assert len({item.namespace for item in turns}) == 10
    assert len({(item.namespace, item.record["session"]) for item in turns}) == 272
    assert sum("[image: " in item.record["text"] for item in turns) > 500
