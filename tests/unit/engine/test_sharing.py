"""Who may share a store: threads may, one writer and any readers may, a forked child may not, and nobody after it was closed."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import AgentIRError, ForkedError, Memory, ReadOnlyError, Record, StoreClosedError, StoreLockedError
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import FOLLOW_EVERY_NS


def found(memory: Memory, query: str = "rain", **parameters: Any) -> list[str]:
    return sorted(hit.record.id for hit in memory.search(query, k=1_000, **parameters))


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(i: int) -> None:
        try:
            work(i)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


def test_eight_threads_on_three_namespaces(tmp_path: Path) -> None:
    """Each thread owns ids; what it wrote it finds at once, what it erased nobody finds. At the end the store, opened anew, is what the threads remember."""
    names = ["a", "a/b", "c"]
    alive: dict[str, dict[str, Record]] = {name: {} for name in names}
    options: dict[str, Any] = {"clock": ManualClock(), "durability": "process", "limits": Limits(seal_at=16, max_unsealed=40), "memory_budget_bytes": 200_000}
    with Memory.open(tmp_path / "store", **options) as memory:

        def work(thread: int) -> None:
            for step in range(60):
                name = names[(thread + step) % 3]
                mine, id = memory.use(name), f"{thread}-{step}"
                record = mine.add(f"rain thread{thread} step{step}", id=id, session=f"t{thread}")
                assert mine.get(id) == record
                assert id in found(mine, f"step{step}", session=f"t{thread}")
                alive[name][id] = record
                if step % 4 == 3:
                    updated = mine.update(id, text=f"rain again thread{thread}")
                    assert updated.seq > record.seq
                    alive[name][id] = updated
                if step % 5 == 4:
                    gone = f"{thread}-{step - 3}"  # was written to the same namespace
                    assert mine.forget(ids=[gone]).ids == (gone,)
                    del alive[name][gone]
                    assert gone not in found(mine)
                if step % 7 == 0:
                    page = mine.recent(50)
                    assert [(r.timestamp_us, r.seq) for r in page.records] == sorted(((r.timestamp_us, r.seq) for r in page.records), reverse=True)
                    scores = [(hit.score, hit.record.seq) for hit in mine.search("rain again", k=30, explain=True)]
                    assert scores == sorted(scores, reverse=True)

        in_threads(8, work)
        before = {name: [(hit.record, hit.score) for hit in memory.use(name).search("rain thread3 again", k=1_000)] for name in names}
    with Memory.open(tmp_path / "store", **options) as memory:
        for name in names:
            mine = memory.use(name)
            assert {record.id: record for record in mine.export()} == alive[name]
            assert found(mine) == sorted(alive[name])
            assert [(hit.record, hit.score) for hit in mine.search("rain thread3 again", k=1_000)] == before[name]
            log = mine.stats()["namespace"]["last_seq"]
            assert log == sum(1 + (step % 4 == 3) + (step % 5 == 4) for thread in range(8) for step in range(60) if names[(thread + step) % 3] == name)
        assert memory.verify() == []


def test_one_id_from_many_threads_is_one_record(memory: Memory) -> None:
    records: list[Record] = []
    in_threads(8, lambda i: records.append(memory.add("rain", id="same")))
    assert records == [records[0]] * 8
    assert found(memory) == ["same"]


def test_updates_of_one_record_all_happen(memory: Memory) -> None:
    memory.add("rain", id="a")
    seqs: list[int] = []

    def work(i: int) -> None:
        for n in range(5):
            seqs.append(memory.update("a", metadata={str(i): n}).seq)

    in_threads(6, work)
    assert sorted(seqs) == list(range(2, 32))
    assert memory.stats()["namespace"] | {"records": 1, "last_seq": 31} == memory.stats()["namespace"]


def test_drop_while_others_use_it(memory: Memory) -> None:
    def work(i: int) -> None:
        for n in range(30):
            try:
                if i == 0:
                    memory.drop()
                else:
                    memory.add(f"rain {n}")
                    memory.search("rain")
            except AgentIRError as error:
                assert "no namespace" in str(error)

    in_threads(4, work)
    assert memory.verify() == []


def test_a_second_writer_is_refused_and_the_first_goes_on(memory: Memory, tmp_path: Path) -> None:
    memory.add("rain", id="a")
    with pytest.raises(StoreLockedError, match=str(os.getpid())):
        Memory.open(tmp_path / "store")
    memory.add("rain", id="b")
    memory.close()
    with Memory.open(tmp_path / "store", "acme/alice") as again:
        assert found(again) == ["a", "b"]


def test_a_reader_follows_within_a_second(tmp_path: Path, clock: ManualClock) -> None:
    assert FOLLOW_EVERY_NS < 1e9
    limits = Limits(seal_at=8)
    with Memory.open(tmp_path / "store", clock=clock, background=False, limits=limits) as writer:
        writer.add("rain", id="0")
        with Memory.open(tmp_path / "store", clock=clock, read_only=True) as reader:
            assert found(reader) == ["0"]
            expected = {"0"}
            for i in range(1, 40):  # through the buffer, seals and merges
                writer.add("rain", id=str(i))
                expected.add(str(i))
                if i % 3 == 0:
                    writer.update(str(i), text="rain again")
                if i % 7 == 0:
                    writer.forget(ids=[str(i - 1)])
                    expected.remove(str(i - 1))
                clock.advance(FOLLOW_EVERY_NS / 1e9)
                assert found(reader) == sorted(expected)
                assert [record.id for record in reader.export()] == [record.id for record in writer.export()]
            late = writer.use("late").add("rain", id="z")
            assert reader.use("late").get("z") == late  # not loaded before: seen at once
            writer.drop()
            writer.add("rain", id="anew")
            clock.advance(FOLLOW_EVERY_NS / 1e9)
            assert found(reader) == ["anew"]


def test_a_reader_writes_nothing(memory: Memory, tmp_path: Path, clock: ManualClock) -> None:
    memory.add("rain", id="a")
    with Memory.open(tmp_path / "store", "acme/alice", read_only=True, clock=clock) as reader:
        for write in (
            lambda: reader.add("x"), lambda: reader.add_many([{"text": "x"}]), lambda: reader.import_([]), lambda: reader.update("a", text="x"),
            lambda: reader.forget(ids=["a"]), lambda: reader.forget({"id": {"eq": "a"}}), lambda: reader.drop(), lambda: reader.use("new").add("x"),
            lambda: reader.backup(tmp_path / "copy"),
        ):  # fmt: skip
            with pytest.raises(ReadOnlyError, match="read-only"):
                write()
        assert not (tmp_path / "copy").exists()
        assert reader.forget(ids=["a"], dry_run=True).ids == ("a",)
        assert found(reader) == ["a"] and reader.verify() == []
    assert found(memory) == ["a"]


def verbs(memory: Memory, tmp_path: Path) -> dict[str, Callable[[], Any]]:
    return {
        "add": lambda: memory.add("x"), "add_many": lambda: memory.add_many([]), "import_": lambda: memory.import_([]), "update": lambda: memory.update("a", text="x"),
        "forget": lambda: memory.forget(ids=["a"]), "forget dry": lambda: memory.forget({"id": {"eq": "a"}}, dry_run=True), "drop": memory.drop,
        "search": lambda: memory.search("rain"), "get": lambda: memory.get("a"), "recent": memory.recent, "namespaces": memory.namespaces, "export": lambda: list(memory.export()),
        "salvage": lambda: list(memory.export(salvage=True)), "backup": lambda: memory.backup(tmp_path / "copy"), "verify": memory.verify, "stats": memory.stats,
        "use": lambda: memory.use("other").search("x"),
    }  # fmt: skip


@pytest.mark.parametrize("read_only", [False, True])
def test_a_closed_store_says_so(memory: Memory, tmp_path: Path, read_only: bool) -> None:
    memory.add("rain", id="a")
    closed = Memory.open(tmp_path / "store", "acme/alice", read_only=True) if read_only else memory
    closed.search("rain")
    closed.close()
    closed.close()  # twice is once
    for name, call in verbs(closed, tmp_path).items():
        with pytest.raises((StoreClosedError, ReadOnlyError) if read_only else StoreClosedError):
            raise AssertionError(f"{name} answered {call()}")
    assert not (tmp_path / "copy").exists()


def test_a_forked_child_is_told(memory: Memory, tmp_path: Path) -> None:
    memory.add("rain", id="a")
    memory.search("rain")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        told = []
        try:
            for name, call in verbs(memory, tmp_path).items():
                try:
                    call()
                    told.append(f"{name} worked")
                except ForkedError:
                    pass
                except BaseException as error:
                    told.append(f"{name}: {error!r}")
            memory.close()  # harmless here
        finally:
            os.write(write, "\n".join(told).encode() or b"well")
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    assert told == "well"
    memory.add("rain", id="b")
    assert found(memory) == ["a", "b"]
    with pytest.raises(StoreLockedError):  # the child's close let go of nothing
        Memory.open(tmp_path / "store")


def test_using_another_namespace_closes_nothing(memory: Memory) -> None:
    with memory.use("other") as other:
        other.add("rain")
    memory.add("rain", id="a")
    assert found(memory) == ["a"] and repr(memory).startswith("Memory(")
