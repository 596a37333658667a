"""An interrupt (Ctrl-C) anywhere in a write: what is in the log is found, at once and after sealing and opening again, and nobody waits for ever."""

from pathlib import Path
from typing import Any

import pytest

from agentir_ray import Memory, StoreClosedError, StoreLockedError
from agentir_ray.clock import ManualClock
from agentir_ray.engine.namespace import WriteBatch
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.prepare import prepare_record
from tests.unit.interrupts import interrupted

OPTIONS: dict[str, Any] = {"durability": "process", "background": False, "clock": ManualClock()}
PLACES = tuple(f"agentir_ray.{name}" for name in ("storage.group_commit", "storage.sqlite_log", "engine.store", "engine.namespace", "engine.residents", "lexical.index"))


def committed(memory: Memory) -> set[str]:
    state = memory._store.log.state(memory.namespace)
    return set() if state is None else {str(entry.id) for entry in memory._store.log.read(state.number) if entry.body is not None and entry.id is not None}


def found(memory: Memory) -> set[str]:
    return {hit.record.id for hit in memory.search("rain", k=1_000)} if committed(memory) else set()


@pytest.mark.parametrize("writes", ["one", "many", "update", "forget"])
def test_whatever_was_committed_is_found_after_an_interrupt_anywhere_in_a_write(tmp_path: Path, writes: str) -> None:
    place = 0
    with Memory.open(tmp_path / "store", **OPTIONS) as memory:
        for i in range(2):
            memory.add("rain", id=f"warm{i}")
        while True:
            id = f"n{place}"
            memory.add("rain", id=f"old{place}")
            work = {
                "one": lambda id=id: memory.add("rain", id=id),
                "many": lambda id=id: memory.add_many({"text": "rain", "id": f"{id}-{j}"} for j in range(3)),
                "update": lambda at=place: memory.update(f"old{at}", text="rain again"),
                "forget": lambda at=place: memory.forget(ids=[f"old{at}"]),
            }[writes]
            struck = interrupted(work, place, PLACES)
            assert found(memory) == committed(memory), place
            memory.add("rain", id=f"after{place}")  # must not jump over what is missing
            assert found(memory) == committed(memory), place
            if not struck:
                break
            place += 1
        assert place > 20
        with memory._store.namespace(memory.namespace) as namespace:
            memory._store.compactor.seal(namespace)
        everything = committed(memory)
        assert found(memory) == everything
    with Memory.open(tmp_path / "store", **OPTIONS) as memory:
        assert found(memory) == committed(memory) == everything


@pytest.mark.parametrize(("verb", "loaded"), [("search", "yes"), ("search", "no"), ("search", "damaged"), ("drop", "yes")])
def test_an_interrupt_anywhere_in_a_search_or_a_drop_leaves_no_pin_and_no_reservation(tmp_path: Path, verb: str, loaded: str) -> None:
    with Memory.open(tmp_path / "store", **OPTIONS, limits=Limits(4, 8)) as memory:
        residents = memory._store._residents
        work = {"search": lambda: memory.search("rain"), "drop": memory.drop}[verb]
        place, struck = 0, True
        while struck:
            memory.add("rain", id=f"n{place}")
            if loaded == "no":
                residents.clear()
            if loaded == "damaged":
                residents._loaded[memory.namespace].damaged = True
            struck = interrupted(work, place, PLACES)
            assert not residents._reserved
            assert all(namespace.pins == 0 for namespace in residents._loaded.values()), place
            place += 1
        assert place > 5


def test_no_write_jumps_over_what_the_index_lacks(tmp_path: Path) -> None:
    """Whatever kept an entry of the log from the index: the next write must not hide that it is missing, nor a seal make it last."""
    with Memory.open(tmp_path / "store", **OPTIONS) as memory:
        memory.add("rain", id="before")
        with memory._store.namespace(memory.namespace) as namespace:
            prepared = prepare_record({"text": "rain", "id": "unseen"}, namespace.analyzer, 0)
            memory._store.writer.commit([WriteBatch(namespace.number, namespace.epoch, [prepared.entry])])
        memory.add("rain", id="after")
        with memory._store.namespace(memory.namespace) as namespace:
            memory._store.compactor.seal(namespace)
        assert found(memory) == {"before", "unseen", "after"}
    with Memory.open(tmp_path / "store", **OPTIONS) as memory:
        assert found(memory) == {"before", "unseen", "after"}


def test_an_interrupt_anywhere_in_opening_leaves_the_store_to_the_next_who_opens_it(tmp_path: Path) -> None:
    place, struck = 0, True
    places = ("agentir_ray.engine.store", "agentir_ray.storage.lock", "agentir_ray.storage.sqlite_log", "agentir_ray.storage.sqlite_schema", "agentir_ray.engine.maintenance")
    while struck:
        opened: list[Memory] = []
        struck = interrupted(lambda opened=opened: opened.append(Memory.open(tmp_path / "store", **OPTIONS)), place, places)
        for memory in opened:
            memory.close()
        with Memory.open(tmp_path / "store", **OPTIONS) as memory:
            memory.add("rain", id=f"n{place}")
        place += 1
    assert place > 20


def test_a_close_that_was_interrupted_keeps_the_lock_until_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of maintenance may still be writing: another process must not yet."""
    memory = Memory.open(tmp_path / "store", **OPTIONS)
    stop = memory._store.maintenance.stop

    def interrupted_once() -> None:
        monkeypatch.setattr(memory._store.maintenance, "stop", stop)
        raise KeyboardInterrupt

    monkeypatch.setattr(memory._store.maintenance, "stop", interrupted_once)
    with pytest.raises(KeyboardInterrupt):
        memory.close()
    with pytest.raises(StoreLockedError):
        Memory.open(tmp_path / "store", **OPTIONS)
    with pytest.raises(StoreClosedError):
        memory.add("rain")
    memory.close()
    memory.close()
    Memory.open(tmp_path / "store", **OPTIONS).close()
