"""OpenAI-style chats in their many shapes."""

import io
import json
from typing import Any

import pytest

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import Item, Skipped
from agentir_ray.ingest.openai_chat import read
from agentir_ray.ingest.source import Source

USER = {"role": "user", "content": "hello"}


def read_bytes(content: bytes) -> list[Item | Skipped]:
    return list(read(Source(io.BytesIO(content), "file")))


def records(value: Any) -> list[Any]:
    return [outcome.record if isinstance(outcome, Item) else outcome for outcome in read_bytes(json.dumps(value).encode())]


def test_a_list_of_messages() -> None:
    first, second = records([USER, {"role": "assistant", "content": "hi"}])
    assert (first["text"], first["role"], first["session"]) == ("hello", "user", None)
    assert second["role"] == "assistant"


def test_json_lines_of_messages_and_of_conversations() -> None:
    lines = [USER, {"id": "c1", "messages": [USER, USER]}, {"messages": [USER]}]
    found = read_bytes("\n".join(map(json.dumps, lines)).encode())
    assert [item.record["session"] for item in found if isinstance(item, Item)] == [None, "c1", "c1", "chat-3"]


def test_one_conversation_over_several_lines() -> None:
    assert len(read_bytes(json.dumps({"messages": [USER]}, indent=2).encode())) == 1


def test_text_parts_are_joined_and_pictures_left_out() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}, {"type": "input_text", "text": "two"}, {"type": "refusal", "refusal": "no"}]
    (record,) = records([{"role": "user", "content": parts}])
    assert record["text"] == "one\ntwo\nno"


def test_tool_calls_become_text() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}
    called, answered = records([{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "sunny", "tool_call_id": "1"}])
    assert called["text"] == 'weather({"city": "Lisbon"})'
    assert (answered["text"], answered["metadata"]) == ("sunny", {"tool_call_id": "1"})


@pytest.mark.parametrize(
    "message", [{"role": "user", "content": None}, {"role": "user", "content": " "}, {"content": "x"}, {"role": 1, "content": "x"}, {"role": "user", "content": [None]}]
)
def test_what_is_no_message_is_reported(message: dict[str, Any]) -> None:
    skipped, kept = records([message, USER])
    assert isinstance(skipped, Skipped)
    assert kept["text"] == "hello"


@pytest.mark.parametrize(
    ("field", "value", "time_us"),
    [
        ("timestamp", "2023-05-08T13:56:00Z", 1_683_554_160_000_000),
        ("timestamp", "2023-05-08 13:56", 1_683_554_160_000_000),
        ("created_at", 1_683_554_160, 1_683_554_160_000_000),
        ("create_time", 1_683_554_160.5, 1_683_554_160_500_000),
        ("create_time", "1683554160", 1_683_554_160_000_000),
        ("timestamp", 1_683_554_160_250, 1_683_554_160_250_000),
    ],
)
def test_times_in_the_forms_that_are_met(field: str, value: Any, time_us: int) -> None:
    (record,) = records([USER | {field: value}])
    assert record["timestamp"] == time_us


@pytest.mark.parametrize("value", ["yesterday", True, [], 1e300, "nan", "1e400"])
def test_a_time_that_is_none_costs_one_message(value: Any) -> None:
    skipped, kept = records([USER | {"timestamp": value}, USER])
    assert isinstance(skipped, Skipped)
    assert "timestamp" in skipped.what
    assert isinstance(kept, dict)


def test_a_conversation_whose_time_is_none_costs_one_conversation() -> None:
    skipped, kept, something = records([{"create_time": "yesterday", "messages": [USER]}, {"messages": [USER]}, 5])
    assert isinstance(skipped, Skipped) and "create_time" in skipped.what
    assert isinstance(kept, dict)
    assert isinstance(something, Skipped)


def test_arguments_of_a_tool_call_may_be_an_object() -> None:
    (called,) = records([{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Lisbon", "days": [1]}}}]}])
    assert called["text"] == 'weather({"city": "Lisbon", "days": [1]})'


def test_a_message_without_a_time_gets_the_one_before_it() -> None:
    first, second = records({"create_time": 10, "messages": [USER, USER | {"create_time": 20}]})
    assert (first["timestamp"], second["timestamp"]) == (10_000_000, 20_000_000)


def test_f09_importing_a_longer_version_makes_the_same_ids() -> None:
    chat = [USER, {"role": "assistant", "content": "hi"}, USER]
    short = [record["id"] for record in records(chat)]
    long = [record["id"] for record in records([*chat, USER, {"role": "user", "content": "bye"}])]
    assert long[:3] == short
    assert len(set(long)) == 5


def test_own_ids_sessions_and_importance_are_kept() -> None:
    (record,) = records([USER | {"id": "m1", "session": "s1", "importance": 0.5, "name": "Ann"}])
    assert (record["id"], record["session"], record["importance"], record["metadata"]) == ("m1", "s1", 0.5, {"name": "Ann"})


@pytest.mark.parametrize("content", [b"[1]", b'"text"', b"[[]]"])
def test_something_else_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="neither a message"):
        read_bytes(content)
