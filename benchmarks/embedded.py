"""What the embedded engine costs: durable adds, searches, filters, maintenance, opening and recovery.

    python -m benchmarks.embedded [--json] [--only WORD]

CPU is thread CPU time; whatever is compared is interleaved in one run. A cost is the median of a round, of the quietest of five rounds: what others do on the machine only ever
adds to it; the medians of all rounds are among the figures. Records are those of `benchmarks.synthetic` (log-normal lengths around 40 terms) unless a row says short.
"""

import argparse
import gc
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from agentir_ray import Memory
from agentir_ray.analysis import get_analyzer
from agentir_ray.clock import SystemClock
from agentir_ray.engine.store import MEMORY_BUDGET_BYTES, Store
from agentir_ray.lexical.query import Bm25
from benchmarks import synthetic
from benchmarks.bars import Outcome, Report

START_US = 1_700_000_000_000_000
STEP_US = 6_000_000  # ten records a minute
SESSIONS = 100
ROUNDS = 5
Item = dict[str, Any]


def items(documents: int, seed: int = 0, short: bool = False) -> list[Item]:
    """Dated records in 100 interleaved sessions, with a topic and a number."""
    corpus = synthetic.corpus(documents, bursty=True, seed=seed)
    offset = corpus.offset
    texts = [" ".join(f"t{term}" for term in corpus.term[offset[i] : min(offset[i + 1], offset[i] + 12) if short else offset[i + 1]]) for i in range(documents)]
    made = [
        {
            "id": f"r{i}", "text": text, "timestamp": START_US + i * STEP_US, "session": f"s{i % SESSIONS}", "role": ("user", "assistant")[i % 2],
            "metadata": {"topic": f"topic {i // 64 % 50}", "n": i},
        }
        for i, text in enumerate(texts)
    ]  # fmt: skip
    gc.freeze()  # the garbage collector need not look through what the benchmark itself holds
    return made


def questions(documents: int, count: int, seed: int = 0) -> list[str]:
    corpus = synthetic.corpus(documents, bursty=True, seed=seed)
    return [" ".join(f"t{term}" for term in query) for query in synthetic.queries(corpus, count)]


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="agentir-bench-", dir=os.environ.get("AGENTIR_BENCH_DIR")))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def cpu_us(work: Callable[[], object]) -> float:
    before = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - before) / 1e3


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, 100 * share))


def settle(memory: Memory) -> None:
    """Let maintenance finish what is due."""
    if not memory._store.wait_purged(120):
        raise TimeoutError("maintenance did not finish within 120 s")


# Writing.


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


# Searching.


def search_ten_thousand(report: Report) -> Outcome:
    count = 10_000
    asked = questions(count, 1_000)
    with folder() as path, Memory.open(path, "bench/search") as memory:
        memory.add_many(items(count))
        settle(memory)
        rounds = [[cpu_us(lambda query=query: [hit.record.text for hit in memory.search(query, k=10).hits]) for query in asked] for _ in range(ROUNDS + 1)][1:]
    quietest = min(rounds, key=statistics.median)
    report.figure("search of 10,000 records, CPU us, p50 of the rounds", [statistics.median(each) for each in rounds])
    report.figure("search of 10,000 records, CPU us", {"p50": statistics.median(quietest), "p95": percentile(quietest, 0.95), "p99": percentile(quietest, 0.99)})
    p50 = statistics.median(quietest)
    return p50, p50 <= 150


