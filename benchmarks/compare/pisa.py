"""PISA through `pyterrier-pisa`: the compiled part of the binding alone, called as `PisaRetrieve.transform` calls it.

The package's Python part needs all of PyTerrier, which needs what this benchmark does not; its compiled module needs nothing. The index is PISA's own binary collection
(`inv.docs`, `inv.freqs`, `inv.sizes`), written with numpy from the counted tokens, as the package's `PisaToksIndexer` does with lists; PISA then makes its block-max data
(blocks of 64, the binding's default) and compresses with `block_simdbp` (likewise).

**The binding's overhead.** It answers a set of queries in one call, and makes a Python string of the name of each hit. Both costs are measured in every round, with no search
in them: *per query*, the same number of queries with as many words, none of which the index knows; *per row*, from a toy index whose one list of ROWS documents is asked for
with k = ROWS and with k = 1. What is subtracted errs on PISA's side: it contains the look-up of terms, and the heap and the sort of the rows.
"""

import ctypes
import importlib.util
import sys
import sysconfig
import time
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.compare import oracle
from benchmarks.compare.corpora import Collection, Counted
from benchmarks.compare.engine import Round, Unavailable

Array = npt.NDArray[Any]
ENCODING = "block_simdbp"
ROWS = 1_000


@cache
def module() -> Any:
    """`pyterrier_pisa._pisathon` without its package, whose import would need PyTerrier."""
    package = importlib.util.find_spec("pyterrier_pisa")
    if package is None or package.origin is None:
        raise Unavailable("PISA: pip install agentir-ray[bench]")
    # The package `tbb` puts its library where the loader does not look; one that is already there is taken by its name.
    places = [Path(sysconfig.get_path("data")) / "lib", Path(sys.prefix) / "lib", Path(sys.base_prefix) / "lib"]
    for library in (place / "libtbb.so.2" for place in places):
        if library.exists():
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            break
    compiled = next(Path(package.origin).parent.glob("_pisathon*.so"), None)
    if compiled is None:
        raise Unavailable("PISA: the package pyterrier-pisa has no compiled module here")
    spec = importlib.util.spec_from_file_location("_pisathon", compiled)
    assert spec is not None and spec.loader is not None
    try:
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    except ImportError as error:
        raise Unavailable(f"PISA: {error}; pip install agentir-ray[bench]") from error
    return loaded


class _Opened:
    def __init__(self, folder: Path) -> None:
        self._context = module().RetrievalContext()
        module().prepare_index(self._context, str(folder), ENCODING, "bm25", "", quantize=0, stop_fname="", bm25_k1=oracle.PISA.k1, bm25_b=oracle.PISA.b)

    def retrieve(self, algorithm: str, texts: Sequence[str], k: int) -> tuple[int, float, tuple[Array, Array, Array]]:
        """CPU in ns, wall time in s, and (query, document name, score) of each row."""
        rows = len(texts) * k
        query, name, rank, score = np.empty(rows, np.int32), np.empty(rows, object), np.empty(rows, np.int32), np.empty(rows, np.float32)
        asked = list(enumerate(texts))
        began, cpu = time.perf_counter(), time.process_time_ns()
        # One thread: the caller's.
        found = module().retrieve(
            self._context, algorithm, asked, k=k, threads=1, query_weighted=0, pretokenised=False, result_qidxs=query, result_docnos=name, result_ranks=rank, result_scores=score
        )
        cpu = time.process_time_ns() - cpu
        return cpu, time.perf_counter() - began, (query[:found], name[:found], score[:found])


class Pisa:
    """One index, one query algorithm."""

    formula = oracle.PISA

    def __init__(self, algorithm: str) -> None:
        self.name = f"pisa {algorithm}"
        self.index_name = "pisa"
        self.version = version("pyterrier-pisa") if module() else ""
        self.algorithm = algorithm
        self.parameters = {**oracle.PISA._asdict(), "encoding": ENCODING, "block": 64, "arithmetic": "float32", "query algorithm": algorithm}

    def build(self, collection: Collection, folder: Path) -> None:
        write_index(folder, collection.counted, np.asarray(collection.length), collection.vocabulary)
        _Opened(folder)
        toy = folder / "toy"
        toy.mkdir()
        write_index(toy, Counted(np.arange(ROWS + 1), np.zeros(ROWS, np.int32), np.ones(ROWS, np.int32)), np.ones(ROWS, np.int64), 1)
        _Opened(toy)

    def open(self, collection: Collection, folder: Path) -> None:
        self._index, self._toy = _Opened(folder), _Opened(folder / "toy")

    def run(self, queries: Sequence[Array], k: int, want_hits: bool = False) -> Round:
        texts = [" ".join(f"t{term}" for term in query) for query in queries]
        unknown = [text.replace("t", "x") for text in texts]
        cpu, wall, (query, name, score) = self._index.retrieve(self.algorithm, texts, k)
        a_query = self._index.retrieve(self.algorithm, unknown, k)[0]
        repeats = max(1, 20_000 // ROWS)
        a_row = (self._toy.retrieve("maxscore", ["t0"] * repeats, ROWS)[0] - self._toy.retrieve("maxscore", ["t0"] * repeats, 1)[0]) / (repeats * (ROWS - 1))
        result = Round(cpu / 1_000, wall, overhead_us=(a_query + a_row * len(query)) / 1_000)
        if want_hits:
            docs = name.astype("U").astype(np.int64) if len(name) else np.empty(0, np.int64)
            edges = np.searchsorted(query, np.arange(len(queries) + 1))
            result.hits = [(docs[a:b], score[a:b].astype(np.float64)) for a, b in pairwise(edges.tolist())]
        return result

    def close(self) -> None:
        self._index = None
        self._toy = None


def write_index(folder: Path, counted: Counted, length: Array, vocabulary: int) -> None:
    """PISA's binary collection with its two lexicons; terms are numbered in the order of their names, as its look-up expects."""
    term, tf = np.asarray(counted.term), np.asarray(counted.tf)
    used = np.flatnonzero(np.bincount(term, minlength=vocabulary))
    names = sorted((f"t{number}", number) for number in used.tolist())
    place = np.full(vocabulary, -1, np.int32)
    place[[number for _, number in names]] = np.arange(len(names), dtype=np.int32)
    order = np.argsort(place[term], kind="stable")
    docs = np.repeat(np.arange(len(length), dtype=np.uint32), np.diff(counted.doc_start))[order]
    size = np.bincount(place[term], minlength=len(names))
    with (folder / "inv.docs").open("wb") as file:
        np.array([1, len(length)], np.uint32).tofile(file)
        _with_sizes(docs, size).tofile(file)
    _with_sizes(tf[order].astype(np.uint32), size).tofile(folder / "inv.freqs")
    np.concatenate([[len(length)], length]).astype(np.uint32).tofile(folder / "inv.sizes")
    (folder / "fwd.terms").write_text("".join(f"{name}\n" for name, _ in names))
    (folder / "fwd.documents").write_text("".join(f"{doc}\n" for doc in range(len(length))))
    for name, lexicon in (("terms", "termlex"), ("documents", "doclex")):
        module().build_binlex(str(folder / f"fwd.{name}"), str(folder / f"fwd.{lexicon}"))


def _with_sizes(values: Array, size: Array) -> Array:
    """Each list with its length before it."""
    out = np.empty(len(values) + len(size), np.uint32)
    heads = np.concatenate([[0], np.cumsum(size + 1)[:-1]])
    body = np.ones(len(out), bool)
    body[heads] = False
    out[heads] = size
    out[body] = values
    return out
