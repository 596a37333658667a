"""Lives as stores: filled through the API as an agent would fill them, kept in a cache, and taught by feedback before anything is measured.

A store is kept under a hash of the code that decides what its files look like, so that a newer format or another way of merging makes new ones.
"""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agentir_ray
from agentir_ray import Memory
from agentir_ray.engine.policy import DEFAULT_LIMITS, Limits
from agentir_ray.engine.searching import read_record
from agentir_ray.engine.store import MEMORY_BUDGET_BYTES, Durability
from agentir_ray.lexical.query import Bm25, parse_query, scoring
from agentir_ray.lexical.search import Visibility, top_k
from benchmarks import temporal_life
from benchmarks.compare.ours import format_hash
from benchmarks.temporal_life import NOW_US, Law, Life, Question, open_life
from benchmarks.workload import settle

NAMESPACE = "bench/life"
TRAINING_QUESTIONS = 600
TRAINING_SEED = 10_000_000  # far from the seeds of what is measured
_SHAPING = ("engine/policy.py", "engine/manifest.py", "lexical/cut.py", "lexical/stored.py", "storage/codec.py", "storage/sqlite_schema.py")
GIB = 2**30


class LifeClock:
    """The end of a life stands still; the stopwatch runs."""

    def __init__(self, now_us: int = NOW_US) -> None:
        self.time_us = now_us

    def now_us(self) -> int:
        return self.time_us

    def monotonic_ns(self) -> int:
        return time.perf_counter_ns()


@contextmanager
def cache_folder(named: str | None = None) -> Iterator[Path]:
    """Where lives and stores are kept: `named`, else AGENTIR_BENCH_CACHE, else a folder that is removed at the end."""
    if kept := named or os.environ.get("AGENTIR_BENCH_CACHE"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
    else:
        with TemporaryDirectory(prefix="agentir-bench-", dir=os.environ.get("AGENTIR_BENCH_DIR")) as temporary:
            yield Path(temporary)


def shape_hash() -> str:
    root = Path(agentir_ray.__file__).parent
    sources = [*(root / name for name in _SHAPING), Path(temporal_life.__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources) + format_hash().encode()).hexdigest()[:8]


def open_memory(
    path: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    budget_bytes: int = MEMORY_BUDGET_BYTES,
    clock: LifeClock | None = None,
    durability: Durability = "process",
    **options: Any,
) -> Memory:
    """A store of a life at its end. Without `durability="full"` a power cut would only lose a benchmark."""
    return Memory.open(path, NAMESPACE, durability=durability, clock=clock or LifeClock(), limits=limits, memory_budget_bytes=budget_bytes, **options)


def fill(memory: Memory, life: Life) -> None:
    report = memory.import_(life.items())
    if report.added != len(life):
        raise RuntimeError(f"{report.added} of {len(life)} records were stored; {report.failed[:1]}")
    settle(memory)


def built(cache: Path, records: int) -> tuple[Path, Life]:
    """The store of a life, closed and not to be changed, and the life."""
    life = open_life(cache, records)
    folder = cache / f"store-{records}-{shape_hash()}"
    if not (folder / "done").exists():
        for outdated in cache.glob(f"store-{records}-*"):
            shutil.rmtree(outdated)
        print(f"     building a store of {records:,} records", file=sys.stderr, flush=True)
        began = time.perf_counter()
        with open_memory(folder / "store") as memory:
            fill(memory, life)
        (folder / "done").write_text(f"{records / (time.perf_counter() - began):.0f} records/s\n")
    return folder / "store", life


def copied(store: Path, target: Path) -> Path:
    """A copy that may be changed: segment files are immutable, so they are shared; the database is copied."""
    shutil.copytree(store, target, ignore=shutil.ignore_patterns("segments", "LOCK"))
    if (store / "segments").exists():
        shutil.copytree(store / "segments", target / "segments", copy_function=os.link)
    return target


@contextmanager
def life_in_use(cache: Path, records: int, **options: Any) -> Iterator[tuple[Memory, Life]]:
    """A store of a life that nothing was asked yet: a copy, so that what it learns is forgotten at the end."""
    store, life = built(cache, records)
    with TemporaryDirectory(prefix="life-in-use-", dir=cache) as temporary, open_memory(copied(store, Path(temporary) / "store"), **options) as memory:
        yield memory, life


def best_of_all(memory: Memory, question: Question) -> str:
    """The id of the best record for a question, found without the prior taking notice."""
    with memory._store.namespace(memory.namespace) as namespace:
        query = parse_query(namespace.analyzer, question.text)
        snapshot = namespace.index.snapshot(query.terms)
        (found,) = top_k(snapshot, scoring(query, snapshot.statistics, Bm25()), 1, Visibility(memory._store.clock.now_us())).found
        return read_record(snapshot, found.part, found.doc, found.seq).id


def answered_by_their_own(memory: Memory, life: Life, law: Law, count: int, seed: int) -> tuple[list[Question], float]:
    """Questions whose best answer is the record that they were drawn from, so that answers have the ages that the law says, and the share of questions of which that is true.

    A few words of a record may fit another one better, of any age: one in thirty or forty here. A namespace learns the age of best answers, and would learn of these, too.
    """
    found: list[Question] = []
    drawn = 0
    while len(found) < count:
        questions = life.questions(law, count, seed + drawn)
        drawn += count
        found += [question for question in questions if best_of_all(memory, question) == question.id]
    return found[:count], len(found) / drawn


def teach(memory: Memory, life: Life, law: Law, count: int = TRAINING_QUESTIONS) -> dict[str, Any]:
    """Let the prior learn from use: other questions than those measured are answered by a complete search, and the record that was asked for is named. Returns what the prior then
    says."""
    if not hasattr(memory, "feedback"):
        return {"not taught": "this version has no Memory.feedback"}
    for question in answered_by_their_own(memory, life, law, count, TRAINING_SEED)[0]:
        answer = memory.search(question.text, coverage="exact")
        memory.feedback([question.id], query_id=answer.query_id)
    settle(memory)
    coverage = memory.search("t1 t2 t3", coverage=0.95).coverage
    return {
        "feedbacks": count, "partitions": life.partitions, "searched at 0.95": coverage.searched, "exact": coverage.exact, "mass": coverage.mass, "reason": coverage.reason,
    }  # fmt: skip