class Oracle:
    """BM25 over plain dictionaries, for filters: every record that passes is scored."""

    def __init__(self, records: list[Item], analyzer_name: str) -> None:
        analyzer = get_analyzer(analyzer_name)
        self.analyzer = analyzer
        self.records = records
        self.postings: dict[str, dict[int, int]] = {}
        self.length = []
        for i, item in enumerate(records):
            tokens = analyzer.tokens(item["text"])
            self.length.append(len(tokens))
            for token in tokens:
                of_term = self.postings.setdefault(token, {})
                of_term[i] = of_term.get(i, 0) + 1
        self.average = sum(self.length) / len(records)

    def search(self, query: str, passes: Callable[[Item], bool], k: int) -> list[tuple[str, float]]:
        counted: dict[str, int] = {}
        for token in self.analyzer.tokens(query):
            counted[token] = counted.get(token, 0) + 1
        scores: dict[int, float] = {}
        for token, weight in counted.items():
            postings = self.postings.get(token, {})
            gain = float(weight) * math.log(1.0 + (len(self.records) - len(postings) + 0.5) / (len(postings) + 0.5)) * 1.9
            for i, tf in postings.items():
                if passes(self.records[i]):
                    scores[i] = scores.get(i, 0.0) + gain * (tf / (tf + (0.9 * (1.0 - 0.4) + 0.9 * 0.4 / self.average * self.length[i])))
        return [(self.records[i]["id"], score) for i, score in sorted(scores.items(), key=lambda pair: (-pair[1], -pair[0]))[:k]]


def filtered(report: Report, memory: Memory, records: list[Item], asked: list[str]) -> Outcome:
    count = len(records)
    low, high = START_US + count // 2 * STEP_US, START_US + (count // 2 + count // 10) * STEP_US
    filters: dict[str, tuple[dict[str, Any], Callable[[Item], bool]]] = {
        "a session (1%)": ({"session": "s7"}, lambda item: item["session"] == "s7"),
        "a time range (10%)": ({"since": low, "until": high}, lambda item: low <= item["timestamp"] <= high),
        "a two-clause where": (
            {"where": {"metadata.topic": {"eq": "topic 3"}, "role": {"eq": "user"}}},
            lambda item: item["metadata"]["topic"] == "topic 3" and item["role"] == "user",
        ),
    }
    medians: dict[str, list[float]] = {name: [] for name in filters}
    for _ in range(ROUNDS + 1):
        costs: dict[str, list[float]] = {name: [] for name in filters}
        for query in asked:
            for name, (options, _) in filters.items():
                costs[name].append(cpu_us(lambda query=query, options=options: memory.search(query, k=10, **options)))
        for name, cost in costs.items():
            medians[name].append(statistics.median(cost))
    p50 = {name: min(rounds[1:]) for name, rounds in medians.items()}
    report.figure("filtered search, CPU us, p50 of the rounds", {name: rounds[1:] for name, rounds in medians.items()})
    first = [cpu_us(lambda i=i: memory.search(asked[i], k=10, session=f"s{i}", role="user")) for i in range(SESSIONS)]
    report.figure("the first search under a filter, CPU us", statistics.median(first))
    oracle = Oracle(records, memory.stats()["namespace"]["analyzer"])
    equal = all(
        [(hit.record.id, hit.score) for hit in memory.search(query, k=10, **options)] == oracle.search(query, passes, 10)
        for query in asked[:100]
        for options, passes in filters.values()
    )
    return p50 | {"equal to the oracle": equal}, equal and max(p50.values()) <= 300


def while_merging(report: Report, memory: Memory, asked: list[str]) -> Outcome:
    """Searches in one thread while another adds 40,000 records, with seals and merges in the background; CPU of the searching thread."""

    def costs(until: Callable[[], bool], least: int) -> list[float]:
        found = []
        while len(found) < least or not until():
            found.append(cpu_us(lambda: memory.search(asked[len(found) % len(asked)], k=10)))
        return found

    costs(lambda: True, len(asked))
    quiet = costs(lambda: True, 4_000)
    more = [item | {"id": None} for item in items(40_000, seed=1)]
    seals = [memory.stats()["namespace"]["last_seq"]]

    def write() -> None:
        for start in range(0, len(more), 500):
            memory.add_many(more[start : start + 500])

    writer = threading.Thread(target=write)
    writer.start()
    busy = costs(lambda: not writer.is_alive(), 4_000)
    writer.join()
    settle(memory)
    quiet_after = costs(lambda: True, 4_000)
    report.figure("records added while searching", memory.stats()["namespace"]["last_seq"] - seals[0])
    calm = min(percentile(quiet, 0.99), percentile(quiet_after, 0.99))
    value = {"quiet p99 us": calm, "busy p99 us": percentile(busy, 0.99), "quiet p50": percentile(quiet, 0.5), "busy p50": percentile(busy, 0.5), "searches": len(busy)}
    return value, percentile(busy, 0.99) <= 3 * calm


