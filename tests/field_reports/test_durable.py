"""F04 to F09 and F11: what was acknowledged stays, whoever else is there and whatever fails. `tests/crash` goes through F04, F05 and F07 at every step."""

import logging
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_data_path
from typer.testing import CliRunner

import agentir_ray
from agentir_ray import ConflictError, DamagedError, ErasedError, InvalidInputError, Memory, StorageFullError, StoreLockedError
from agentir_ray.cli import app
from agentir_ray.cli.options import default_store
from agentir_ray.clock import ManualClock
from agentir_ray.engine import compaction
from agentir_ray.engine.policy import Limits
from tests.field_reports.conftest import Open


def found(memory: Memory, query: str = "secret") -> list[str]:
    return sorted(hit.record.id for hit in memory.search(query, k=1_000))


def test_f04_acknowledged_means_durable_and_searchable(memory: Memory, open_memory: Open) -> None:
    for i in range(5):
        record = memory.add(f"secret {i}", id=str(i))
        assert found(memory) == [str(n) for n in range(i + 1)]
        assert memory.get(record.id) == record
        with open_memory(read_only=True) as another_process:  # it has nothing but the files
            assert found(another_process) == found(memory)


def test_f04_failures_are_per_record(memory: Memory) -> None:
    items: list[Any] = [{"text": "secret", "id": "a"}, {"text": "secret", "importance": 2}, "secret", {"text": "secret", "id": "a", "role": "user"}, {"text": "secret", "id": "b"}]
    outcomes = memory.add_many(items)
    assert [getattr(outcome, "id", type(outcome)) for outcome in outcomes] == ["a", InvalidInputError, InvalidInputError, ConflictError, "b"]
    assert found(memory) == ["a", "b"]


