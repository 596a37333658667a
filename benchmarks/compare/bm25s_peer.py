"""bm25s with its numba backend: scores precomputed for every posting, all documents scored, one thread. It answers a set of queries in one call, whose own cost is small."""

import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.compare import oracle
from benchmarks.compare.corpora import Collection
from benchmarks.compare.engine import Round, Unavailable

Array = npt.NDArray[Any]


class Bm25s:
    formula = oracle.BM25S

    def __init__(self) -> None:
        try:
            import bm25s
        except ImportError as error:
            raise Unavailable("bm25s: pip install agentir-ray[bench]") from error
        self._bm25s = bm25s
        self.name = self.index_name = "bm25s"
        self.version = version("bm25s")
        self.parameters = {**oracle.BM25S._asdict(), "method": "lucene", "backend": "numba", "arithmetic": "float32"}

    def build(self, collection: Collection, folder: Path) -> None:
        tokens, documents, start = np.asarray(collection.tokens, np.int32), [], 0
        for length in collection.length.tolist():
            documents.append(tokens[start : start + length].tolist())
            start += length
        vocabulary = {word: number for number, word in enumerate(collection.words)}
        engine = self._bm25s.BM25(method="lucene", k1=oracle.BM25S.k1, b=oracle.BM25S.b, backend="numba")
        engine.index((documents, vocabulary), create_empty_token=False, show_progress=False)
        engine.save(str(folder))

    def open(self, collection: Collection, folder: Path) -> None:
        self._engine = self._bm25s.BM25.load(str(folder), load_corpus=False)
        self._engine.backend = "numba"
        self._documents = collection.documents

    def run(self, queries: Sequence[Array], k: int, want_hits: bool = False) -> Round:
        asked = [query.tolist() for query in queries]
        began, cpu = time.perf_counter(), time.process_time_ns()
        docs, scores = self._engine.retrieve(asked, k=min(k, self._documents), show_progress=False, n_threads=1, backend_selection="numba")
        result = Round((time.process_time_ns() - cpu) / 1_000, time.perf_counter() - began)
        if want_hits:
            result.hits = [(docs[i][scores[i] > 0].astype(np.int64), scores[i][scores[i] > 0].astype(np.float64)) for i in range(len(queries))]
        return result

    def close(self) -> None:
        self._engine = None
