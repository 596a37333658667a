"""`temporal="parse"`: what the question says of time narrows the search, within what the caller says of it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from agentir_ray import InvalidInputError, Memory, TimeRange
from agentir_ray.clock import ManualClock
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, to_time_us

NOW = "2023-06-14T15:00:00"


@pytest.fixture
def days(memory: Memory) -> Memory:
    """A record a day, named by it, up to today."""
    first = datetime(2023, 3, 1, 12)
    memory.import_({"id": f"{day:%m-%d}", "text": "rain", "timestamp": day, "created_at": day} for day in (first + timedelta(days=n) for n in range(106)))
    return memory


def found(memory: Memory, query: str, **parameters: Any) -> list[str]:
    return sorted(hit.record.id for hit in memory.search(query, k=200, as_of=NOW, **{"temporal": "parse"} | parameters).hits)


def test_the_range_is_searched_and_told(days: Memory) -> None:
    result = days.search("was there rain between 10 and 12, I mean on 5 May?", k=200, as_of=NOW, temporal="parse")
    assert [hit.record.id for hit in result.hits] == ["05-05"]
    assert result.time_range == TimeRange("on 5 May", to_time_us("2023-05-05"), to_time_us("2023-05-06") - 1)
    assert found(days, "rain last week") == [f"06-{day:02}" for day in range(5, 12)]
    assert found(days, "rain before 3 March") == ["03-01", "03-02"]
    assert found(days, "rain in 2020") == []


def test_nothing_is_parsed_unless_asked_for_and_nothing_changes_where_nothing_is_understood(days: Memory) -> None:
    plain = days.search("rain yesterday", k=200, as_of=NOW)
    assert plain.time_range is None
    assert len(plain.hits) == 106
    for query in ("rain", "may rain fall on the march?", "rain tomorrow"):
        result = days.search(query, k=200, as_of=NOW, temporal="parse")
        assert result.time_range is None
        assert result.hits == days.search(query, k=200, as_of=NOW).hits


def test_the_callers_range_holds_as_well(days: Memory) -> None:
    assert found(days, "rain in April", since="2023-04-28") == ["04-28", "04-29", "04-30"]
    assert found(days, "rain in April", until="2023-04-02") == ["04-01"]
    assert found(days, "rain in April", since="2023-01-01", until="2023-12-31") == found(days, "rain in April")


def test_where_both_have_nothing_in_common_the_callers_wins(days: Memory) -> None:
    result = days.search("rain in April", k=200, as_of=NOW, since="2023-06-13", temporal="parse")
    assert [hit.record.id for hit in result.hits] == ["06-14", "06-13"]
    assert result.time_range is None


def test_without_as_of_now_is_the_clocks(memory: Memory, clock: ManualClock) -> None:
    clock.advance(to_time_us(NOW) / 1e6 - clock.now_us() / 1e6)
    memory.add("rain", id="then", timestamp="2023-06-13T23:59:59.999999")
    memory.add("rain", id="now")
    result = memory.search("rain yesterday", temporal="parse")
    assert [hit.record.id for hit in result.hits] == ["then"]
    assert result.time_range is not None
    assert result.time_range.since == datetime.fromisoformat("2023-06-13T00:00+00:00")


def test_an_open_range_says_so(days: Memory) -> None:
    until = days.search("rain until yesterday", as_of=NOW, temporal="parse").time_range
    assert until is not None
    assert (until.since_us, until.since) == (MIN_TIME_US, None)
    since = days.search("rain since Monday", as_of=NOW, temporal="parse").time_range
    assert since is not None
    assert (since.until_us, since.until) == (MAX_TIME_US, None)


def test_another_value_is_refused_by_name(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match=r"temporal is .*auto.*; give .parse."):
        memory.search("rain", temporal="auto")
