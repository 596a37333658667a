"""add, search, recent: what is written is found, as a table and as JSON."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Run


def hits(run: Run, *arguments: str) -> list[Any]:
    return json.loads(run("search", *arguments, "--json").out)["hits"]


def test_what_is_added_is_found(run: Run) -> None:
    run("add", "Alice moved to Lisbon", "--id", "a", "--timestamp", "2026-03-02T09:00", "--session", "s1", "--importance", "0.5", "--metadata", '{"mood": "glad"}')
    run("add", "Bob stayed in Ghent")
    table = run("search", "where did Alice move?").out
    assert "2026-03-02 09:00" in table
    assert "Alice moved to Lisbon" in table
    assert "time:" in table
    assert "coverage: auto; exact" in table
    (hit,) = hits(run, "Lisbon")
    assert hit["namespace"] == "default"
    assert hit["record"]["metadata"] == {"mood": "glad"}
    assert hit["record"]["timestamp"] == "2026-03-02T09:00:00.000000Z"


def test_the_text_may_come_from_standard_input(run: Run) -> None:
    run("add", "-", input="a piped thought")
    assert len(hits(run, "piped")) == 1


def test_f09_the_same_id_twice_is_one_record(run: Run) -> None:
    run("add", "once", "--id", "a")
    run("add", "once", "--id", "a")
    assert len(hits(run, "once")) == 1
    assert "agentir: " in run("add", "other", "--id", "a", code=4).err


def test_options_of_search_reach_the_engine(run: Run) -> None:
    for day in range(1, 6):
        run("add", f"tea on day {day}", "--timestamp", f"2026-01-0{day}", "--session", f"s{day % 2}", "--role", "user")
    assert len(hits(run, "tea", "-k", "2")) == 2
    assert len(hits(run, "tea", "--since", "2026-01-02", "--until", "2026-01-04")) == 3
    assert len(hits(run, "tea", "--session", "s0")) == 2
    assert len(hits(run, "tea", "--where", '{"session": {"eq": "s1"}}')) == 3
    assert [hit["record"]["text"] for hit in hits(run, "tea", "-k", "1", "--recency", "5:1d", "--as-of", "2099-01-01")]
    (hit,) = hits(run, "tea", "-k", "1", "--explain")
    assert hit["explanation"]["terms"][0]["df"] == 5
    assert "# 1:" in run("search", "tea", "--explain").out


def test_a_time_in_the_question_narrows_the_search_and_is_shown(run: Run) -> None:
    for month in (2, 3, 4):
        run("add", f"tea in month {month}", "--timestamp", f"2025-0{month}-02")
    arguments = ("when was tea drunk in March 2025?", "--temporal", "parse")
    assert "understood: 'in March 2025' as 2025-03-01 00:00:00 UTC to 2025-03-31 23:59:59 UTC" in run("search", *arguments).out
    answer = json.loads(run("search", *arguments, "--json").out)
    assert [hit["record"]["text"] for hit in answer["hits"]] == ["tea in month 3"]
    assert answer["time_range"] == {"phrase": "in March 2025", "since": "2025-03-01 00:00:00+00:00", "until": "2025-03-31 23:59:59.999999+00:00"}
    assert "understood: 'since March 2025' as since 2025-03-01 00:00:00 UTC" in run("search", "tea since March 2025", "--temporal", "parse").out
    plain = run("search", "tea", "--temporal", "parse").out
    assert "understood" not in plain
    assert json.loads(run("search", "tea", "--json").out)["time_range"] is None
    assert "temporal is 'yes'" in run("search", "tea", "--temporal", "yes", code=2).err


def test_nothing_found_is_said(run: Run) -> None:
    run("add", "tea")
    assert "nothing found" in run("search", "coffee").out
    answer = run("search", "coffee", "-n", "nobody", code=3)
    assert "nobody" in answer.err
    assert "the store has default" in answer.err


def test_a_namespace_that_holds_nothing_asks_those_below_it(run: Run) -> None:
    run("add", "red tea", "-n", "acme/alice")
    run("add", "green tea", "-n", "acme/bob")
    run("add", "black tea", "-n", "acme-corp/carol")
    found = hits(run, "tea", "-n", "acme")
    assert {hit["namespace"] for hit in found} == {"acme/alice", "acme/bob"}
    table = run("search", "tea", "-n", "acme").out
    assert "acme/bob" in table
    assert "2 namespaces" in table
    assert len(hits(run, "tea", "-n", "acme", "-k", "1", "--offset", "1")) == 1
    run("add", "own tea", "-n", "acme")
    assert [hit["namespace"] for hit in hits(run, "tea", "-n", "acme")] == ["acme"]


def test_recent_pages_from_the_newest(run: Run) -> None:
    for day in range(1, 4):
        run("add", f"day {day}", "--timestamp", f"2026-01-0{day}")
    page = json.loads(run("recent", "--limit", "2", "--json").out)
    assert [record["text"] for record in page["records"]] == ["day 3", "day 2"]
    rest = json.loads(run("recent", "--limit", "2", "--cursor", page["cursor"], "--json").out)
    assert [record["text"] for record in rest["records"]] == ["day 1"]
    assert "day 3" in run("recent").out


def test_texts_cannot_write_to_the_terminal(run: Run) -> None:
    run("add", "red \x1b[31m alert [bold]bold[/bold]")
    out = run("search", "alert").out
    assert "\x1b" not in out
    assert "[bold]bold[/bold]" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--where", "{"),
        ("search", "x", "--where", "[]"),
        ("search", "x", "--where", '{"session": {"like": "x"}}'),
        ("search", "x", "--recency", "soon"),
        ("search", "x", "--since", "yesterday"),
        ("search", "x", "-k", "0"),
        ("search", "x", "--mode", "magic"),
        ("search", "x", "--coverage", "2"),
        ("add", "x", "--importance", "2"),
        ("add", "x", "--importance", "nan"),
        ("add", "x", "--metadata", "1"),
        ("add", "x", "-n", "//"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    run("add", "something")
    outcome = run(*arguments, code=2)
    assert outcome.err.startswith("agentir: ")
    assert "Traceback" not in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_namespace_that_only_has_others_below_it_names_them(run: Run) -> None:
    run("add", "tea", "-n", "chats/a")
    for command in (("recent",), ("export",), ("forget", "--id", "x", "--dry-run")):
        assert "below it are chats/a" in run(*command, "-n", "chats", code=3).err
    found = json.loads(run("stats", "-n", "chats", "--json").out)
    assert (found["namespace"], found["below"]) == (None, ["chats/a"])
    assert "the store has chats/a" in run("search", "tea", "-n", "typo", code=3).err


def test_standard_input_is_added_without_the_newline_that_ends_it(run: Run) -> None:
    assert json.loads(run("add", "-", "--json", input="one\ntwo\n").out)["text"] == "one\ntwo"


def test_one_partition_is_no_partitions(run: Run) -> None:
    run("add", "tea", "--id", "1", "--timestamp", "2026-01-01")
    assert "1 partition searched" in run("search", "tea").out
    assert run("repartition", "1d").out == "1 partition of 1d\n"
    run("add", "tea", "--id", "2", "--timestamp", "2026-01-03")
    assert "2 partitions searched" in run("search", "tea").out
    assert run("repartition", "2h").out == "2 partitions of 2h\n"
