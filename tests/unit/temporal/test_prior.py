"""What the recency prior decides, and why: on ages of known laws, on lives that feed themselves, and on bytes that are no statistics."""

import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from agentir_ray.temporal.geometric import mass, partitions_for
from agentir_ray.temporal.likelihood import fit
from agentir_ray.temporal.prior import _chi_square_tail, _p_of_geometric, decide, observations_needed
from agentir_ray.temporal.statistics import BLOCK, BLOCKS, LIMIT, MAX_BYTES, AgeStatistics
from benchmarks.temporal_prior import FLAT, HUMPS, LAWS, MIXED, POWER, Floats, Life, geometric, guarded, naive

PARTITIONS = 50
GEOMETRIC = geometric(1.7)
REFUSED = {"power law": POWER, "85% recent, 15% old": MIXED, "two humps": HUMPS, "flat": FLAT}


def gathered(ages: Iterable[int], horizon: int = PARTITIONS, complete: bool = True) -> AgeStatistics:
    statistics = AgeStatistics()
    for age in ages:
        statistics.observe(age, horizon, complete)
    return statistics


def drawn(pi: Floats, count: int, seed: int = 7) -> list[int]:
    ages: list[int] = np.random.default_rng(seed).choice(PARTITIONS, count, p=pi).tolist()
    return ages


# ---- formulas ----


def test_the_paper_and_its_formula() -> None:
    assert partitions_for(1.7, 0.05, 250) == 2
    assert mass(1.7, 2, 250) == pytest.approx(0.967, abs=0.0005)


def test_the_flat_law_needs_nearly_everything() -> None:
    assert [partitions_for(lambda_, 0.05, 50) for lambda_ in (0.0, -1.0, float("-inf"))] == [50, 50, 50]
    assert partitions_for(float("inf"), 0.05, 50) == 1
    assert mass(0.0, 10, 50) == 0.2
    assert mass(float("inf"), 1, 50) == 1.0


@pytest.mark.parametrize("eps", [0.0, 1.0, -0.1, float("nan")])
def test_eps_is_a_share(eps: float) -> None:
    for call in (lambda: partitions_for(1.7, eps, 50), lambda: observations_needed(eps), lambda: decide(AgeStatistics(), 50, eps)):
        with pytest.raises(ValueError, match="eps is"):
            call()


def test_observations_needed() -> None:
    assert [observations_needed(eps) for eps in (0.05, 0.01)] == [59, 299]


@pytest.mark.parametrize(("degrees", "at_5_percent"), [(1, 3.8415), (2, 5.9915), (3, 7.8147), (10, 18.3070), (29, 42.5570), (100, 124.3421)])
def test_chi_square_is_that_of_the_tables(degrees: int, at_5_percent: float) -> None:
    assert _chi_square_tail(at_5_percent, degrees) == pytest.approx(0.05, abs=2e-5)
    assert _chi_square_tail(0.0, degrees) == pytest.approx(1.0)
    assert _chi_square_tail(1e6, degrees) == 0.0


# ---- the fit ----


def test_truncated_answers_do_not_drag_the_fit() -> None:
    """Searching three partitions finds nothing older than 2; that says nothing against older answers."""
    ages = [age for age in drawn(geometric(0.3), 3_000) if age < 3]
    fitted = fit(gathered(ages, 3, complete=False))
    assert fitted.lower < 0.3 < fitted.upper
    taken_for_complete = fit(gathered(ages))
    assert taken_for_complete.lower > 0.6


def test_a_single_partition_says_nothing() -> None:
    assert fit(gathered([0] * 100, 1)) == fit(AgeStatistics())


@pytest.mark.parametrize("lambda_", [0.05, 0.3, 1.0])
def test_the_test_of_fit_is_wrong_as_often_as_it_says(lambda_: float) -> None:
    ps = [_p_of_geometric(gathered(drawn(geometric(lambda_), 70, seed)).sample()) for seed in range(600)]
    assert 0.025 < np.mean(np.array(ps) < 0.05) < 0.08  # .05, three standard errors to either side


# ---- decisions ----


