"""Filters through keys and bitmaps give what looking at every record gives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.kernels.bitmap import members, word_count
from agentir_ray.lexical.filters import evaluate, parse_filter
from agentir_ray.lexical.filters.metadata import check_metadata
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Record, to_datetime
from tests.naive_filters import matches
from tests.unit.filters.memory_index import MemoryIndex

# Few values, so that operands meet them; each pair is a trap for some encoding.
TEXTS = ["", "acme", "acme-corp", "acme\x01", "Acme", "a", "s", "?", "é", "e\u0301", "\uffff", "\U0001f600", "日本", "[1.0]", "true", "1", "m" * 600, "m" * 601]
NUMBERS = [0, -0.0, 0.0, 1, 1.0, -1, 1.5, -1.5, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1e300, -1e300, 5e-324, -5e-324, 0.1 + 0.2, 0.3]
NAMES = ["a", "b", "a.b", "", "é", "a\x01"]
TIMES = [MIN_TIME_US, -1, 0, 1, 1_700_000_000_000_000, MAX_TIME_US]

texts = st.sampled_from(TEXTS) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
numbers = st.sampled_from(NUMBERS) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
scalars = st.none() | st.booleans() | numbers | texts
lists = st.lists(scalars | st.lists(scalars, max_size=1) | st.dictionaries(st.sampled_from(NAMES), scalars, max_size=2), max_size=3)
metadata = st.dictionaries(
    st.sampled_from(NAMES), st.recursive(scalars | lists, lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=3), max_leaves=4), max_size=4
)
times = st.sampled_from(TIMES) | st.integers(MIN_TIME_US, MAX_TIME_US)
importances = st.sampled_from([0.0, 0.5, 1.0, 0.3]) | st.floats(0, 1)

records = st.builds(
    Record,
    id=st.sampled_from("abc"),
    text=st.just(""),
    timestamp_us=times,
    created_at_us=times,
    importance=importances,
    session=st.none() | texts,
    role=st.none() | texts,
    expires_at_us=st.none() | times,
    supersedes=st.none() | texts,
    metadata=metadata,
)


def comparisons_of(
    values: st.SearchStrategy[Any], ordered: st.SearchStrategy[Any] | None = None, contained: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    operators: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("eq", "ne"), values),
        **dict.fromkeys(("in", "nin"), st.lists(values, min_size=1, max_size=4)),
        "exists": st.booleans(),
        **(dict.fromkeys(("gt", "gte", "lt", "lte"), ordered) if ordered is not None else {}),
        **({"contains": contained} if contained is not None else {}),
    }
    one = st.sampled_from(list(operators)).flatmap(lambda operator: operators[operator].map(lambda operand: {operator: operand}))
    return one | st.tuples(one, one).map(lambda pair: pair[0] | pair[1])


time_operands = times | times.map(to_datetime) | times.map(lambda time: to_datetime(time).isoformat())
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: "metadata." + ".".join(names))
comparisons = st.one_of(
    st.tuples(st.just("id"), comparisons_of(st.sampled_from("abcd"))),
    st.tuples(st.sampled_from(["session", "role", "supersedes"]), comparisons_of(st.none() | texts, texts, texts)),
    st.tuples(st.sampled_from(["timestamp", "created_at"]), comparisons_of(time_operands, time_operands)),
    st.tuples(st.just("expires_at"), comparisons_of(st.none() | time_operands, time_operands)),
    st.tuples(st.just("importance"), comparisons_of(importances | numbers, importances | numbers)),
    st.tuples(paths, comparisons_of(scalars | lists, numbers | texts, scalars)),
)
filters = st.recursive(
    st.lists(comparisons, min_size=1, max_size=2).map(dict),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda part: {"not": part}),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
    ),
    max_leaves=5,
)


def check(where: dict[str, Any], index: MemoryIndex, given_records: list[Record]) -> None:
    words = evaluate(parse_filter(where), index)
    assert words.dtype == np.uint64 and len(words) == word_count(len(given_records))
    assert members(words).tolist() == [document for document, record in enumerate(given_records) if matches(where, record)], where


@settings(max_examples=150, deadline=None)
@given(st.lists(records, max_size=8), st.lists(filters, min_size=1, max_size=8), st.sampled_from([np.uint32, np.int32, np.int64]))
def test_any_filter_over_any_records(given_records: list[Record], given_filters: list[dict[str, Any]], dtype: Any) -> None:
    for record in given_records:
        check_metadata(record.metadata)
    index = MemoryIndex(given_records, dtype)
    for where in given_filters:
        check(where, index, given_records)


@pytest.mark.parametrize("operator", ["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains"])
def test_every_pair_of_values(operator: str) -> None:
    """All values as data times all values as operands: whatever order or type they meet in."""
    values: list[Any] = [*TEXTS, *NUMBERS, None, True, False, [], [1], [1.0, "a"], [True], [None], [["a"]], [{"b": 1, "a": 2}], [{"a": 2.0, "b": 1}], {}, {"x": 1}]
    given_records = [Record("r", "", 0, 0, metadata={"v": value}) for value in values] + [Record("r", "", 0, 0, metadata={"w": 1})]
    index = MemoryIndex(given_records)
    operands = [value for value in values if not isinstance(value, dict)]
    if operator in ("gt", "gte", "lt", "lte"):
        operands = [*TEXTS, *NUMBERS]
    elif operator == "contains":
        operands = [value for value in operands if not isinstance(value, list)]
    for operand in operands:
        check({"metadata.v": {operator: [operand] if operator in ("in", "nin") else operand}}, index, given_records)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 200])
def test_no_bit_lies_beyond_the_last_document(count: int) -> None:
    given_records = [Record(f"r{i}", "", i, i, importance=i % 3 / 2, session=f"s{i % 5}") for i in range(count)]
    index = MemoryIndex(given_records)
    for where in ({}, {"not": {"session": {"eq": "s1"}}}, {"timestamp": {"gte": 10}}, {"importance": {"gt": 0.2}, "timestamp": {"lt": 70}}, {"id": {"nin": ["r1", "r64"]}}):
        check(where, index, given_records)


def test_a_name_that_begins_another_is_never_taken_for_it() -> None:
    given_records = [Record("r", "", 0, 0, session=session) for session in ("acme", "acme-corp", "acme_", "acme%", "acme\x00", "acm")]
    index = MemoryIndex(given_records)
    for session in ("acme", "acm%", "acme_", "%"):
        check({"session": {"eq": session}}, index, given_records)
    assert members(evaluate(parse_filter({"session": {"eq": "acme"}}), index)).tolist() == [0]


def test_a_path_that_two_members_spell_holds_both_values() -> None:
    index = MemoryIndex([Record("r", "", 0, 0, metadata={"a.b": 1, "a": {"b": 2}})])
    for where in ({"metadata.a.b": {"eq": 1}}, {"metadata.a.b": {"eq": 2}}, {"metadata.a": {"exists": True}}):
        assert members(evaluate(parse_filter(where), index)).tolist() == [0]
    assert not evaluate(parse_filter({"metadata.a.b": {"ne": 1}}), index).any()
