"""An approximate index over a sidecar's vectors: FAISS's HNSW graph (arXiv:1603.09320), in memory, for parts so large that the exact search takes too long.

Its lists may lack records that belong to them, so they say that they are approximate; what is in them has the exact score, in the exact order. How many are missing is measured
(`recall`), not known. FAISS is imported when a graph is built; it comes with the extra `dense`.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.parts import DensePart
from agentir_ray.dense.search import scores, top_k
from agentir_ray.dense.sidecar import DenseSidecar
from agentir_ray.errors import EncoderMissingError

Array = npt.NDArray[Any]
LINKS = 32  # of a row to others, on each level: FAISS's own default, 256 bytes a row
BUILD_EFFORT = 100  # rows that are looked at to place one
SEARCH_EFFORT = 128  # rows that are kept while a query is searched, at least as many as are asked for


class ApproximateTop(NamedTuple):
    """As `DenseTop`: score float64, seq and ref int64, best first. Records may be missing."""

    score: Array
    seq: Array
    ref: Array

    @property
    def approximate(self) -> bool:
        return True


class HnswGraph:
    def __init__(self, sidecar: DenseSidecar, links: int = LINKS, build_effort: int = BUILD_EFFORT) -> None:
        """Takes some 0.2 ms a row and thread, and holds a copy of the vectors. Raises EncoderMissingError where FAISS is not installed."""
        if importlib.util.find_spec("faiss") is None:
            raise EncoderMissingError("the approximate search needs FAISS: pip install 'agentir-ray[dense]'; the exact search needs nothing")
        import faiss

        self.sidecar = sidecar
        self._links = links
        self._faiss: Any = faiss
        self._graph: Any = self._faiss.IndexHNSWFlat(sidecar.dim, links, self._faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efConstruction = build_effort
        self._graph.add(sidecar.vectors)

    def memory_bytes(self) -> int:
        """Estimate: vectors and links."""
        return self.sidecar.rows * (4 * self.sidecar.dim + 8 * self._links)

    def top_k(self, part: DensePart, query: Array, k: int, effort: int = SEARCH_EFFORT) -> ApproximateTop:
        """Up to k of the best records of a part of this sidecar, as the graph finds them among those that are visible. query float32 (dim), as in `search.top_k`."""
        assert part.sidecar is self.sidecar
        visible = np.zeros(self.sidecar.documents, bool)
        visible[part.first : part.end] = True
        if len(part.visible):
            visible &= np.unpackbits(part.visible.view(np.uint8), count=self.sidecar.documents, bitorder="little").astype(bool)
        rows_a_record = -(-self.sidecar.rows // max(1, self.sidecar.documents))
        wanted = min(k * rows_a_record, self.sidecar.rows)
        docs = np.empty(0, np.int64)
        if wanted and visible.any():
            row_doc = self.sidecar.row_doc
            words = np.packbits(visible[row_doc] if len(row_doc) else visible, bitorder="little")
            chosen = self._faiss.SearchParametersHNSW(sel=self._faiss.IDSelectorBitmap(words), efSearch=max(effort, wanted))
            rows = self._graph.search(query.reshape(1, -1), wanted, params=chosen)[1][0]
            rows = rows[rows >= 0]
            docs = np.unique(row_doc[rows] if len(row_doc) else rows).astype(np.int64)
        ref, seq = part.number << 32 | docs, part.seq[docs]
        score = scores([part], None, query, ref)
        order = np.lexsort((-seq, -score))[:k]
        return ApproximateTop(score[order], seq[order], ref[order])


def recall(graph: HnswGraph, part: DensePart, queries: Sequence[Array], k: int, effort: int = SEARCH_EFFORT) -> float:
    """The share of the exact k best that the graph finds, mean over the queries."""
    shares = []
    for query in queries:
        exact = top_k([part], None, query, k).ref
        shares.append(len(np.intersect1d(exact, graph.top_k(part, query, k, effort).ref)) / len(exact) if len(exact) else 1.0)
    return float(np.mean(shares))
