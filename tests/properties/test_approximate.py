"""Searches by graphs over random histories: what they give is a subset of what is visible, with the exact scores in the exact order, as much as was asked for, and marked."""

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.dense import approximate
from tests.conftest import LONG
from tests.properties.test_channels import asked_of, found, world

pytest.importorskip("faiss")


@settings(max_examples=150 if LONG else 25, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(10, 70))
def test_what_graphs_give_is_visible_exactly_scored_and_marked(random: Random, steps: int) -> None:
    with world() as here, patch.object(approximate, "LARGEST_SHARE", 1):
        here.add(random)
        for _ in range(steps):
            here.step(random)
        for _ in range(10):
            if random.random() < 0.8:
                here.encode()
                here.memory.build_graphs(least_rows=random.choice([1, 8]))
            if random.random() < 0.3:
                here.step(random)
            asked, options = asked_of(random, here.clock, "dense")
            k = random.choice([1, 3, 10])
            everything = here.naive.search(asked)
            result = here.memory.search(asked.text, k=k, approximate=True, **options)
            hits = found(result)
            place = {hit: i for i, hit in enumerate(everything)}
            assert all(hit in place for hit in hits)
            assert hits == sorted(hits, key=place.__getitem__) and len(set(hits)) == len(hits)
            assert len(hits) == min(k, len(everything))
            assert result.coverage.exact == ("HNSW" not in result.coverage.reason)
            if result.coverage.exact:
                assert hits == everything[:k]
