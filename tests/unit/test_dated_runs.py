"""The runs on dated data, on chats small enough to know what must come out: what is fitted elsewhere reaches the engine, and an answer out of its reach is counted as lost."""

from datetime import UTC, datetime, timedelta

import pytest

from agentir_ray.temporal.partitions import PARTITION_WIDTH_US
from benchmarks.dated import Chat, Question, chat_of
from benchmarks.dated_runs import GRID, priors_of, run
from benchmarks.paired import MEASURES
from benchmarks.temporal_ages import PAPER_LAMBDA
from benchmarks.temporal_quality import gold_lost

WEEKS = 30


def weekly(name: str, ages: list[int]) -> Chat:
    """Two records a week with a word of their own each, and a question for each age that asks for one of them."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    records = [{"id": f"{week}/{n}", "text": f"word{week}x{n} filler", "timestamp": start + timedelta(weeks=week, days=n)} for week in range(WEEKS) for n in range(2)]
    return chat_of(name, records, [Question(f"filler word{WEEKS - 1 - age}x1", frozenset({f"{WEEKS - 1 - age}/1"}), "kind") for age in ages])


def test_a_prior_of_recent_answers_reaches_the_other_chat_and_what_it_leaves_out_is_lost() -> None:
    recent = [0] * 60 + [1] * 15 + [2] * 4
    chats = [weekly("recent", recent), weekly("old", [20] * 8)]
    priors = priors_of(chats, PARTITION_WIDTH_US)
    assert priors[1].decision.supported  # from the recent chat, for the old one
    assert not priors[0].decision.supported
    assert 3 <= priors[1].decision.partitions < WEEKS
    found = run(chats, priors).answers
    assert {name: answers[1].exact for name, answers in found.items() if "0.95" not in name} == {
        "exact": 8, "exact + recency": 8, "auto": 8, "auto + recency": 8, "parsed": 8, "paper": 8
    }  # fmt: skip
    assert found["exact"][1].scores.tolist() == [[1.0] * len(MEASURES)] * 8
    assert found["0.95"][1].exact == 0
    assert found["0.95"][1].scores.tolist() == [[0.0] * len(MEASURES)] * 8
    assert found["0.95"][0].exact == len(recent)
    assert gold_lost(found["exact"], found["0.95"]) == pytest.approx(8 / (8 + len(recent)))


def test_the_papers_partitions_are_two_weeks_with_records() -> None:
    chats = [weekly("a", [0, 1, 2]), weekly("b", [5])]
    prior = priors_of(chats, PARTITION_WIDTH_US)[0]
    assert PAPER_LAMBDA == 1.7
    assert sum(time >= prior.paper_since_us for time in chats[0].times_us.values()) == 4
    assert len(GRID) == 12
