"""The process of `pyserini_style.py` that holds the JVM: `LuceneSearcher.search` over Anserini's classes, call by call.

python -m benchmarks.compare.pyserini_calls JAR INDEX QUESTIONS      # for each "K" on stdin one line of JSON: CPU in us and the documents of each question
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

WARM_CALLS = 3_000  # before the first round, for the JIT compiler


def _serve(jar: str, index: str, questions: str) -> None:
    import jnius_config

    jnius_config.set_classpath(jar)
    from jnius import autoclass

    hash_map = autoclass("java.util.HashMap")
    searcher = autoclass("io.anserini.search.SimpleSearcher")(index)
    searcher.set_bm25(0.9, 0.4)
    asked = [json.loads(line) for line in Path(questions).read_text(encoding="utf-8").splitlines()]

    def search(question: str, k: int) -> list[Any]:
        hash_map()  # of fields: made in each call, and empty
        docids: set[str] = set()
        kept = []
        for hit in searcher.search(question, k):
            if hit.docid in docids:
                continue
            kept.append(hit)
        return kept

    for number in range(WARM_CALLS):
        search(asked[number % len(asked)], 10)
    for line in sys.stdin:
        costs, hits = [], []
        for question in asked:
            start = time.thread_time_ns()
            found = search(question, int(line))
            costs.append((time.thread_time_ns() - start) / 1_000)
            hits.append([int(hit.docid) for hit in found])
        print(json.dumps({"us": costs, "hits": hits}), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
