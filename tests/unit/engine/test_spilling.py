"""A store whose older segments lie on a spill target answers as any other, and loses nothing whatever becomes of the target."""

import json
import logging
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
import zstandard

from agentir_ray.client.memory import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.engine.store import Store
from agentir_ray.engine.temperature_policy import WANTED_S
from agentir_ray.errors import DamagedError, InvalidInputError, SpilledError
from agentir_ray.lexical.query import Bm25
from agentir_ray.sections import SectionFile, encode_sections
from tests.spill_targets import BUDGET, LIMITS, FakeTarget, temperatures, write_weeks

Open = Callable[..., Memory]


def at(path: Path, target: FakeTarget | Path, analyzer: str | None = None, **options: Any) -> Memory:
    settings = {"clock": ManualClock(), "background": False, "limits": LIMITS, "memory_budget_bytes": BUDGET, "spill": target, "durability": "process"} | options
    return Memory(Store(path, **settings), "acme/alice", analyzer, Bm25(), owns_store=True)


@pytest.fixture
def target() -> Iterator[FakeTarget]:
    target = FakeTarget()
    yield target
    target.gate.set()  # whoever still hangs may go home


@pytest.fixture
def open_memory(tmp_path: Path, target: FakeTarget) -> Iterator[Open]:
    with ExitStack() as opened:

        def open_memory(**options: Any) -> Memory:
            return opened.enter_context(at(tmp_path / "store", target, **options))

        yield open_memory


@pytest.fixture
def memory(open_memory: Open) -> Memory:
    """Twelve weeks of thirty records, the oldest spilled."""
    memory = open_memory()
    write_weeks(memory, 12)
    assert temperatures(memory)["cold_segments"] >= 4
    return memory


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentir_ray.engine.temperature.RETRY_S", 0.0)


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE_S", "UNHURRIED_S", "BRIEF_S", "CLOSING_S"):
        monkeypatch.setattr(f"agentir_ray.engine.spilling.{name}", 0.05)


def later(memory: Memory) -> None:
    """Nobody waits any more for what was loaded, and maintenance has looked again."""
    memory._store.clock.advance(WANTED_S + 1.0)  # type: ignore[attr-defined]
    memory._store.maintenance.request(None)


def everything(memory: Memory) -> dict[str, float]:
    return {hit.record.id: hit.score for hit in memory.search("common token3x7 token11x7", k=1_000).hits}


def test_the_oldest_are_spilled_until_the_rest_fits(memory: Memory, target: FakeTarget) -> None:
    found = temperatures(memory)
    assert found["heavy_bytes"] <= BUDGET
    assert len(target.segments) == found["cold_segments"] == found["spilled_segments"]
    with memory._store.namespace(memory.namespace) as namespace:
        segments = namespace.index.segments
    assert max(segment.span_us[1] for segment in segments if segment.cold) < min(segment.span_us[1] for segment in segments if not segment.cold)


def test_answers_are_those_of_a_store_that_spills_nothing(memory: Memory, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "other", "acme/alice", background=False, limits=LIMITS, clock=ManualClock()) as other:
        write_weeks(other, 12)
        assert [record.text for record in memory.recent(400).records] == [record.text for record in other.recent(400).records]
        where = {"session": {"eq": "s1"}}
        before = temperatures(memory)
        assert memory.get("w0-3").text == other.get("w0-3").text
        assert memory.forget(where=where, dry_run=True).ids == other.forget(where=where, dry_run=True).ids
        assert [record.id for record in memory.export()] == [record.id for record in other.export()]
        assert temperatures(memory) == before, "records are read without loading a segment"
        assert everything(memory) == everything(other)
        for one in (memory, other):
            one.update("w0-4", text="common and changed")
            one.forget(ids=["w1-5", "w11-2"], wait=True)
        assert everything(memory) == everything(other)
        assert memory.get("w0-4").text == "common and changed"
        assert memory.verify() == other.verify() == []


