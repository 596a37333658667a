"""What each step towards our kernel gains: `python -m benchmarks.compare.ablation --docs 1000000 --json`.

From scoring everything, over the textbook's steps (`steps`), to our kernel without and with what it adds, and in batches on one thread and on two. All answer the same queries,
round after round in turn; a sample of them is checked against the oracle, at every k, so all steps agree with one another. The figures are for the log; there is no bar, and the
exit code is 0 unless a step answers wrongly.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels import topk
from agentir_ray.kernels.rows import AT
from agentir_ray.lexical.query import Bm25, Priors, Query, scoring
from agentir_ray.lexical.search import Visibility, best_first, scoring_arguments, scratch
from agentir_ray.types import NEVER_US
from benchmarks.bars import Report
from benchmarks.compare import oracle, steps
from benchmarks.compare.building import built
from benchmarks.compare.corpora import Collection, open_collection
from benchmarks.compare.engine import Hits, Round, singly
from benchmarks.compare.ours import Ours

Array = npt.NDArray[Any]
Search = Callable[[Any, int], tuple[Array, Array]]  # (a query of its step's kind, k) -> (documents, scores), best first
SAMPLE = 20  # queries that are checked, at every k
BATCHES = 4  # of all queries a round, on one thread and on two; the best counts, for two threads need a machine that is idle
SEEN = Visibility(NEVER_US - 1)


class Lists:
    """The posting lists of the terms that are asked for, as `steps` reads them."""

    def __init__(self, collection: Collection) -> None:
        formula, counted = oracle.OURS, collection.counted
        self.documents = collection.documents
        asked = np.unique(np.concatenate(collection.queries))
        place = np.full(collection.vocabulary, -1, np.int32)
        place[asked] = np.arange(len(asked), dtype=np.int32)
        of_posting = place[counted.term]
        at = np.flatnonzero(of_posting >= 0)
        at = at[np.argsort(of_posting[at], kind="stable")]  # documents stay ascending
        doc = (np.searchsorted(counted.doc_start, at, side="right") - 1).astype(np.int32)
        length = np.asarray(collection.length, np.float64)
        norm = formula.k1 * (1 - formula.b + formula.b * length / length.mean())
        tf = counted.tf[at].astype(np.float64)
        self.doc, self.impact = doc, (tf / (tf + norm[doc])).astype(np.float32)
        df = np.bincount(of_posting[at], minlength=len(asked))
        self.start = np.concatenate([[0], np.cumsum(df)]).astype(np.int64)
        idf = np.log1p((self.documents - df + 0.5) / (df + 0.5))
        self.gain = (idf * (formula.k1 + 1)).astype(np.float32)
        self.bound = np.array([self.impact[a:b].max(initial=0.0) for a, b in zip(self.start[:-1], self.start[1:], strict=True)], np.float32)
        self.queries = [place[query] for query in collection.queries]
        self._all, self._window, self._chosen = np.zeros(self.documents, np.float32), np.zeros(steps.WINDOW, np.float32), np.empty(steps.WINDOW + 1, np.uint16)

    def exhaustive(self, query: Array, k: int) -> tuple[Array, Array]:
        heap = _heap(k)
        return _found(steps.exhaustive(self.start[query], self.start[query + 1], self.gain[query], self.doc, self.impact, self._all, *heap), heap)

    def vectorised(self, query: Array, k: int) -> tuple[Array, Array]:
        return steps.vectorised(self.start[query], self.start[query + 1], self.gain[query], self.doc, self.impact, self._all, k)

    def windowed(self, query: Array, k: int) -> tuple[Array, Array]:
        heap, lists = _heap(k), (self.start[query], self.start[query + 1], self.gain[query], self.doc, self.impact)
        return _found(steps.windowed(*lists, self._window, self._chosen, self.documents, *heap), heap)

    def maxscore(self, query: Array, k: int) -> tuple[Array, Array]:
        heap = _heap(k)
        return _found(steps.maxscore(self.start[query], self.start[query + 1], self.gain[query], self.bound[query], self.doc, self.impact, *heap), heap)


class Kernel:
    """Our kernel on rows of which some arrays are taken away."""

    def __init__(self, ours: Ours, bitmaps: bool, worths: bool) -> None:
        self._index = ours.index
        self._held = []
        self._rows = ours.index.snapshot(()).rows.copy()
        for row in self._rows:
            if not bitmaps:
                row[AT["bitmap_term"] + 1] = 0
            if not worths:
                zeros = np.zeros(row[AT["best_worth"] + 1], np.uint8)
                self._held.append(zeros)
                row[AT["best_worth"]] = zeros.ctypes.data

    def search(self, query: Query, k: int) -> tuple[Array, Array]:
        """As `lexical.search.top_k` does it where nothing is filtered."""
        snapshot = self._index.snapshot(query.terms)
        asked = scoring_arguments(scoring(query, snapshot.statistics, Bm25()), Priors(), SEEN, -np.inf)
        heap, skipped = _heap(k), np.zeros(len(self._rows), np.int64)
        arguments = self._rows, snapshot.newest_first, snapshot.ordinals, *asked, snapshot.seq, SEEN.as_of_us, SEEN.written_until_us, 0, *heap, skipped, *scratch()
        score, seq, _ = best_first(topk.search(*arguments), *heap)
        return seq - 1, score  # `ours.write_segment` numbers documents so


def _heap(k: int) -> tuple[Array, Array, Array]:
    return np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.int64)


def _found(size: int, heap: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    return heap[1][:size], heap[0][:size]


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="agentir-bench-") as temporary:
        cache = Path(options.cache or temporary)
        report = Report("what each step gains")
        report.figure("load of the machine before", list(os.getloadavg()))
        collection = open_collection(options.corpus, cache, documents=options.docs, bursty=options.order == "bursty", queries=options.queries)
        report.figure("collection", collection.meta)
        sound = _measure(collection, options.k, options.rounds, report)
        report.figure("load of the machine after", list(os.getloadavg()))
        return report.end(options.json) if sound else 1


def _measure(collection: Collection, ks: Sequence[int], rounds: int, report: Report) -> bool:
    ours = Ours()
    ours.open(collection, built(ours, collection)[0])
    lists, own = Lists(collection), ours.queries(collection.queries)
    ladder: dict[str, tuple[Search, Sequence[Any]]] = {
        "exhaustive": (lists.exhaustive, lists.queries),
        "vectorised (numpy)": (lists.vectorised, lists.queries),
        "windowed": (lists.windowed, lists.queries),
        "MaxScore": (lists.maxscore, lists.queries),
        "ours, bare": (Kernel(ours, bitmaps=False, worths=False).search, own),
        "+ bitmaps": (Kernel(ours, bitmaps=True, worths=False).search, own),
        "+ best_worth = ours": (Kernel(ours, bitmaps=True, worths=True).search, own),
    }
    faults = _faults(collection, ladder, ks)
    report.figure(f"check of {SAMPLE} queries at every k", faults or "all steps agree with the oracle")
    ours.search_many(own[:SAMPLE], ks[0], 2)
    for k in ks:
        taken: dict[str, list[Round]] = {name: [] for name in ladder}
        wall: dict[int, list[float]] = {1: [], 2: []}
        names = list(ladder)
        for number in range(rounds):  # warm from the check
            for name in [*names[number % len(names) :], *names[: number % len(names)]]:
                search, queries = ladder[name]
                taken[name].append(singly(search, queries, k, None))
            for threads in [*wall] * BATCHES:
                began = time.perf_counter()
                ours.search_many(own, k, threads)
                wall[threads].append((time.perf_counter() - began) * 1e6 / len(own))
        whole = None
        for name, measured in taken.items():
            cpu = _tell(report, f"k = {k}: {name}", measured, whole)
            whole = whole or cpu
        threaded = {f"{threads} thread{'s' if threads > 1 else ''}": min(times) for threads, times in wall.items()}
        report.figure(f"k = {k}: ours in a batch: wall us a query", threaded)
    ours.close()
    return not faults


def _faults(collection: Collection, ladder: dict[str, tuple[Search, Sequence[Any]]], ks: Sequence[int]) -> list[str]:
    expected = oracle.Oracle(collection, collection.queries[:SAMPLE])
    found = []
    for name, (search, queries) in ladder.items():
        for k in ks:
            hits: Hits = [(np.asarray(docs, np.int64), scores) for docs, scores in (search(query, k) for query in queries[:SAMPLE])]
            found += [f"{name}, k = {k}: {fault}" for fault in expected.faults(hits, k, oracle.OURS)]
    return found


def _tell(report: Report, name: str, measured: Sequence[Round], whole: float | None) -> float:
    """CPU in microseconds a query, the median of the rounds; and as a part of the first step's, the `whole`."""
    each = np.median(np.stack([one.each_us for one in measured if one.each_us is not None]), axis=0)
    cpu = float(np.median([one.cpu_us for one in measured])) / len(each)
    p50, p99 = np.percentile(each, [50, 99]).tolist()
    report.figure(f"{name}: CPU us a query", {"mean": cpu, "p50": p50, "p99": p99} | ({} if whole is None else {"of exhaustive": cpu / whole}))
    return cpu


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare.ablation", description="What each step towards our kernel gains.")
    parser.add_argument("--docs", type=int, default=1_000_000, help="documents of the synthetic corpus (default 1,000,000)")
    parser.add_argument("--order", choices=["random", "bursty"], default="random", help="order of the synthetic corpus")
    parser.add_argument("--corpus", default="synthetic", help="synthetic (the default), passages, or a judged collection")
    parser.add_argument("--cache", default=os.environ.get("AGENTIR_BENCH_CACHE"), help="folder for corpora and indexes, kept; default: AGENTIR_BENCH_CACHE, else a temporary one")
    parser.add_argument("--k", type=int, nargs="+", default=[10, 100, 1000], help="how many hits to ask for (default 10 100 1000)")
    parser.add_argument("--queries", type=int, default=1_000, help="synthetic queries (default 1,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object for machines")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
