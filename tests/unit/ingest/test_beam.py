"""BEAM: chats named by their folders, dates by the batches' anchors."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import Item, Skipped, read

BATCHES = [
    {
        "batch_number": 1,
        "time_anchor": "March-15-2024",
        "turns": [
            [{"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "Plan it ->-> 1,1"}, {"role": "assistant", "id": 1, "content": "A -> B"}],
            [{"role": "user", "id": 2, "time_anchor": "April-05-2024", "content": "And now?"}],
        ],
    },
    {"batch_number": 2, "time_anchor": "May-01-2024", "turns": [[{"role": "user", "id": 3, "content": "Done ->-> 2,N/A"}]]},
]


def chat(folder: Path, batches: Any = BATCHES, name: str = "chat.json.gz") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(gzip.compress(json.dumps(batches).encode()))
    return path


def records(path: Path) -> list[Any]:
    return [outcome.record if isinstance(outcome, Item) else outcome for outcome in read(path)]


def test_messages_are_dated_records(tmp_path: Path) -> None:
    first, second, third, fourth = records(chat(tmp_path / "100K" / "1"))
    assert first == {
        "id": "100K/1/0",
        "text": "Plan it",
        "timestamp": datetime(2024, 3, 15, tzinfo=UTC),
        "session": "batch_1",
        "role": "user",
        "metadata": {"message_id": 0},
    }
    assert (second["text"], second["timestamp"]) == ("A -> B", datetime(2024, 3, 15, 0, 0, 1, tzinfo=UTC))
    assert third["timestamp"] == datetime(2024, 4, 5, tzinfo=UTC)
    assert (fourth["text"], fourth["timestamp"]) == ("Done", datetime(2024, 5, 1, tzinfo=UTC))


def test_a_folder_is_every_chat_below_it_once(tmp_path: Path) -> None:
    for number in (2, 10, 1):
        chat(tmp_path / "100K" / str(number))
    chat(tmp_path / "100K" / "2", BATCHES[:1], "chat_trunecated.json.gz")
    found = [item for item in read(tmp_path) if isinstance(item, Item)]
    assert list(dict.fromkeys(item.namespace for item in found)) == ["100K/1", "100K/2", "100K/10"]
    assert sum(item.namespace == "100K/2" for item in found) == 3  # the truncated file has one batch


def test_a_folder_without_chats_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no chat"):
        list(read(tmp_path))


@pytest.mark.parametrize("anchor", [None, "soon", "March-32-2024", "2024-03-15"])
def test_messages_without_a_date_are_reported(tmp_path: Path, anchor: Any) -> None:
    undated = {"batch_number": 1, "time_anchor": anchor, "turns": [[{"role": "user", "id": 0, "content": "x"}]]}
    outcome, *rest = read(chat(tmp_path, [undated, *BATCHES]))
    assert isinstance(outcome, Skipped) and "time anchor" in outcome.what
    assert len(rest) == 4


@pytest.mark.parametrize("turns", [[5], [None], [{"role": "user"}], [[{"role": "user", "id": [], "content": "x"}]], [[{"role": 1, "id": 0, "content": "x"}]]])
def test_a_turn_of_another_shape_is_reported(tmp_path: Path, turns: Any) -> None:
    outcomes = list(read(chat(tmp_path, [*BATCHES, {"batch_number": 3, "time_anchor": "May-01-2024", "turns": turns}, 5])))
    assert [type(outcome) for outcome in outcomes] == [Item] * 4 + [Skipped] * 2


def test_a_message_that_is_none_is_reported(tmp_path: Path) -> None:
    (outcome,) = read(chat(tmp_path, [{"batch_number": 1, "time_anchor": "May-01-2024", "turns": [["?"]]}]))
    assert isinstance(outcome, Skipped)


def test_a_real_chat(shared: Path) -> None:
    found = records(shared / "data/beam/100K/1/chat.json.gz")
    assert len(found) == 188
    assert len({record["timestamp"].date() for record in found}) == 3
    assert not any("->->" in record["text"] for record in found)