def test_what_was_loaded_goes_again_when_others_are_wanted_more(memory: Memory) -> None:
    cold = temperatures(memory)["cold_segments"]
    assert len(everything(memory)) == 360
    assert temperatures(memory)["cold_segments"] == 0
    write_weeks(memory, 1, first=12)
    assert temperatures(memory)["spilled_segments"] > cold and memory._store.spiller.clean
    assert temperatures(memory)["heavy_bytes"] > BUDGET / 2, "what was wanted a moment ago stays for that long"
    later(memory)
    assert temperatures(memory)["heavy_bytes"] <= BUDGET
    assert temperatures(memory)["cold_segments"] >= cold


def test_a_reopened_store_is_as_it_was(open_memory: Open, memory: Memory) -> None:
    expected = everything(memory)
    write_weeks(memory, 1, first=12)
    memory.close()
    memory = open_memory()
    assert temperatures(memory)["cold_segments"]
    assert memory.search("token0x3", k=1).hits[0].record.id == "w0-3"
    assert {id for id in everything(memory) if not id.startswith("w12")} == set(expected)


def test_a_follower_lets_go_again_what_nobody_wants(memory: Memory, target: FakeTarget, tmp_path: Path) -> None:
    clock = ManualClock()
    with at(tmp_path / "store", target, read_only=True, clock=clock) as follower:
        assert len(everything(follower)) == 360
        for thread in threading.enumerate():
            if thread.name == "agentir-load":
                thread.join()
        clock.advance(WANTED_S - 1.0)
        follower.get("w0-1")
        assert temperatures(follower)["cold_segments"] == 0, "whoever loaded them may not have come to use them"
        clock.advance(2.0)
        follower.get("w0-1")
        assert temperatures(follower)["cold_segments"] and temperatures(follower)["heavy_bytes"] <= BUDGET
        assert everything(follower) == everything(memory)


def test_a_follower_loads_for_itself(open_memory: Open, memory: Memory, target: FakeTarget, tmp_path: Path) -> None:
    objects = dict(target.objects)
    target.calls.clear()
    with at(tmp_path / "store", target, read_only=True) as follower:
        assert temperatures(follower)["cold_segments"]
        assert everything(follower) == everything(memory)
        assert follower.get("w0-1").id == "w0-1"
    assert target.objects == objects
    assert {verb for verb, _ in target.calls} == {"get"}


def test_erased_records_leave_the_target(memory: Memory, target: FakeTarget) -> None:
    before = set(target.segments)
    receipt = memory.forget(ids=["w0-3"], wait=True)
    assert receipt.purged
    assert len(before - set(target.segments)) == 1
    assert memory.verify() == []
    assert len(everything(memory)) == 359


def test_what_cannot_be_deleted_there_is_owed(open_memory: Open, memory: Memory, target: FakeTarget) -> None:
    target.fail("is not mounted")
    before = set(target.segments)
    receipt = memory.forget(ids=["w0-3"], wait=True)
    assert receipt.hidden and not receipt.purged
    assert "w0-3" not in everything(memory)
    memory.close()
    memory = open_memory()
    assert not memory.forget(ids=["w0-4"], wait=True).purged
    target.refuses = {}
    assert memory.forget(ids=["w0-5"], wait=True).purged
    assert len(before & set(target.segments)) <= len(before) - 1
    assert memory.verify() == []


def test_a_receipt_knows_that_the_target_was_not_given(open_memory: Open, memory: Memory) -> None:
    memory.close()
    memory = open_memory(spill=None)
    assert not memory.forget(ids=["w11-3"], wait=True).purged
    result = memory.search("common", k=1_000)
    assert not result.coverage.exact and "spill" in result.coverage.reason
    assert memory.get("w0-3").id == "w0-3"
    memory.close()
    assert open_memory().forget(ids=["w11-4"], wait=True).purged


def test_a_dropped_namespace_leaves_the_target(memory: Memory, target: FakeTarget) -> None:
    target.fail("is not mounted")
    memory.drop()
    assert target.segments
    assert not memory._store.wait_purged(0)
    target.refuses = {}
    assert memory._store.wait_purged(0)
    assert target.segments == []


