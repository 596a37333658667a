"""Merging keeps files few, and writes no record often."""

import math
from collections import Counter
from itertools import accumulate, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from agentir_ray.engine.policy import GROWTH, MAX_CHANGED, Extent, Limits, at_once, choose_cuts, choose_merge, choose_rewrite, closed


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


SMALL = Limits(seal_at=4, decent=10, largest=35)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30))
def test_pieces_are_bounded_and_end_with_their_partitions(partitions: list[int]) -> None:
    pieces = choose_cuts(partitions, SMALL)
    assert sum(pieces) == sum(partitions)
    assert all(0 < piece <= SMALL.largest for piece in pieces)
    ends = set(accumulate(partitions))
    for piece, end in zip(pieces[:-1], accumulate(pieces), strict=False):
        assert piece == SMALL.largest or (end in ends and piece >= SMALL.decent)
    assert choose_cuts(pieces, SMALL) == pieces, "what was cut is not cut otherwise again"


@given(st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40)), min_size=1, max_size=4), max_size=40))
@example([[(9, 12), (0, 3)]] * 12)  # late records beside new ones
def test_maintenance_ends_and_leaves_few_segments_that_grow(seals: list[list[tuple[int, int]]]) -> None:
    """A segment is a list of (partition, documents), ascending."""
    segments: list[list[tuple[int, int]]] = []
    total = 0
    for seal in seals:
        segments.append(united([seal]))
        total += sum(documents for _, documents in seal)
        while True:
            extents = [Extent(sum(documents for _, documents in segment), segment[-1][0]) for segment in segments]
            newest = max(extent.newest for extent in extents)
            growing = [i for i, extent in enumerate(extents) if not closed(extent, newest, SMALL)]
            chosen = [growing[i] for i in choose_merge([extents[i].documents for i in growing], SMALL.seal_at)]
            if not chosen:
                break
            merged = united([segments[i] for i in chosen])
            pieces = pieces_of(merged, choose_cuts([documents for _, documents in merged], SMALL))
            segments = [segment for i, segment in enumerate(segments) if i not in chosen] + pieces
        assert sum(documents for segment in segments for _, documents in segment) == total
        assert len(growing) <= 2 + math.log(max(total, 2), GROWTH + 1)
        assert len(segments) <= len(growing) + total / SMALL.decent


def united(segments: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    counted: Counter[int] = Counter()
    for segment in segments:
        for partition, documents in segment:
            counted[partition] += documents
    return sorted(counted.items())


def pieces_of(segment: list[tuple[int, int]], sizes: list[int]) -> list[list[tuple[int, int]]]:
    each = [partition for partition, documents in segment for _ in range(documents)]
    ends = [0, *accumulate(sizes)]
    return [sorted(Counter(each[first:end]).items()) for first, end in pairwise(ends)]


def test_what_is_closed() -> None:
    assert not closed(Extent(9, 3), 7, SMALL) and not closed(Extent(10, 7), 7, SMALL), "the newest partition still grows"
    assert closed(Extent(10, 6), 7, SMALL) and closed(Extent(35, 7), 7, SMALL)


@given(st.lists(st.integers(1, 100), max_size=20), st.sets(st.integers(0, 19)))
def test_what_is_merged_at_once_is_bounded(documents: list[int], chosen: set[int]) -> None:
    due = sorted(i for i in chosen if i < len(documents))
    taken = at_once(due, documents, SMALL)
    assert set(taken) <= set(due) and taken == sorted(taken) and len(taken) != 1
    assert sum(documents[i] for i in taken) <= 2 * SMALL.largest
    left = sorted(documents[i] for i in due if i not in taken)
    if taken and left:
        assert max(documents[i] for i in taken) <= left[0]
        assert sum(documents[i] for i in taken) + left[0] > 2 * SMALL.largest