def test_a_geometric_law_is_supported() -> None:
    decision = decide(gathered(drawn(GEOMETRIC, 70)), PARTITIONS, 0.05)
    assert decision.supported
    assert decision.partitions < 8
    assert decision.mass > 0.95


@pytest.mark.parametrize("law", REFUSED)
@pytest.mark.parametrize("eps", [0.05, 0.01])
def test_other_laws_are_not(law: str, eps: float) -> None:
    decision = decide(gathered(drawn(REFUSED[law], 300)), PARTITIONS, eps)
    assert decision[:3] == (PARTITIONS, False, 1.0)


@pytest.mark.parametrize(
    ("ages", "partitions", "eps", "reason"),
    [
        ([0] * 100, 1, 0.05, "nothing to leave out"),
        ([0] * 58, 50, 0.05, "takes 59 answers to complete searches, and 58 are known"),
        ([0] * 298, 50, 0.01, "takes 299 answers to complete searches, and 298 are known"),
        ([0] * 298, 50, 0.0001, "more than are remembered"),
        (list(range(50)) * 2, 50, 0.05, "not clearly preferred"),
        (([0] * 17 + [30] * 3) * 4, 50, 0.05, "do not thin out steadily"),
        ([0] * 48 + [1] * 13 + [2] * 3 + [0, 6], 50, 0.05, "one of the latest 2 answers is older than all 64 before them"),
        (([0, 0, 0, 0, 0, 1, 1, 2] * 9)[:64], 3, 0.05, "no part of the 3 time partitions is proven to hold 95.00%"),
    ],
)
def test_reasons(ages: Sequence[int], partitions: int, eps: float, reason: str) -> None:
    decision = decide(gathered(ages, max(partitions, 1)), partitions, eps)
    assert decision[:3] == (partitions, False, 1.0)
    assert reason in decision.reason


def test_fifty_nine_answers_in_the_newest_partition_are_just_enough() -> None:
    assert decide(gathered([0] * 59), PARTITIONS, 0.05)[:2] == (1, True)
    assert not decide(gathered([0] * 58), PARTITIONS, 0.05).supported


def test_old_answers_raise_the_partitions_searched() -> None:
    """k* would be 2; one answer of 59 lay in the sixth."""
    ages = [0] * 5 + [5] + [0] * 40 + [1] * 13
    assert decide(gathered([age if age != 5 else 1 for age in ages]), PARTITIONS, 0.05).partitions <= 3
    assert decide(gathered(ages), PARTITIONS, 0.05)[:2] in [(6, True), (PARTITIONS, False)]


def test_answers_from_when_there_were_no_older_partitions_prove_nothing() -> None:
    """A hundred answers within the newest two partitions, of two; now there are fifty."""
    young = gathered([0] * 60 + [1] * 30, 2)
    assert not decide(young, PARTITIONS, 0.05).supported


def test_truncated_answers_prove_nothing() -> None:
    statistics = gathered(drawn(GEOMETRIC, 58))
    before = decide(statistics, PARTITIONS, 0.05)
    for _ in range(1_000):
        statistics.observe(0, 3, complete=False)
    assert decide(statistics, PARTITIONS, 0.05) == before
    assert not before.supported


def test_ages_beyond_the_limit_are_never_within() -> None:
    """They share a cell with the oldest that is told apart."""
    far = gathered([0] * 700 + [LIMIT + 5_000] * 100, 10_000)
    assert not decide(far, 10_000, 0.05).supported
    assert decide(gathered([0] * 700, 10_000), 10_000, 0.05)[:2] == (1, True)


def test_what_was_learnt_is_forgotten() -> None:
    statistics = gathered(drawn(FLAT, 2_000))
    for age in drawn(GEOMETRIC, BLOCK * BLOCKS):
        statistics.observe(age, PARTITIONS, complete=True)
    assert statistics == gathered(drawn(GEOMETRIC, BLOCK * BLOCKS))
    assert BLOCK * (BLOCKS - 1) < statistics.sample().complete.total() <= BLOCK * BLOCKS


# ---- lives that feed themselves ----


def lives(law: str, observed_if_exact: float) -> list[Life]:
    return [guarded(LAWS[law], np.random.default_rng(seed), observed_if_exact) for seed in (11, 12, 13)]


