"""Does the lexical channel find what it should? Tokens against Lucene's, and BM25 through the whole engine on judged collections.

    python -m benchmarks.quality [--json]

The bars: tokens equal to Lucene 9.9's on every golden text; nDCG@10 of `english` within .002 of Lucene's own run on four collections; LoCoMo turns, each question in its own
chat, with the default analyzer; and in Chinese (CMRC 2018, paragraph retrieval) the default analyzer no worse than `standard`, which is one ideograph a token.
"""

import argparse
import gzip
import json
import math
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agentir_ray import Memory
from agentir_ray.analysis import DEFAULT_ANALYZER, get_analyzer
from benchmarks.bars import Outcome, Report
from benchmarks.datasets import Judged, beir, cmrc2018, locomo, ndcg, recall, shared

ENGLISH_BARS = {"scifact": 0.677, "cranfield": 0.364, "cacm": 0.474, "npl": 0.435}
LOCOMO_BARS = {"nDCG@10": 0.448, "R@10": 0.573}
LOCOMO_QUESTIONS = 1_535
BATCH = 1_000


@dataclass(frozen=True)
class Quality:
    """Means over queries."""

    ndcg_at_10: float
    recall_at_10: float
    recall_at_1: float
    queries: int


def main() -> int:
    parser = argparse.ArgumentParser(description="quality of tokens and of BM25, against the project's bars")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    report = Report("Quality of the lexical channel")
    folder = shared()

    def data() -> Path:
        if folder is None:
            raise FileNotFoundError("no data folder; set AGENTIR_SHARED")
        return folder

    report.measure(
        "tokens equal to Lucene's on the golden file",
        "100% of `english` and `standard` texts; a difference only with its Unicode-version reason listed in a test",
        lambda: tokens(data(), report),
    )
    report.measure("nDCG@10, `english`", "SciFact >= .677, Cranfield >= .364, CACM >= .474, NPL >= .435 (Lucene: .6789 .3656 .4754 .4368)", lambda: english(data(), report))
    report.measure(
        "LoCoMo turns, default analyzer, 1,535 answerable questions, each within its own chat, text = `speaker: text [image: caption]`",
        "nDCG@10 >= .448, R@10 >= .573",
        lambda: chats(data(), report),
    )
    report.measure("Chinese (CMRC2018), nDCG@10 / R@1 of `multilingual` against `standard`", "reported; not worse", lambda: chinese(data()))
    return report.end(arguments.json)


def tokens(folder: Path, report: Report) -> Outcome:
    """The share of golden texts whose tokens equal Lucene's."""
    equal = texts = 0
    with gzip.open(folder / "golden" / "lucene_tokens.jsonl.gz", "rt", encoding="utf-8") as lines:
        for golden in map(json.loads, lines):
            texts += 1
            equal += get_analyzer(golden["analyzer"]).tokens(golden["text"]) == golden["tokens"]
    report.figure("golden texts", texts)
    return equal / texts, equal == texts > 0


def english(folder: Path, report: Report) -> Outcome:
    found = {name: through_engine([beir(folder, name)], "english") for name in ENGLISH_BARS}
    report.figure("R@10, english", {name: quality.recall_at_10 for name, quality in found.items()})
    values = {name: quality.ndcg_at_10 for name, quality in found.items()}
    return values, all(values[name] >= bar for name, bar in ENGLISH_BARS.items())


def chats(folder: Path, report: Report) -> Outcome:
    quality = through_engine(locomo(folder), DEFAULT_ANALYZER)
    if quality.queries != LOCOMO_QUESTIONS:
        raise ValueError(f"LoCoMo has {quality.queries} answerable questions, not {LOCOMO_QUESTIONS}: its figures would not compare with others")
    report.figure("LoCoMo R@1", quality.recall_at_1)
    values = {"nDCG@10": quality.ndcg_at_10, "R@10": quality.recall_at_10}
    return values, all(values[measure] >= bar for measure, bar in LOCOMO_BARS.items())


def chinese(folder: Path) -> Outcome:
    collection = cmrc2018(folder)
    ours, theirs = (through_engine([collection], analyzer) for analyzer in (DEFAULT_ANALYZER, "standard"))
    values = {
        f"nDCG@10 {DEFAULT_ANALYZER}": ours.ndcg_at_10, "nDCG@10 standard": theirs.ndcg_at_10, f"R@1 {DEFAULT_ANALYZER}": ours.recall_at_1, "R@1 standard": theirs.recall_at_1
    }  # fmt: skip
    return values, ours.ndcg_at_10 >= theirs.ndcg_at_10 and ours.recall_at_1 >= theirs.recall_at_1


def through_engine(collections: Iterable[Judged], analyzer: str) -> Quality:
    """Write each collection into a namespace of its own, ask its queries with BM25, and average over all queries."""
    scores: list[tuple[float, float, float]] = []
    with tempfile.TemporaryDirectory() as store:
        for collection in collections:
            with Memory.open(store, namespace=f"quality/{collection.name}", analyzer=analyzer) as memory:
                documents = iter(collection.documents)
                while batch := [{"id": each.id, "text": each.text, "timestamp": each.timestamp} for each in islice(documents, BATCH)]:
                    memory.add_many(batch)
                for query in collection.queries:
                    ranked = [hit.record.id for hit in memory.search(query.text, k=10, mode="bm25").hits]
                    scores.append((ndcg(ranked, query.gold), recall(ranked, query.gold), recall(ranked, query.gold, 1)))
    ndcg_at_10, recall_at_10, recall_at_1 = (math.fsum(column) / len(scores) for column in zip(*scores, strict=True))
    return Quality(ndcg_at_10, recall_at_10, recall_at_1, len(scores))


if __name__ == "__main__":
    sys.exit(main())
