"""forget, retain and drop."""

import json
from pathlib import Path

from agentir_ray import Memory
from tests.cli.conftest import Run


def count(run: Run, *arguments: str) -> int:
    return len(json.loads(run("recent", "--json", *arguments).out)["records"])


def test_forget_by_filter_after_a_dry_run(run: Run) -> None:
    for session in ("s1", "s1", "s2"):
        run("add", "tea", "--session", session)
    where = ("--where", '{"session": {"eq": "s1"}}')
    assert "2 records would be forgotten" in run("forget", *where, "--dry-run").out
    assert count(run) == 3
    assert "2 records forgotten" in run("forget", *where).out
    assert count(run) == 1


def test_forget_by_id_and_wait(run: Run) -> None:
    run("add", "tea", "--id", "a")
    run("add", "tea", "--id", "b")
    receipt = json.loads(run("forget", "--id", "a", "--wait", "--json").out)
    assert (receipt["ids"], receipt["hidden"], receipt["purged"]) == (["a"], True, True)
    assert count(run) == 1


def test_f01_an_empty_filter_is_refused(run: Run) -> None:
    run("add", "tea")
    assert "say what to forget" in run("forget", code=2).err
    run("forget", "--where", "{}", code=2)
    assert count(run) == 1


def test_drop_asks_and_touches_its_namespace_only(run: Run) -> None:
    run("add", "tea", "-n", "acme")
    run("add", "tea", "-n", "acme-corp")
    assert "--yes" in run("drop", "-n", "acme", code=2).err
    assert count(run, "-n", "acme") == 1
    run("drop", "-n", "acme", "--yes")
    assert count(run, "-n", "acme-corp") == 1
    run("search", "tea", "-n", "acme", code=3)


def test_a_dry_run_only_reads(run: Run, store: Path) -> None:
    with Memory.open(store) as writer:
        writer.add("tea", id="a")
        assert "1 record would be forgotten" in run("forget", "--id", "a", "--dry-run").out
        run("forget", "--id", "a", code=5)


def test_retain_shows_what_would_go_and_does_it_when_told(run: Run, store: Path) -> None:
    for day in range(1, 6):
        run("add", f"tea {day}", "--id", str(day), "--timestamp", f"2026-01-0{day}", "--importance", "0.9" if day == 1 else "0.1")
    rules = ("retain", "--keep-last", "2", "--pinned", '{"importance": {"gte": 0.5}}')
    with Memory.open(store):  # a dry run only reads
        shown = run(*rules).out
    assert "2 records would be forgotten, from 2026-01-02 00:00 to 2026-01-03 00:00; 3 stay, 1 of them because they are pinned" in shown
    assert count(run) == 5
    plan = json.loads(run(*rules, "--json").out)["plan"]
    assert f"--plan {plan} --apply" in shown
    run("add", "tea 6", "--id", "6", "--timestamp", "2026-01-06")
    assert "2 records forgotten" in run("retain", "--plan", plan, *rules[-2:], "--apply", "--wait").out
    assert [record["id"] for record in json.loads(run("recent", "--json").out)["records"]] == ["6", "5", "4", "1"]
    receipt = json.loads(run("retain", "--max-age", "2d", "--as-of", "2026-01-07", "--apply", "--wait", "--json").out)
    assert (receipt["count"], receipt["kept"], receipt["hidden"], receipt["purged"], receipt["oldest"]) == (2, 2, True, True, "2026-01-01 00:00:00+00:00")
    assert run("retain", "--keep-last", "9", "--apply").out == "there was nothing to forget; 2 stay\n"
    assert "say what to keep" in run("retain", code=2).err
    assert "--pinned is not JSON" in run("retain", "--keep-last", "1", "--pinned", "x", code=2).err
    assert "typo" in run("retain", "--keep-last", "1", "-n", "typo", code=3).err


def test_a_namespace_that_is_not_there_is_not_dropped(run: Run) -> None:
    run("add", "tea", "-n", "chats/a")
    run("add", "tea", "-n", "chats/b")
    assert "the store has chats/a, chats/b" in run("drop", "-n", "typo", "--yes", code=3).err
    assert "below it are chats/a, chats/b" in run("drop", "-n", "chats", "--yes", code=3).err
    assert count(run, "-n", "chats/a") == 1
    assert json.loads(run("drop", "-n", "chats/a", "--yes", "--json").out) == {"dropped": ["chats/a"]}
    assert "chats/b" in run("drop", "-n", "chats", "--below", code=2).err
    assert run("drop", "-n", "chats", "--below", "--yes").out == "dropped chats/b\n"
    run("drop", "-n", "chats", "--below", "--yes", code=3)


def test_forgetting_what_is_not_there_says_so(run: Run) -> None:
    run("add", "tea")
    assert run("forget", "--id", "nobody").out == "there was nothing to forget\n"
