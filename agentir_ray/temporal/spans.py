"""Calendar arithmetic: the span of time that a day, a week, a month, a season or "two weeks ago" stands for.

It knows no words. Everything is relative to a `now` that it is given; datetimes are naive, in whatever offset the caller counts days. A span is half open, and open-ended where a
bound is None. Weeks begin on Monday (ISO 8601), seasons are the northern hemisphere's meteorological ones. What lies outside the years 1 to 9999 raises OverflowError or
ValueError.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from dateutil.relativedelta import relativedelta

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the month in which each begins
DAY, WEEK, MONTH, YEAR = "day", "week", "month", "year"
CLOCK = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
UNITS = {DAY: relativedelta(days=1), WEEK: relativedelta(weeks=1), MONTH: relativedelta(months=1), YEAR: relativedelta(years=1)}
_DAYS = {DAY: 1.0, WEEK: 7.0, MONTH: 30.44, YEAR: 365.25}


class Span(NamedTuple):
    """From `start` up to, not including, `end`; None: open."""

    start: datetime | None
    end: datetime | None


def midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


def unit_start(time: datetime, unit: str) -> datetime:
    """The beginning of the day, week, month or year that holds `time`."""
    day = midnight(time)
    if unit == WEEK:
        return day - timedelta(days=day.weekday())
    return day if unit == DAY else day.replace(day=1) if unit == MONTH else day.replace(month=1, day=1)


def calendar(time: datetime, unit: str, units: int = 0) -> Span:
    """The calendar unit that holds `time`, or the one `units` of them later."""
    start = unit_start(time, unit) + UNITS[unit] * units
    return Span(start, start + UNITS[unit])


def day(year: int, month: int, number: int) -> Span:
    return calendar(datetime(year, month, number), DAY)


def month(year: int, number: int) -> Span:
    return calendar(datetime(year, number, 1), MONTH)


def year(number: int) -> Span:
    return calendar(datetime(number, 1, 1), YEAR)


def quarter(year: int, number: int) -> Span:
    start = datetime(year, 3 * number - 2, 1)
    return Span(start, start + relativedelta(months=3))


def season(year: int, name: str) -> Span:
    """Winter 2022 is that which begins in December 2022."""
    start = datetime(year, SEASONS[name], 1)
    return Span(start, start + relativedelta(months=3))


def weekday(now: datetime, number: int) -> Span:
    """The last such day (0: Monday) that was over before today began."""
    today = midnight(now)
    return calendar(today - timedelta(days=(today.weekday() - number - 1) % 7 + 1), DAY)


def weekend(now: datetime) -> Span:
    """The last Saturday and Sunday that were over before today began."""
    start = weekday(now, 6).start
    assert start is not None
    return Span(start - timedelta(days=1), start + timedelta(days=1))


def part_of_day(day: datetime, name: str) -> Span:
    """Generous, for they are nobody's definition: a night lasts from 18:00 to 6:00."""
    first, end = {"morning": (0, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}[name]
    start = midnight(day)
    return Span(start + timedelta(hours=first), start + timedelta(hours=end))


def rolling(now: datetime, count: int, unit: str) -> Span:
    """The last `count` units up to now; whole days, but for hours and minutes."""
    start = now - CLOCK[unit] * count if unit in CLOCK else midnight(now - UNITS[unit] * count)
    return Span(start, now + timedelta(microseconds=1))


def ago(now: datetime, least: int, most: int, unit: str) -> Span:
    """What "`least` to `most` units ago" can mean: half a unit, or a tenth of the distance, to either side, in whole days; a number of days below ten is taken at its word."""
    if unit in CLOCK:
        half = CLOCK[unit] / 2
        return Span(now - CLOCK[unit] * most - half, now - CLOCK[unit] * least + half)
    slack = [timedelta(days=int(_DAYS[unit] * max(0.5, count / 10))) for count in (most, least)]
    return Span(midnight(now - UNITS[unit] * most - slack[0]), midnight(now - UNITS[unit] * least + slack[1]) + timedelta(days=1))


def around(named: Span, count: int, unit: str, after: bool) -> Span:
    """From `named` to `count` units before, or after it, and half a unit more: "two weeks before 11 August" is told of both by the time and by the date."""
    assert named.start is not None
    assert named.end is not None
    reach = UNITS[unit] * count + timedelta(days=int(_DAYS[unit] / 2))
    return Span(named.start, named.end + reach) if after else Span(named.start - reach, named.end)
