"""The cache that segments share: bounded, and never a different answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.lexical.cache import SegmentCache
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
    cache = SegmentCache(budget_bytes=30)
    for block in range(3):
        cache.put(1, block, b"x" * 10, 10)
    assert cache.get(1, 0) == b"x" * 10
    cache.put(1, 3, b"y" * 10, 10)
    assert [cache.get(1, block) is not None for block in range(4)] == [True, False, True, True]
    assert cache.held_bytes == 30
    cache.put(1, 4, b"z" * 31, 31)
    assert cache.get(1, 4) is None
    cache.put(2, 0, b"w" * 5, 5)
    cache.drop(1)
    assert cache.held_bytes == 5
    assert cache.get(2, 0) == b"w" * 5


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
