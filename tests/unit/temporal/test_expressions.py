"""Times in questions: what is understood, what is left alone, and what that is worth on the questions of real data sets."""

import gzip
import json
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentir_ray.temporal.expressions import MAX_CHARACTERS, MONTHS, WEEKDAYS, time_range
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, to_time_us

NOW = "2023-06-14T15:00:00"  # a Wednesday
DAY_US = 86_400_000_000


def understood(text: str, now: str = NOW, offset_us: int = 0) -> tuple[str, str] | None:
    """The range as "first day", "last day"; "" where it is open, and the time of day where it is none's beginning or end."""
    found = time_range(text, to_time_us(now), offset_us)
    if found is None:
        return None
    since, until = found.since, found.until
    return "" if since is None else f"{since:%Y-%m-%dT%H:%M}".removesuffix("T00:00"), "" if until is None else f"{until:%Y-%m-%dT%H:%M}".removesuffix("T23:59")


MEANT: dict[str, tuple[str, str]] = {
    "What did I do yesterday?": ("2023-06-13", "2023-06-13"),
    "yesterday's lunch": ("2023-06-13", "2023-06-13"),
    "what did we talk about the day before yesterday": ("2023-06-12", "2023-06-12"),
    "whom did I meet yesterday evening?": ("2023-06-13T17:00", "2023-06-13"),
    "what did I dream last night": ("2023-06-13T18:00", "2023-06-14T05:59"),
    "what did I eat this morning": ("2023-06-14", "2023-06-14T11:59"),
    "what did you tell me earlier today": ("2023-06-14", "2023-06-14"),
    "What have I done today?": ("2023-06-14", "2023-06-14"),
    "what did I do last week": ("2023-06-05", "2023-06-11"),
    "in last week's meeting": ("2023-06-05", "2023-06-11"),
    "how much did I run this week": ("2023-06-12", "2023-06-18"),
    "What certification did I complete last month?": ("2023-05-01", "2023-05-31"),
    "which books did I read last year": ("2022-01-01", "2022-12-31"),
    "how many weddings have I attended this year": ("2023-01-01", "2023-12-31"),
    "What game did I beat last weekend?": ("2023-06-10", "2023-06-11"),
    "what happened over the weekend": ("2023-06-10", "2023-06-11"),
    "which bike did I repair the past weekend": ("2023-06-10", "2023-06-11"),
    "in the past three months": ("2023-03-14", "2023-06-14T15:00"),
    "How many plants did I acquire in the last month?": ("2023-05-14", "2023-06-14T15:00"),
    "how often did I swim over the past week": ("2023-06-07", "2023-06-14T15:00"),
    "films of the last few weeks": ("2023-05-03", "2023-06-14T15:00"),
    "what have I learned during the last 10 days": ("2023-06-04", "2023-06-14T15:00"),
    "what did I say in the last hour": ("2023-06-14T14:00", "2023-06-14T15:00"),
    "what did I do two weeks ago": ("2023-05-28", "2023-06-03"),
    "Which book did I finish a week ago?": ("2023-06-04", "2023-06-10"),
    "what did I buy 5 days ago": ("2023-06-09", "2023-06-09"),
    "what did I buy 10 days ago": ("2023-06-03", "2023-06-05"),
    "a couple of days ago": ("2023-06-11", "2023-06-12"),
    "what did she say two hours ago": ("2023-06-14T12:30", "2023-06-14T13:29"),
    "where did I live four years ago": ("2018-12-14", "2019-12-13"),
    "what did I believe more than two years ago": ("", "2021-12-13"),
    "what did I do last Friday": ("2023-06-09", "2023-06-09"),
    "what did I do on Friday": ("2023-06-09", "2023-06-09"),
    "what did I do last Wednesday": ("2023-06-07", "2023-06-07"),
    "this past Tuesday": ("2023-06-13", "2023-06-13"),
    "since Monday": ("2023-06-12", ""),
    "since yesterday": ("2023-06-13", ""),
    "since last summer": ("2022-06-01", ""),
    "what have I spent since the start of the year?": ("2023-01-01", ""),
    "last March": ("2023-03-01", "2023-03-31"),
    "last June": ("2022-06-01", "2022-06-30"),
    "what happened in June": ("2023-06-01", "2023-06-30"),
    "what happened in December?": ("2022-12-01", "2022-12-31"),
    "in MAY 2022": ("2022-05-01", "2022-05-31"),
    "in Jan. 2022": ("2022-01-01", "2022-01-31"),
    "early in the month of February": ("2023-02-01", "2023-02-28"),
    "in mid-August 2022": ("2022-08-01", "2022-08-31"),
    "during the last week of August 2022": ("2022-08-01", "2022-08-31"),
    "in the first half of 2022": ("2022-01-01", "2022-12-31"),
    "in Q2 2022": ("2022-04-01", "2022-06-30"),
    "what happened in 2022": ("2022-01-01", "2022-12-31"),
    "what did I do last summer": ("2022-06-01", "2022-08-31"),
    "what did I do during the summer": ("2023-06-01", "2023-08-31"),
    "in the winter of 2021": ("2021-12-01", "2022-02-28"),
    "in summer 2021": ("2021-06-01", "2021-08-31"),
    "on 5 May 2023": ("2023-05-05", "2023-05-05"),
    "on the 5th of May, 2023": ("2023-05-05", "2023-05-05"),
    "on May 5th": ("2023-05-05", "2023-05-05"),
    "on December 1,2022": ("2022-12-01", "2022-12-01"),
    "on 1 Sept 2022": ("2022-09-01", "2022-09-01"),
    "on 29 February": ("2020-02-29", "2020-02-29"),
    "on 2023-05-05": ("2023-05-05", "2023-05-05"),
    "5 May 2023: whom did I meet?": ("2023-05-05", "2023-05-05"),
    "whom did I meet May 2022?": ("2022-05-01", "2022-05-31"),
    "before 2020": ("", "2019-12-31"),
    "after March 2022": ("2022-04-01", ""),
    "until last year": ("", "2022-12-31"),
    "as of 27 March, 2022": ("", "2022-03-27"),
    "from May 2022 onwards": ("2022-05-01", ""),
    "between March and May 2022": ("2022-03-01", "2022-05-31"),
    "between November and February 2023": ("2022-11-01", "2023-02-28"),
    "from July to October": ("2022-07-01", "2022-10-31"),
    "between 2019 and 2021": ("2019-01-01", "2021-12-31"),
    "between 3 May and 5 June 2022": ("2022-05-03", "2022-06-05"),
    "in January and March": ("2023-01-01", "2023-03-31"),
    "after March 2022 and before June 2022": ("2022-04-01", "2022-05-31"),
    "the week before August 3, 2022": ("2022-07-24", "2022-08-03"),
    "two weeks before August 11, 2022": ("2022-07-25", "2022-08-11"),
    "on the Saturday after October 28, 2022": ("2022-10-28", "2022-11-07"),
    "what did I write since I moved three weeks ago": ("2023-05-21", ""),
    "where was I before we met in March 2022": ("", "2022-03-31"),
    "in 2022 or was it in 2020": ("2020-01-01", "2022-12-31"),
}

