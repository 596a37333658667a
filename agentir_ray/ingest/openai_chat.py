"""Chats in the form that OpenAI's interface made common: messages of `role` and `content`.

Read are a JSON list or JSON Lines of messages, or of conversations (`{"messages": [...]}`). Beyond the common fields a message may carry a time (`timestamp`, `created_at` or
`create_time`: ISO 8601, or seconds since 1970), an `id`, a `session` and an `importance`; a conversation an id (its session) and a time. A message without a time gets that of
the one before it. A message without an id gets one made from its content, so that importing a file again, or a longer version of it, stores nothing twice.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest.items import Item, Skipped
from agentir_ray.ingest.source import Source
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.types import to_time_us

TIME_FIELDS = ("timestamp", "created_at", "create_time")
SESSION_FIELDS = ("session", "session_id", "conversation_id")
_MILLISECONDS_FROM = 1e11  # as seconds this would be the year 5138; as milliseconds it is 1973
_NEITHER = 'neither a message ({"role": ..., "content": ...}) nor a conversation ({"messages": [...]})'


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and ("content" in value or "tool_calls" in value)


def is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def read(source: Source) -> Iterator[Item | Skipped]:
    """Items in the file's order; a message that is none or without text, or a conversation of which this cannot be said, is reported and skipped.

    A file that does not begin with an object is an InvalidInputError.
    """
    loose = _Conversation(session=None, time_us=None)
    for number, (where, value) in enumerate(source.values(), start=1):
        if isinstance(value, Skipped):
            yield value
        elif is_conversation(value):
            session = _first_string(value, ("id", *SESSION_FIELDS)) or f"chat-{number}"
            try:
                conversation = _Conversation(session, _message_time_us(value, where))
            except InvalidInputError as error:  # its messages would be dated by guess
                yield Skipped(where, str(error).removeprefix(f"{where}: "))
                continue
            for place, message in enumerate(value["messages"], start=1):
                yield conversation.item(message, f"{where}, message {place}")
        elif isinstance(value, dict):
            yield loose.item(value, where)
        elif number == 1:
            raise InvalidInputError(f"{where}: {_NEITHER}")
        else:
            yield Skipped(where, _NEITHER)


class _Conversation:
    """What carries over from message to message: the session, the last time, and how often the same thing was said."""

    def __init__(self, session: str | None, time_us: int | None) -> None:
        self._session = session
        self._time_us = time_us
        self._seen: Counter[str] = Counter()

    def item(self, message: Any, where: str) -> Item | Skipped:
        if not is_message(message) or not isinstance(message["role"], str):
            return Skipped(where, 'not a message: "role" and "content" were expected')
        text = _text(message)
        if not text.strip():
            return Skipped(where, f"a message of {message['role']} without text")
        try:
            self._time_us = _message_time_us(message, where) or self._time_us
        except InvalidInputError as error:
            return Skipped(where, str(error).removeprefix(f"{where}: "))
        record = {"text": text, "role": message["role"], "session": _first_string(message, SESSION_FIELDS) or self._session}
        record["id"] = _first_string(message, ("id",)) or self._derived_id(record)
        optional = {"timestamp": self._time_us, "importance": message.get("importance"), "metadata": _metadata(message)}
        return Item(record | {name: value for name, value in optional.items() if value}, where=where)

    def _derived_id(self, record: Mapping[str, Any]) -> str:
        said = json.dumps([record["session"], record["role"], self._time_us, record["text"]])
        self._seen[said] += 1
        return "chat-" + hashlib.sha256(f"{said}{self._seen[said]}".encode()).hexdigest()[:32]


def _text(message: Mapping[str, Any]) -> str:
    """The text parts, joined by newlines, then one line per tool call; pictures and sounds have no text here."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [text for part in parts if isinstance(text := part.get("text") or part.get("refusal") if isinstance(part, dict) else part, str)]
    return "\n".join([*texts, *_tool_calls(message)])


def _tool_calls(message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield f"{function['name']}({_arguments(function.get('arguments'))})"


def _arguments(value: Any) -> str:
    """A string of JSON by OpenAI's custom, an object by that of others."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "..."


def _metadata(message: Mapping[str, Any]) -> dict[str, str]:
    return {field: value for field in ("name", "tool_call_id") if isinstance(value := message.get(field), str)}


def _message_time_us(message: Mapping[str, Any], where: str) -> int | None:
    for field in TIME_FIELDS:
        value = message.get(field)
        if value is None:
            continue
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return to_time_us(str(value), f"{where}: {field}")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15:
            seconds = value / 1e3 if abs(value) >= _MILLISECONDS_FROM else value
            return to_time_us(round(seconds * 1e6), f"{where}: {field}")
        raise InvalidInputError(f"{where}: {field} is {shown(value)}; give ISO 8601 or seconds since 1970")
    return None


def _first_string(value: Mapping[str, Any], fields: tuple[str, ...]) -> str | None:
    return next((found for field in fields if isinstance(found := value.get(field), str) and found), None)
