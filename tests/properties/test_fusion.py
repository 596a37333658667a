"""Fused rankings equal their formulas, record by record, to the last bit."""

import math
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.retrieval import fusion
from tests import naive_fusion
from tests.naive_fusion import Listed, ordered

# Few different scores: ties, within a list and of sums, are what goes wrong
SCORES = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.3, 0.7, 1.0, 12.5]) | st.floats(-1, 30)
LISTS = st.lists(st.dictionaries(st.integers(1, 40), SCORES, max_size=30).map(ordered), min_size=1, max_size=4)
WEIGHTS = st.lists(st.sampled_from([0.0, 0.2, 0.3, 0.5, 1.0]) | st.floats(0, 5), min_size=4, max_size=4)


def listed(score: Any, seq: Any) -> list[tuple[int, float]]:
    order = fusion.best_first(score, seq)
    return list(zip(seq[order].tolist(), score[order].tolist(), strict=True))


def seqs(lists: list[Listed]) -> list[Any]:
    return [np.array([seq for seq, _ in one], np.int64) for one in lists]


def rrf(lists: list[Listed], weights: list[float]) -> list[tuple[int, float]]:
    table = fusion.table_of(seqs(lists))
    return listed(fusion.summed(fusion.reciprocal_ranks(table.rank, weights), len(table.seq)), table.seq)


def convex(lists: list[Listed], weights: list[float], lowest: list[float], known: list[dict[int, float]]) -> list[tuple[int, float]]:
    table = fusion.table_of(seqs(lists))
    score = [np.array([scores.get(seq, math.nan) for seq in table.seq.tolist()]) for scores in known]
    highest = [one[0][1] if one else -math.inf for one in lists]
    between = np.array([fusion.normalised(*one) for one in zip(score, lowest, highest, strict=True)])
    return listed(fusion.summed(fusion.convex(between, weights), len(table.seq)), table.seq)


@given(LISTS, WEIGHTS)
def test_reciprocal_ranks(lists: list[Listed], weights: list[float]) -> None:
    weights = weights[: len(lists)]
    assert rrf(lists, weights) == ordered(naive_fusion.rrf(lists, weights))


@given(LISTS, WEIGHTS, st.lists(st.sampled_from([0.0, -1.0]), min_size=4, max_size=4), st.data())
def test_convex_combinations(lists: list[Listed], weights: list[float], lowest: list[float], data: st.DataObject) -> None:
    """Of scores that are known of some records beyond the lists, too."""
    weights, lowest = weights[: len(lists)], lowest[: len(lists)]
    everyone = sorted({seq for one in lists for seq, _ in one})
    known = []
    for one in lists:
        beyond = data.draw(st.dictionaries(st.sampled_from(everyone), SCORES)) if everyone else {}
        known.append(beyond | dict(one))
    assert convex(lists, weights, lowest, known) == ordered(naive_fusion.convex(lists, weights, lowest, known))


@given(LISTS, WEIGHTS, st.integers(0, 2**32 - 1).map(Random))
def test_recency_and_importance_are_added(lists: list[Listed], weights: list[float], random: Random) -> None:
    weights = weights[: len(lists)]
    table = fusion.table_of(seqs(lists))
    ages = {seq: random.randrange(-(10**12), 10**14) for seq in table.seq.tolist()}
    importances = {seq: random.choice([0.0, 0.5, 1.0]) for seq in ages}
    parts = [
        *fusion.reciprocal_ranks(table.rank, weights),
        fusion.recency(np.array(list(ages.values()), np.int64), fusion.RECENCY_WEIGHT, fusion.RECENCY_TAU_US),
        fusion.IMPORTANCE_WEIGHT * np.array(list(importances.values()), np.float64),
    ]
    assert listed(fusion.summed(parts, len(table.seq)), table.seq) == ordered(naive_fusion.agent_rrf(lists, weights, ages, importances))


@given(LISTS, WEIGHTS, st.integers(0, 2**32 - 1).map(Random))
def test_the_order_of_the_lists_changes_no_score_beyond_rounding(lists: list[Listed], weights: list[float], random: Random) -> None:
    pairs = list(zip(lists, weights, strict=False))
    random.shuffle(pairs)
    before, after = dict(rrf(lists, weights[: len(lists)])), dict(rrf([one for one, _ in pairs], [weight for _, weight in pairs]))
    assert before.keys() == after.keys()
    assert all(math.isclose(before[seq], after[seq], rel_tol=1e-12) for seq in before)


@given(st.dictionaries(st.integers(1, 40), st.floats(0, 30), max_size=30).map(ordered), st.floats(0.1, 3), st.integers(0, 3))
def test_one_list_beside_empty_ones_keeps_its_order(one: Listed, weight: float, empty: int) -> None:
    lists = [one, *([()] * empty)]
    weights = [weight, *([1.0] * empty)]
    assert [seq for seq, _ in rrf(lists, weights)] == [seq for seq, _ in one]
    scores = dict(convex(lists, weights, [0.0] * len(lists), [dict(one), *([{}] * empty)]))
    for (better, _), (worse, _) in pairwise(one):
        assert scores[better] >= scores[worse]
    if one and one[0][1] > 0.0:
        assert scores[one[0][0]] == weight, "the best of a list has all of its weight"


@given(LISTS)
def test_a_list_of_no_weight_changes_no_score(lists: list[Listed]) -> None:
    weights = [1.0] * len(lists)
    with_it = dict(rrf([*lists, [(99, 1.0), *((seq, 0.5) for seq in range(1, 40))]], [*weights, 0.0]))
    assert all(with_it[seq] == score for seq, score in rrf(lists, weights)) and with_it[99] == 0.0


def test_a_lone_bad_candidate_does_not_become_the_best() -> None:
    """The reason for a theoretical minimum: by the list's own minimum and maximum a lone candidate is 1, or nothing."""
    assert fusion.normalised(np.array([-0.9]), -1.0, 0.6) == pytest.approx(0.0625)
    assert fusion.normalised(np.array([0.0, math.nan]), 0.0, 0.0).tolist() == [0.0, 0.0]


def test_the_largest_reciprocal_rank_stands_above_recency_and_importance() -> None:
    assert fusion.RECENCY_WEIGHT + fusion.IMPORTANCE_WEIGHT < 1 / (fusion.KAPPA + 1) / 4


@pytest.mark.parametrize("weights", [[], [1.0], [1.0, -0.1], [1.0, math.nan], [1.0, 1.0, 1.0]])
def test_weights_are_checked(weights: list[float]) -> None:
    rank = np.ones((2, 1), np.int64)
    for call in (lambda: fusion.reciprocal_ranks(rank, weights), lambda: fusion.convex(np.ones((2, 1)), weights)):
        with pytest.raises(ValueError, match="2 lists need as many weights"):
            call()
