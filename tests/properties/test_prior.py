"""The recency prior against sums over lists of observations."""

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentir_ray.temporal.geometric import expected_work, mass, partitions_for
from agentir_ray.temporal.likelihood import Likelihood, fit
from agentir_ray.temporal.prior import _expected, _least_proven, _pool, _proven, decide
from agentir_ray.temporal.statistics import BLOCK, BLOCKS, LIMIT, AgeStatistics, Sample
from tests import naive_prior as naive
from tests.naive_prior import NaiveStatistics, Seen

lambdas = st.one_of(st.floats(-3, 6), st.sampled_from([0.0, 1e-13, -1e-13, 1e-7, 1e-4, 1.7, 30.0]))
shares = st.floats(0.001, 0.999)


@st.composite
def one_seen(draw: st.DrawFn, most: int = 40) -> Seen:
    horizon = draw(st.integers(1, most))
    return Seen(draw(st.integers(0, horizon - 1)), horizon, draw(st.booleans()))


observations = st.lists(one_seen(), max_size=60)
lives = st.lists(one_seen(2 * LIMIT) | one_seen(5), max_size=200)


def gathered(seen: Sequence[Seen]) -> AgeStatistics:
    statistics = AgeStatistics()
    for one in seen:
        statistics.observe(*one)
    return statistics


def counted(seen: Sequence[Seen]) -> Sample:
    cells = [Seen(min(one.age, LIMIT - 1), min(one.horizon, LIMIT), one.complete) for one in seen]
    return Sample(
        Counter(one.age for one in cells if one.complete),
        Counter(one.horizon for one in cells if one.complete),
        Counter(one.horizon for one in cells if not one.complete),
        sum(one.age for one in cells if not one.complete),
    )


# ---- the law ----


@given(lambdas, st.integers(1, 200), st.data())
def test_mass_is_the_sum_of_shares(lambda_: float, partitions: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, partitions))
    assert mass(lambda_, k, partitions) == pytest.approx(naive.mass(lambda_, k, partitions), rel=1e-9, abs=1e-12)


@given(lambdas, st.integers(1, 200), shares, shares)
def test_k_star_holds_the_mass_and_grows_as_eps_falls(lambda_: float, partitions: int, one: float, other: float) -> None:
    ks = {eps: partitions_for(lambda_, eps, partitions) for eps in (one, other)}
    for eps, k in ks.items():
        assert 1 <= k <= partitions
        assert naive.mass(lambda_, k, partitions) >= 1 - eps - 1e-12
    assert ks[min(ks)] >= ks[max(ks)]


@given(lambdas, st.lists(st.integers(0, 1_000), min_size=1, max_size=50), shares)
def test_expected_work_is_the_mean_over_answers_and_below_the_bound_of_the_theorem(lambda_: float, sizes: list[int], eps: float) -> None:
    k = partitions_for(lambda_, eps, len(sizes))
    work = expected_work(lambda_, sizes, eps)
    assert work == pytest.approx(naive.expected_work(lambda_, sizes, k), rel=1e-9, abs=1e-6)
    assert work <= k * max(sizes) + 1e-6


# ---- the fit ----


@given(observations)
def test_the_interval_is_where_the_likelihood_is_near_its_maximum(seen: list[Seen]) -> None:
    fitted = fit(gathered(seen))
    informative = [one for one in seen if one.horizon > 1]
    assert fitted.observations == len(informative)
    assert fitted.lower < fitted.upper
    if not informative:
        assert (fitted.lambda_, fitted.lower, fitted.upper) == (0.0, -math.inf, math.inf)
        return
    best = naive.log_likelihood(seen, max(-60.0, min(fitted.lambda_, 60.0)))
    for step in range(-24, 49):
        lambda_ = step / 8
        below = best - naive.log_likelihood(seen, lambda_)
        assert below >= -1e-9
        if abs(below - 3.841458820694124 / 2) > 1e-6:
            assert (fitted.lower < lambda_ < fitted.upper) == (below < 3.841458820694124 / 2)


@given(observations)
def test_only_the_newest_or_only_the_oldest_leave_one_end_open(seen: list[Seen]) -> None:
    assume(any(one.horizon > 1 for one in seen))
    newest = fit(gathered([Seen(0, one.horizon, one.complete) for one in seen]))
    oldest = fit(gathered([Seen(one.horizon - 1, one.horizon, one.complete) for one in seen]))
    assert newest.lambda_ == newest.upper == math.inf > newest.lower > -math.inf
    assert oldest.lambda_ == oldest.lower == -math.inf < oldest.upper < math.inf
    assert newest.lower == pytest.approx(-oldest.upper, rel=1e-6, abs=1e-9)  # the same seen from the other end


