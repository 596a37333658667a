"""What the experiment on dated data computes with, against naive twins: recalls, folds that never see the scored chat, paired differences, ages."""

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.dated import Chat, Question, chat_of
from benchmarks.paired import MEASURES, best_elsewhere, difference, measured, recall_all, recall_any
from benchmarks.temporal_ages import Aged, ages_of, record_ranks, session_ranks, shares

IDS = "abcdefghijkl"
DAY_US = 86_400_000_000


@given(st.permutations(IDS), st.sets(st.sampled_from(IDS), min_size=1), st.integers(0, 12), st.integers(1, 12))
def test_recalls_are_what_counting_says(order: list[str], gold: set[str], length: int, k: int) -> None:
    ranked = order[:length]
    hits = sum(1 for place, record in enumerate(ranked) if place < k and record in gold)
    assert recall_any(ranked, gold, k) == (1.0 if hits else 0.0)
    assert recall_all(ranked, gold, k) == (1.0 if hits == len(gold) else 0.0)


def test_measures_come_in_the_order_of_their_names() -> None:
    ranked = list(IDS)
    assert dict(zip(MEASURES, measured(ranked, {"a", "f"}), strict=True)) == {"any@5": 1.0, "any@10": 1.0, "all@5": 0.0, "all@10": 1.0}


@given(st.lists(st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=3), min_size=1, max_size=4), min_size=2, max_size=5))
def test_what_is_fitted_for_a_chat_is_the_best_mean_over_the_others(chats: list[list[list[float]]]) -> None:
    expected = []
    for scored in range(len(chats)):
        others = [question for chat in chats[:scored] + chats[scored + 1 :] for question in chat]
        means = [sum(question[setting] for question in others) for setting in range(3)]  # over the same questions: the order of sums is that of means
        expected.append(means.index(max(means)))
    assert best_elsewhere([np.array(chat) for chat in chats]) == expected


def test_the_scored_chat_has_no_say() -> None:
    others = [np.array([[0.0, 1.0]]), np.array([[0.2, 0.3]])]
    assert [best_elsewhere([*others, np.array([[1_000.0 * flip, 1_000.0 * (1 - flip)]])])[2] for flip in (0, 1)] == [1, 1]
    with pytest.raises(ValueError, match="two chats"):
        best_elsewhere(others[:1])


@pytest.mark.parametrize(("gain", "words"), [(0.0, "no difference"), (0.2, "helps"), (-0.2, "costs")])
@pytest.mark.parametrize("chats", [2, 9])
def test_a_difference_says_what_its_interval_shows(gain: float, words: str, chats: int) -> None:
    rng = np.random.default_rng(1)
    before = [rng.random(30) for _ in range(chats)]
    noise = [0.05 * (rng.random(30) - 0.5) * (gain != 0) for _ in range(chats)]
    found = difference([before], [[b + gain + n for b, n in zip(before, noise, strict=True)]])
    assert found.words == words
    assert found.low <= found.mean <= found.high
    assert found.mean == pytest.approx(gain + np.concatenate(noise).mean())


def test_a_difference_that_chance_explains_is_not_shown_and_every_set_counts_the_same() -> None:
    rng = np.random.default_rng(2)
    noise = [rng.permutation([1.0] * 5 + [-1.0] * 5) for _ in range(10)]
    assert difference([[np.zeros(10)] * 10], [noise]).words == "no difference"  # every chat's mean is 0
    assert difference([[np.zeros(10)] * 10], [[rng.normal(size=10) for _ in range(10)]]).words == "no difference shown"
    large, small = [np.full(100, 0.1)] * 10, [np.full(5, 0.3)] * 2
    assert difference([[np.zeros(100)] * 10, [np.zeros(5)] * 2], [large, small]).mean == pytest.approx(0.2)


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    days = draw(st.lists(st.integers(0, 40), min_size=1, max_size=12))
    start = datetime(2024, 1, 1, tzinfo=UTC)
    records = [{"id": str(n), "text": "x", "timestamp": start + timedelta(days=day), "session": f"s{day}"} for n, day in enumerate(days)]
    gold = draw(st.lists(st.sets(st.integers(0, len(days) - 1), min_size=1), min_size=1, max_size=4))
    return chat_of("chat", records, [Question("?", frozenset(map(str, each)), "") for each in gold])


@given(chats(), st.sampled_from([1, 7]))
def test_ages_count_the_partitions_that_are_newer(chat: Chat, days: int) -> None:
    width = days * DAY_US
    partitions = {time // width for time in chat.times_us.values()}
    expected = [
        (sum(other > chat.times_us[record] // width for other in partitions), len(partitions)) for question in chat.questions for record in sorted(question.gold)
    ]  # fmt: skip
    assert ages_of(chat, width) == expected


@given(chats())
def test_ranks_count_the_others_that_are_newer(chat: Chat) -> None:
    times = chat.times_us
    for question, ranks in zip(chat.questions, record_ranks(chat), strict=True):
        naive = [
            sum((times[other] > times[record]) + (times[other] == times[record]) / 2 for other in times if other != record) / max(len(times) - 1, 1) for record in question.gold
        ]
        assert sorted(ranks) == pytest.approx(sorted(naive))
    gold, blind = session_ranks(chat)
    sessions = sorted({time // DAY_US for time in times.values()}, reverse=True)
    place = {session: n / max(len(sessions) - 1, 1) for n, session in enumerate(sessions)}
    assert sorted(blind) == pytest.approx(sorted(place[time // DAY_US] for time in times.values()))
    assert sorted(gold) == pytest.approx(sorted(place[times[record] // DAY_US] for record in itertools.chain.from_iterable(q.gold for q in chat.questions)))


def test_shares_are_observed_ones_and_those_of_a_law_among_the_partitions_of_each_chat() -> None:
    observed = [Aged(0, 2), Aged(1, 2), Aged(3, 4), Aged(0, 4)]
    assert shares(observed).tolist() == [0.5, 0.25, 0.0, 0.25]
    assert shares(observed, 0.0) == pytest.approx([0.375, 0.375, 0.125, 0.125])
    law = [np.exp(-np.arange(n)) / np.exp(-np.arange(n)).sum() for n in (2, 4)]
    assert shares(observed, 1.0) == pytest.approx((np.pad(law[0], (0, 2)) + law[1]) / 2)


def test_gold_that_no_record_has_is_left_out_and_so_is_a_question_without_any() -> None:
    record = {"id": "a", "text": "x", "timestamp": datetime(2024, 1, 1, tzinfo=UTC)}
    chat = chat_of("chat", [record], [Question("?", frozenset({"a", "b"}), ""), Question("!", frozenset({"b"}), "")])
    assert [(question.text, question.gold) for question in chat.questions] == [("?", {"a"})]
    assert chat.records[0]["created_at"] == record["timestamp"]
