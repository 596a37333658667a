"""Many records at once: every item has its outcome, whatever fails, and the caller's iterator runs while nothing is held."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agentir_ray import AgentIRError, Memory, NotFoundError, Record, StorageFullError, UnknownOutcomeError
from agentir_ray.engine.writing import COMMIT_RECORDS


def fail_commit(memory: Memory, monkeypatch: pytest.MonkeyPatch, number: int, error: AgentIRError) -> None:
    """The `number`-th commit from now (1: the next) fails."""
    log = memory._store.writer
    commit, count = log.commit, 0

    def failing(batches: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            raise error
        return commit(batches)

    monkeypatch.setattr(log, "commit", failing)


def items(count: int) -> list[dict[str, Any]]:
    return [{"text": f"rain {n}"} for n in range(count)]


def test_a_full_disk_at_the_third_commit_costs_the_records_of_the_third_commit(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_commit(memory, monkeypatch, 3, StorageFullError("no space left"))
    given = [*items(2 * COMMIT_RECORDS), {"text": 5}, *items(COMMIT_RECORDS)]
    outcomes = memory.add_many(iter(given))
    kinds = [type(outcome) for outcome in outcomes]
    refused = kinds.index(StorageFullError)
    assert len(outcomes) == len(given) and kinds.count(Record) == 2 * COMMIT_RECORDS + 1 and kinds.count(StorageFullError) == COMMIT_RECORDS - 1
    assert "text is an int" in str(outcomes[refused - 1]), "an item's own fault is told in place of the commit's"
    kept = [outcome.id for outcome in outcomes if isinstance(outcome, Record)]
    assert [record.id for record in memory.export()] == kept
    retried = memory.add_many(item for item, outcome in zip(given, outcomes, strict=True) if isinstance(outcome, StorageFullError))
    assert all(isinstance(outcome, Record) for outcome in retried)
    assert len(list(memory.export())) == len(given) - 1


def test_an_import_counts_what_it_stored_before_the_disk_was_full(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_commit(memory, monkeypatch, 3, StorageFullError("no space left"))
    report = memory.import_(items(3 * COMMIT_RECORDS))
    assert (report.added, len(report.failed)) == (2 * COMMIT_RECORDS, COMMIT_RECORDS)


def test_whoever_does_not_know_whether_it_was_stored_can_ask_again_by_the_id(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.add("before")
    fail_commit(memory, monkeypatch, 1, UnknownOutcomeError("the commit was interrupted"))
    with pytest.raises(UnknownOutcomeError) as raised:
        memory.add("rain")
    (id,) = raised.value.ids
    assert id in str(raised.value)
    monkeypatch.undo()
    assert memory.use(memory.namespace).add("rain", id=id).id == id
    assert [record.text for record in memory.export()] == ["before", "rain"]


@pytest.mark.parametrize("verb", ["add_many", "import_"])
def test_the_iterator_may_use_the_store(memory: Memory, verb: str) -> None:
    def drops() -> Iterator[dict[str, Any]]:
        for n in range(2 * COMMIT_RECORDS + 1):
            if n == COMMIT_RECORDS + 5:
                assert memory.drop()
            yield {"text": "rain", "id": str(n)}

    done = threading.Thread(target=lambda: getattr(memory, verb)(drops()), daemon=True)
    done.start()
    done.join(60)
    assert not done.is_alive()
    assert len(list(memory.export())) == COMMIT_RECORDS + 1


@pytest.mark.parametrize("verb", ["add_many", "import_"])
def test_an_iterator_that_waits_holds_up_nobody(memory: Memory, verb: str) -> None:
    asked, dropped = threading.Event(), threading.Event()

    def waits() -> Iterator[dict[str, Any]]:
        yield {"text": "rain"}
        asked.set()
        assert dropped.wait(60)

    thread = threading.Thread(target=lambda: getattr(memory, verb)(waits()), daemon=True)
    thread.start()
    assert asked.wait(60)
    dropping = threading.Thread(target=memory.drop, daemon=True)
    dropping.start()
    dropping.join(60)
    assert not dropping.is_alive()
    dropped.set()
    thread.join(60)
    assert [record.text for record in memory.export()] == ["rain"]


def test_what_an_import_counts_is_its_own(memory: Memory) -> None:
    def beside_another_writer() -> Iterator[dict[str, Any]]:
        memory.add("mine", id="a")  # later than what the import began with, and yet not its own
        yield {"text": "mine", "id": "a"}
        yield {"text": "new", "id": "b"}

    report = memory.import_(beside_another_writer())
    assert (report.added, report.duplicates, report.failed) == (1, 1, [])


def test_an_export_is_imported_whole_whatever_happened_to_what_was_superseded(memory: Memory) -> None:
    memory.add_many([{"id": id, "text": "rain"} for id in ("forgotten", "updated")])
    memory.add_many([{"id": f"for {id}", "text": "snow", "supersedes": id} for id in ("forgotten", "updated")])
    memory.forget(ids=["forgotten"])
    memory.update("updated", text="rain again")
    exported = [{"id": record.id, "text": record.text, "supersedes": record.supersedes} for record in memory.export()]
    copy = memory.use("copy")
    assert copy.import_(exported).failed == []
    assert [hit.record.id for hit in copy.search("rain snow")] == [hit.record.id for hit in memory.search("rain snow")]
    with pytest.raises(NotFoundError):
        copy.add("typo", supersedes="nobody")


def test_a_record_keeps_the_metadata_that_was_given_then(memory: Memory) -> None:
    given: dict[str, Any] = {"flat": 1, "list": [{"deep": [1]}], "dict": {"a": {"b": 1}}}
    record = memory.add("rain", id="a", metadata=given)
    before = {"flat": 1, "list": [{"deep": [1]}], "dict": {"a": {"b": 1}}}
    given["flat"] = 2
    given["list"][0]["deep"].append(2)
    given["dict"]["a"]["b"] = 2
    assert record.metadata == before == memory.get("a").metadata


def test_a_retry_returns_the_record_as_it_is_now(memory: Memory) -> None:
    memory.add("rain", id="a")
    updated = memory.update("a", text="snow")
    assert memory.add("rain", id="a") == updated


def test_a_hit_that_exceeds_the_budget_leaves_room_for_those_behind_it(memory: Memory) -> None:
    memory.add("rain", id="short", timestamp=1)
    memory.add("rain " * 50, id="long", timestamp=2)
    memory.add("rain again", id="middle", timestamp=3)
    ranked = [hit.record.id for hit in memory.search("rain")]
    assert ranked[0] == "long"
    assert [hit.record.id for hit in memory.search("rain", max_tokens=20)] == ranked[1:]
    assert [hit.record.id for hit in memory.search("rain", max_tokens=1)] == ["short"]
