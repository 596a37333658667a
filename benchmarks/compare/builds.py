"""How fast real text becomes an index: the 56-word passages, raw, on two cores. Lucene's IndexWriter with two threads, and ours.

A quarter of the texts is built first, in the same process, so that kernels and Java are compiled. Lucene's clock stops when its segments are written, before they are merged.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agentir_ray.analysis import get_analyzer
from agentir_ray.lexical.bulk import BATCH, BulkBuilder, Documents
from benchmarks.compare.corpora import Collection
from benchmarks.compare.java import Jvm

THREADS = 2


def measure(collection: Collection, cache: Path) -> dict[str, float]:
    """Documents a second by wall time."""
    texts = collection.texts
    with TemporaryDirectory(dir=cache) as temporary:
        folder = Path(temporary)
        ours_build_rate(texts[: len(texts) // 4], folder)
        lucene = {f"Lucene {analyzer}": _lucene(texts, folder, analyzer) for analyzer in ("english", "standard")}
        return {"ours": ours_build_rate(texts, folder), **lucene}


def ours_build_rate(texts: Sequence[str], folder: Path) -> float:
    """From raw texts to segment files, through the builder that imports use."""
    began = time.perf_counter()
    write_segments(texts, folder)
    return len(texts) / (time.perf_counter() - began)


def write_segments(texts: Sequence[str], folder: Path) -> list[Path]:
    with BulkBuilder(get_analyzer("english"), "bench", workers=THREADS) as builder:
        return builder.write(_batches(texts), folder)


def _batches(texts: Sequence[str]) -> Iterator[Documents]:
    for first in range(0, len(texts), BATCH):
        part = texts[first : first + BATCH]
        number = np.arange(first + 1, first + 1 + len(part), dtype=np.int64)
        yield Documents(part, [str(i) for i in number.tolist()], [b""] * len(part), number, number * 1_000_000, number * 1_000_000)


def _lucene(texts: Sequence[str], folder: Path, analyzer: str) -> float:
    jvm = Jvm()
    for name, part in (("some", texts[: len(texts) // 4]), ("all", texts)):
        write_lines(folder / "lines.txt", part)
        wall_ns = int(jvm.ask("build", str(folder / "lines.txt"), str(folder / f"{analyzer}-{name}"), analyzer, str(THREADS), "none")[0])
    jvm.close()
    return len(texts) / (wall_ns / 1e9)


def write_lines(path: Path, texts: Sequence[str]) -> None:
    """The texts, one a line: what would end a line becomes a space."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(" ".join(text.splitlines()) + "\n" for text in texts)
