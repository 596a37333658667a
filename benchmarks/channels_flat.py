"""The exact flat search beside a product with every vector, and what the approximate graph misses.

A million vectors: MiniLM's of LoCoMo's turns, resampled with noise (`synthetic.resample`); the last hundredth are copies of the first, so that there are ties. Queries are the
questions of LoCoMo. The order is held to a float64 sum over every stored vector, written here by itself. Times are CPU time of one thread: the search and the product take turns,
query by query, so that what else the machine does falls on both.
"""

import hashlib
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from agentir_ray.dense.approximate import SEARCH_EFFORT, HnswGraph, recall
from agentir_ray.dense.parts import DensePart
from agentir_ray.dense.search import Deeper, count_before, count_interval, top_k
from agentir_ray.dense.sidecar import DenseSidecar, build_sidecar
from agentir_ray.dense.vectors import RecordVectors
from agentir_ray.encoders.catalogue import get_encoder
from agentir_ray.encoders.protocol import identity
from agentir_ray.sections import encode_sections
from benchmarks.bars import Outcome, Report
from benchmarks.datasets import locomo
from benchmarks.synthetic import resample

Array = npt.NDArray[Any]
ROWS = 1_000_000
COPIES = ROWS // 100
DEPTHS = (10, 100, 1_000)
JUDGED_DEPTH, BAR = 100, 0.15
CHECKED, TIMED = 10, 60  # queries
GRAPH_ROWS = 100_000
SEED = 3


def flat_search(folder: Path, cache: Path, report: Report) -> Outcome:
    """The row "exact flat search"; `folder` has LoCoMo, `cache` takes 2 GB."""
    base, questions = encoded_locomo(folder, cache)
    part = _part(base, ROWS, cache)
    rng = np.random.default_rng(SEED)
    queries = questions[rng.permutation(len(questions))[: CHECKED + TIMED]]
    equal = all(_same_order(part, query) for query in queries[:CHECKED])
    report.figure("flat search: order is that of float64 sums, ties by key (k = 10, 100, 1000)", f"{equal}, {CHECKED} queries")
    ratios: dict[str, float] = {}
    vectors = np.array(part.sidecar.vectors)
    for k in DEPTHS:
        search, product = _alternating(part, vectors, queries[CHECKED:], k)
        ratios[f"k={k}"] = sum(search) / sum(product)
        report.figure(f"flat search, k={k}: ms CPU mean, p50, p95; product + argpartition mean, p50", [*_ms(search, 50, 95), *_ms(product, 50)])
    _report_counts(part, queries[CHECKED : CHECKED + 10], report)
    return {"order": "equal" if equal else "differs", **ratios}, equal and ratios[f"k={JUDGED_DEPTH}"] <= BAR


