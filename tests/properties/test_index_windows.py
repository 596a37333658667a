"""Segments of several windows, and statistics at their worst: still the same answers as scoring every document."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray.kernels.invert import WINDOW
from agentir_ray.lexical.builder import Draft
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.query import Bm25, Priors, Query, scoring
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.search import Visibility, top_k
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Record
from tests.naive import NaiveIndex, Question, bm25
from tests.properties.index_world import ask, check_answer, document_of, id_of, write_segment
from tests.properties.table_world import draft_of_table, word

DOCUMENTS = 140_000
TERMS = 60
Array = np.ndarray[Any, Any]


class Corpus:
    """A table of tf: row d is document d, in time order; a quarter of the timestamps are those of the document before."""

    def __init__(self, rng: np.random.Generator) -> None:
        # A few terms are everywhere, most are rare; some occur in one window only, so that lists begin and end everywhere.
        share = 0.6 / np.arange(1, TERMS + 1)
        self.tf = (rng.random((DOCUMENTS, TERMS)) < share) * rng.geometric(0.5, (DOCUMENTS, TERMS)).astype(np.int32)
        self.tf[WINDOW:, 50] = 0
        self.tf[: 2 * WINDOW, 51] = 0
        self.tf[:, 52] = 0
        self.tf[[0, WINDOW - 1, WINDOW, 2 * WINDOW - 1, 2 * WINDOW, DOCUMENTS - 1], 52] = 1
        self.tf[rng.integers(0, DOCUMENTS, 50), 3] = rng.integers(250, 2_000, 50)
        self.length = self.tf.sum(axis=1).astype(np.int64)
        self.timestamp = np.cumsum(rng.random(DOCUMENTS) < 0.75).astype(np.int64)
        self.seq = rng.permutation(DOCUMENTS).astype(np.int64) + 1
        order = np.lexsort((self.seq, self.timestamp))
        self.seq = self.seq[order]
        self.importance = np.where(rng.random(DOCUMENTS) < 0.01, rng.random(DOCUMENTS), 0.0)
        self.deleted = np.zeros(DOCUMENTS, bool)

    def draft(self, lo: int, hi: int) -> Draft:
        part = slice(lo, hi)
        return draft_of_table(self.tf[part], self.length[part], self.seq[part], self.timestamp[part], self.importance[part])

    def answer(self, terms: list[int], weights: list[float], k: int, since: int, until: int, as_of: int, priors: Priors, min_score: float) -> list[tuple[int, float]]:
        alive = ~self.deleted
        documents, average_length = int(alive.sum()), int(self.length[alive].sum()) / int(alive.sum())
        base, slope = 0.9 * (1.0 - 0.4), 0.9 * 0.4 / average_length
        score = np.zeros(DOCUMENTS)
        for term, weight in zip(terms, weights, strict=True):
            df = int((self.tf[alive, term] > 0).sum())
            gain = weight * math.log(1.0 + (documents - df + 0.5) / (df + 0.5)) * (0.9 + 1.0)
            tf = self.tf[:, term].astype(np.float64)
            score += np.where(tf > 0, gain * (tf / np.where(tf > 0, tf + (base + slope * self.length), 1.0)), 0.0)
        docs = np.flatnonzero((score > 0) & alive & (self.timestamp >= since) & (self.timestamp <= until))
        score = score[docs]
        if priors.recency_weight:
            ages = np.maximum(0, as_of - self.timestamp[docs]).tolist()
            score = score + priors.recency_weight * np.array([math.exp(-age / priors.tau_us) for age in ages])
        if priors.importance_weight:
            score = score + priors.importance_weight * self.importance[docs]
        docs, score = docs[score >= min_score], score[score >= min_score]
        best = np.lexsort((-self.seq[docs], -score))[:k]
        return list(zip(self.seq[docs[best]].tolist(), score[best].tolist(), strict=True))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(np.random.default_rng(7))


@pytest.fixture(scope="module")
def whole(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Segment:
    segment = write_segment(corpus.draft(0, DOCUMENTS), tmp_path_factory.mktemp("whole") / "whole.segment")
    assert segment is not None
    return segment


def check_queries(corpus: Corpus, index: Index, rng: np.random.Generator, queries: int) -> None:
    for _ in range(queries):
        terms = rng.choice(TERMS, int(rng.integers(1, 8)), replace=False).tolist()
        if rng.random() < 0.3:
            terms = [*{*terms, int(rng.choice([50, 51, 52]))}]
        weights = rng.choice([1.0, 2.0], len(terms)).tolist()
        last = int(corpus.timestamp[-1])
        since, until = (MIN_TIME_US, MAX_TIME_US) if rng.random() < 0.5 else sorted(rng.integers(-5, last + 5, 2).tolist())
        if rng.random() < 0.2:
            since = until = int(corpus.timestamp[rng.integers(DOCUMENTS)])
        priors = Priors(float(rng.choice([0.0, 0.5])), 2e4, float(rng.choice([0.0, 2.0]))) if rng.random() < 0.5 else Priors()
        min_score = float(rng.choice([-np.inf, 1.0, 4.0]))
        k = int(rng.choice([1, 10, 100, 3_000]))
        words = tuple(word(term) for term in terms)
        snapshot = index.snapshot(words)
        found = top_k(
            snapshot,
            scoring(Query(words, tuple(weights)), snapshot.statistics, Bm25()),
            k,
            Visibility(as_of_us=last, since_us=since, until_us=until),
            priors=priors,
            min_score=min_score,
        ).found
        assert [(hit.seq, hit.score) for hit in found] == corpus.answer(terms, weights, k, since, until, last, priors, min_score)


def test_three_windows(corpus: Corpus, whole: Segment) -> None:
    check_queries(corpus, Index([whole], DOCUMENTS), np.random.default_rng(1), 60)


def test_merged_windows(corpus: Corpus, whole: Segment, tmp_path: Path) -> None:
    """Segments whose documents interleave with windows, merged, make the file that the whole makes."""
    bounds = [0, 3, 60_000, 60_001, 131_072, DOCUMENTS]
    parts = [write_segment(corpus.draft(lo, hi), tmp_path / f"{lo}.segment") for lo, hi in pairwise(bounds)]
    segments = [part for part in parts if part is not None]
    check_queries(corpus, Index(segments, DOCUMENTS), np.random.default_rng(2), 20)
    merged = write_segment(draft_segments(segments[::-1], "n", "f"), tmp_path / "merged.segment")
    assert merged is not None
    for section in whole.sections:
        if not section.startswith("stored"):
            assert np.array_equal(merged.array(section), whole.array(section)), section
    for doc in (0, 2, 3, 59_999, 60_000, 131_071, DOCUMENTS - 1):
        assert merged.stored(doc) == b"%d\0" % corpus.seq[doc]


def test_statistics_move_under_the_bounds(corpus: Corpus, whole: Segment) -> None:
    """Skylines hold at any statistics: delete the short documents, then nearly all, so that the average length and every df move far from where they were sealed."""
    segment = Segment(whole.path, SegmentCache(), id_of)
    index = Index([segment], DOCUMENTS)
    rng = np.random.default_rng(3)
    try:
        for share in (0.5, 0.9, 0.999):
            longest = corpus.length >= np.quantile(corpus.length, share)
            dead = np.flatnonzero(~longest & ~corpus.deleted)
            with index.lock:
                index.seq += 1
                segment.delete(dead, index.seq, 0)
                index.install([])
            corpus.deleted[dead] = True
            check_queries(corpus, index, rng, 20)
    finally:
        corpus.deleted[:] = False


def check_small(texts: list[str], questions: list[Question], folder: Path) -> None:
    """In the buffer, sealed, and half and half."""
    for sealed in (0, len(texts), len(texts) // 2):
        index, oracle = Index([], 0), NaiveIndex()
        for i, text in enumerate(texts):
            record = Record(f"r{i}", text, i, i)
            index.add(i + 1, document_of(record, i + 1))
            oracle.add(i + 1, record, text.split())
            index.seq = i + 1
            if i + 1 == sealed:
                buffer = index.freeze()
                index.install([buffer], write_segment(draft_buffer(buffer, "n", "f"), folder / f"{sealed}.segment"))
        for question in questions:
            check_answer(index, oracle, question)


def test_every_document_equal(tmp_path: Path) -> None:
    check_small(["a b"] * 300, [Question(terms, [1.0] * len(terms), k=k) for terms in (["a"], ["b", "a"], ["a", "x"]) for k in (1, 10, 300, 1_000)], tmp_path)


def test_one_term_everywhere(tmp_path: Path) -> None:
    check_small([f"a w{i % 50}" for i in range(300)], [Question(["a", f"w{i}"], [1.0, 1.0], k=7) for i in range(0, 50, 7)], tmp_path)


def test_empty_texts(tmp_path: Path) -> None:
    check_small(["", "a", "", " "], [Question(["a"], [1.0])], tmp_path)
    check_small([""] * 5, [Question(["a"], [1.0])], tmp_path)


def test_long_query(tmp_path: Path) -> None:
    texts = [" ".join(f"w{(i * 7 + j) % 900}" for j in range(i % 30)) for i in range(200)]
    terms = [f"w{i}" for i in range(100_000)]
    check_small(texts, [Question(terms[:2_000], [1.0] * 2_000, k=5)], tmp_path)
    index = Index([], 0)
    for i, text in enumerate(texts):
        index.add(i + 1, document_of(Record(f"r{i}", text, i, i), i + 1))
        index.seq = i + 1
    buffer = index.freeze()
    index.install([buffer], write_segment(draft_buffer(buffer, "n", "f"), tmp_path / "long.segment"))
    long, short = (ask(index.snapshot(asked), Question(asked, [1.0] * len(asked), k=200)).found for asked in (tuple(terms), tuple(terms[:900])))
    assert long == short and len(long) > 100


def test_large_buffer() -> None:
    """More documents than a window: nothing relies on the engine to seal in time."""
    index = Index([], 0)
    for seq in range(1, WINDOW + 3_000):
        index.add(seq, document_of(Record("r", f"a w{seq % 9}" if seq % 1_000 == 0 else "b", seq, seq), seq))
        index.seq = seq
    question = Question(["a", "w5"], [1.0, 1.0], k=50)
    snapshot = index.snapshot(("a", "w5"))
    documents, length, df = snapshot.statistics
    scores = [(bm25(question, {"a": 1, f"w{seq % 9}": 1}, 2, documents, length / documents, df), seq) for seq in range(1_000, WINDOW + 3_000, 1_000)]
    assert [(hit.score, hit.seq) for hit in ask(snapshot, question).found] == sorted(scores, reverse=True)[:50]


def test_weightless_terms_match_nothing(tmp_path: Path) -> None:
    check_small(["a b", "b", "c"] * 20, [Question(["a", "b", "c"], [1.0, 0.0, 0.0], k=50), Question(["b"], [0.0])], tmp_path)
