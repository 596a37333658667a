"""What is purged is in no file: every byte of the store's folder is searched, as it lies there and decompressed, for texts, rare terms and metadata of what was erased."""

import itertools
import json
import random
import re
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard

from agentir_ray.client.memory import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import Store
from agentir_ray.errors import AgentIRError, ErasedError, NotFoundError
from agentir_ray.sections import SectionFile

LIMITS = Limits(seal_at=20, max_unsealed=40)
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
Open = Callable[..., Memory]


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Everything that the folder's files hold: their raw bytes, and whatever can be decompressed from any position of them."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            yield path.name, raw
            for at in (match.start() for match in re.finditer(re.escape(ZSTD_MAGIC), raw)):
                try:
                    yield f"{path.name}, zstd at {at}", zstandard.ZstdDecompressor().decompressobj().decompress(raw[at:])
                except zstandard.ZstdError:
                    continue
            for at in (match.start() for match in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", raw)):
                try:
                    yield f"{path.name}, zlib at {at}", zlib.decompressobj().decompress(raw[at:])
                except zlib.error:
                    continue
            if path.suffix == ".segment":
                file = SectionFile(path)
                for name in file.names():
                    yield f"{path.name}, section {name}", file.array(name).tobytes()


def found(folder: Path, *needles: str) -> list[str]:
    """Where any of the needles occurs."""
    wanted = [needle.encode() for needle in needles]
    return [f"{needle.decode()} in {where}" for where, data in contents(folder) for needle in wanted if needle in data]


def secret(i: int | str) -> dict[str, Any]:
    """Arguments of a record whose text, terms and metadata occur nowhere else; the text is also long enough for pages of its own."""
    return {
        "text": f"the vault opens with qzvq{i}secretword " + f"qzvq{i}longtext " * (400 if str(i).endswith("7") else 5),
        "id": f"id-{i}",
        "session": f"qzvq{i}session",
        "role": f"qzvq{i}role",
        "metadata": {"card": f"qzvq{i}card", f"qzvq{i}key": 1},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def open_memory(folder: Path) -> Iterator[Open]:
    opened: list[Memory] = []

    def open(**options: Any) -> Memory:
        memory = Memory.open(folder, "acme/alice", **{"limits": LIMITS, "background": False, **options})
        opened.append(memory)
        return memory

    yield open
    for memory in opened:
        memory.close()


@pytest.mark.crash
@pytest.mark.parametrize("background", [False, True])
def test_what_is_erased_is_in_no_file(open_memory: Open, folder: Path, background: bool) -> None:
    """Records in merged segments, in a fresh one, in the buffer, with old versions; in several namespaces, so that the database's pages split and move what they hold."""
    rng = random.Random(7)
    memory = open_memory(background=background)
    others = [memory.use(name) for name in ("acme/bob", "acme", "zeta/long/name")]
    secrets = []
    for i in range(150):
        memory.add(f"harmless note {i} about gardens and rain", id=f"n{i}")
        if i % 5 == 0:
            memory.add(**secret(i))
            secrets.append(f"id-{i}")
        rng.choice(others).add("filler of another namespace " * rng.randint(1, 60), metadata={"x": rng.random()})
        if i % 20 == 3:
            memory.update(f"id-{i // 5 * 5}", text=f"a new version qzvq{i}newversion", metadata={"card": f"qzvq{i}newcard"}, operation_id=f"op{i}")
    assert found(folder, "qzvq0secretword", "qzvq45longtext", "qzvq145card"), "the search finds what is there"
    receipt = memory.forget(ids=secrets, wait=True)
    assert receipt.hidden and receipt.purged and set(receipt.ids) == set(secrets)
    assert found(folder, "qzvq") == []
    memory.close()
    assert found(folder, "qzvq") == []
    memory = open_memory()
    assert len(memory.search("harmless", k=1_000)) == 150 and memory.verify() == []
    memory.backup(folder.parent / "copy")
    assert found(folder.parent / "copy", "qzvq") == []


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(3))
def test_erasures_among_many_writes_leave_no_remnants(open_memory: Open, folder: Path, seed: int) -> None:
    """Rows of every size come, change and go in a random order: pages of the database split, merge, overflow and are used again."""
    rng = random.Random(seed)
    memory = open_memory(durability="process")
    spaces = [memory.use(name) for name in ("acme/alice", "acme/bob", "acme")]
    live: list[tuple[Memory, str]] = []
    for i in itertools.count():
        if i == 300:
            break
        space = rng.choice(spaces)
        id = f"{rng.getrandbits(60):015x}"
        space.add(f"qzvqrow{i} " + "x y z " * rng.choice((1, 5, 40, 300, 900, 3_000)), id=id)
        live.append((space, id))
        if rng.random() < 0.3:
            where, which = rng.choice(live)
            where.update(which, text=f"qzvqrow{i}b " + "u v w " * rng.choice((1, 40, 900)))
        if rng.random() < 0.4:
            where, which = live.pop(rng.randrange(len(live)))
            where.forget(ids=[which])
    for where, which in live:
        receipt = where.forget(ids=[which], wait=True)
    assert receipt.purged
    assert found(folder, "qzvqrow") == []


def test_a_reader_that_pins_the_wal_delays_the_purge_and_the_receipt_says_so(open_memory: Open, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentir_ray.client.memory.PURGE_WAIT_S", 0.2)
    memory = open_memory(background=True)
    memory.add(**secret("a"))
    memory.add(**secret("b"))
    reader = apsw.Connection(str(folder / "log.sqlite3"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchall()
    receipt = memory.forget(ids=["id-a"], wait=True)
    assert receipt.hidden and not receipt.purged
    assert memory.search("qzvqasecretword").hits == ()
    assert found(folder, "qzvqa")
    reader.execute("COMMIT")
    reader.close()
    monkeypatch.setattr("agentir_ray.client.memory.PURGE_WAIT_S", 30.0)
    assert memory.forget(ids=["id-b"], wait=True).purged
    assert found(folder, "qzvq") == []


def test_a_purge_that_was_asked_for_while_another_ran_is_not_lost(open_memory: Open, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_memory(background=True)
    for name in "ab":
        memory.add(**secret(name))
    log = memory._store.writer
    purge, purged, go_on = log.purge, threading.Event(), threading.Event()

    def slow_purge() -> bool:
        done = purge()
        purged.set()
        assert go_on.wait(30)
        return done

    monkeypatch.setattr(log, "purge", slow_purge)
    memory.forget(ids=["id-a"])
    assert purged.wait(30)
    memory.forget(ids=["id-b"])
    go_on.set()
    assert memory._store.wait_purged(30)
    assert found(folder, "qzvq") == []


@pytest.mark.parametrize("background", [False, True])
def test_a_purge_that_failed_is_owed_until_it_succeeds(open_memory: Open, folder: Path, monkeypatch: pytest.MonkeyPatch, background: bool) -> None:
    monkeypatch.setattr("agentir_ray.client.memory.PURGE_WAIT_S", 0.2)
    monkeypatch.setattr("agentir_ray.engine.maintenance.RETRY_S", 0.02)
    memory = open_memory(background=background)
    for i in range(25):
        memory.add(**secret(i))
    assert memory._store.wait_purged(30)
    write, full = Store.__module__ and __import__("agentir_ray.engine.compaction", fromlist=["write_file"]), True
    real = write.write_file

    def write_file(*arguments: Any) -> int:
        if full:
            raise AgentIRError("the disk is full")
        return real(*arguments)

    monkeypatch.setattr(write, "write_file", write_file)
    assert not memory.forget(ids=["id-1"], wait=True).purged
    assert not memory.forget(ids=["id-2"], wait=True).purged
    full = False
    monkeypatch.setattr("agentir_ray.client.memory.PURGE_WAIT_S", 30.0)
    assert memory.forget(ids=["id-3"], wait=True).purged
    assert found(folder, "qzvq1secret", "qzvq2secret", "qzvq3secret", "qzvq1card") == []


def test_a_backup_under_way_delays_the_purge(open_memory: Open, folder: Path) -> None:
    memory = open_memory()
    for i in range(25):
        memory.add(**secret(i))
    with memory._store.keep_files():
        assert not memory.forget(ids=["id-1"], wait=True).purged
        assert found(folder, "qzvq1secret")
    assert memory._store.wait_purged(1)
    assert found(folder, "qzvq1secret") == []


@pytest.mark.parametrize("loaded_again", [False, True])
def test_a_store_that_crashed_before_the_purge_purges_when_it_is_opened_again(open_memory: Open, folder: Path, tmp_path: Path, loaded_again: bool) -> None:
    memory = open_memory(limits=Limits(seal_at=10, max_unsealed=20))
    memory.use("acme/other").add("something else")
    for i in range(25):
        memory.add(**secret(i))
    with memory._store.namespace("acme/alice") as namespace:
        from agentir_ray.engine.writing import forget_ids

        forget_ids(memory._store, namespace, ["id-1", "id-2"], None)
    crashed = tmp_path / "crashed"
    shutil.copytree(folder, crashed)
    with Memory.open(crashed, "acme/alice" if loaded_again else "acme/other") as again:
        again.search("something")
        assert again._store.wait_purged(30)
        assert found(crashed, "qzvq1secret", "qzvq2secret", "qzvq1card") == []


def test_what_an_erased_record_superseded_stands_again_after_a_restart(open_memory: Open) -> None:
    """The manifest of the purge tells of a supersession by an entry that is in no segment; when that entry is replayed, it is erased."""
    memory = open_memory(limits=Limits(seal_at=3, max_unsealed=6))
    for id in ("old", "other", "third"):
        memory.add(f"the capital, says {id}", id=id)
    memory.add("the capital, says new", id="new", supersedes="old")
    memory.forget(ids=["other"], wait=True)
    assert [hit.record.id for hit in memory.search("capital").hits] == ["new", "third"]
    memory.forget(ids=["new"], wait=True)
    assert [hit.record.id for hit in memory.search("capital").hits] == ["third", "old"]
    memory.close()
    assert [hit.record.id for hit in open_memory().search("capital").hits] == ["third", "old"]


def test_closing_purges_what_was_forgotten(open_memory: Open, folder: Path) -> None:
    memory = open_memory(background=True)
    for i in range(25):
        memory.add(**secret(i))
    memory.forget(where={"metadata.card": {"eq": "qzvq1card"}})
    memory.close()
    assert found(folder, "qzvq1secret", "qzvq1card") == []


def test_a_dropped_namespace_is_in_no_file(open_memory: Open, folder: Path) -> None:
    memory = open_memory()
    memory.use("acme/other").add("something else", id="kept")
    for i in range(45):
        memory.add(**secret(i))
    assert memory.drop()
    assert memory._store.wait_purged(1)
    assert found(folder, "qzvq") == []
    assert [record.id for record in memory.use("acme/other").export()] == ["kept"]


def test_an_erased_id_never_comes_back(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    for i in range(25):
        memory.add(**secret(i))
    exported = [record for record in memory.export() if record.id in ("id-1", "id-24")]
    memory.forget(ids=["id-1", "id-24"], wait=True)

    def refused(memory: Memory) -> None:
        for i in (1, 24):
            with pytest.raises(ErasedError):
                memory.add(**secret(i))
            with pytest.raises((ErasedError, NotFoundError)):
                memory.update(f"id-{i}", text="anew")
            with pytest.raises(NotFoundError):
                memory.get(f"id-{i}")
        outcomes = memory.add_many([secret(1), {"text": "beside it", "id": "beside"}, secret(24)])
        assert [isinstance(outcome, ErasedError) for outcome in outcomes] == [True, False, True]
        report = memory.import_([{"id": record.id, "text": record.text, "timestamp": record.timestamp_us, "created_at": record.created_at_us} for record in exported])
        assert (report.added, report.duplicates, len(report.failed)) == (0, 0, 2)
        assert memory.search("qzvq1secretword qzvq24secretword").hits == ()
        assert found(memory._store.path, "qzvq1secret", "qzvq24secret") == []

    refused(memory)
    memory.close()
    memory = open_memory()
    refused(memory)
    memory.close()
    memory = open_memory(analyzer="english")  # rebuilds
    refused(memory)
    for path in (memory._store.path / "segments").glob("*/*"):
        memory.close()
        path.unlink()
    refused(open_memory(analyzer="english"))


def test_a_repeated_operation_does_not_keep_what_it_wrote(open_memory: Open, folder: Path) -> None:
    memory = open_memory()
    memory.add("first", id="a")
    updated = memory.update("a", text="qzvqupdated", operation_id="op")
    assert memory.update("a", text="qzvqupdated", operation_id="op") == updated
    memory.forget(ids=["a"], wait=True, operation_id="forget")
    assert found(folder, "qzvq") == []
    with pytest.raises((ErasedError, NotFoundError)):
        memory.update("a", text="qzvqupdated", operation_id="op")
    assert memory.forget(ids=["a"], wait=True, operation_id="forget").ids == ("a",)
    assert found(folder, "qzvq") == []


def test_the_search_for_remnants_sees_through_compression(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345" + zstandard.ZstdCompressor().compress(b"needle " * 10) + b"tail")
    (tmp_path / "b").write_bytes(b"12345" + zlib.compress(json.dumps({"x": "needle"}).encode(), 1) + b"tail")
    assert {where for _, where in (place.split(" in ") for place in found(tmp_path, "needle"))} >= {"a, zstd at 5", "b, zlib at 5"}
