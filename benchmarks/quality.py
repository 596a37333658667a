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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agentir_ray.analysis import DEFAULT_ANALYZER, get_analyzer
from benchmarks.datasets import Judged, beir, cmrc2018, locomo, ndcg, recall, shared
from benchmarks.report import Row, publish

ENGLISH_BARS = {"scifact": 0.677, "cranfield": 0.364, "cacm": 0.474, "npl": 0.435}
LOCOMO_BARS = {"nDCG@10": 0.448, "R@10": 0.573}
LOCOMO_QUESTIONS = 1_535
BATCH = 1_000

Figures = dict[str, float]


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
    figures: Figures = {}
    folder = shared()
    rows: list[Row] = []
    for measure, names in SECTIONS:
        try:
            if folder is None:
                raise FileNotFoundError("no data folder; set AGENTIR_SHARED")
            rows += measure(folder, figures)
        except Exception as error:  # one section that fails must not hide what the others measured; its rows are not ok
            sys.stderr.write(f"{measure.__name__}: {type(error).__name__}: {error}\n")
            rows += [Row(name, None, bar, note=type(error).__name__) for name, bar in names.items()]
    return publish(rows, figures, as_json=arguments.json)


def tokens(folder: Path, figures: Figures) -> list[Row]:
    """The share of golden texts whose tokens equal Lucene's."""
    equal = texts = 0
    with gzip.open(folder / "golden" / "lucene_tokens.jsonl.gz", "rt", encoding="utf-8") as lines:
        for golden in map(json.loads, lines):
            texts += 1
            equal += get_analyzer(golden["analyzer"]).tokens(golden["text"]) == golden["tokens"]
    figures["golden texts"] = texts
    return [Row(TOKENS, equal / texts, 1.0)]


def english(folder: Path, figures: Figures) -> list[Row]:
    rows = []
    for name, bar in ENGLISH_BARS.items():
        quality = through_engine([beir(folder, name)], "english")
        figures[f"{name} R@10"] = quality.recall_at_10
        rows.append(Row(_english_row(name), quality.ndcg_at_10, bar))
    return rows


def chats(folder: Path, figures: Figures) -> list[Row]:
    quality = through_engine(locomo(folder), DEFAULT_ANALYZER)
    if quality.queries != LOCOMO_QUESTIONS:
        raise ValueError(f"LoCoMo has {quality.queries} answerable questions, not {LOCOMO_QUESTIONS}: its figures would not compare with others")
    figures["LoCoMo R@1"] = quality.recall_at_1
    values = {"nDCG@10": quality.ndcg_at_10, "R@10": quality.recall_at_10}
    return [Row(_chat_row(measure), values[measure], bar) for measure, bar in LOCOMO_BARS.items()]


def chinese(folder: Path, figures: Figures) -> list[Row]:
    collection = cmrc2018(folder)
    ours, theirs = (through_engine([collection], analyzer) for analyzer in (DEFAULT_ANALYZER, "standard"))
    figures["CMRC 2018 nDCG@10 standard"], figures["CMRC 2018 R@1 standard"] = theirs.ndcg_at_10, theirs.recall_at_1
    return [
        Row(CHINESE_NDCG, ours.ndcg_at_10, theirs.ndcg_at_10, note="the bar is standard's value"),
        Row(CHINESE_RECALL, ours.recall_at_1, theirs.recall_at_1, note="the bar is standard's value"),
    ]


TOKENS = "tokens equal to Lucene's, share of golden texts"
CHINESE_NDCG = f"CMRC 2018 nDCG@10, {DEFAULT_ANALYZER} against standard"
CHINESE_RECALL = f"CMRC 2018 R@1, {DEFAULT_ANALYZER} against standard"


def _english_row(name: str) -> str:
    return f"{name} nDCG@10, english"


def _chat_row(measure: str) -> str:
    return f"LoCoMo {measure}, {DEFAULT_ANALYZER}"


# Each section, and the rows that it owes with the bars to show when it cannot be measured.
SECTIONS: tuple[tuple[Callable[[Path, Figures], list[Row]], Mapping[str, float | None]], ...] = (
    (tokens, {TOKENS: 1.0}),
    (english, {_english_row(name): bar for name, bar in ENGLISH_BARS.items()}),
    (chats, {_chat_row(measure): bar for measure, bar in LOCOMO_BARS.items()}),
    (chinese, {CHINESE_NDCG: None, CHINESE_RECALL: None}),
)


def through_engine(collections: Iterable[Judged], analyzer: str) -> Quality:
    """Write each collection into a namespace of its own, ask its queries with BM25, and average over all queries."""
    from agentir_ray import Memory

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
