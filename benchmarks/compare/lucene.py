"""Lucene's core, asked term by term (no analyzer, no parser) through `LuceneBench.java`, on an index merged into one segment.

CPU is that of the searching thread after the JIT compiler has settled; the threads that compile and collect garbage are not counted, which is to Lucene's advantage.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.compare import oracle
from benchmarks.compare.corpora import Collection
from benchmarks.compare.engine import Round
from benchmarks.compare.java import Jvm, jar

Array = npt.NDArray[Any]
WARM_ROUNDS = 3  # before the first answer; from then on the figures stay the same


class Lucene:
    formula = oracle.LUCENE

    def __init__(self) -> None:
        self.name = self.index_name = "lucene"
        self._jvm: Jvm | None = None
        jvm = Jvm()
        self.version = f"{jvm.ask('version')[0]} in {jar().name}"
        jvm.close()
        self.parameters = {**oracle.LUCENE._asdict(), "arithmetic": "float32", "segments": 1}

    def build(self, collection: Collection, folder: Path) -> None:
        texts = folder / "texts.txt"
        with texts.open("w") as file:
            file.writelines(f"{text}\n" for text in collection.document_texts())
        jvm = Jvm()
        jvm.ask("build", str(texts), str(folder / "index"), "whitespace", "1", "none")
        jvm.close()
        texts.unlink()

    def open(self, collection: Collection, folder: Path) -> None:
        self._jvm, self._warm = Jvm(), set[int]()
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.writelines(f"{text}\n" for text in collection.query_texts(collection.queries))
            file.flush()
            self._jvm.ask("open", str(folder / "index"), file.name)

    def run(self, queries: Sequence[Array], k: int, want_hits: bool = False) -> Round:
        """`queries` are the collection's, or the first of them."""
        assert self._jvm is not None
        count = str(len(queries))
        if k not in self._warm and not want_hits:
            for _ in range(1 if self._warm else WARM_ROUNDS):
                self._jvm.ask("run", str(k), count, "-")
            self._warm.add(k)
        with tempfile.NamedTemporaryFile("r", suffix=".txt") as file:
            wall, *each = self._jvm.ask("run", str(k), count, file.name if want_hits else "-")
            result = Round(sum(map(int, each)) / 1_000, int(wall) / 1e9, np.array(each, np.int64) / 1_000)
            if want_hits:
                rows = [np.array(line.split(), np.float64).reshape(-1, 2) for line in file]
                result.hits = [(row[:, 0].astype(np.int64), row[:, 1]) for row in rows]
        return result

    def close(self) -> None:
        if self._jvm is not None:
            self._jvm.close()
        self._jvm = None
