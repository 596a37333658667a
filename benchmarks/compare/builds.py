"""How fast real text becomes an index: the 56-word passages, raw, on two cores. Lucene's IndexWriter with two threads, and ours.

Lucene's second build in the same process counts, after the JIT compiler has settled; its clock stops when the segments are written, before they are merged into one.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agentir_ray.analysis import get_analyzer
from benchmarks.compare.corpora import Collection, count
from benchmarks.compare.java import Jvm
from benchmarks.compare.ours import write_segment
from benchmarks.compare.pyserini_style import write_lines


def measure(collection: Collection, cache: Path) -> dict[str, float]:
    """Documents a second by wall time."""
    with TemporaryDirectory(dir=cache) as temporary:
        folder = Path(temporary)
        ours = ours_build_rate(collection.texts, folder)
        lucene = {f"Lucene {analyzer}": _lucene(collection, folder, analyzer) for analyzer in ("english", "standard")}
    return {"ours": ours, **lucene}


def ours_build_rate(texts: Sequence[str], folder: Path) -> float:
    """From raw texts to a durable segment file."""
    began = time.perf_counter()
    analyzer = get_analyzer("english")
    number: dict[str, int] = {}
    documents = [np.array([number.setdefault(token, len(number)) for token in analyzer.tokens(text)], np.uint32) for text in texts]
    length = np.array([len(document) for document in documents], np.int64)
    write_segment(folder / "ours", count(np.concatenate(documents), length), length, [word.encode() for word in number])
    return len(texts) / (time.perf_counter() - began)


def _lucene(collection: Collection, folder: Path, analyzer: str) -> float:
    texts = folder / "texts.txt"
    write_lines(texts, collection)
    jvm = Jvm()
    for attempt in ("first", "second"):
        wall_ns = int(jvm.ask("build", str(texts), str(folder / f"{analyzer}-{attempt}"), analyzer, "2", "none")[0])
    jvm.close()
    return collection.documents / (wall_ns / 1e9)
