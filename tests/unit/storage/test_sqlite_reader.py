"""Reading a store that is being written, damaged, foreign, newer, or on a disk that cannot be written."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from agentir_ray.errors import DamagedError, FormatError, NotFoundError, ReadOnlyError, StorageFullError, StoreError, StoreLockedError
from agentir_ray.storage import sqlite_pool
from agentir_ray.storage.protocol import Batch, NamespaceState
from agentir_ray.storage.sqlite_errors import translate
from agentir_ray.storage.sqlite_log import SqliteLog
from agentir_ray.storage.sqlite_reader import SqliteReader
from tests.contracts.record_log import add, forget


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[SqliteLog]:
    path.parent.mkdir()
    log = SqliteLog(path, durability="process")
    yield log
    log.close()


@pytest.fixture
def state(log: SqliteLog) -> NamespaceState:
    state = log.claim("acme/alice")
    log.commit([Batch(state.number, state.epoch, [add(f"id-{i}", f"text {i} " * 20) for i in range(1, 401)])])
    return state


def seqs(log: SqliteReader, number: int, after: int = 0) -> list[int]:
    return [entry.seq for entry in log.read(number, after)]


def tamper(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def test_a_reader_follows_the_writer(log: SqliteLog, path: Path, state: NamespaceState) -> None:
    reader = SqliteReader(path)
    assert reader.state("acme/alice") == log.state("acme/alice")
    log.commit([Batch(state.number, state.epoch, [add("new"), forget("id-1")])])
    assert seqs(reader, state.number) == list(range(1, 403))
    found = reader.find(state.number, "id-1")
    assert found is not None and found.body is None
    reader.close()
    reader.close()


def test_threads_read_while_others_write(log: SqliteLog, state: NamespaceState) -> None:
    def write(i: int) -> None:
        log.commit([Batch(state.number, state.epoch, [add(f"new-{i}")])])

    def read(i: int) -> int:
        got = seqs(log, state.number)
        assert got == list(range(1, len(got) + 1))
        return len(got)

    with ThreadPoolExecutor(8) as pool:
        written = [pool.submit(write, i) for i in range(40)]
        read_counts = list(pool.map(read, range(40)))
        for future in written:
            future.result()
    assert min(read_counts) >= 400 and seqs(log, state.number)[-1] == 440


def test_a_reader_keeps_a_purge_waiting_and_says_so(log: SqliteLog, path: Path, state: NamespaceState) -> None:
    pinning = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    cursor = pinning.execute("SELECT * FROM entries")
    next(cursor)
    log.commit([Batch(state.number, state.epoch, [forget("id-1")])])
    assert not log.purge() and not log.checkpoint()
    pinning.close(True)
    assert log.purge() and os.path.getsize(f"{path}-wal") == 0


@pytest.mark.parametrize(
    "damage",
    [
        "body = x'00'",
        "body = NULL",
        "digest = NULL, body = NULL",
        "id = 'id-7'",
        "id = NULL",
        "version = 1",
        "created_at_us = 11",
        "timestamp_us = 'x'",
        "kind = 9",
        "epoch = 1.5",
        "crc = 0",
    ],
)
def test_f07_a_damaged_row_is_named_and_the_rest_is_served(log: SqliteLog, path: Path, state: NamespaceState, damage: str) -> None:
    tamper(path, f"UPDATE entries SET {damage} WHERE key & 0xfff = 7")
    reading = log.read(state.number)
    for _ in range(6):
        next(reading)
    with pytest.raises(DamagedError, match=r"log\.db: namespace 1 \(acme/alice\), seq 7 .*agentir verify.*agentir export --salvage"):
        next(reading)
    assert seqs(log, state.number, 7) == list(range(8, 401))
    assert [line.split(", ")[1] for line in log.verify()] == ["seq 7 does not match its checksum"]


def test_missing_rows_are_noticed(log: SqliteLog, path: Path, state: NamespaceState) -> None:
    tamper(path, "DELETE FROM entries WHERE key & 0xfff IN (3, 4, 399, 400)")
    assert [line.split(": ")[-1] for line in log.verify()] == ["seq 3 to 4 are missing", "seq 399 to 400 are missing"]


def test_f07_a_damaged_page_is_named_and_other_namespaces_are_served(log: SqliteLog, path: Path, state: NamespaceState) -> None:
    other = log.claim("acme/bob")
    log.commit([Batch(other.number, other.epoch, [add(f"b{i}", "bob " * 100) for i in range(200)])])
    log.close()
    content = bytearray(path.read_bytes())
    at = content.index(b"text 200 text 200") // 4096 * 4096
    content[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    reader = SqliteReader(path)
    with pytest.raises(DamagedError, match=r"log\.db.*agentir verify"):
        seqs(reader, state.number)
    assert seqs(reader, other.number) == list(range(1, 201))
    problems = reader.verify()
    assert problems and any("namespace 1 (acme/alice), after seq" in line for line in problems) and not any("acme/bob" in line for line in problems)
    reader.close()


def test_a_file_of_noise_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"noise" * 1_000)
    for open_it in (SqliteLog, SqliteReader):
        with pytest.raises(DamagedError, match=r"log\.db"):
            open_it(path)


def test_a_newer_format_and_a_foreign_database_are_not_touched(log: SqliteLog, path: Path, tmp_path: Path) -> None:
    log.close()
    tamper(path, "PRAGMA user_version = 2")
    foreign = tmp_path / "foreign.db"
    tamper(foreign, "CREATE TABLE t (x)")
    for file, match in ((path, "format 2"), (foreign, "another program")):
        before = file.read_bytes()
        for open_it in (SqliteLog, SqliteReader):
            with pytest.raises(FormatError, match=match):
                open_it(file)
        assert file.read_bytes() == before


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no store"):
        SqliteReader(tmp_path / "log.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "log.db").touch()
    with pytest.raises(NotFoundError, match="no store yet"):
        SqliteReader(tmp_path / "log.db")
    with pytest.raises(NotFoundError):
        SqliteLog(tmp_path / "nowhere" / "log.db")


def test_a_closed_store_on_a_read_only_disk_is_served(log: SqliteLog, path: Path, state: NamespaceState, monkeypatch: pytest.MonkeyPatch) -> None:
    log.close()
    monkeypatch.setattr(sqlite_pool, "folder_writable", lambda path: False)
    reader = SqliteReader(path)
    assert seqs(reader, state.number) == list(range(1, 401)) and reader.verify() == []
    reader.close()
    assert [file.name for file in path.parent.iterdir()] == ["log.db"], "it left no shared memory behind"


def test_a_wal_that_nobody_may_recover_is_an_error_of_its_own(log: SqliteLog, path: Path, state: NamespaceState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "crashed"
    copy.mkdir()
    for name in ("log.db", "log.db-wal"):
        shutil.copy(path.parent / name, copy)
    monkeypatch.setattr(sqlite_pool, "folder_writable", lambda path: False)

    def refuse(*arguments: object) -> apsw.Connection:
        raise apsw.CantOpenError("unable to open database file")

    monkeypatch.setattr(sqlite_pool, "open_reader", refuse)  # what SQLite says there; a test that runs as root can write anywhere
    with pytest.raises(ReadOnlyError, match="not closed properly"):
        SqliteReader(copy / "log.db")


def test_a_foreign_writer_is_reported_not_waited_for(log: SqliteLog, path: Path, state: NamespaceState) -> None:
    log._writer.set_busy_timeout(0)
    foreign = apsw.Connection(str(path))
    foreign.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLockedError):
        log.commit([Batch(state.number, state.epoch, [add("x")])])
    foreign.execute("ROLLBACK")
    foreign.close()
    assert log.commit([Batch(state.number, state.epoch, [add("x")])])[0].appended[0].seq == 401


def test_what_a_commit_raises_in_python_leaves_nothing(log: SqliteLog, state: NamespaceState) -> None:
    with pytest.raises(UnicodeEncodeError):  # refused at the edge; if one slips through, it harms nobody
        log.commit([Batch(state.number, state.epoch, [add("fine"), add("\ud800")])])
    assert log.commit([Batch(state.number, state.epoch, [add("fine")])])[0].appended[0].seq == 401


def test_a_transaction_that_an_interrupt_left_open_is_rolled_back(log: SqliteLog, state: NamespaceState) -> None:
    log._writer.execute("BEGIN IMMEDIATE; DELETE FROM entries")
    assert log.commit([Batch(state.number, state.epoch, [add("x")])])[0].appended[0].seq == 401
    assert seqs(log, state.number) == list(range(1, 402))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (apsw.SQLITE_CORRUPT, DamagedError),
        (apsw.SQLITE_NOTADB, DamagedError),
        (apsw.SQLITE_FULL, StorageFullError),
        (apsw.SQLITE_IOERR, StorageFullError),
        (apsw.SQLITE_BUSY, StoreLockedError),
        (apsw.SQLITE_READONLY, ReadOnlyError),
        (apsw.SQLITE_CANTOPEN, NotFoundError),
        (apsw.SQLITE_MISUSE, StoreError),
    ],
)
def test_every_error_of_sqlite_becomes_one_of_ours_and_names_the_file(code: int, expected: type[StoreError]) -> None:
    original = apsw.exception_for(code)
    assert isinstance(original, apsw.Error)
    error = translate(original, "/store/log.db")
    assert type(error) is expected and "/store/log.db" in str(error)