NO_TIMES = [
    "may I ask who called", "they march in the parade", "the march of time", "April called me", "June's birthday", "a letter from April", "August company", "May",
    "Summer is my cat", "the sun is out", "I sat on the fence", "we wed in Rome", "Friday", "my Sunday group rides", "what do I do on Mondays",
    "on Tuesday and Thursday mornings", "on Saturday mornings", "python 3.11 release", "version 2023.4 of it", "room 2023", "2023", "call 555-2023", "in 2000 words",
    "in 2048x2048", "the 1990s", "in 1990s style", "Blade Runner 2049", "27. Kg2", "Cyberpunk 2077 game", "in 2077", "pre-1920 coins", "at 7 PM", "3 apples", "1,200 dollars",
    "in 2 minutes", "a week-long trip", "five days a week", "a 5-day trip", "daily", "someday", "the second thing", "the first week of my internship",
    "in the last week of my internship", "the last two days of the trip", "last year of college", "last name", "at last", "last one", "the last time we met",
    "past the post office", "half past six", "how many days ago did I buy it", "how many weeks passed between us", "long ago", "years ago", "recently", "currently",
    "the March 15th issue of the magazine", "the April 7 call", "the deadline 5 May 2023", "the 7/22 trip", "on 05/06/2023", "on 30 February 2023", "on 31 June",
    "in Spring Boot", "tomorrow", "next week", "in July 2023", "next summer", "this coming Friday", "two weeks from now", "since I started", "before I started",
    "from me to you", "between you and me", "my plans for the summer", "goals for this year", "dinner for tonight", "what should I cook today?",
    "can you recommend something to do this weekend?", "what shall I do in May?", "any tips for this week", "what was decided by 5 May 2023",
    "after I had saved 5 dollars by early June",
    "the Spring Fling Market",
    "in the Fall Guys game", "the fall of Rome", "in May's kitchen", "today's world", "every last week", "我昨天做了什么", "qué hice ayer", "was habe ich gestern gemacht", "",
    "   ", "\0", "in", "on", "since", "ago", "last",
]  # fmt: skip