# ---- the tests behind a decision ----


@given(st.integers(0, 8), st.integers(1, 500), st.sampled_from([Fraction(1, 20), Fraction(1, 100), Fraction(1, 2)]))
def test_proof_is_that_of_clopper_and_pearson(outside: int, answers: int, eps: Fraction) -> None:
    assume(outside <= answers)
    assert _proven(outside, answers, float(eps)) == naive.clopper_pearson_holds(outside, answers, eps)


@given(st.lists(one_seen(12), max_size=150), st.integers(1, 12), st.integers(2, 14), st.sampled_from([Fraction(1, 20), Fraction(1, 4)]))
def test_the_least_that_is_proven(seen: list[Seen], least: int, partitions: int, eps: Fraction) -> None:
    assert _least_proven(counted(seen), least, partitions, float(eps)) == naive.least_proven(seen, least, partitions, eps)


@given(st.lists(one_seen(), min_size=1, max_size=80), st.floats(0.01, 4))
def test_cells_of_the_test_of_fit_hold_enough(seen: list[Seen], lambda_: float) -> None:
    assume(any(one.complete and one.horizon > 1 for one in seen))
    expected = _expected(lambda_, Likelihood(counted(seen), complete_only=True))
    assert expected.tolist() == pytest.approx(naive.expected_counts(seen, lambda_))
    starts = _pool(expected)
    assert starts[0] == 0 and starts == sorted(set(starts))
    cells = [float(expected[start:end].sum()) for start, end in zip(starts, [*starts[1:], len(expected)], strict=True)]
    assert all(cell >= 5 - 1e-9 for cell in cells[:-1])
    assert len(cells) == 1 or cells[-1] >= 1 - 1e-9


@given(lives, st.integers(1, 3_000), shares, shares)
def test_decisions_are_whole_and_grow_as_eps_falls(seen: list[Seen], partitions: int, one: float, other: float) -> None:
    statistics = gathered(seen)
    for eps in (one, other):
        decision = decide(statistics, partitions, eps)
        if decision.supported:
            assert 1 <= decision.partitions < min(partitions, LIMIT)
            assert decision.mass >= 1 - eps - 1e-9
            assert not decision.reason
        else:
            assert decision[:3] == (partitions, False, 1.0)
            assert decision.reason


# ---- statistics ----


@given(lives)
def test_statistics_are_those_of_the_latest_observations(seen: list[Seen]) -> None:
    statistics, everything = AgeStatistics(), NaiveStatistics(BLOCK, BLOCKS)
    for one in seen:
        statistics.observe(*one)
        everything.observe(one)
    for complete in (1, 20, 59, 10_000):
        assert statistics.sample(complete) == counted(everything.latest(complete))
    assert statistics.sample() == counted(seen)


@given(lives, lives, lives)
def test_merging_is_associative_and_commutative_and_holds_all(one: list[Seen], two: list[Seen], three: list[Seen]) -> None:
    a, b, c = gathered(one), gathered(two), gathered(three)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(b) == b.merge(a)
    assert a.merge(AgeStatistics()) == a
    assert a.merge(b).merge(c).sample() == counted([*one, *two, *three])
    assert (a, b) == (gathered(one), gathered(two))  # merging changes neither


@given(lives, lives)
def test_encoding_loses_nothing(one: list[Seen], two: list[Seen]) -> None:
    for statistics in (gathered(one), gathered(one).merge(gathered(two))):
        data = statistics.encode()
        again = AgeStatistics.decode(data)
        assert again == statistics
        assert again.encode() == data
        again.observe(1, 2, complete=True)
        statistics.observe(1, 2, complete=True)
        assert again == statistics


@given(lives, st.data())
def test_damage_is_noticed(seen: list[Seen], data: st.DataObject) -> None:
    good = gathered(seen).encode()
    at = data.draw(st.integers(0, len(good) - 1))
    changed = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    for bad in (changed, good[:at], good + b"\0"):
        with pytest.raises(ValueError, match="statistics of ages"):
            AgeStatistics.decode(bad)


@given(st.binary(max_size=300))
def test_hostile_bytes_are_refused_or_are_statistics(body: bytes) -> None:
    """With a checksum that fits: what is accepted is what these statistics encode to."""
    data = b"\1" + body
    data += zlib.crc32(data).to_bytes(4, "little")
    try:
        statistics = AgeStatistics.decode(data)
    except ValueError:
        return
    assert statistics.encode() == data
    decide(statistics, 50, 0.05)
    fit(statistics)
