"""Whatever a filter gets wrong is refused, and the message names the offender and what is allowed."""

import math
from typing import Any

import pytest

from agentir_ray.errors import InvalidFilterError, InvalidInputError
from agentir_ray.lexical.filters import EVERYTHING, check_metadata, parse_filter
from agentir_ray.lexical.filters.fields import FIELDS


def nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"session": {"eq": "s"}}
    for _ in range(depth):
        where = {"not": where}
    return where


def deep_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


REFUSED: list[tuple[Any, list[str]]] = [
    (None, ["NoneType", "give a dict"]),
    ([], ["list", "give a dict"]),
    ("session", ["str", "give a dict"]),
    ({"sesion": {"eq": "s"}}, ["'sesion'", *FIELDS]),
    ({"metadata": {"eq": "s"}}, ["'metadata'", "metadata.<path>"]),
    ({"text": {"contains": "s"}}, ["'text'", "metadata.<path>"]),
    ({3: {"eq": "s"}}, ["3", "int", "session"]),
    ({"$or": [{"session": {"eq": "s"}}]}, ["'$or'", '"or"']),
    ({"metadata.a\0b": {"eq": "s"}}, ["NUL"]),
    ({"metadata.\ud800": {"eq": "s"}}, ["surrogate"]),
    ({"session": "s12"}, ["session", "str", '{"eq": "s12"}', "nin"]),
    ({"session": {}}, ["session has no operator", "contains"]),
    ({"session": {"equals": "s"}}, ["'equals'", "session", "eq, ne, in, nin"]),
    ({"session": {3: "s"}}, ["3", "session", "eq, ne, in, nin"]),
    ({"id": {"gt": "s"}}, ["'gt'", "id", "eq, ne, in, nin, exists"]),
    ({"id": {"contains": "s"}}, ["'contains'", "id"]),
    ({"timestamp": {"contains": "2026"}}, ["'contains'", "timestamp"]),
    ({"importance": {"contains": 1}}, ["'contains'", "importance"]),
    ({"and": []}, ['"and"', "empty list"]),
    ({"or": []}, ['"or"', "empty list"]),
    ({"or": {"session": {"eq": "s"}}}, ['"or"', "dict", "list of filters"]),
    ({"and": [{}]}, ['"and"', "empty dict"]),
    ({"or": [{}, {"session": {"eq": "s"}}]}, ['"or"', "empty dict"]),
    ({"not": {}}, ['"not"', "empty dict"]),
    ({"not": [{"session": {"eq": "s"}}]}, ['"not"', "list", "give a dict"]),
    ({"session": {"in": []}}, ["in", "session", "empty list"]),
    ({"session": {"nin": []}}, ["nin", "session", "empty list"]),
    ({"session": {"in": "s12"}}, ["in", "session", "str", "list of values"]),
    ({"session": {"in": ["s"] * 10_001}}, ["10,001", "10,000"]),
    ({"session": {"in": ["s", 3]}}, ["in", "session", "3", "int", "a string or None"]),
    ({"session": {"eq": 3}}, ["eq", "session", "int", "a string or None"]),
    ({"session": {"eq": ["s"]}}, ["eq", "session", "list", "a string or None"]),
    ({"role": {"gt": None}}, ["gt", "role", "NoneType", "a string"]),
    ({"role": {"contains": 3}}, ["contains", "role", "int", "a string"]),
    ({"role": {"contains": None}}, ["contains", "role", "NoneType", "a string"]),
    ({"session": {"eq": "s\0"}}, ["eq", "session", "NUL"]),
    ({"session": {"eq": "\udfff"}}, ["eq", "session", "surrogate"]),
    ({"session": {"exists": 1}}, ["exists", "session", "True or False"]),
    ({"id": {"eq": None}}, ["eq", "id", "NoneType", "a string"]),
    ({"id": {"in": ["a", 3]}}, ["in", "id", "int", "a string"]),
    ({"timestamp": {"gte": "yesterday"}}, ["gte", "timestamp", "'yesterday'", "ISO 8601"]),
    ({"timestamp": {"gte": 1.5}}, ["gte", "timestamp", "float", "microseconds"]),
    ({"timestamp": {"gte": 2**62}}, ["gte", "timestamp", "years"]),
    ({"timestamp": {"eq": None}}, ["eq", "timestamp", "NoneType"]),
    ({"expires_at": {"lt": None}}, ["lt", "expires_at", "NoneType"]),
    ({"expires_at": {"in": [True]}}, ["in", "expires_at", "True"]),
    ({"importance": {"gt": "0.5"}}, ["gt", "importance", "str", "a number"]),
    ({"importance": {"eq": True}}, ["eq", "importance", "bool", "a number"]),
    ({"importance": {"eq": None}}, ["eq", "importance", "NoneType", "a number"]),
    ({"importance": {"gt": math.nan}}, ["gt", "importance", "nan", "finite"]),
    ({"importance": {"gt": 2**63}}, ["gt", "importance", "64 bits"]),
    ({"metadata.n": {"eq": math.nan}}, ["eq", "metadata.n", "nan", "finite"]),
    ({"metadata.n": {"lt": -math.inf}}, ["lt", "metadata.n", "-inf", "finite"]),
    ({"metadata.n": {"eq": [1, math.nan]}}, ["metadata.n[1]", "nan"]),
    ({"metadata.n": {"eq": 2**63}}, ["metadata.n", "64 bits"]),
    ({"metadata.n": {"gte": -(2**63) - 1}}, ["metadata.n", "64 bits"]),
    ({"metadata.n": {"gt": True}}, ["gt", "metadata.n", "bool", "a string or number"]),
    ({"metadata.n": {"gt": None}}, ["gt", "metadata.n", "NoneType", "a string or number"]),
    ({"metadata.n": {"gt": [1]}}, ["gt", "metadata.n", "list", "a string or number"]),
    ({"metadata.n": {"eq": {"a": 1}}}, ["eq", "metadata.n", "dict", "metadata.n.<member>"]),
    ({"metadata.n": {"eq": b"x"}}, ["eq", "metadata.n", "bytes"]),
    ({"metadata.n": {"eq": [b"x"]}}, ["metadata.n[0]", "bytes"]),
    ({"metadata.n": {"eq": deep_list(17)}}, ["metadata.n", "16 levels"]),
    ({"metadata.n": {"eq": [1] * 257}}, ["metadata.n", "256"]),
    ({"metadata.n": {"contains": [1]}}, ["contains", "metadata.n", "list"]),
    ({"session": {"eq": 10**5_000}}, ["eq", "session", "int"]),
    ({"session": {"exists": 10**5_000}}, ["exists", "session", "int"]),
    (nested(17), ["16"]),
    (nested(100), ["16"]),
    ({"or": [{"session": {"eq": "s"}}] * 500}, ["1,000", '"in"']),
]


