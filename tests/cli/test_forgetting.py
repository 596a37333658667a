"""forget and drop."""

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