def graph_recall(folder: Path, cache: Path, report: Report) -> None:
    """What FAISS's graph finds of the exact answer, over a tenth of the vectors, as building it takes its time."""
    base, questions = encoded_locomo(folder, cache)
    part = _part(base, GRAPH_ROWS, cache)
    start = time.perf_counter()
    with threadpool_limits(1):
        graph = HnswGraph(part.sidecar)
    report.figure(f"approximate graph of {GRAPH_ROWS:,}: seconds to build", time.perf_counter() - start)
    queries = list(questions[:: len(questions) // 100])
    for k in DEPTHS[:2]:
        for effort in (SEARCH_EFFORT, 4 * SEARCH_EFFORT):
            with threadpool_limits(1):
                found = recall(graph, part, queries, k, effort)
                start = time.thread_time()
                for query in queries:
                    graph.top_k(part, query, k, effort)
                mean_ms = (time.thread_time() - start) / len(queries) * 1e3
            report.figure(f"approximate graph, k={k}, effort {effort}: recall, ms CPU", [found, mean_ms])


def encoded_locomo(folder: Path, cache: Path) -> tuple[Array, Array]:
    """float32 (5,882, 384) and (1,535, 384): MiniLM's vectors of the turns and of the questions."""
    chats = locomo(folder)
    turns = [document.text for chat in chats for document in chat.documents]
    questions = [query.text for chat in chats for query in chat.queries]
    encoder = get_encoder("minilm")
    name = re.sub("[^A-Za-z0-9.@-]", "_", identity(encoder))
    path = cache / "channels" / f"{name}-locomo-{hashlib.sha256(chr(0).join([*turns, *questions]).encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, turns=encoder.encode_documents(turns), questions=encoder.encode_queries(questions))
    with np.load(path) as kept:
        return kept["turns"], kept["questions"]


def _part(base: Array, rows: int, cache: Path) -> DensePart:
    """A sidecar of resampled vectors, from the cache if it is there, and documents whose keys are in no order."""
    stamp = {"rows": rows, "base": hashlib.sha256(base.tobytes()).hexdigest()[:16]}
    path = cache / "channels" / f"flat-{rows}-{stamp['base']}.vectors"
    if not path.exists():
        vectors = resample(base, rows)
        vectors[-COPIES * rows // ROWS :] = vectors[: COPIES * rows // ROWS]
        sections = build_sidecar(RecordVectors(np.arange(rows + 1), vectors), "minilm", stamp)
        partial = path.with_suffix(".partial")
        with open(partial, "wb") as file:
            file.writelines(encode_sections(sections))
        partial.rename(path)
    sidecar = DenseSidecar(path, stamp)
    sidecar.verify()
    return DensePart(sidecar, 0, 0, rows, np.empty(0, np.uint64), np.random.default_rng(SEED).permutation(rows))


def _same_order(part: DensePart, query: Array) -> bool:
    scores = np.concatenate([_float64_sums(part.sidecar.vectors[i : i + 65_536], query) for i in range(0, part.end, 65_536)])
    order = np.lexsort((-part.seq, -scores))
    tops = [top_k([part], None, query, k) for k in DEPTHS]
    return all(np.array_equal(top.ref, order[:k]) and np.array_equal(top.score, scores[order[:k]]) for k, top in zip(DEPTHS, tops, strict=True))


def _float64_sums(vectors: Array, query: Array) -> Array:
    """Sixteen sums, dimension by dimension, and these added in halves (`kernels.flat`)."""
    product = vectors.astype(np.float64) * query.astype(np.float64)
    lanes = np.zeros((len(product), 16))
    for i in range(0, product.shape[1], 16):
        lanes[:, : product.shape[1] - i] += product[:, i : i + 16]
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def _alternating(part: DensePart, vectors: Array, queries: Array, k: int) -> tuple[list[float], list[float]]:
    """CPU seconds of the search and of the product, a query each."""
    search, product = [], []
    with threadpool_limits(1):
        for query in queries:
            start = time.thread_time()
            top_k([part], None, query, k)
            between = time.thread_time()
            scores = vectors @ query
            np.argpartition(scores, len(scores) - k)[len(scores) - k :]
            search.append(between - start)
            product.append(time.thread_time() - between)
    return search, product


def _report_counts(part: DensePart, queries: Array, report: Report) -> None:
    """What the other questions cost: how many come before the record at place 1,000, and reading on to it in steps of 100."""
    exact, interval, deeper, widths = [], [], [], []
    for query in queries:
        top = top_k([part], None, query, 1_000)
        score, seq = float(top.score[-1]), int(top.seq[-1])
        start = time.thread_time()
        count_before([part], None, query, score, seq)
        exact.append(time.thread_time() - start)
        start = time.thread_time()
        least, most = count_interval([part], None, query, score, seq)
        interval.append(time.thread_time() - start)
        widths.append(float(most - least))
        start = time.thread_time()
        stream = Deeper([part], None, query)
        for _ in range(10):
            stream.next(100)
        deeper.append(time.thread_time() - start)
    report.figure("flat search, the record at place 1,000: ms CPU of its count, of the interval; width of the interval", [*_ms(exact), *_ms(interval), float(np.mean(widths))])
    report.figure("flat search, ten steps of 100: ms CPU", _ms(deeper)[0])


def _ms(seconds: list[float], *percentiles: int) -> list[float]:
    """The mean, then the percentiles, in milliseconds."""
    return [float(np.mean(seconds)) * 1e3, *(float(np.percentile(seconds, p)) * 1e3 for p in percentiles)]