@pytest.mark.parametrize(("where", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refused(where: Any, words: list[str]) -> None:
    with pytest.raises(InvalidFilterError) as caught:
        parse_filter(where)
    message = str(caught.value)
    assert len(message) < 1_000
    for word in words:
        assert word in message


def test_accepted_to_the_limits() -> None:
    assert parse_filter({}) == EVERYTHING
    parse_filter(nested(16))
    parse_filter({"or": [{"session": {"eq": "s"}}] * 499})
    parse_filter({"session": {"in": [str(i) for i in range(10_000)]}})
    parse_filter({"metadata.n": {"eq": [1] * 256}, "metadata.": {"eq": 2**63 - 1}})


REFUSED_METADATA: list[tuple[Any, list[str]]] = [
    (None, ["NoneType", "dict"]),
    ([1], ["list", "dict"]),
    ({1: 2}, ["metadata", "1", "int", "strings"]),
    ({"a": {None: 2}}, ["metadata.a", "NoneType", "strings"]),
    ({"a": (1, 2)}, ["metadata.a", "tuple"]),
    ({"a": [1, b"x"]}, ["metadata.a[1]", "bytes"]),
    ({"a": math.nan}, ["metadata.a", "nan"]),
    ({"a": math.inf}, ["metadata.a", "inf"]),
    ({"a": 2**63}, ["metadata.a", "64 bits"]),
    ({"a": "x\0"}, ["metadata.a", "NUL"]),
    ({"a\0": "x"}, ["a key of metadata", "NUL"]),
    ({"a": "\ud800"}, ["metadata.a", "surrogate"]),
    ({"\ud800": {"b": 1}}, ["a key of metadata", "surrogate"]),
    ({"a": deep_list(16)}, ["16 levels"]),
    ({str(i): i for i in range(257)}, ["256"]),
    ({"a": [None] * 257}, ["256"]),
    ({"a": "é" * 40_000}, ["80,0", "65,536"]),
]


@pytest.mark.parametrize(("metadata", "words"), REFUSED_METADATA, ids=range(len(REFUSED_METADATA)))
def test_metadata_refused(metadata: Any, words: list[str]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_metadata(metadata)
    for word in words:
        assert word in str(caught.value)


def test_metadata_accepted_to_the_limits() -> None:
    check_metadata({})
    check_metadata({"a": deep_list(15), "b": {}, "": {"c.d": [1, None, True, -0.0, 2**63 - 1, -(2**63), "\x01\U0010ffff"]}})
    check_metadata({str(i): i for i in range(256)})
    check_metadata({"a": "x" * (64 * 1024 - len('{"a":""}'))})


def test_metadata_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(InvalidInputError, match="16 levels"):
        check_metadata(loop)


def test_values_whose_repr_fails_are_refused_all_the_same() -> None:
    for where in (nested(100_000), {"session": {"eq": deep_list(100_000)}}, {"metadata.a": {"eq": deep_list(100_000)}}):
        with pytest.raises(InvalidFilterError):
            parse_filter(where)


@pytest.mark.parametrize("bad", [{"a": 2**63}, {"a": float("nan")}, {"a": "\0"}, {"a": "\ud800"}, {"\0": 1}, {1: 2}, {"a": {1, 2}}, {"a": b"x"}])
@pytest.mark.parametrize("others", [{}, {"x": "y" * 1_000}, {f"k{i}": i for i in range(20)}, {"list": [1]}])
def test_metadata_is_refused_alike_however_it_is_looked_at(bad: dict[object, object], others: dict[object, object]) -> None:
    """Flat and short metadata is looked at in a quicker way."""
    with pytest.raises(InvalidInputError):
        check_metadata({**others, **bad})
    check_metadata(others)