@contextmanager
def hundred_thousand() -> Iterator[tuple[Memory, list[Item], list[str]]]:
    records, asked = items(100_000), questions(100_000, 1_000)
    with folder() as path, Memory.open(path, "bench/filtered") as memory:
        memory.add_many(records)
        settle(memory)
        yield memory, records, asked


def filters_and_maintenance(report: Report) -> None:
    with hundred_thousand() as (memory, records, asked):
        report.figure("segments of 100,000 records", memory.stats()["namespace"]["segments"])
        report.measure(FILTERED, "each <= 300 us CPU at p50, equal to filtering the oracle", lambda: filtered(report, memory, records, asked))
        report.measure(MERGING, "<= 3x quiet", lambda: while_merging(report, memory, asked))


# Opening; each measured in a process of its own.


def child(code: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


OPEN = """
import json, sys, time
from agentir_ray import Memory
def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))
path, name, queries = sys.argv[1], sys.argv[2], int(sys.argv[3])
before, cpu = time.perf_counter(), time.process_time()
memory = Memory.open(path, name)
opened, opened_cpu = time.perf_counter() - before, time.process_time() - cpu
hits = len(memory.search("t1 t2 t3 t4 t5").hits)
first = time.perf_counter() - before
base = anonymous()
for i in range(queries):
    memory.use(f"many/n{i}").search("t1 t2 t3")
print(json.dumps({"open_s": opened, "open_cpu_s": opened_cpu, "open_and_search_s": first, "hits": hits, "anonymous_bytes": anonymous(), "grown_bytes": anonymous() - base,
                  "records": memory.stats()["namespace"]["records"]}))
memory.close()
"""


def many_namespaces(report: Report) -> Outcome:
    with folder() as few_path, folder() as many_path:
        for path, count in ((few_path, 10), (many_path, 10_000)):
            with Memory.open(path, "many/n0", durability="process") as memory:
                for i in range(count):
                    memory.use(f"many/n{i}").add_many([{"text": f"t1 t{i} t{j}"} for j in range(3)])
        few, many = [], []
        for _ in range(9):
            few.append(child(OPEN, str(few_path), "many/n0", "0"))
            many.append(child(OPEN, str(many_path), "many/n0", "0"))
        walked = child(OPEN, str(many_path), "many/n0", "10000")
    ratio = statistics.median(one["open_s"] for one in many) / statistics.median(one["open_s"] for one in few)
    value = {
        "ratio": ratio, "ms with 10": 1e3 * statistics.median(one["open_s"] for one in few), "ms with 10,000": 1e3 * statistics.median(one["open_s"] for one in many),
        "MiB anonymous after searching all": walked["anonymous_bytes"] / 2**20, "of which for namespaces": walked["grown_bytes"] / 2**20,
    }  # fmt: skip
    return value, ratio <= 3 and walked["grown_bytes"] <= MEMORY_BUDGET_BYTES


WRITE_AND_DIE = """
import os, signal, sys
from agentir_ray import Memory
from benchmarks.embedded import items, settle
memory = Memory.open(sys.argv[1], "bench/reopen", background=False)
records = items(100_000, short=True)
memory.add_many(records[:95_904])
with memory._store.namespace("bench/reopen") as namespace:
    memory._store.compactor.seal(namespace)
    while memory._store.compactor.merge(namespace):
        pass
    memory._store.look_after = lambda namespace, **options: None
    memory.add_many(records[95_904:])
    assert namespace.unsealed == 4_096, namespace.unsealed
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def reopen(report: Report) -> Outcome:
    with folder() as path:
        died = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(path)], capture_output=True, text=True, timeout=600, check=False)
        if died.returncode != -signal.SIGKILL or "ready" not in died.stdout:
            raise RuntimeError(died.stderr)
        copies = []
        for i in range(5):
            shutil.copytree(path, path / f"copy{i}", ignore=shutil.ignore_patterns("copy*"))
            copies.append(child(OPEN, str(path / f"copy{i}"), "bench/reopen", "0"))
    seconds = statistics.median(one["open_and_search_s"] for one in copies)
    value = {"s": seconds, "records": copies[0]["records"]}
    return value, seconds <= 1 and copies[0]["records"] == 100_000


def files(report: Report) -> Outcome:
    """20,000 records in 200 calls, counting segment files all the way."""
    worst = 0
    records = items(20_000, short=True)
    with folder() as path, Memory.open(path, "bench/files") as memory:
        for start in range(0, len(records), 100):
            memory.add_many(records[start : start + 100])
            if start % 1_000 == 0:
                settle(memory)
                worst = max(worst, sum(file.is_file() for file in (path / "segments").rglob("*")))
    return worst, worst <= 3


IMPORT = """
import json, sys, time
before = time.perf_counter()
import agentir_ray
print(json.dumps({"s": time.perf_counter() - before, "heavy": [name for name in ("torch", "ray", "sentence_transformers", "numba") if name in sys.modules]}))
"""
FIRST_SEARCH = """
import json, sys, time
from agentir_ray import Memory
with Memory.open(sys.argv[1], "bench/first") as memory:
    assert memory.search("t1 t2 t3 t4", k=10).hits
print(json.dumps({}))
"""


def import_time(report: Report) -> Outcome:
    imports = [child(IMPORT) for _ in range(7)]
    seconds = statistics.median(one["s"] for one in imports)
    return seconds, seconds < 0.5 and not any(one["heavy"] for one in imports)


def first_search(report: Report) -> Outcome:
    with folder() as path:
        with Memory.open(path, "bench/first") as memory:
            memory.add_many(items(5_000))
            settle(memory)
        child(FIRST_SEARCH, str(path))
        times = []
        for _ in range(7):
            before = time.perf_counter()
            child(FIRST_SEARCH, str(path))
            times.append(time.perf_counter() - before)
    doctor = subprocess.run([sys.executable, "-m", "agentir_ray", "doctor"], capture_output=True, text=True, timeout=600, check=False)
    tells = doctor.returncode == 0 and "cache" in doctor.stdout.lower()
    seconds = statistics.median(times)
    return {"s from start to exit of the process": seconds, "doctor tells of the cache": tells}, seconds < 1.5 and tells


FILTERED = "filtered search, 100,000 records: a session (1%), a time range, a two-clause `where`"
MERGING = "p99 of a search while sealing and merging"
ROWS: dict[str, tuple[str, str, Callable[[Report], Outcome]]] = {
    "add": (
        "add of one record, durable and searchable on return",
        "one sync per add (counted); <= 200 us CPU above a bare SQLite insert; 32 callers together >= 8x the rate of one",
        add_one,
    ),
    "many": ("`add_many` of 100,000 short records, durable", ">= 10,000/s", add_many),
    "search": ("search, 10,000 records, k = 10, reading the ten texts", "<= 150 us CPU at p50, the Python call included", search_ten_thousand),
    "namespaces": ("opening a store with 10,000 namespaces, against 10", "<= 3x; anonymous memory under the budget", many_namespaces),
    "reopen": ("reopen after a kill, 100,000 records, 4,096 unsealed", "<= 1 s with a warm Numba cache", reopen),
    "files": ("files per small namespace", "<= 3", files),
    "import": ("`import agentir_ray`", "< 0.5 s; no torch, ray, sentence-transformers", import_time),
    "first": ("first search in a fresh process, warm Numba cache", "< 1.5 s; `agentir doctor` warms the cache and says where it lies", first_search),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=[*ROWS, "filtered"], help="one part alone; the rows left out are not reported")
    options = parser.parse_args()
    report = Report("The embedded engine")
    for part, (name, bar, work) in ROWS.items():
        if options.only in (None, part):
            report.measure(name, bar, lambda work=work: work(report))
    if options.only in (None, "filtered"):
        filters_and_maintenance(report)
    return report.end(options.json)


if __name__ == "__main__":
    sys.exit(main())
