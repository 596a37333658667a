"""`verify` sees an index that is not that of its log; an export sees a log that ends too soon."""

import sqlite3
from pathlib import Path
from threading import Thread

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.engine.manifest import decode_manifest
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import DamagedError
from agentir_ray.types import NEVER_US

ALICE = "acme/alice"
LIMITS = Limits(seal_at=20, max_unsealed=40)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store with several segments, old versions, erased records and a tail."""
    path = tmp_path / "store"
    with Memory.open(path, ALICE, limits=LIMITS, background=False, durability="process") as memory:
        for i in range(110):
            memory.add(f"rain {i}", id=f"r{i}", supersedes=f"r{i - 1}" if i % 5 == 1 else None)
            if i % 9 == 4:
                memory.update(f"r{i - 1}", text="snow")
            if i % 9 == 8:
                memory.forget(ids=[f"r{i - 7}"])
        memory.use("acme/bob").add("beside it")
        assert memory.verify() == []
    return path


@pytest.mark.parametrize("what", ["a segment is not named", "a segment is older than told", "a tail is replayed twice", "a deletion that never was"])
@pytest.mark.parametrize("read_only", [False, True])
def test_an_index_that_is_not_its_logs_is_a_problem(path: Path, what: str, read_only: bool) -> None:
    database = sqlite3.connect(path / "log.sqlite3")
    ((encoded,),) = database.execute("SELECT manifest FROM manifests WHERE namespace = 1")
    manifest = decode_manifest(encoded, ALICE)
    assert manifest.segments
    if what == "a segment is not named":
        manifest = manifest._replace(segments=manifest.segments[1:])
    elif what == "a segment is older than told":
        manifest = manifest._replace(applied_seq=manifest.applied_seq + 3)
    elif what == "a tail is replayed twice":
        manifest = manifest._replace(applied_seq=manifest.applied_seq - 3)
    else:
        first = manifest.segments[0]
        manifest = manifest._replace(segments=(first._replace(changes=[*first.changes, (0, 5, 5, NEVER_US, NEVER_US)]), *manifest.segments[1:]))
    with database:
        database.execute("UPDATE manifests SET manifest = ? WHERE namespace = 1", (manifest.encode(),))
    database.close()
    with Memory.open(path, ALICE, read_only=read_only, limits=LIMITS) as memory:
        (problem,) = memory.verify()
        assert problem.file == str(path / "segments" / "1") and ALICE in problem.what
    for segment in path.glob("segments/1/*"):  # as the problem says
        segment.unlink()
    (path / "segments" / "1").rmdir()
    with Memory.open(path, ALICE, limits=LIMITS) as memory:
        assert len(memory.search("rain snow", k=200)) > 80
        assert memory.verify() == []


def test_verify_beside_a_writer_finds_nothing_wrong(path: Path) -> None:
    with Memory.open(path, ALICE, limits=LIMITS, durability="process") as memory:

        def write() -> None:
            for i in range(200):
                memory.add(f"fog {i}", id=f"f{i}")
                if i % 3 == 2:
                    memory.forget(ids=[f"f{i - 1}"])

        writer = Thread(target=write)
        writer.start()
        while writer.is_alive():
            assert memory.verify() == []
        writer.join()
        assert memory.verify() == []


@pytest.mark.parametrize("missing", ["the last", "one between", "all"])
@pytest.mark.parametrize("read_only", [False, True])
def test_an_export_of_a_log_that_lacks_entries_does_not_end_as_if_it_were_whole(path: Path, missing: str, read_only: bool) -> None:
    database = sqlite3.connect(path / "log.sqlite3")
    ((last,),) = database.execute("SELECT next_seq - 1 FROM namespaces WHERE number = 1")
    which = {"the last": f"= {1 << 36 | last}", "one between": f"= {1 << 36 | 20}", "all": f"< {2 << 36}"}[missing]
    with Memory.open(path, ALICE, read_only=read_only, limits=LIMITS) as memory:
        memory.stats()
        records = list(memory.export())
        with database:
            database.execute(f"DELETE FROM entries WHERE key {which}")
        got = []
        with pytest.raises(DamagedError, match=rf"log\.sqlite3 lacks entry \d+ of namespace {ALICE}.*--salvage"):
            for record in memory.export():
                got.append(record)
        assert got == records[: len(got)]
    database.close()