def test_f05_nothing_is_removed_before_its_replacement_is_there(open_memory: Open, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_memory(limits=Limits(seal_at=4, max_unsealed=1_000))
    for i in range(7):
        memory.add("secret", id=str(i))
    before = set(store.rglob("*.segment"))
    assert before

    def refuse(*arguments: Any) -> None:
        raise StorageFullError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(compaction, "write_file", refuse)
        for i in range(7, 20):
            memory.add("secret", id=str(i))  # sealing and merging fail behind it; the record is safe
            assert len(found(memory)) == i + 1
        assert before <= set(store.rglob("*.segment"))
    memory.add("secret", id="20")  # and there is room again
    assert set(store.rglob("*.segment")) != before
    memory.close()
    assert len(found(open_memory())) == 21


def test_f06_f11_a_second_writer_is_refused_at_once_naming_the_owner(memory: Memory, open_memory: Open, store: Path) -> None:
    import os

    memory.add("secret", id="a")
    started = time.monotonic()
    with pytest.raises(StoreLockedError, match=f"pid.*{os.getpid()}|{os.getpid()}"):
        open_memory("acme/bob")
    assert time.monotonic() - started < 1.0
    memory.add("secret", id="b")  # the first one goes on
    with open_memory(read_only=True) as reader:
        assert found(reader) == ["a", "b"]
    memory.close()
    assert found(open_memory()) == ["a", "b"]


def test_f07_a_damaged_row_costs_nobody_else_anything(memory: Memory, open_memory: Open, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("acme/alice", "acme/bob"):
        for i in range(3):
            memory.use(name).add("secret", id=str(i))
    memory.close()
    with sqlite3.connect(store / "log.sqlite3") as database:
        database.execute("UPDATE entries SET body = zeroblob(length(body)) WHERE id = ? AND namespace = (SELECT number FROM namespaces WHERE name = ?)", (b"1", b"acme/alice"))
    database.close()
    again = open_memory()
    assert found(again.use("acme/bob")) == ["0", "1", "2"]
    with pytest.raises(DamagedError, match=r"log\.sqlite3.*agentir"):
        again.search("secret")
    assert [problem.file for problem in again.verify()] == [str(store / "log.sqlite3")]
    with caplog.at_level(logging.WARNING):
        assert [record.id for record in again.export(salvage=True)] == ["0", "2"]
    assert "skipped" in caplog.text


def test_f07_a_torn_segment_is_rebuilt_from_the_log(open_memory: Open, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    memory = open_memory(limits=Limits(seal_at=4))
    for i in range(4):
        memory.add("secret", id=str(i))
    memory.close()
    (segment,) = store.rglob("*.segment")
    segment.write_bytes(segment.read_bytes()[:-100])
    with caplog.at_level(logging.WARNING):
        assert found(open_memory()) == ["0", "1", "2", "3"]
    assert segment.name in caplog.text


def test_f08_the_command_line_keeps_data_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("AGENTIR_STORE", raising=False)
    package = Path(agentir_ray.__file__).resolve().parent
    assert default_store() == user_data_path("agentir")
    assert tmp_path in default_store().parents and package not in default_store().resolve().parents
    result = CliRunner().invoke(app, ["add", "secret", "--id", "a"])
    assert result.exit_code == 0, result.output
    with Memory.open(default_store(), read_only=True) as memory:
        assert found(memory) == ["a"]
    assert not list(package.rglob("*.sqlite3"))


def test_f09_a_retry_returns_the_first_record(memory: Memory, clock: ManualClock, open_memory: Open) -> None:
    arguments: dict[str, Any] = {"text": "secret", "id": "a", "metadata": {"b": 1, "a": [2]}}
    first = memory.add(**arguments)
    clock.advance(30)
    assert memory.add(**arguments) == first
    memory.close()
    memory = open_memory()
    clock.advance(86_400 * 400)
    assert memory.add(**arguments) == first
    assert found(memory) == ["a"] and memory.stats()["namespace"]["last_seq"] == 1
    with pytest.raises(ConflictError, match="id 'a' is taken"):
        memory.add(**arguments | {"role": "user"})


def test_f09_a_retried_update_or_forget_happens_once(memory: Memory) -> None:
    memory.add("secret one", id="a")
    first = memory.update("a", text="secret two", operation_id="u1")
    assert memory.update("a", text="secret two", operation_id="u1") == first
    now = memory.update("a", text="secret three")
    assert memory.update("a", text="secret two", operation_id="u1") == memory.get("a") == now
    memory.add("secret", id="b", session="s")
    receipt = memory.forget({"session": {"eq": "s"}}, operation_id="f1")
    memory.add("secret", id="c", session="s")  # came after the first try; the retry does not take it
    assert memory.forget({"session": {"eq": "s"}}, operation_id="f1").ids == receipt.ids == ("b",)
    assert found(memory) == ["a", "c"]


def test_f09_an_operation_id_is_for_one_operation(memory: Memory) -> None:
    memory.add("secret", id="a")
    memory.add("secret", id="b")
    memory.update("a", text="secret two", operation_id="x")
    memory.forget(ids=["nobody"], operation_id="y")
    for call in (lambda: memory.update("b", text="other", operation_id="x"), lambda: memory.forget(ids=["b"], operation_id="x"), lambda: memory.update("b", operation_id="y")):
        with pytest.raises(ConflictError, match=r"operation_id '[xy]' belongs to"):
            call()
    assert found(memory) == ["a", "b"]


def test_an_operation_keeps_nothing_of_what_is_erased(memory: Memory, store: Path) -> None:
    memory.add("before", id="a")
    memory.update("a", text="a very secret text", operation_id="u1")
    assert memory.forget(ids=["a"], wait=True).purged
    for path in store.rglob("*"):
        assert path.is_dir() or b"secret" not in path.read_bytes()


def test_f09_a_late_retry_of_an_erased_id_does_not_bring_it_back(memory: Memory, open_memory: Open) -> None:
    memory.add("secret", id="a")
    memory.forget(ids=["a"])
    memory.close()
    with pytest.raises(ErasedError, match="an erased id does not come back"):
        open_memory().add("secret", id="a")