@pytest.mark.parametrize("why", ["is full", "is not there"])
def test_a_target_that_refuses_keeps_everything_here(open_memory: Open, target: FakeTarget, why: str, caplog: pytest.LogCaptureFixture) -> None:
    target.fail(why)
    memory = open_memory()
    with caplog.at_level(logging.WARNING):
        write_weeks(memory, 12)
    assert [record for record in caplog.records if "spilling is put off" in record.message and why in record.message]
    assert temperatures(memory)["cold_segments"] == 0
    assert len(everything(memory)) == 360 and memory.verify() == []
    target.refuses = {}
    write_weeks(memory, 1, first=12)
    assert temperatures(memory)["heavy_bytes"] <= BUDGET
    assert len(everything(memory)) == 390


def test_a_put_that_arrives_damaged_is_not_relied_on(open_memory: Open, target: FakeTarget) -> None:
    get = target.get
    target.get = lambda name: (bytes(len(piece)) for piece in get(name))  # type: ignore[method-assign]
    memory = open_memory()
    write_weeks(memory, 12)
    assert temperatures(memory)["cold_segments"] == 0
    assert target.segments == [], "what is not named is garbage"
    assert len(everything(memory)) == 360


def test_a_search_names_what_it_could_not_load(memory: Memory, target: FakeTarget) -> None:
    target.fail("is not mounted", "get")
    result = memory.search("common", k=1_000)
    assert 0 < len(result) < 360
    assert not result.coverage.exact and result.coverage.not_searched and "is not mounted" in result.coverage.reason
    assert memory.get("w0-3").text and len(memory.recent(400).records) == 360
    target.refuses = {}
    assert memory.search("common", k=1_000).coverage.exact


