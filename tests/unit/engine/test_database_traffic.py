"""What reaches the database, counted: nothing for a search, one sync for a commit, a fixed number of statements for opening a store of any size."""

import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.clock import SystemClock
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import DATABASE, Store
from agentir_ray.errors import StoreClosedError
from agentir_ray.lexical.query import Bm25
from agentir_ray.storage.sqlite_log import SqliteLog
from tests.crash.shim import Journal, JournalFiles, JournalVFS


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Every statement of every connection opened from now on."""
    seen: list[str] = []

    def watch(connection: apsw.Connection) -> None:
        def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
            seen.append(sql)
            return True

        connection.exec_trace = trace

    apsw.connection_hooks.append(watch)
    yield seen
    apsw.connection_hooks.remove(watch)


@pytest.mark.parametrize("read_only", [False, True])
def test_no_statement_reaches_the_database_during_a_thousand_searches(tmp_path: Path, statements: list[str], read_only: bool) -> None:
    with Memory.open(tmp_path / "store", limits=Limits(50, 100)) as memory:
        memory.add_many({"text": f"a note on topic {i % 40} of {i}", "id": f"n{i}", "session": f"s{i % 3}"} for i in range(270))
        assert memory._store.wait_purged(30)
        memory.add_many({"text": f"a late note on topic {i}", "id": f"late{i}"} for i in range(20))
    assert any("INSERT" in statement for statement in statements), "the trace works"
    with Memory.open(tmp_path / "store", read_only=read_only) as memory:
        assert memory.search("topic").hits
        assert memory.stats()["namespace"]["segments"] and memory.stats()["namespace"]["unsealed_entries"]
        with memory._store.namespace(memory.namespace) as namespace:
            namespace.checked_ns = 2**62  # a follower asks four times a second what is new, whoever searches
        statements.clear()
        for i in range(1_000):
            assert memory.search(f"topic {i % 40}", k=5, session=f"s{i % 3}" if i % 5 == 0 else None, explain=i % 7 == 0).hits
        assert len(memory.recent(50).records) == 50 and memory.get("n7").id == "n7"
        assert statements == []


def test_opening_reads_no_namespace(tmp_path: Path, statements: list[str]) -> None:
    counts = []
    for namespaces in (10, 10_000):
        folder = tmp_path / str(namespaces)
        folder.mkdir()
        log = SqliteLog(folder / DATABASE, durability="process")
        log._transact(lambda log=log, namespaces=namespaces: [log._claim(f"acme/user{i:05}") for i in range(namespaces)])  # type: ignore[misc]
        log.close()
        statements.clear()
        for read_only in (False, True):
            with Memory.open(folder, "acme/user00003", read_only=read_only) as memory:
                assert memory._store.loaded_namespaces() == 0
                assert memory.search("nothing yet").hits == ()
                assert memory._store.loaded_namespaces() == 1
        counts.append(len(statements))
    assert counts[0] == counts[1] < 60


class Journalled:
    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder)
        self.vfs = JournalVFS("traffic", self.journal)
        store = Store(folder / "store", clock=SystemClock(), background=False, vfs="traffic", files=JournalFiles(self.journal))
        self.memory = Memory(store, "default", None, Bm25(), owns_store=True)

    def syncs(self) -> list[str]:
        """The paths synced since the last call."""
        paths = [self.journal.events[at - 1].path for at in self.journal.syncs()]
        self.journal.events.clear()
        return paths


@pytest.fixture
def journalled(tmp_path: Path) -> Iterator[Journalled]:
    journalled = Journalled(tmp_path)
    yield journalled
    journalled.memory.close()
    journalled.vfs.unregister()


def test_every_verb_that_writes_costs_one_sync(journalled: Journalled) -> None:
    memory = journalled.memory
    memory.add("the first makes the namespace", id="first")
    journalled.syncs()
    for i in range(50):
        memory.add(f"note {i} " * 100, id=f"n{i}")
        assert journalled.syncs() == ["store/log.sqlite3-wal"]
    memory.add_many({"text": f"one of many {i}"} for i in range(900))
    assert journalled.syncs() == ["store/log.sqlite3-wal"]
    memory.update("n1", text="anew")
    assert journalled.syncs() == ["store/log.sqlite3-wal"]
    memory.search("note")
    memory.get("n2")
    assert journalled.syncs() == []


def test_callers_share_syncs(journalled: Journalled) -> None:
    memory = journalled.memory
    memory.add("the first makes the namespace")
    journalled.syncs()
    start = threading.Barrier(16)

    def write(number: int) -> None:
        start.wait()
        for i in range(20):
            memory.add(f"thread {number} note {i}", id=f"{number}-{i}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journalled.syncs()) < 320
    assert len(memory.search("thread", k=1_000).hits) == 320


def test_close_is_idempotent_and_final(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path / "store", limits=Limits(10, 20))
    other = memory.use("other")
    for i in range(35):
        memory.add(f"note {i}", id=f"n{i}")
    memory.forget(ids=["n1"])
    threads = [threading.Thread(target=memory.close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.close()
    for use in (lambda: memory.search("note"), lambda: memory.add("late"), lambda: other.get("n2"), lambda: memory.forget(ids=["n2"]), memory.verify, memory.stats):
        with pytest.raises(StoreClosedError):
            use()
    with Memory.open(tmp_path / "store") as again:
        assert len(again.search("note", k=100).hits) == 34
