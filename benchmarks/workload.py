"""What the benchmarks of the embedded engine share: dated records, questions to them, and how a cost is taken.

A cost is thread CPU time, the median of a round, of the quietest of five rounds: what others do on the machine only ever adds to it.
"""

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray import Memory
from benchmarks import synthetic

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