def test_a_target_that_hangs_hangs_nobody(memory: Memory, target: FakeTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    target.calls.clear()
    target.gate.clear()
    for _ in range(3):
        result = memory.search("common", k=1_000)
        assert 0 < len(result) < 360 and "slow" in result.coverage.reason
    memory.add("common and new")
    assert memory.get("w0-3").id == "w0-3"
    assert not memory.forget(ids=["w0-3"], wait=True).purged
    write_weeks(memory, 1, first=20)
    gets = [name for verb, name in target.calls if verb == "get"]
    assert len(gets) == len(set(gets)), "who wants the same segment waits for the same answer"
    memory.close()


def test_the_deadline_of_a_search_holds(memory: Memory, target: FakeTarget) -> None:
    target.gate.clear()
    result = memory.search("common", k=1_000, deadline_ms=30)
    assert not result.coverage.exact
    target.gate.set()


def test_an_object_that_is_gone_for_good_is_rebuilt_from_the_log(memory: Memory, target: FakeTarget, caplog: pytest.LogCaptureFixture) -> None:
    del target.objects[target.segments[0]]
    assert [problem.what for problem in memory.verify()]
    assert len(everything(memory)) == 360
    assert [record for record in caplog.records if "rebuilding" in record.message]
    assert memory.verify() == []


def test_a_damaged_object_is_rebuilt_from_the_log(memory: Memory, target: FakeTarget) -> None:
    for name in target.segments:
        content = bytearray(target.objects[name])
        content[len(content) // 2] ^= 1
        target.objects[name] = bytes(content)
    assert len(memory.verify()) == len(target.segments)
    assert len(everything(memory)) == 360
    write_weeks(memory, 1, first=12)
    assert memory.verify() == [] and temperatures(memory)["cold_segments"]


def test_an_object_that_somebody_else_wrote_is_not_looked_at(open_memory: Open, memory: Memory, target: FakeTarget, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is sound by its own checksums, and of the same documents."""
    for name in target.segments:
        (tmp_path / "object").write_bytes(target.objects[name])
        spilled = SectionFile(tmp_path / "object")
        meta = json.loads(spilled.array("meta").tobytes())
        garbage = np.full(meta["sections"]["posting_doc"][2] // np.dtype(meta["sections"]["posting_doc"][0]).itemsize, 2**30, np.int32).astype(meta["sections"]["posting_doc"][0])
        meta["sections"]["posting_doc"][1] = zlib.crc32(garbage.data)
        sections = {section: spilled.array(section) for section in spilled.names()}
        sections["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        sections["posting_doc"] = np.frombuffer(zstandard.ZstdCompressor().compress(garbage.data), np.uint8)
        target.objects[name] = b"".join(map(bytes, encode_sections(sections)))
    assert len(memory.verify()) == len(target.segments)
    assert len(everything(memory)) == 360
    assert [record for record in caplog.records if "something else" in record.message and "rebuilding" in record.message]
    write_weeks(memory, 1, first=12)
    assert memory.verify() == [] and temperatures(memory)["cold_segments"]


def test_a_namespace_that_was_loaded_anew_meanwhile_loads_for_itself(memory: Memory, target: FakeTarget) -> None:
    store = memory._store
    target.gate.clear()
    loads = []
    for _ in range(2):
        with store.namespace(memory.namespace) as namespace:
            segment = next(segment for segment in namespace.index.segments if segment.cold)
            loads.append((namespace, segment.path, store.spiller._start(namespace, segment)))
            assert store.spiller._start(namespace, segment) is loads[-1][2], "who wants the same shares it"
        store._residents.clear()
    target.gate.set()
    assert loads[0][0] is not loads[1][0] and loads[0][1] == loads[1][1]
    for namespace, path, load in loads:
        assert load.done.wait(30) and not load.reason
        assert not [segment for segment in namespace.index.segments if segment.path == path and segment.cold]


def test_another_target_is_no_damage(open_memory: Open, memory: Memory, target: FakeTarget, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    memory.close()
    memory = open_memory(spill=FakeTarget())
    result = memory.search("common", k=1_000)
    assert not result.coverage.exact and "knows nothing of this store" in result.coverage.reason
    assert not [record for record in caplog.records if "rebuilding" in record.message]
    memory.close()
    (tmp_path / "store" / "SPILL").unlink()  # the way out that the message names
    memory = open_memory(spill=FakeTarget())
    assert len(everything(memory)) == 360
    assert [record for record in caplog.records if "rebuilding" in record.message]


def test_two_stores_share_a_target(open_memory: Open, memory: Memory, target: FakeTarget, tmp_path: Path) -> None:
    mine = set(target.segments)
    with at(tmp_path / "other", target) as other:
        write_weeks(other, 12)
        theirs = set(target.segments) - mine
        assert len(theirs) == temperatures(other)["cold_segments"] > 0
        assert other.drop()
    assert set(target.segments) == mine
    assert len(everything(memory)) == 360


def test_a_backup_is_complete_without_the_target(memory: Memory, tmp_path: Path) -> None:
    memory.backup(tmp_path / "copy")
    with Memory.open(tmp_path / "copy", "acme/alice", read_only=True) as copy, pytest.raises(DamagedError, match="opened for writing"):
        copy.get("w0-3")
    with Memory.open(tmp_path / "copy", "acme/alice", background=False, limits=LIMITS) as copy:
        assert len(everything(copy)) == 360 and copy.verify() == []


def test_another_analyzer_rebuilds_and_leaves_no_garbage(open_memory: Open, memory: Memory, target: FakeTarget, tmp_path: Path) -> None:
    before = set(target.segments)
    memory.close()
    with at(tmp_path / "store", target, "english") as memory:
        assert len(everything(memory)) == 360
        memory.forget(ids=["w0-0"], wait=True)
        assert before.isdisjoint(target.segments)
        assert len(target.segments) == temperatures(memory)["spilled_segments"]


def test_a_crash_between_the_object_and_the_manifest_leaves_no_garbage(open_memory: Open, memory: Memory, target: FakeTarget) -> None:
    identity = target.segments[0].partition("/")[0]
    target.objects[f"{identity}/1/left-behind.spilled"] = b"of a crash"
    target.objects["someone-elses/1/x.spilled"] = b"not ours"
    memory.close()
    memory = open_memory()
    assert memory.forget(ids=["w11-1"], wait=True).purged
    assert f"{identity}/1/left-behind.spilled" not in target.objects and "someone-elses/1/x.spilled" in target.objects


FOREIGN = ["1/.nfs000001", "1/notes.txt", ".DS_Store", "1/x.spilled.bak", "1/2/x.spilled", "x.spilled"]


@pytest.mark.parametrize("kind", ["folder", "fake"])
def test_files_of_others_are_no_garbage_and_no_obstacle(open_memory: Open, target: FakeTarget, tmp_path: Path, kind: str) -> None:
    memory = open_memory(spill=tmp_path / "target" if kind == "folder" else target)
    write_weeks(memory, 12)
    identity = (tmp_path / "store" / "SPILL").read_text()
    ours = ["1/left-behind.spilled", "1/left-behind.spilled.7.tmp", "SPILL.0.tmp"]
    for name in FOREIGN + ours:
        if kind == "folder":
            path = tmp_path / "target" / identity / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"")
        else:
            target.objects[f"{identity}/{name}"] = b""
    memory._store.spiller.discard(None)
    assert memory.forget(ids=["w0-3"], wait=True).purged
    names = [path.relative_to(tmp_path / "target").as_posix() for path in (tmp_path / "target").rglob("*") if path.is_file()] if kind == "folder" else list(target.objects)
    left = set(names) - memory._store._named_objects() - {f"{identity}/SPILL"}
    assert left == {f"{identity}/{name}" for name in FOREIGN}


@pytest.mark.parametrize("known", [True, False], ids=["known by name", "to be looked for"])
def test_one_object_that_cannot_be_deleted_holds_up_no_other(memory: Memory, target: FakeTarget, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    spiller = memory._store.spiller
    identity = target.segments[0].partition("/")[0]
    garbage = [f"{identity}/1/garbage{n}.spilled" for n in range(4)]
    target.objects |= dict.fromkeys(garbage, b"")
    delete = target.delete

    def refuse(name: str) -> None:
        if name == garbage[1]:
            raise SpilledError("it is held")
        delete(name)

    monkeypatch.setattr(target, "delete", refuse)
    spiller.discard(garbage if known else None)
    with pytest.raises(SpilledError, match="it is held"):
        spiller.sweep()
    assert set(garbage) & set(target.objects) == {garbage[1]} and not spiller.clean
    monkeypatch.setattr(target, "delete", delete)
    spiller.sweep()
    assert set(target.segments) == memory._store._named_objects() and spiller.clean


def test_what_is_made_for_texts_is_its_users_alone(open_memory: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = os.umask(0)
    try:
        memory = open_memory(spill=tmp_path / "target")
        write_weeks(memory, 12)
        with at(tmp_path / "store", tmp_path / "target", read_only=True) as follower:
            assert len(everything(memory)) == len(everything(follower)) == 360
            folders = [tmp_path / "target", tmp_path / "store" / "loaded", *tmp_path.glob("agentir-loaded-*")]
            assert len(folders) == 3
            assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in folders)
    finally:
        os.umask(before)
    inside = list((tmp_path / "target").rglob("*"))
    assert len(inside) > 4 and all(path.stat().st_mode & 0o077 == 0 for path in inside)


def test_nothing_is_hot_beyond_a_fourth_of_the_budget(open_memory: Open) -> None:
    memory = open_memory(memory_budget_bytes=2_000_000, spill=None)
    write_weeks(memory, 6)
    found = temperatures(memory)
    assert found["hot_segments"] and found["hot_bytes"] <= 500_000
    assert len(everything(memory)) == 180
    assert memory.stats()["namespace"]["memory_bytes"] > found["hot_bytes"]
    memory.forget(ids=["w5-1"], wait=True)
    assert len(everything(memory)) == 179 and memory.verify() == []


def test_salvage_reads_what_was_spilled(open_memory: Open, memory: Memory, target: FakeTarget, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert temperatures(memory)["cold_segments"]
    memory.close()
    database = apsw.Connection(str(tmp_path / "store" / "log.sqlite3"))
    database.execute("UPDATE entries SET body = zeroblob(length(body)) WHERE id = ?", (b"w0-3",))
    database.close()
    memory = open_memory(read_only=True)
    assert {record.id for record in memory.export(salvage=True)} == {f"w{week}-{i}" for week in range(12) for i in range(30)}
    target.fail("is not mounted")
    assert "w0-3" not in {record.id for record in memory.export(salvage=True)}
    assert [record for record in caplog.records if "skipped" in record.message and "not mounted" in record.message]


def test_spill_is_a_place(tmp_path: Path) -> None:
    for wrong in (3, "", b"bytes", "\0", "nosuchprotocol://x"):
        with pytest.raises(InvalidInputError):
            Memory.open(tmp_path / "store", spill=wrong)  # type: ignore[arg-type]
    assert issubclass(SpilledError, Exception)
