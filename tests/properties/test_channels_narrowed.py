"""A probability as coverage narrows every channel to the same partitions: each mode is its oracle over the time that the answer names; and it is so however long a session is."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.engine import neighbours
from tests.conftest import LONG
from tests.properties.test_channels import DAY_US, MODES, World, asked_of, found, world

WIDTH_US = 7 * DAY_US


def buckets_of(here: World) -> list[int]:
    """The partitions with records, newest first."""
    return sorted({version.record.timestamp_us // WIDTH_US for version in here.oracle.versions if not version.erased}, reverse=True)


def teach(here: World) -> None:
    """That the newest partition holds the answers."""
    newest = max((version for version in here.oracle.versions if here.oracle.current(version.record.id) is version), key=lambda version: version.record.timestamp_us)
    for mode in [*MODES] * 14:  # feedback counts whatever the mode was
        result = here.memory.search("river", mode=mode, coverage="exact")
        here.memory.feedback([newest.record.id], result.query_id)


@settings(max_examples=40 if LONG else 6, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(40, 80))
def test_a_probability_narrows_every_channel(random: Random, steps: int) -> None:
    with world() as here:
        for _ in range(steps):
            here.add(random)
            if random.random() < 0.1:
                here.encode()
        teach(here)
        buckets = buckets_of(here)
        narrowed = 0
        for mode in MODES * 3:
            asked, options = asked_of(random, here.clock, mode)
            if "since" in options or "as_of" in options:
                continue
            k = random.choice([1, 3])
            asked = asked._replace(depth=max(asked.depth, k))
            result = here.memory.search(asked.text, k=k, coverage=0.9, **options)
            hottest = len(buckets) - result.coverage.not_searched
            question = asked.question
            if hottest < len(buckets):
                narrowed += 1
                assert not result.coverage.exact and len(result.hits) == k, "fewer than k always widen"
                question = question._replace(since_us=buckets[hottest - 1] * WIDTH_US)
            assert found(result) == here.naive.search(asked._replace(question=question))[:k], (asked, options, result.coverage)
        assert narrowed or len(buckets) < 3


@settings(max_examples=40 if LONG else 8, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(20, 90))
def test_of_a_long_session_only_what_is_near_is_looked_at(random: Random, steps: int) -> None:
    with pytest.MonkeyPatch.context() as patch, world() as here:
        patch.setattr(neighbours, "LONG", 1)
        for _ in range(steps):
            here.step(random)
        here.encode()
        for mode in ("rrf", "convex"):
            asked, options = asked_of(random, here.clock, mode)
            asked, options = asked._replace(context_weight=0.5), options | {"context_weight": 0.5}
            assert found(here.memory.search(asked.text, k=50, **options)) == here.naive.search(asked._replace(depth=max(50, asked.depth)))[:50], (asked, options)
