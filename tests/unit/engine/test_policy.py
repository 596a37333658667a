"""Merging keeps files few, and writes no record often."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from agentir_ray.engine.policy import GROWTH, MAX_CHANGED, Limits, choose_merge, choose_rewrite


def maintain(sizes: list[int], small: int = 1) -> int:
    """Merge until nothing is due; how many documents that wrote."""
    written = 0
    while chosen := choose_merge(sizes, small):
        assert len(chosen) > 1 and sorted(set(chosen)) == chosen and set(chosen) <= set(range(len(sizes)))
        merged = sum(sizes[i] for i in chosen)
        written += merged
        sizes[:] = [size for i, size in enumerate(sizes) if i not in chosen] + [merged]
    return written


@given(st.lists(st.integers(1, 10**7), max_size=40))
def test_what_is_left_is_a_steep_ladder(sizes: list[int]) -> None:
    total = sum(sizes)
    maintain(sizes)
    assert sum(sizes) == total
    ladder = sorted(sizes)
    assert all(size > GROWTH * sum(ladder[:i]) for i, size in enumerate(ladder) if i)
    if sizes:
        assert len(sizes) <= 1 + math.log(total / ladder[0], GROWTH + 1)


@given(st.lists(st.integers(1, 10**7), max_size=40))
def test_a_ladder_is_left_alone(sizes: list[int]) -> None:
    maintain(sizes)
    assert choose_merge(sizes) == []
    assert choose_merge(sizes[::-1]) == []


@given(st.lists(st.integers(1, Limits().max_unsealed), max_size=60))
@example([4_000, 4_000, 4_000, 4_000, 1_300, 400, 130, 40, 13, 4, 1])  # ever fewer documents among as many entries
def test_a_small_namespace_has_at_most_three_files(seals: list[int]) -> None:
    sizes: list[int] = []
    for documents in seals:
        if sum(sizes) + documents > 20_000:
            break
        sizes.append(documents)
        maintain(sizes, Limits().seal_at)
        assert len(sizes) <= 3


def test_each_record_is_rewritten_a_logarithmic_number_of_times() -> None:
    seal_at = Limits().seal_at
    sizes: list[int] = []
    written = 0
    for n in range(1, 2_001):
        sizes.append(seal_at)
        written += maintain(sizes, seal_at)
        assert len(sizes) <= 1 + math.log(n, GROWTH + 1)
        assert written <= n * seal_at * (1 + math.log2(n))


def test_nothing_and_one() -> None:
    assert choose_merge([]) == choose_merge([5]) == []
    assert choose_merge([5, 11]) == []
    assert choose_merge([5, 10]) == [0, 1]
    assert choose_merge([100, 5, 10]) == [1, 2]
    assert choose_merge([40, 3, 9, 1]) == []
    assert choose_merge([40, 3, 9, 1], small=3) == [1, 2, 3]


def test_many_changes_make_a_segment_due_for_rewriting() -> None:
    assert choose_rewrite([]) == choose_rewrite([(100, 0), (8, 2)]) == []
    assert choose_rewrite([(1_000, int(1_000 * MAX_CHANGED)), (8, 3), (4, 4)]) == [1], "one at a time"
