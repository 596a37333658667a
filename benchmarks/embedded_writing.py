"""Rows of `benchmarks.embedded`: what writing costs."""

import os
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import apsw

from agentir_ray import Memory
from agentir_ray.clock import SystemClock
from agentir_ray.engine.store import Store
from agentir_ray.lexical.query import Bm25
from benchmarks.bars import Outcome, Report
from benchmarks.workload import ROUNDS, cpu_us, folder, items, settle


class CountingVfs(apsw.VFS):
    """SQLite's own file system, counting syncs and, to show what a slower disk would do, making each one wait."""

    def __init__(self) -> None:
        self.syncs = 0
        self.wait_s = 0.0
        super().__init__("counting", "")

    def xOpen(self, name: Any, flags: list[int]) -> "CountingFile":
        return CountingFile(self, name, flags)


class CountingFile(apsw.VFSFile):
    def __init__(self, vfs: CountingVfs, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        self._vfs.syncs += 1
        if self._vfs.wait_s:
            time.sleep(self._vfs.wait_s)
        super().xSync(flags)


def add_one(report: Report) -> Outcome:
    adds, warm = 1_000, 200
    records = [item | {"id": None} for item in items(adds + warm, short=True)]
    vfs = CountingVfs()
    with folder() as path:
        with Memory(Store(path / "counted", clock=SystemClock(), vfs="counting"), "bench/add", None, Bm25(), True) as memory:
            for item in records[:warm]:
                memory.add(**item)
            before = vfs.syncs
            for item in records[warm : warm + 100]:
                memory.add(**item)
            syncs = (vfs.syncs - before) / 100
            vfs.wait_s = 0.001
            slow = group_ratio(memory.use("bench/slow"), 3)
        bare = apsw.Connection(str(path / "bare.sqlite3"))
        bare.pragma("journal_mode", "wal")
        bare.pragma("synchronous", 2)
        bare.wal_autocheckpoint(0)
        bare.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, text TEXT)")
        pairs = []
        with Memory.open(path / "store", "bench/add") as memory:
            for item in records:
                theirs = cpu_us(lambda text=item["text"]: bare.execute("INSERT INTO records (text) VALUES (?)", (text,)))
                pairs.append((cpu_us(lambda item=item: memory.add(**item)), theirs))
        bare.close()
        with Memory.open(path / "group", "bench/group") as memory:
            ratio, one, many = group_ratio(memory, 9)
        report.figure("a sync, us", sync_us(path))
    size = adds // ROUNDS
    rounds = [pairs[start : start + size] for start in range(warm, warm + adds, size)]
    aboves = [statistics.median(mine for mine, _ in each) - statistics.median(theirs for _, theirs in each) for each in rounds]
    above = min(aboves)
    report.figure("add of one record, CPU us above a bare insert, rounds", aboves)
    report.figure("a bare insert, CPU us", min(statistics.median(theirs for _, theirs in each) for each in rounds))
    report.figure("adds/s", {"one caller": one, "32 callers": many})
    report.figure("the same with 1 ms more a sync", {"one caller": slow[1], "32 callers": slow[2], "ratio": slow[0]})
    value = {"syncs per add": syncs, "CPU us above a bare insert": above, "32 callers / one": ratio}
    return value, syncs == 1 and above <= 200 and ratio >= 8


def group_ratio(memory: Memory, rounds: int) -> tuple[float, float, float]:
    """(ratio, adds/s of one caller, adds/s of 32 together): medians of alternating rounds of as many adds each, so that both meet as many seals."""
    texts = [item["text"] for item in items(2_000, short=True)]

    def rate(callers: int, each: int) -> float:
        ready = threading.Barrier(callers + 1)

        def call(caller: int) -> None:
            ready.wait()
            for i in range(each):
                memory.add(texts[(caller * each + i) % len(texts)])

        threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
        for thread in threads:
            thread.start()
        ready.wait()
        before = time.perf_counter()
        for thread in threads:
            thread.join()
        return callers * each / (time.perf_counter() - before)

    rate(32, 20)
    pairs = [(rate(1, 640), rate(32, 20)) for _ in range(rounds)]
    return statistics.median(many / one for one, many in pairs), statistics.median(one for one, _ in pairs), statistics.median(many for _, many in pairs)


def sync_us(path: Path) -> float:
    """What the disk takes to sync a page appended to a file; the median of 200."""
    descriptor = os.open(path / "sync", os.O_WRONLY | os.O_CREAT)
    times = []
    for _ in range(200):
        os.write(descriptor, bytes(4_096))
        before = time.perf_counter()
        os.fdatasync(descriptor)
        times.append((time.perf_counter() - before) * 1e6)
    os.close(descriptor)
    return statistics.median(times)


def add_many(report: Report) -> Outcome:
    records = items(100_000, short=True)
    with folder() as path, Memory.open(path, "bench/many") as memory:
        memory.add_many(item | {"id": None} for item in records[:3_000])
        settle(memory)
        before = time.perf_counter()
        outcomes = memory.use("bench/bulk").add_many(records)
        rate = len(records) / (time.perf_counter() - before)
        stored = sum(not isinstance(outcome, Exception) for outcome in outcomes)
    return {"records/s": rate, "stored": stored}, rate >= 10_000 and stored == len(records)
