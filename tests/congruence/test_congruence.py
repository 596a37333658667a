"""The same script gives the same answers, whoever is asked: records, scores to the last bit, explanations, pages, receipts and errors."""

import dataclasses
from typing import Any

from agentir_ray import AgentIRError
from tests.congruence.conftest import Ask

A, B = "acme/alice", "acme/bob"
SCRIPT: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    (A, "search", ("rain",), {}),
    (A, "add", ("the rain in Lisbon",), {"id": "a", "timestamp": "2026-01-01", "importance": 0.5, "session": "s1", "metadata": {"topic": ["rain", 1]}}),
    (A, "add", ("the rain in Lisbon",), {"id": "a", "timestamp": "2026-01-01", "importance": 0.5, "session": "s1", "metadata": {"topic": ["rain", 1]}}),
    (A, "add", ("other",), {"id": "a"}),
    (A, "add", ("other",), {"importance": 2}),
    (B, "add", ("the rain of Bob",), {"id": "a"}),
    (A, "add_many", ([{"text": f"rain {i}", "id": str(i), "timestamp": i, "session": f"s{i % 2}"} for i in range(20)] + [{"text": 5}, "x"],), {}),
    (A, "import_", ([{"text": "rain 0", "id": "0", "timestamp": 0, "session": "s0"}, {"text": "new", "id": "n", "created_at": 5}, {"id": "m"}],), {}),
    (A, "search", ("rain in Lisbon",), {"k": 5, "explain": True, "recency": (0.1, "30d"), "importance": 0.2}),
    (A, "search", ("rain",), {"k": 5, "offset": 3, "where": {"session": {"eq": "s1"}}, "since": 3, "until": "2025-01-01"}),
    (A, "search", ("rain",), {"k": 0}),
    (A, "search", ("rain",), {"where": {"nothing": {"eq": 1}}}),
    (A, "search", ("rain",), {"colour": "red"}),
    (A, "update", ("3",), {"text": "snow", "operation_id": "u"}),
    (A, "update", ("3",), {"text": "snow", "operation_id": "u"}),
    (A, "update", ("nobody",), {"text": "snow"}),
    (A, "add", ("snow in Porto",), {"id": "p", "supersedes": "a"}),
    (A, "get", ("a",), {}),
    (A, "get", ("nobody",), {}),
    (A, "search", ("rain snow",), {"k": 50, "explain": True}),
    (A, "recent", (4,), {}),
    (A, "recent", (4,), {"cursor": "10.11", "session": "s0"}),
    (A, "recent", (4,), {"cursor": "not one"}),
    (A, "forget", ({"session": {"eq": "s0"}},), {"dry_run": True}),
    (A, "forget", ({"session": {"eq": "s0"}},), {"wait": True}),
    (A, "forget", ({},), {}),
    (A, "forget", (), {"ids": ["a", "nobody"]}),
    (A, "add", ("the rain in Lisbon",), {"id": "a", "timestamp": "2026-01-01", "importance": 0.5, "session": "s1", "metadata": {"topic": ["rain", 1]}}),
    (A, "export", (), {}),
    (B, "export", (), {}),
    (A, "namespaces", ("acme",), {}),
    (A, "verify", (), {}),
    (B, "drop", (), {}),
    (B, "drop", (), {}),
    (B, "search", ("rain",), {}),
    (A, "search", ("rain snow",), {"k": 50}),
]


def comparable(answer: Any) -> Any:
    """An answer without what differs between any two calls: how long it took, and its own id."""
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        fields = {field.name: comparable(getattr(answer, field.name)) for field in dataclasses.fields(answer)}
        return type(answer), fields | ({"timings_us": sorted(fields["timings_us"]), "query_id": None} if "timings_us" in fields else {})
    if isinstance(answer, BaseException):
        return type(answer), str(answer)
    if isinstance(answer, list | tuple):
        return type(answer), [comparable(each) for each in answer]
    return answer


def answers(way: str, ask: Ask) -> list[Any]:
    given = []
    for namespace, verb, arguments, options in SCRIPT:
        try:
            given.append(comparable(ask(namespace, verb, *arguments, **options)))
        except (AgentIRError, TypeError) as error:
            given.append((type(error), str(error).replace(way, "store")))
    return given


def test_one_script_one_answer(ways: dict[str, Ask]) -> None:
    given = {way: answers(way, ask) for way, ask in ways.items()}
    expected = given["embedded"]
    assert sum(isinstance(answer, tuple) and isinstance(answer[0], type) and issubclass(answer[0], BaseException) for answer in expected) >= 10
    for way in ways:
        for step, ours, theirs in zip(SCRIPT, given[way], expected, strict=True):
            assert ours == theirs, step
