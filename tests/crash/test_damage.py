"""Damaged files: a segment is rebuilt from the log and answers as before; a damaged database says so, names the ways out, and gives what can still be read (F07)."""

import logging
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import AgentIRError, DamagedError, FormatError, NotFoundError
from agentir_ray.sections import ALIGNMENT, SectionFile

DATABASE = "log.sqlite3"
ALICE, BOB = "acme/alice", "acme/bob"
WORDS = ("lisbon", "harbour", "violin", "glacier", "tram", "saffron", "letter", "orchid", "meteor", "cellar")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store: segments with every optional section, old versions, supersessions, erased records, long texts, and a tail of entries in no segment."""
    folder = tmp_path_factory.mktemp("sound") / "store"
    rng = random.Random(11)
    with Memory.open(folder, ALICE, limits=Limits(40, 80), background=False, durability="process") as memory:
        for name in (ALICE, BOB):
            space = memory.use(name)
            for i in range(130):
                space.add(
                    f"{' '.join(rng.choices(WORDS, k=rng.randint(3, 30)))} only{i} " + ("tram " * 700 if i == 30 else ""), id=f"r{i}", timestamp=1_000_000 * i,
                    importance=i % 3 / 4, session=f"s{i % 4}", role="user", metadata={"n": i, "tags": ["a", f"t{i % 5}"]}, expires_at="2200-01-01" if i % 6 == 0 else None,
                    supersedes=f"r{i - 1}" if i % 9 == 5 else None,
                )  # fmt: skip
                if i % 7 == 3:
                    space.update(f"r{i - 2}", text=f"changed only{i - 2} {rng.choice(WORDS)}")
            space.forget(ids=[f"r{i}" for i in range(0, 130, 11)], wait=True)
            for i in range(130, 140):
                space.add(f"recent lisbon only{i}", id=f"r{i}", timestamp=1_000_000 * i)
            space.forget(ids=["r131", "r2"])
    return folder


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "store"))


def segments(store: Path, number: int = 1) -> list[Path]:
    return sorted((store / "segments" / str(number)).glob("*.segment"))


def answers(memory: Memory) -> list[Any]:
    """What a caller sees, by every way to look that touches a section of its own."""
    found: list[Any] = [[(hit.record, hit.score, hit.explanation) for hit in memory.search(query, k=20, explain=True).hits] for query in (*WORDS, "lisbon tram only80")]
    found.append([hit.record.id for hit in memory.search("lisbon", k=200, where={"metadata.n": {"gte": 40}}, session="s1", importance=0.5, recency=(0.1, "1y")).hits])
    found.append([hit.record.id for hit in memory.search("lisbon", k=200, since=10_000_000, until=90_000_000, where={"metadata.tags": {"eq": "t3"}}).hits])
    found += [memory.recent(500).records, memory.get("r80"), memory.get("r100")]
    return found


def flip(path: Path, at: int, count: int = 1) -> None:
    raw = bytearray(path.read_bytes())
    raw[at : at + count] = bytes(byte ^ 0x55 for byte in raw[at : at + count])
    path.write_bytes(raw)


def test_the_store_holds_what_this_suite_damages(sound: Path) -> None:
    present = {name for file in segments(sound) for name in SectionFile(file).names()}
    assert {"expires_at", "importance", "deleted_seq", "superseded_at", "overflow_tf"} <= present and len(segments(sound, 2)) >= 1


def damages() -> dict[str, Callable[[Path], None]]:
    def truncate(length: Callable[[int], int]) -> Callable[[Path], None]:
        return lambda path: path.write_bytes(path.read_bytes()[: length(path.stat().st_size)])

    return {
        "missing": lambda path: path.unlink(),
        "empty": truncate(lambda size: 0),
        "a few bytes": truncate(lambda size: 40),
        "the header alone": truncate(lambda size: ALIGNMENT),
        "half": truncate(lambda size: size // 2),
        "one byte short": truncate(lambda size: size - 1),
        "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0" * 64),
        "another file": lambda path: path.write_bytes(b"something else entirely" * 100),
        "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
        **{f"header byte {at}": lambda path, at=at: flip(path, at) for at in (0, 8, 12, 16, 24, 40)},  # type: ignore[misc]
        **{f"table byte {at}": lambda path, at=at: flip(path, at) for at in (64, 88, 100, 110)},  # type: ignore[misc]
    }


@pytest.mark.crash
@pytest.mark.parametrize("damage", damages())
def test_a_damaged_segment_is_rebuilt_from_the_log(sound: Path, store: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    with Memory.open(sound, ALICE, read_only=True) as memory:
        before = answers(memory)
    victim = segments(store)[0]
    damages()[damage](victim)
    with Memory.open(store, ALICE, read_only=True) as reader:
        with pytest.raises(DamagedError, match=victim.name):
            answers(reader)
        assert [problem.file for problem in reader.verify()] == [str(victim)]
        assert len(reader.use(BOB).search("lisbon").hits) == 10
    with Memory.open(store, ALICE, background=False) as memory:
        assert answers(memory) == before
        assert memory.verify() == []
    assert [record.levelno for record in caplog.records if "rebuilding namespace" in record.getMessage()] == [logging.WARNING]


@pytest.mark.crash
def test_damage_in_any_section_is_found_and_rebuilt(sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Sections are checked when first touched: also those that only a write or a merge reads."""
    with Memory.open(sound, ALICE, read_only=True) as memory:
        before = answers(memory)
    with Memory.open(shutil.copytree(sound, tmp_path / "twin"), ALICE, background=False) as memory:
        memory.forget(ids=["r80"], wait=True)
        afterwards = list(memory.recent(500).records)
    file = SectionFile(segments(sound)[0])
    for name, (_, _, offset, size) in file._table.items():
        if not size:
            continue
        store = Path(shutil.copytree(sound, tmp_path / name))
        victim = segments(store)[0]
        flip(victim, offset + size // 2)
        caplog.clear()
        with Memory.open(store, ALICE, background=False) as memory:
            assert [problem.file for problem in memory.verify()] == [str(victim)], name
            assert answers(memory) == before, name
            assert memory.forget(ids=["r80"], wait=True).hidden
            assert list(memory.recent(500).records) == afterwards, name
            memory.search("lisbon")
            assert memory.verify() == [], name
            assert memory.forget(ids=["r81"], wait=True).purged
        assert any("rebuilding namespace" in record.getMessage() for record in caplog.records), name
        shutil.rmtree(store)


@pytest.mark.crash
@pytest.mark.parametrize("background", [False, True])
def test_a_write_beside_a_damaged_segment_is_not_lost(sound: Path, store: Path, background: bool) -> None:
    """What a write needs of a segment may be damaged: it is committed, so it is found, and no seal passes over it."""
    file = SectionFile(segments(sound)[0])
    for name in ("id_hash", "id_doc", "key_start", "seq"):
        flip(segments(store)[0], file._table[name][2] + file._table[name][3] // 2)
    with Memory.open(store, ALICE, background=background, limits=Limits(5, 10)) as memory:
        for i in range(30):
            memory.add(f"beside the damage {i}", id=f"new{i}", supersedes=f"r{20 + i}" if i % 4 == 0 and (20 + i) % 11 else None)
        memory.update("r50", text="updated beside the damage")
        assert len(memory.search("beside damage", k=100).hits) == 31
        memory._store.wait_purged(10)
    with Memory.open(store, ALICE) as memory:
        assert len(memory.search("beside damage", k=100).hits) == 31
        assert memory.verify() == []


def test_damaged_segments_of_a_damaged_log_are_left_alone(store: Path) -> None:
    """The rebuild would lose what only the other segments hold, so it does not begin."""
    flip(segments(store)[0], 200, 20)
    wipe_body(store, 1, 40)
    kept = {path: path.read_bytes() for path in store.glob("segments/*/*")}
    with Memory.open(store, ALICE, background=False) as memory:
        with pytest.raises(DamagedError, match=DATABASE):
            memory.search("lisbon")
        assert len(memory.use(BOB).search("lisbon").hits) == 10
    assert {path: path.read_bytes() for path in store.glob("segments/*/*")} == kept


def wipe_body(store: Path, number: int, seq: int) -> None:
    """One row as a disk may garble it, with the database itself sound."""
    database = sqlite3.connect(store / DATABASE)
    with database:
        assert database.execute("UPDATE entries SET body = zeroblob(length(body)) WHERE key = ?", (number << 36 | seq,)).rowcount == 1
    database.close()


def test_a_damaged_row_of_the_log_leaves_searches_alone(sound: Path, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Memory.open(sound, ALICE, read_only=True) as memory:
        before, exported = answers(memory), list(memory.export())
    wipe_body(store, 1, 60)
    for read_only in (True, False):
        with Memory.open(store, ALICE, read_only=read_only, background=False) as memory:
            assert answers(memory) == before
            with pytest.raises(DamagedError, match=r"log\.sqlite3.*seq 60.*agentir verify.*agentir export --salvage"):
                list(memory.export())
            assert answers(memory) == before, "the export's trouble is not the segments'"
            assert "seq 60" in memory.verify()[0].what
            assert list(memory.export(salvage=True)) == exported, "the segment has what the log lost"
            assert len(list(memory.use(BOB).export())) > 100
    assert any("seq 60" in record.getMessage() for record in caplog.records)


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(4))
def test_a_garbled_page_of_the_database(sound: Path, store: Path, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever page it is: no error but ours, and what is exported around it is true."""
    rng = random.Random(seed)
    with Memory.open(sound, ALICE, read_only=True) as memory:
        true = {name: {record.id: record for record in memory.use(name).export()} for name in (ALICE, BOB)}
    pristine = (store / DATABASE).read_bytes()
    pages = len(pristine) // 4_096
    saved = 0
    for page in rng.sample(range(1, pages), min(pages - 1, 12)):
        raw = bytearray(pristine)
        raw[page * 4_096 : page * 4_096 + 4_096] = bytes(4_096) if rng.random() < 0.5 else rng.randbytes(4_096)
        (store / DATABASE).write_bytes(raw)
        with Memory.open(store, ALICE, read_only=True) as memory:
            memory.verify()
            for name in (ALICE, BOB):
                space = memory.use(name)
                for ask in (
                    lambda space: space.search("lisbon").hits,
                    lambda space: space.recent(5),
                    lambda space: space.get("r80"),
                    lambda space: list(space.export()),
                    Memory.stats,
                ):
                    try:
                        ask(space)
                    except AgentIRError as error:
                        assert isinstance(error, DamagedError | NotFoundError), error
                try:
                    records = list(space.export(salvage=True))
                except NotFoundError:
                    continue
                assert len({record.id for record in records}) == len(records)
                assert all(true[name].get(record.id) == record for record in records), "nothing erased and nothing outdated came back"
                saved += len(records)
    assert saved > 0.8 * min(pages - 1, 12) * sum(map(len, true.values()))


def destroyed() -> dict[str, Callable[[Path], None]]:
    return {
        "header": lambda path: flip(path, 0, 100),
        "first page": lambda path: path.write_bytes(bytes(4_096) + path.read_bytes()[4_096:]),
        "all": lambda path: path.write_bytes(bytes(path.stat().st_size)),
        "empty": lambda path: path.write_bytes(b""),
        "missing": lambda path: path.unlink(),
    }


@pytest.mark.crash
@pytest.mark.parametrize("damage", destroyed())
def test_a_destroyed_database(sound: Path, store: Path, damage: str) -> None:
    """No writer opens it, nothing is touched, and the segments' records can be saved."""
    with Memory.open(sound, ALICE, read_only=True) as memory:
        true = {record.id: record for record in memory.export()}
    destroyed()[damage](store / DATABASE)
    kept = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"log\.sqlite3.*agentir export --salvage"):
            Memory.open(store, ALICE)
    with Memory.open(store, ALICE, read_only=True) as memory:
        with pytest.raises(DamagedError, match=DATABASE):
            memory.search("lisbon")
        assert DATABASE in memory.verify()[0].file
        saved = {record.id: record for record in memory.export(salvage=True)}
        assert len(saved) > 110
        # What was updated or erased since the segment was written, only the log knew.
        assert all(true[id] == record for id, record in saved.items() if id in true and id != "r128") and saved.keys() - true.keys() <= {"r2"}
    assert {path: path.read_bytes() for path in kept if path.name != "LOCK" and path.exists()} == {path: raw for path, raw in kept.items() if path.name != "LOCK"}


@pytest.mark.crash
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_truncated_database(sound: Path, store: Path, share: float) -> None:
    with Memory.open(sound, ALICE, read_only=True) as memory:
        true = {record.id: record for record in memory.export()}
    raw = (store / DATABASE).read_bytes()
    (store / DATABASE).write_bytes(raw[: int(len(raw) * share)])
    with Memory.open(store, ALICE, read_only=True) as memory:
        assert memory.verify()
        saved = {record.id: record for record in memory.export(salvage=True)}
    assert len(saved) > 110 and all(true[id] == record for id, record in saved.items() if id in true and id != "r128")


@pytest.mark.parametrize("manifest", [b"", b"\0\1garbage", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_bad_bytes_of_a_manifest(sound: Path, store: Path, manifest: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with Memory.open(sound, ALICE, read_only=True) as memory:
        before = answers(memory)
    database = sqlite3.connect(store / DATABASE)
    with database:
        database.execute("UPDATE manifests SET manifest = ? WHERE namespace = 1", (manifest,))
    database.close()
    if manifest:  # an empty one is that of a new namespace
        with Memory.open(store, ALICE, read_only=True) as reader, pytest.raises(DamagedError, match="manifest"):
            reader.search("lisbon")
    with Memory.open(store, ALICE, background=False) as memory:
        assert answers(memory) == before
        assert memory.verify() == []


@pytest.mark.parametrize("what", ["database", "manifest", "segment"])
def test_a_store_of_a_newer_version_is_left_alone(store: Path, what: str) -> None:
    import json
    import zlib

    if what == "segment":
        path = segments(store)[0]
        raw = bytearray(path.read_bytes())
        raw[8:12] = (9).to_bytes(4, "little")
        raw[24:28] = bytes(4)
        count = int.from_bytes(raw[12:16], "little")
        raw[24:28] = zlib.crc32(raw[64 : 64 * (1 + count)], zlib.crc32(raw[:64])).to_bytes(4, "little")
        path.write_bytes(raw)
    else:
        database = sqlite3.connect(store / DATABASE)
        with database:
            if what == "database":
                database.execute("PRAGMA user_version = 99")
            else:
                content = {"format": 99, "something": "new"}
                database.execute("UPDATE manifests SET manifest = ?", (zlib.compress(json.dumps(content).encode()),))
        database.close()
    kept = {path: path.read_bytes() for path in store.rglob("*") if path.name == DATABASE or path.suffix == ".segment"}
    for read_only in (False, True):
        with pytest.raises(FormatError, match="version"), Memory.open(store, ALICE, read_only=read_only, background=False) as memory:
            memory.search("lisbon")
    assert {path: path.read_bytes() for path in store.rglob("*") if path.name == DATABASE or path.suffix == ".segment"} == kept
