"""An approximate index over a sidecar's vectors: FAISS's HNSW graph (arXiv:1603.09320), in memory, for parts so large that the exact search takes too long.

Its lists may lack records that belong to them, so they say that they are approximate; what is in them is visible and has the exact score, in the exact order. How many are missing
is measured (`recall`), not known. FAISS is imported when a graph is built; it comes with the extra `dense`.

A graph hangs on its sidecar (`DenseSidecar.graph`), and on nothing else: it goes when the sidecar does. It is not asked where less than half of its documents are visible, as a
graph that is walked past what it may not name loses its way, nor for so many that the exact search reads no more.
"""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.parts import DensePart
from agentir_ray.dense.search import DenseTop, YoungRows, checked, scores, top_k
from agentir_ray.dense.sidecar import DenseSidecar
from agentir_ray.errors import EncoderMissingError

Array = npt.NDArray[Any]
LINKS = 32  # of a row to others, on each level: FAISS's own default, 256 bytes a row
BUILD_EFFORT = 100  # rows that are looked at to place one
SEARCH_EFFORT = 128  # rows that are kept while a query is searched, at least as many as are asked for
LARGEST_SHARE = 16  # of a graph's rows, one in so many is asked for at most
STEP_ROWS = 4_096  # that are placed between two looks at whether to go on


class ApproximateTop(NamedTuple):
    """As `DenseTop`: score float64, seq and ref int64, best first. Records may be missing."""

    score: Array
    seq: Array
    ref: Array


class HnswGraph:
    def __init__(self, sidecar: DenseSidecar, links: int = LINKS, build_effort: int = BUILD_EFFORT, threads: int = 1, check: Callable[[], None] = lambda: None) -> None:
        """Takes some 0.4 ms a row and thread, and holds a copy of the vectors. `check` is called now and then, and ends the work by raising.

        Raises EncoderMissingError where FAISS is not installed.
        """
        if importlib.util.find_spec("faiss") is None:
            raise EncoderMissingError("the approximate search needs FAISS: pip install 'agentir-ray[dense]'; the exact search needs nothing")
        import faiss

        self._bytes = graph_bytes(sidecar, links)
        self._faiss: Any = faiss
        self._graph: Any = self._faiss.IndexHNSWFlat(sidecar.dim, links, self._faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efConstruction = build_effort
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(threads)  # of this thread, for what it does next
        try:
            for first in range(0, sidecar.rows, STEP_ROWS):
                check()
                self._graph.add(sidecar.vectors[first : first + STEP_ROWS])
        finally:
            self._faiss.omp_set_num_threads(before)

    def memory_bytes(self) -> int:
        """Estimate: vectors and links."""
        return self._bytes

    def top_k(self, part: DensePart, query: Array, k: int, effort: int = SEARCH_EFFORT) -> ApproximateTop:
        """Up to k of the best records of a part of this graph's sidecar, as it finds them among those that are visible. query float32 (dim), as in `search.top_k`."""
        sidecar = part.sidecar
        visible = _visible(part)
        wanted = min(k * _rows_a_record(sidecar), sidecar.rows)
        docs = np.empty(0, np.int64)
        if wanted and visible.any():
            row_doc = sidecar.row_doc
            chosen = self._faiss.SearchParametersHNSW(efSearch=max(effort, wanted))
            if not visible.all():
                words = np.packbits(visible[row_doc] if len(row_doc) else visible, bitorder="little")
                chosen = self._faiss.SearchParametersHNSW(sel=self._faiss.IDSelectorBitmap(words), efSearch=max(effort, wanted))
            rows = self._graph.search(query.reshape(1, -1), wanted, params=chosen)[1][0]
            rows = rows[rows >= 0]
            docs = np.unique(row_doc[rows] if len(row_doc) else rows).astype(np.int64)
        ref, seq = part.number << 32 | docs, part.seq[docs]
        score = scores([part], None, query, ref)
        order = np.lexsort((-seq, -score))[:k]
        return ApproximateTop(score[order], seq[order], ref[order])


def graph_bytes(sidecar: DenseSidecar, links: int = LINKS) -> int:
    """Estimate of what a graph over the sidecar takes."""
    return sidecar.rows * (4 * sidecar.dim + 8 * links)


def nearest(
    parts: Sequence[DensePart],
    young: YoungRows | None,
    query: Array,
    k: int,
    min_score: float = -np.inf,
    expired: Callable[[], bool] | None = None,
) -> tuple[DenseTop, bool]:
    """As `search.top_k`, by graphs where that may be, and whether some list is approximate. A list that is shorter than what is visible allows is made again, exactly."""
    checked(parts, young, query)
    by_graph = [_may_be_asked(part, k) for part in parts]
    others = [i for i, asked in enumerate(by_graph) if not asked]
    exact = top_k([parts[i] for i in others], young, query, k, min_score, expired)
    left = np.zeros(len(parts), bool)
    left[others] = exact.left
    lists = [(exact.score, exact.seq, exact.ref)]
    approximate = False
    for i in np.flatnonzero(by_graph).tolist():
        part = parts[i]
        if expired is not None and expired():
            left[i] = True
            continue
        found = part.sidecar.graph.top_k(part, query, k)
        if len(found.ref) < min(k, int(np.count_nonzero(_visible(part)))):
            again = top_k([part], None, query, k, min_score)
            lists.append((again.score, again.seq, again.ref))
            continue
        approximate = True
        enough = found.score >= min_score
        lists.append((found.score[enough], found.seq[enough], found.ref[enough]))
    score, seq, ref = (np.concatenate(columns) for columns in zip(*lists, strict=True))
    order = np.lexsort((-seq, -score))[:k]
    return DenseTop(score[order], seq[order], ref[order], left), approximate


def recall(graph: HnswGraph, part: DensePart, queries: Sequence[Array], k: int, effort: int = SEARCH_EFFORT) -> float:
    """The share of the exact k best that the graph finds, mean over the queries."""
    shares = []
    for query in queries:
        exact = top_k([part], None, query, k).ref
        shares.append(len(np.intersect1d(exact, graph.top_k(part, query, k, effort).ref)) / len(exact) if len(exact) else 1.0)
    return float(np.mean(shares))


def _may_be_asked(part: DensePart, k: int) -> bool:
    sidecar = part.sidecar
    if sidecar.graph is None or len(part.prior) or LARGEST_SHARE * k * _rows_a_record(sidecar) > sidecar.rows:
        return False
    return 2 * int(np.count_nonzero(_visible(part))) >= sidecar.documents


def _visible(part: DensePart) -> Array:
    """bool (documents)."""
    seen = np.zeros(part.sidecar.documents, bool)
    seen[part.first : part.end] = True
    if len(part.visible):
        seen &= np.unpackbits(part.visible.view(np.uint8), count=len(seen), bitorder="little").astype(bool)
    return seen


def _rows_a_record(sidecar: DenseSidecar) -> int:
    return -(-sidecar.rows // max(1, sidecar.documents))
