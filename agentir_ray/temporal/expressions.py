"""From a question's words to the range of time that they name: "yesterday", "last March", "between March and May 2022", relative to the question's own now.

English only; other languages give None, as does everything that is not certain. It finds too little rather than too much: a date that was missed leaves the search as it is, a date
that is none hides the answer. So a month, a year or a weekday counts only where a preposition makes it a time ("in May", never "may I"; "in 2023", never "room 2023"); a date that
stands before a noun ("the March 15th issue") does not count, nor does a time that lies ahead, is planned for ("goals for this year") or asked advice about ("what should I cook
today"). Where several expressions are found the range spans them all; where one belongs to a clause ("before I moved last year") the bound is open on the clause's side.

It knows no clock and no zone: `now` is UTC, `offset_us` says by how much the asker's days differ from it. Only the first `MAX_CHARACTERS` are read, by patterns whose every
repetition is bounded, so that no text makes it slow. Why no library does this: docs/decisions/0012.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from agentir_ray.temporal.spans import (
    DAY,
    SEASONS,
    UNITS,
    WEEK,
    Span,
    ago,
    around,
    calendar,
    day,
    month,
    part_of_day,
    quarter,
    rolling,
    season,
    unit_start,
    weekday,
    weekend,
    year,
)  # fmt: skip
from agentir_ray.types import EPOCH, MAX_TIME_US, MIN_TIME_US, TimeRange, to_datetime

MAX_CHARACTERS = 2_000
MAX_EXPRESSIONS = 8  # a text with more of them is about many times, not about one
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COUNTS = {word: count for count, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1)} | {"a": 1, "an": 1}
VAGUE = {"couple": (2, 3), "few": (2, 6), "several": (3, 8), "some": (2, 8)}

_THINGS = "words?|characters?|tokens?|lines?|pages?|steps?|met(?:er|re)s?|miles?|calories|people|dollars|euros|yen|hours?|minutes?|days?"
_YEAR = rf"(?:1[89]|20)\d\d(?![-/.:]?\d|s\b|%|['’]| (?:{_THINGS})\b)"
_MONTH = rf"(?:{'|'.join(MONTHS)})\b"
_ABBREVIATED = rf"(?:{'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
_NUMBER = r"(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?\b(?![.:]\d)"
_WEEKDAY = rf"(?:{'|'.join(WEEKDAYS)})\b"
_SEASON = rf"(?:{'|'.join(SEASONS)})\b"
_UNIT = r"(?:minute|hour|day|week|month|year)"
_COUNT = rf"(?:\d{{1,3}}|an?(?! couple)|{'|'.join(w for w in COUNTS if len(w) > 2)}|a couple(?: of)?|couple(?: of)?|a few|few|several|some)"
_PART = r"(?:morning|afternoon|evening|night)"
_LAST = r"(?:last|past)"
_ORDINAL = r"(?:first|second|third|fourth|last)(?: (?:two|three|few))? (?:week|weekend|half|part|day|month)s?"
_PORTION = rf"(?:the )?(?:(?:early|mid|late)[- ]|(?:very )?(?:beginning|start|middle|end|rest|most|month|{_ORDINAL}) of (?:the month of )?)"  # the whole is searched
_ADVICE = re.compile(r"\b(?:should|shall|will|would|recommend(?:ations?)?|suggest(?:ions?)?|plans?|planning|tips?|ideas?|going|gonna|can i|could i)\b")


class Reading(NamedTuple):
    """A way to name a span. Alone it does so only where it is `certain`; `present`: it holds now, and may as well be about what is to come."""

    pattern: str
    span: Callable[[datetime, dict[str, str]], Span]
    certain: bool = True
    present: bool = False


def _month_of(name: str) -> int:
    return next(n for n, known in enumerate(MONTHS, 1) if known.startswith(name[:3]))


def _latest(now: datetime, of_year: Callable[[int], Span]) -> Span:
    """The last one that has begun."""
    for number in range(now.year, now.year - 9, -1):  # nine: 29 February around 1900
        with suppress(ValueError):
            span = of_year(number)
            if span.start is not None and span.start <= now:
                return span
    raise ValueError("there is no such time")


def _date(now: datetime, m: dict[str, str]) -> Span:
    number, of = int(re.sub(r"\D", "", m["number"])), _month_of(m["month"])
    if "year" in m:
        return day(int(m["year"]), of, number)
    return _latest(now, lambda number_of_year: day(number_of_year, of, number))


def _of_year(name: str, number: int) -> Span:
    """A month or a season."""
    return season(number, name) if name in SEASONS else month(number, _month_of(name))


def _latest_named(now: datetime, m: dict[str, str]) -> Span:
    return _latest(now, lambda number: _of_year(m["name"], number))


def _last_named(now: datetime, m: dict[str, str]) -> Span:
    """The latest that is over."""
    span = _latest_named(now, m)
    assert span.start is not None
    assert span.end is not None
    return span if span.end <= now else _of_year(m["name"], span.start.year - 1)


def _count(word: str) -> tuple[int, int]:
    """The least and the most that a number word means."""
    for vague, limits in VAGUE.items():
        if vague in word:
            return limits
    count = COUNTS.get(word) or int(word)
    return count, count


def _ago(now: datetime, m: dict[str, str]) -> Span:
    span = ago(now, *_count(m["count"]), m["unit"])
    if "than" not in m:
        return span
    return Span(span.start, None) if m["than"] in ("less than", "under") else Span(None, span.end)


def _rolling(now: datetime, m: dict[str, str]) -> Span:
    return rolling(now, _count(m.get("count", "one"))[1], m["unit"])


CERTAIN = (
    Reading(r"the day before yesterday", lambda now, m: calendar(now, DAY, -2)),
    Reading(rf"yesterday(?: (?P<part>{_PART}))?", lambda now, m: part_of_day(now - timedelta(days=1), m["part"]) if "part" in m else calendar(now, DAY, -1)),
    Reading(r"last night", lambda now, m: part_of_day(now - timedelta(days=1), "night")),
    Reading(r"(?:earlier )?today(?!['’])", lambda now, m: calendar(now, DAY), present=True),
    Reading(r"tonight(?!['’])", lambda now, m: part_of_day(now, "night"), present=True),
    Reading(rf"this (?P<part>{_PART})", lambda now, m: part_of_day(now, m["part"]), present=True),
    Reading(rf"(?:(?P<than>more than|at least|over|less than|under) )?(?P<count>{_COUNT}) (?P<unit>{_UNIT})s? (?:ago|back)", _ago),
    Reading(rf"(?:(?:in|over|within|during|for|throughout) )?(?:the |these )?{_LAST} (?P<count>{_COUNT}) (?P<unit>{_UNIT})s?(?! of\b)", _rolling),
    Reading(rf"(?:in|over|within|during|for|throughout) the {_LAST} (?P<unit>{_UNIT})(?! of\b)", _rolling),
    Reading(r"(?:the past|this past|past|the last) (?P<unit>week|month|year)(?! of\b)", _rolling),
    Reading(r"last (?P<unit>week|month|year)(?! of\b)", lambda now, m: calendar(now, m["unit"], -1)),
    Reading(r"this (?P<unit>week|month|year)(?! of\b)", lambda now, m: calendar(now, m["unit"]), present=True),
    Reading(rf"(?:over the|on the|(?:the |this )?{_LAST}) weekend(?! of\b)", lambda now, m: weekend(now)),
    Reading(rf"(?:on )?(?:the |this )?{_LAST} (?P<weekday>{_WEEKDAY})", lambda now, m: weekday(now, WEEKDAYS.index(m["weekday"]))),
    Reading(rf"{_LAST} (?P<name>{_MONTH}|{_SEASON})(?! of\b)", _last_named),
    Reading(rf"this (?P<name>{_MONTH}|{_SEASON})", lambda now, m: _of_year(m["name"], now.year), present=True),
)
ON = (
    Reading(rf"(?:the )?(?P<number>{_NUMBER})(?: of)? (?P<month>{_ABBREVIATED})(?:,?~(?P<year>{_YEAR}))?", _date, certain=False),
    Reading(rf"(?P<month>{_ABBREVIATED}) (?P<number>{_NUMBER})(?:,?~(?P<year>{_YEAR}))?", _date, certain=False),
    Reading(r"(?P<iso>\d{4}-\d\d-\d\d)(?![-\d])", lambda now, m: calendar(datetime.fromisoformat(m["iso"]), DAY), certain=False),
)
DATED = tuple(Reading(reading.pattern.replace(f"(?:,?~(?P<year>{_YEAR}))?", f",?~(?P<year>{_YEAR})"), reading.span, certain=False) for reading in ON)  # with a year
DAYS = (Reading(rf"(?:the )?(?P<weekday>{_WEEKDAY})", lambda now, m: weekday(now, WEEKDAYS.index(m["weekday"])), certain=False),)
IN = (
    Reading(rf"(?:the )?(?P<name>{_ABBREVIATED}|{_SEASON})(?: of|,)? (?P<year>{_YEAR})", lambda now, m: _of_year(m["name"], int(m["year"])), certain=False),
    Reading(rf"q(?P<quarter>[1-4])(?: of)? (?P<year>{_YEAR})", lambda now, m: quarter(int(m["year"]), int(m["quarter"])), certain=False),
    Reading(rf"(?P<name>{_MONTH})", _latest_named, certain=False),
    Reading(r"(?:the )?(?P<name>summer|winter|autumn)", _latest_named, certain=False),
    Reading(r"the (?P<name>spring|fall)(?! of\b)", _latest_named, certain=False),
    Reading(rf"(?P<year>{_YEAR})", lambda now, m: year(int(m["year"])), certain=False),
)


def _compiled(pattern: str) -> re.Pattern[str]:
    """A blank stands for any white space, "~" for none or some."""
    return re.compile(pattern.replace(" ", r"\s{1,4}").replace("~", r"\s{0,4}"), re.ASCII)


def _any(readings: Iterable[Reading]) -> str:
    return "|".join(re.sub(r"\(\?P<\w+>", "(?:", reading.pattern) for reading in readings)


_MATCHERS = [(_compiled(reading.pattern), reading) for reading in (*CERTAIN, *ON, *IN, *DAYS)]
_POINT = rf"(?:{_any((*CERTAIN, *ON, *IN, *DAYS))})"
_FIND = _compiled(
    rf"\b(?:"
    rf"(?:between|from|in|during) (?:{_PORTION}){{0,2}}(?P<first>{_POINT}),? (?:and|or|to|until|till|through) (?:in )?(?:{_PORTION}){{0,2}}(?P<last>{_POINT})"
    rf"|(?:(?:on|over|the|last|during|in) ){{0,3}}(?:(?P<count>{_COUNT}) )?(?P<unit>{_UNIT}s?|weekend|{_WEEKDAY}) "
    rf"(?P<direction>before|prior to|after|following) (?P<anchor>{_any((*ON, *IN))})"
    rf"|(?P<until>before|until|till|up to|prior to|as of) (?:{_PORTION}){{0,2}}(?P<until_point>{_POINT})"
    rf"|(?P<since>since|after) (?:{_PORTION}){{0,2}}(?P<since_point>{_POINT}|the (?:start|beginning) of (?:the|this) (?P<begun>{_UNIT}))"
    rf"|from (?P<onward>{_POINT}) on(?:wards?)?"
    rf"|on (?P<on>{_any((*ON, *DAYS))})"
    rf"|(?:(?:in|during|throughout|within|over|around|towards?|from) (?:{_PORTION}){{0,2}}|(?:{_PORTION}){{1,2}})(?P<in>{_any(IN)})"
    rf"|(?P<certain>{_any(CERTAIN)})"
    rf"|(?P<bare>{_any((*DATED, IN[0]))})(?=\s*(?:[?!,;:]|\.?\s*$))"
    rf")(?![\w%]|[-/.:]\d)"
)
_POSSESSIVE = re.compile(r"['’]\w")
_OTHER_DAY = re.compile(rf"\s{{1,4}}(?:{_PART}s\b|(?:and|or)\s{{1,4}}{_WEEKDAY}|{_COUNT}\s{{1,4}}{_UNIT}s?\s{{1,4}}ago)|-")  # a habit, or told by what follows
_PREPOSITION = re.compile(r"(?:in|on|during|throughout|within|over|around|from)\s")
_CAPITAL = re.compile(r"\s{1,4}[A-Z]")
_PERSON = re.compile(r"(?:from|after) (?:april|may|june|august|summer|autumn)")
_NOT_BEFORE = re.compile(r"\b(?:for(?: the)?|by|next|every|each|how many|than)\s{1,4}$")
_NO_BARE = re.compile(r"\b(?:the|my|our|your|his|her|their|a|an|this|that|by|for|and|or|due|starting|beginning|scheduled|deadline)\s{1,4}$")  # a deadline, or part of a name
_CLAUSE = re.compile(r"\b(?:(since|after)|before|until|till)\s[^,;:.!?]{1,100}$")


def time_range(text: str, now_us: int, offset_us: int = 0) -> TimeRange | None:
    """What `text` says of time, as an inclusive range of UTC microseconds; None where that is nothing, nothing certain, or nothing but the future.

    `offset_us`: how much the asker's clock is ahead of UTC, so that "yesterday" is their day.
    """
    now = to_datetime(now_us).replace(tzinfo=None)
    with suppress(OverflowError):
        now += timedelta(microseconds=offset_us)
    read = text[:MAX_CHARACTERS]
    lowered = "".join(c.lower() if c.isascii() else c for c in read)  # which keeps every place
    asks_advice = _ADVICE.search(lowered) is not None
    found: list[Span] = []
    phrases = []
    for count, match in enumerate(_FIND.finditer(lowered), 1):
        if count > MAX_EXPRESSIONS:
            return None
        try:
            span = _understood(match, read, now, asks_advice)
        except (OverflowError, ValueError):  # 30 February, or before the year 1
            continue
        if span is not None and (span.start is None or span.start <= now):
            found.append(span)
            phrases.append(" ".join(read[match.start() : match.end()].split()))
    together = _together(found)
    if together.start is None and together.end is None:
        return None
    since_us = MIN_TIME_US if together.start is None else max(MIN_TIME_US, _us(together.start) - offset_us)
    until_us = MAX_TIME_US if together.end is None else min(MAX_TIME_US, _us(together.end) - offset_us - 1)
    return TimeRange(", ".join(phrases), since_us, until_us) if since_us <= until_us else None  # which is only false where time begins or ends


def _us(time: datetime) -> int:
    return (time - EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1)


def _together(spans: list[Span]) -> Span:
    """Bounds from either side meet ("after March and before June"); anything else is spanned."""
    if not spans:
        return Span(None, None)
    since, until = [span for span in spans if span.end is None], [span for span in spans if span.start is None]
    if since and until and len(since) + len(until) == len(spans):
        start, end = max(span.start for span in since if span.start), min(span.end for span in until if span.end)
        return Span(start, end) if start < end else Span(None, None)
    starts, ends = [span.start for span in spans if span.start], [span.end for span in spans if span.end]
    return Span(min(starts) if len(starts) == len(spans) else None, max(ends) if len(ends) == len(spans) else None)


def _understood(match: re.Match[str], text: str, now: datetime, asks_advice: bool) -> Span | None:
    m = {name: value for name, value in match.groupdict().items() if value is not None}
    before, after = match.string[: match.start()], match.string[match.end() :]
    if "first" in m:
        last, _ = _read(m["last"], now)
        assert last.start is not None
        first, reading = _read(m["first"], now)
        if not reading.certain:  # without a year of its own it is the one that the other end allows
            first, _ = _read(m["first"], last.start)
        return Span(first.start, last.end) if first.start is not None and last.end is not None and first.start < last.end else None
    if "anchor" in m:
        unit = m["unit"].rstrip("s")
        anchor, _ = _read(m["anchor"], now)
        return around(anchor, _count(m["count"])[1] if "count" in m else 1, unit if unit in UNITS else WEEK, m["direction"] in ("after", "following"))
    if "begun" in m:
        return Span(unit_start(now, m["begun"]), None)
    point = next(m[name] for name in ("until_point", "since_point", "onward", "on", "in", "certain", "bare") if name in m)
    span, reading = _read(point, now)
    if "until" in m or "since" in m or "onward" in m:
        if _PERSON.fullmatch(" ".join(match[0].split())) or _POSSESSIVE.match(after):
            return None
        if "since" in m:
            return Span(span.start if m["since"] == "since" else span.end, None)
        return Span(span.start, None) if "onward" in m else Span(None, span.end if m["until"] in ("until", "till", "up to", "as of") else span.start)
    if (_NOT_BEFORE.search(before) and not _PREPOSITION.match(match[0])) or ("bare" in m and _NO_BARE.search(before)):
        return None
    if not reading.certain and (_POSSESSIVE.match(after) or _PERSON.fullmatch(" ".join(match[0].split()))):
        return None
    if asks_advice and (reading.present or (not reading.certain and not re.search(r"\d{4}", point))):
        return None
    if (reading in DAYS and _OTHER_DAY.match(after)) or (point.split()[-1] in SEASONS and _CAPITAL.match(text[match.end() :])):
        return None
    clause = _CLAUSE.search(before)
    if clause is None:
        return span
    return Span(span.start, None) if clause[1] else Span(None, span.end)


def _read(point: str, now: datetime) -> tuple[Span, Reading]:
    for pattern, reading in _MATCHERS:
        match = pattern.fullmatch(point)
        if match is not None:
            return reading.span(now, {name: value for name, value in match.groupdict().items() if value is not None}), reading
    raise AssertionError(point)
