"""What each encoder finds by itself, and what encoding a query costs.

An encoder is asked as a library, without an engine: every document as one text, which is cut off at the window (so the figures that are to be reproduced were taken), scores by
plain products. Scores are kept in the cache folder by encoder, collection and its texts, for the encoding takes half an hour.
"""

import hashlib
import math
import re
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.analysis import DEFAULT_ANALYZER
from agentir_ray.encoders.catalogue import get_encoder, get_sparse_encoder
from agentir_ray.encoders.protocol import Encoder, SparseEncoder, SparseVector, identity
from benchmarks.bars import Outcome, Report
from benchmarks.datasets import Judged, beam, beir, locomo, ndcg, recall
from benchmarks.quality import through_engine

Floats = npt.NDArray[np.float32]
BEAM_CHATS = 10
WITHIN = 0.01
BM25 = "BM25"
ENCODERS: dict[str, Callable[[], Encoder | SparseEncoder]] = {
    "MiniLM": partial(get_encoder, "minilm"),
    "MiniLM int8": partial(get_encoder, "minilm-int8"),
    "multilingual-e5-small": partial(get_encoder, "e5-small"),
    "wordllama": partial(get_encoder, "wordllama"),
    "SPLADE-tiny": partial(get_sparse_encoder, "splade-tiny"),
}
FIGURES: dict[str, dict[str, tuple[float, ...]]] = {  # nDCG@10, and R@10 where it is known
    "LoCoMo": {
        BM25: (0.450, 0.575), "MiniLM": (0.296, 0.438), "multilingual-e5-small": (0.382, 0.523), "wordllama": (0.277, 0.382),
        "SPLADE-tiny": (0.518, 0.655),
    },
    "BEAM-100K": {BM25: (0.263,), "SPLADE-tiny": (0.386,), "MiniLM": (0.474,)},
    "SciFact": {BM25: (0.679,), "MiniLM": (0.652,), "SPLADE-tiny": (0.648,)},
}  # fmt: skip
UNJUDGED = "MiniLM int8"  # an encoder of its own, for which there is no figure
QUERY_BARS_MS = {"static": ("wordllama", 0.1), "int8": ("MiniLM int8", 5.0), "SPLADE-tiny": ("SPLADE-tiny", 6.0)}
QUERIES_TIMED, ROUNDS = 250, 5


def reproduced(folder: Path, cache: Path, report: Report) -> Outcome:
    collections = {"LoCoMo": locomo(folder), "BEAM-100K": beam(folder, BEAM_CHATS), "SciFact": [beir(folder, "scifact")]}
    values: dict[str, Any] = {}
    ok = True
    for name, figures in FIGURES.items():
        for encoder, expected in figures.items():
            found = _bm25(collections[name]) if encoder == BM25 else _measures(ENCODERS[encoder](), collections[name], cache)
            values[f"{name} {encoder}"] = list(found[: len(expected)])
            ok &= all(abs(value - figure) <= WITHIN for value, figure in zip(found, expected, strict=False))
            report.figure(f"{name}, {encoder}: nDCG@10, R@10 (expected {expected})", list(found))
        report.figure(f"{name}, {UNJUDGED}: nDCG@10, R@10", list(_measures(ENCODERS[UNJUDGED](), collections[name], cache)))
    return values, ok


def query_costs(folder: Path, report: Report) -> Outcome:
    """Milliseconds of CPU a query at p50, one query a call, the quietest of some rounds: questions of LoCoMo."""
    texts = [query.text for chat in locomo(folder) for query in chat.queries]
    texts = texts[:: len(texts) // QUERIES_TIMED]
    values = {}
    for kind, (name, _) in QUERY_BARS_MS.items():
        encoder = ENCODERS[name]()
        encoder.encode_queries(texts[:20])
        costs = min((sorted(_cpu_ms(encoder, text) for text in texts) for _ in range(ROUNDS)), key=statistics.median)
        values[kind] = statistics.median(costs)
        report.figure(f"query encoding, {name}: ms CPU p50, p99, mean", [values[kind], costs[int(0.99 * len(costs))], statistics.fmean(costs)])
    return values, all(values[kind] <= bar for kind, (_, bar) in QUERY_BARS_MS.items())


def _cpu_ms(encoder: Encoder | SparseEncoder, text: str) -> float:
    start = time.process_time_ns()
    encoder.encode_queries([text])
    return (time.process_time_ns() - start) / 1e6


def _bm25(collections: Sequence[Judged]) -> tuple[float, float]:
    quality = through_engine(collections, DEFAULT_ANALYZER)
    return quality.ndcg_at_10, quality.recall_at_10


def _measures(encoder: Encoder | SparseEncoder, collections: Sequence[Judged], cache: Path) -> tuple[float, float]:
    """Means over the queries of all collections; equal scores newer first."""
    measured = []
    for collection in collections:
        ids = [document.id for document in collection.documents]
        for query, row in zip(collection.queries, _scores(encoder, collection, cache), strict=True):
            ranked = [ids[at] for at in np.lexsort((-np.arange(len(row)), -row))[:10]]
            measured.append((ndcg(ranked, query.gold), recall(ranked, query.gold)))
    first, second = (math.fsum(column) / len(measured) for column in zip(*measured, strict=True))
    return first, second


def _scores(encoder: Encoder | SparseEncoder, collection: Judged, cache: Path) -> Floats:
    """float32 (queries, documents), from the cache if it has them."""
    texts = [document.text for document in collection.documents]
    asked = [query.text for query in collection.queries]
    digest = hashlib.sha256("\0".join([*texts, *asked]).encode()).hexdigest()[:16]
    path = cache / "channels" / f"{re.sub('[^A-Za-z0-9.@-]', '_', identity(encoder))}-{collection.name}-{digest}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(encoder, Encoder):
            scores = encoder.encode_queries(asked) @ encoder.encode_documents(texts).T
        else:
            scores = _products(encoder.encode_queries(asked), encoder.encode_documents(texts))
        np.save(path, scores)
    kept: Floats = np.load(path)
    return kept


def _products(queries: Sequence[SparseVector], documents: Sequence[SparseVector]) -> Floats:
    postings: dict[str, list[tuple[int, float]]] = {}
    for number, document in enumerate(documents):
        for term, weight in zip(document.terms, document.weights.tolist(), strict=True):
            postings.setdefault(term, []).append((number, weight))
    columns = {term: (np.array([number for number, _ in found]), np.array([weight for _, weight in found], np.float32)) for term, found in postings.items()}
    scores = np.zeros((len(queries), len(documents)), np.float32)
    for row, query in zip(scores, queries, strict=True):
        for term, weight in zip(query.terms, query.weights.tolist(), strict=True):
            if term in columns:
                numbers, weights = columns[term]
                row[numbers] += np.float32(weight) * weights
    return scores