@pytest.mark.parametrize("law", LAWS)
def test_a_supported_prior_misses_no_more_than_it_says(law: str) -> None:
    for life in lives(law, 0.03):
        assert life.missed.mean() <= 0.05
        assert not life.missed[~life.supported].any()


@pytest.mark.parametrize("law", ["geometric, lambda 1.7", "geometric, lambda 0.2"])
def test_a_steady_geometric_law_stays_supported(law: str) -> None:
    assert np.mean([life.supported[-2_500:] for life in lives(law, 1.0)]) > 0.95
    assert np.mean([life.supported[-2_500:] for life in lives(law, 0.03)]) > 0.6  # where a surprise takes up to 16 audits to be forgotten


@pytest.mark.parametrize("law", ["shift: lambda 1.7 to flat", "85% recent, 15% old", "two humps", "flat"])
def test_where_most_is_old_support_is_lost(law: str) -> None:
    assert not any(life.supported[-500:].any() for life in lives(law, 0.03))


def test_without_guards_a_prior_that_feeds_itself_misses_more() -> None:
    assert naive(LAWS["power law"], np.random.default_rng(11)).missed.mean() > 0.15


# ---- bytes ----


def test_a_long_life_takes_few_bytes() -> None:
    statistics = AgeStatistics()
    rng = np.random.default_rng(5)
    for step, age in enumerate(rng.geometric(0.2, 60_000).tolist()):
        statistics.observe(age, age + 1 + step % 9, complete=step % 33 == 0)
    assert len(statistics.encode()) < 10_000


def test_the_largest_statistics_can_be_read_again() -> None:
    full = gathered(range(LIMIT), LIMIT)
    for horizon in range(1, LIMIT + 1):
        full.observe(0, horizon, complete=False)
    many = AgeStatistics([full.sample() for _ in range(BLOCKS)])
    for _ in range(8):
        many = many.merge(many)
    data = many.encode()
    assert len(data) < MAX_BYTES
    assert AgeStatistics.decode(data) == many


def sealed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "little")


EMPTY_BLOCK = bytes(4)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "length"),
        (b"\1" + bytes(8), "checksum"),
        (bytes(MAX_BYTES + 1), "length"),
        (sealed(b"\2" + EMPTY_BLOCK), "format 2"),
        (sealed(b"\1" + EMPTY_BLOCK * (BLOCKS + 1)), "too many blocks"),
        (sealed(b"\1\1\0"), "end within a block"),
        (sealed(b"\1" + b"\xff" * 10 + b"\x7f"), "too long"),
        (sealed(b"\1\0\0\0\x80"), "cut off"),
        (sealed(b"\1\x80\0"), "cut off or too long"),
        (sealed(b"\1\xff\xff\xff\xff\x0f"), "end within a block"),  # four thousand million cells, it says
        (sealed(b"\1" + bytes([1, 0, 0])), "empty"),
        (sealed(b"\1" + bytes([1, 0, 1, 1, 0, 1, 0, 0])), "out of range"),  # a horizon of 0
        (sealed(b"\1" + bytes([2, 3, 1, 0, 1, 1, 9, 2, 0, 0])), "out of order"),
        (sealed(b"\1" + bytes([1, 3, 1, 1, 3, 1, 0, 0])), "beyond its horizon"),
        (sealed(b"\1" + bytes([1, 3, 2, 1, 4, 1, 0, 0])), "beyond its horizon"),  # two ages, one horizon
        (sealed(b"\1" + bytes([0, 0, 1, 3, 2, 5])), "beyond its horizon"),
    ],
)
def test_bytes_that_are_no_statistics(data: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        AgeStatistics.decode(data)


@pytest.mark.parametrize(("age", "horizon"), [(-1, 3), (3, 3), (0, 0), (5, 2)])
def test_an_age_lies_below_its_horizon(age: int, horizon: int) -> None:
    statistics = AgeStatistics()
    with pytest.raises(ValueError, match="ages go from 0"):
        statistics.observe(age, horizon, complete=True)
    assert statistics == AgeStatistics()