@pytest.mark.parametrize("text", MEANT)
def test_what_is_meant(text: str) -> None:
    assert understood(text) == MEANT[text]
    assert understood(text.upper()) == MEANT[text]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_left_alone(text: str) -> None:
    assert time_range(text, to_time_us(NOW)) is None


def test_bounds_are_inclusive_to_the_microsecond() -> None:
    found = time_range("yesterday", to_time_us(NOW))
    assert found is not None
    assert (found.phrase, found.since_us, found.until_us) == ("yesterday", to_time_us("2023-06-13"), to_time_us("2023-06-14") - 1)
    opened = time_range("since  \n Monday", to_time_us(NOW))
    assert opened is not None
    assert (opened.phrase, opened.until_us, opened.until) == ("since Monday", MAX_TIME_US, None)


def test_a_day_is_the_askers() -> None:
    late = "2023-06-14T22:00:00"  # UTC; 3:30 of the 15th in Kolkata
    assert understood("yesterday", late) == ("2023-06-13", "2023-06-13")
    found = time_range("yesterday", to_time_us(late), offset_us=DAY_US * 11 // 48)
    assert found is not None
    assert (found.since_us, found.until_us) == (to_time_us("2023-06-14T00:00+05:30"), to_time_us("2023-06-15T00:00+05:30") - 1)


def test_months_and_years_of_unequal_length() -> None:
    assert understood("last month", "2024-03-31T12:00") == ("2024-02-01", "2024-02-29")
    assert understood("in the past month", "2024-03-31T12:00") == ("2024-02-29", "2024-03-31T12:00")
    assert understood("in the last year", "2024-02-29T12:00") == ("2023-02-28", "2024-02-29T12:00")
    assert understood("last winter", "2024-01-10") == ("2022-12-01", "2023-02-28")
    assert understood("this winter", "2024-12-10") == ("2024-12-01", "2025-02-28")


def test_the_edges_of_time() -> None:
    for now_us in (MIN_TIME_US, MAX_TIME_US):
        for text in MEANT:
            for offset_us in (-DAY_US, 0, DAY_US):
                found = time_range(text, now_us, offset_us)
                assert found is None or MIN_TIME_US <= found.since_us <= found.until_us <= MAX_TIME_US


WORDS = st.sampled_from([
    *MONTHS, *WEEKDAYS, "in", "on", "since", "until", "before", "after", "between", "from", "to", "and", "of", "the", "a", "last", "past", "this", "next", "few", "two", "weeks",
    "months", "years", "days", "ago", "summer", "winter", "early", "by", "for", "week", "month", "year", "weekend", "yesterday", "today", "tonight", "morning", "2023", "1999",
    "31", "5th", "29", "0", "2023-05-05", ",", "?", "'s", "-", "İ", "ſ", "日",
])  # fmt: skip


@given(st.one_of(st.lists(WORDS, max_size=30).map(" ".join), st.text(max_size=200)), st.integers(MIN_TIME_US, MAX_TIME_US))
@example("on 31 february", 0)
def test_any_text_gives_a_range_of_the_past_or_none(text: str, now_us: int) -> None:
    found = time_range(text, now_us)
    if found is not None:
        assert MIN_TIME_US <= found.since_us <= found.until_us <= MAX_TIME_US
        assert found.since_us <= now_us
        assert (found.since_us, found.until_us) != (MIN_TIME_US, MAX_TIME_US)
        assert found.phrase


@pytest.mark.parametrize("piece", ["in ", "the last two ", "since x ", "in may ", "between 2001 and ", "the first two weeks of ", "yesterday ", " ", "1 ", "last ", "\n", "a few "])
def test_a_long_text_costs_no_more_than_a_short_one(piece: str) -> None:
    started = time.process_time()
    time_range(piece * (2**20 // len(piece)), to_time_us(NOW))
    assert time.process_time() - started < 0.5
    assert time_range("x" * MAX_CHARACTERS + " yesterday", to_time_us(NOW)) is None


def test_a_text_of_many_dates_is_about_none_of_them() -> None:
    assert time_range(" and ".join(f"on {day} May 2023" for day in range(1, 20)), to_time_us(NOW)) is None


# ---- real questions: read here, never copied ------------------------------------------------------------------------------------------------------------------------


def loaded(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def locomo(shared: Path) -> Iterator[tuple[str, int, list[int]]]:
    """Question, a day after the last session, and when the evidence was told."""
    for chat in loaded(shared / "data/locomo/locomo10.json.gz"):
        told = {
            name.removeprefix("session_").removesuffix("_date_time"): to_time_us(datetime.strptime(date, "%I:%M %p on %d %B, %Y"))
            for name, date in chat["conversation"].items()
            if name.endswith("_date_time")
        }
        for question in chat["qa"]:
            evidence = [told[session] for turn in question.get("evidence", []) for session in re.findall(r"D(\d+):", turn) if session in told]
            yield question["question"], max(told.values()) + DAY_US, evidence


def test_locomo_few_ranges_miss_what_was_told_then(shared: Path) -> None:
    """The floor is far from 1 because LoCoMo dates what was told: "in April" is asked of what was told in May, "two years ago" of yesterday's talk."""
    found = [(time_range(text, now_us), evidence) for text, now_us, evidence in locomo(shared)]
    ranges = [(named, evidence) for named, evidence in found if named is not None and evidence]
    assert 270 <= len(ranges) <= 300
    inside = sum(all(named.since_us <= time_us <= named.until_us for time_us in evidence) for named, evidence in ranges)
    assert inside / len(ranges) >= 0.78


TIMED = re.compile(
    r"\b(?:(?<!many )(?:a|two|three|four|five|\d+) (?:days?|weeks?|months?) ago|last (?:week|weekend|month|year|\w+day)\b(?! of)|(?:past|last) (?:\w+ )?(?:weeks|months|month)\b"
    rf"|in (?:{'|'.join(MONTHS)})\b)",
    re.IGNORECASE,
)


def test_longmemeval_what_names_a_time_is_found_and_little_else(shared: Path) -> None:
    texts = [(row["query"], to_time_us(row["meta"]["query_timestamp"]) + DAY_US // 2) for row in loaded(shared / "data/longmemeval/queries_s.json.gz")]
    found = {text for text, now_us in texts if time_range(text, now_us) is not None}
    named = {text for text, _ in texts if TIMED.search(text)}
    assert len(named & found) / len(named) >= 0.95
    assert len(found) <= len(named) + 12
