"""Rows of `benchmarks.embedded`: what opening, importing and recovering cost, each measured in a process of its own."""

import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
from typing import Any

from agentir_ray import Memory
from agentir_ray.engine.store import MEMORY_BUDGET_BYTES
from benchmarks.bars import Outcome, Report
from benchmarks.workload import folder, items, settle


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
from benchmarks.workload import items, settle
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
