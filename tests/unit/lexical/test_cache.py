"""The cache that segments share: bounded, and never a different answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.lexical.cache import ENTRY_BYTES, SegmentCache
from agentir_ray.lexical.filters import evaluate, parse_filter

LONG_FILTERS = [
    {"metadata.n": {"in": list(range(100))}},
    {"session": {"eq": "s" * 2_000}},
    {"session": {"contains": "s" * 2_000}},
    {"id": {"in": ["i" * 600, "j" * 600]}},
    {"not": {"or": [{"role": {"eq": "r" * 600}}, {"metadata.n": {"in": ["x" * 600, 3]}}]}},
    {"and": [{"importance": {"gt": i / 1_000}} for i in range(100)]},
]


@pytest.mark.parametrize("where", LONG_FILTERS)
def test_a_filter_with_long_operands_is_no_key(tmp_path: Path, where: dict[str, Any]) -> None:
    with Memory.open(tmp_path, background=False, limits=Limits(seal_at=50, max_unsealed=50)) as memory:
        memory.add_many({"text": f"record {i}", "session": f"s{i % 3}", "metadata": {"n": i}} for i in range(50))
        with memory._store.namespace("default") as namespace:
            (segment,) = namespace.index.segments
            before = memory._store.cache.held_bytes
            assert segment.passing(parse_filter(where)) is not segment.passing(parse_filter(where))
            assert memory._store.cache.held_bytes == before
            small = {"session": {"eq": "s" * 400}}
            words = segment.passing(parse_filter(small))
            assert memory._store.cache.held_bytes > before + words.nbytes + 800


def test_what_was_used_last_stays_within_the_budget() -> None:
    cache = SegmentCache(budget_bytes=3 * (ENTRY_BYTES + 10))
    for block in range(3):
        cache.put(1, block, b"x" * 10, 10)
    assert cache.get(1, 0) == b"x" * 10  # which is now the one used last
    cache.put(1, 3, b"y" * 10, 10)
    assert [cache.get(1, block) is not None for block in range(4)] == [True, False, True, True]
    assert cache.held_bytes == 3 * (ENTRY_BYTES + 10)
    cache.put(1, 5, b"z" * 2_000, 2_000)
    assert cache.get(1, 5) is None
    cache.put(2, 0, b"w" * 5, 5)
    cache.drop(1)
    assert cache.held_bytes == ENTRY_BYTES + 5
    assert cache.get(2, 0) == b"w" * 5 and cache.get(1, 0) is None


@given(st.lists(st.tuples(st.sampled_from(["get", "put", "drop"]), st.integers(0, 2), st.integers(0, 6), st.integers(0, 60)), max_size=80), st.integers(0, 8))
def test_the_cache_is_bounded_and_never_a_different_answer(calls: list[tuple[str, int, int, int]], room: int) -> None:
    cache = SegmentCache(budget_bytes=room * (ENTRY_BYTES + 30))
    put: dict[tuple[int, int], bytes] = {}
    for verb, serial, what, size in calls:
        if verb == "get":
            assert cache.get(serial, what) in (None, put.get((serial, what)))
        elif verb == "put":
            value = b"%d-%d" % (serial, what) + b"x" * size
            if cache.get(serial, what) is None:
                put[serial, what] = value
                cache.put(serial, what, value, len(value))
        else:
            cache.drop(serial)
            assert all(cache.get(serial, what) is None for what in range(7))
        assert 0 <= cache.held_bytes <= cache.budget_bytes
    for serial in range(3):
        cache.drop(serial)
    assert cache.held_bytes == 0


def test_what_is_used_again_and_again_stays() -> None:
    cache = SegmentCache(budget_bytes=10 * (ENTRY_BYTES + 10))
    cache.put(1, "filter", b"x" * 10, 10)
    for block in range(200):
        cache.put(2, block, b"y" * 10, 10)
        assert cache.get(1, "filter") == b"x" * 10


def test_the_bitmap_of_a_filter_is_made_once_a_segment(tmp_path: Path) -> None:
    with Memory.open(tmp_path, background=False, limits=Limits(seal_at=50, max_unsealed=50)) as memory:
        memory.add_many({"text": f"record {i}", "session": f"s{i % 3}", "metadata": {"n": i}} for i in range(50))
        with memory._store.namespace("default") as namespace:
            (segment,) = namespace.index.segments
            expression = parse_filter({"session": {"eq": "s1"}, "metadata.n": {"lt": 30}})
            first = segment.passing(expression)
            assert np.array_equal(first, evaluate(expression, segment))
            assert segment.passing(parse_filter({"session": {"eq": "s1"}, "metadata.n": {"lt": 30}})) is first
        before = [hit.record.id for hit in memory.search("record", k=50, session="s1")]
        memory.forget(ids=before[:1])
        assert [hit.record.id for hit in memory.search("record", k=50, session="s1")] == before[1:]
