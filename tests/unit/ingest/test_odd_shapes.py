"""Whatever shape a file has, an importer yields items and skipped parts, or ends with an error that the caller can read."""

import copy
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.errors import AgentIRError
from agentir_ray.ingest import FORMATS, Item, Skipped, detect
from agentir_ray.ingest.source import Source
from tests.conftest import LONG

MESSAGE = {"role": "user", "content": [{"type": "text", "text": "hello"}, "and more"], "timestamp": "2026-01-01", "id": "m1", "session": "s", "importance": 0.5}
CALL = {"role": "assistant", "content": None, "created_at": 1_683_554_160, "tool_calls": [{"id": "1", "function": {"name": "weather", "arguments": "{}"}}], "name": "Ann"}
TURN = {"speaker": "Ann", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a dog"}
DATE = "1:56 pm on 8 May, 2023"
BEAM_MESSAGE = {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "Plan it ->-> 1,1"}
RECORD = {"id": "a", "text": "rain", "timestamp": "2026-01-01T00:00:00Z", "created_at": "2026-01-01T00:00:00Z", "importance": 0.5, "metadata": {"k": [1]}}

SOUND: dict[str, list[Any]] = {
    "own": [{"format": "agentir-export", "version": 1, "namespace": "n"}, RECORD, RECORD],
    "openai": [{"id": "c", "create_time": 10.5, "messages": [MESSAGE, CALL]}, {"messages": [MESSAGE]}, MESSAGE, CALL],
    "locomo": [{"sample_id": "s", "conversation": {"session_1_date_time": DATE, "session_1": [TURN, TURN], "session_2_date_time": DATE, "session_2": [TURN]}}],
    "beam": [{"batch_number": 1, "time_anchor": "May-01-2024", "turns": [[BEAM_MESSAGE, BEAM_MESSAGE], [{**BEAM_MESSAGE, "id": 3}]]}],
}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["", "\ud800", "\0", "9999-12-31T23:59:59Z", "December-31-9999", 10**400])
NAMES = st.sampled_from(["id", "role", "session_3", "session_99999999999999999999", "turns", "messages", "time_anchor", "format"]) | st.text(max_size=3)
SHAPES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=4)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    for key, member in list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()):
        yield value, key
        yield from places(member)


@st.composite
def damaged(draw: st.DrawFn, name: str) -> list[Any]:
    """A sound file in which one to three values were replaced, removed or added."""
    value = copy.deepcopy(SOUND[name])
    for _ in range(draw(st.integers(1, 3))):
        all_places = list(places(value))
        if not all_places:
            break
        container, key = all_places[draw(st.integers(0, len(all_places) - 1))]
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "remove":
            del container[key]
        elif how == "add" and isinstance(container, dict):
            container[draw(NAMES)] = draw(SHAPES)
        else:
            container[key] = draw(SHAPES)
    return value


@pytest.mark.parametrize("name", sorted(SOUND))
def test_the_sound_files_are_sound(name: str) -> None:
    lines = "\n".join(json.dumps(value) for value in SOUND[name]).encode()
    assert all(isinstance(outcome, Item) for outcome in FORMATS[name](Source(io.BytesIO(lines), "file")))


@pytest.mark.parametrize("name", sorted(SOUND))
@given(data=st.data())
@settings(max_examples=5_000 if LONG else 150, deadline=None)
def test_no_shape_ends_an_importer_otherwise(name: str, data: st.DataObject) -> None:
    value = data.draw(damaged(name))
    lines = "\n".join(json.dumps(line) for line in value).encode()
    for content in (lines, json.dumps(value).encode(), json.dumps(value[0] if value else None, indent=1).encode()):
        for read in FORMATS.values():
            try:
                outcomes = list(read(Source(io.BytesIO(content), "file")))
            except AgentIRError as error:
                assert "file" in str(error)
                continue
            for outcome in outcomes:
                assert isinstance(outcome, Item | Skipped) and outcome.where.startswith("file")
        try:
            detect(Source(io.BytesIO(content), "file"))
        except AgentIRError as error:
            assert "file" in str(error)


@pytest.mark.parametrize("depth", [100, 400, 700, 900, 950, 990, 5_000])
def test_deep_nesting(depth: int) -> None:
    """What the parser lets through may still be too deep for what comes after it."""
    deep = "[" * depth + "]" * depth
    lines = [
        f'{{"messages": [{{"role": "user", "content": {deep}, "timestamp": {deep}}}]}}',
        f'{{"role": "user", "content": "x", "tool_calls": [{{"function": {{"name": "f", "arguments": {deep}}}}}]}}',
        f'{{"role": "user", "content": "x", "importance": {deep}, "timestamp": {deep}}}',
        f'{{"sample_id": "x", "conversation": {{"session_1": [], "session_1_date_time": {deep}}}}}',
        f'{{"batch_number": 1, "turns": [[{{"role": "user", "id": 1, "content": "x", "time_anchor": {deep}}}]]}}',
        f'{{"format": "agentir-export", "version": {deep}}}',
    ]
    for line in lines:
        for read in FORMATS.values():
            try:
                list(read(Source(io.BytesIO(line.encode()), "file")))
            except AgentIRError:
                continue
