"""Every engine's own formula, written naively in numpy: an engine is checked against it before it is timed.

The score of a document is the sum over the query's terms of weight(df) * saturation(tf, length). Engines differ in both, and some round the length to a byte first; float64
here, so that the engine's own float32 shows as a small relative difference and nothing else does.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.compare.corpora import Collection

Array = npt.NDArray[Any]
TOLERANCE = 2e-5  # sums of a few float32, relative
MOST = 10_000  # the largest k that is checked


class Formula(NamedTuple):
    """`idf` is "positive" (log(1 + (N - df + .5) / (df + .5)), which cannot be negative) or "floored" (without the 1 +, but at least 1e-6)."""

    k1: float
    b: float
    idf: str
    times_k1_plus_1: bool
    byte_lengths: bool


OURS = Formula(0.9, 0.4, "positive", True, False)
PISA = Formula(0.9, 0.4, "floored", True, False)
LUCENE = Formula(0.9, 0.4, "positive", False, True)  # BM25Similarity since Lucene 8
TANTIVY = Formula(1.2, 0.75, "positive", True, True)  # its constants cannot be set
BM25S = Formula(0.9, 0.4, "positive", False, False)  # its method "lucene"


def _byte_lengths() -> Array:
    """The 256 lengths that Lucene's SmallFloat.byte4ToInt knows (and tantivy's table of field norms, which is the same): exact to 40, then with 4 significant bits."""
    free = 24
    beyond = []
    for byte in range(256 - free):
        mantissa, shift = byte & 7, (byte >> 3) - 1
        beyond.append(mantissa if shift == -1 else (mantissa | 8) << shift)
    return np.array([*range(free), *(free + value for value in beyond)], np.int64)


BYTE_LENGTHS = _byte_lengths()


class Oracle:
    """Scores of a sample of queries over a whole collection."""

    def __init__(self, collection: Collection, queries: Sequence[Array]) -> None:
        self.queries = queries
        self.documents = collection.documents
        self.length = np.asarray(collection.length, np.float64)
        self._average = float(self.length.mean())
        self._postings = _postings(collection, np.unique(np.concatenate(queries)))
        self._best: dict[tuple[int, Formula], Array] = {}
        rounded = BYTE_LENGTHS[np.searchsorted(BYTE_LENGTHS, collection.length, side="right") - 1]
        self._rounded = rounded.astype(np.float64)

    def scores(self, query: Array, formula: Formula) -> Array:
        """The score of every document, 0 for those without any of the terms."""
        total = np.zeros(self.documents)
        norm = self._norm(formula)
        for term in query.tolist():
            docs, tf = self._postings[term]
            total[docs] += self._weight(len(docs), formula) * tf / (tf + norm[docs])
        return total

    def _norm(self, formula: Formula, docs: Array | slice = slice(None)) -> Array:
        """What is added to tf, for some documents or all."""
        length = (self._rounded if formula.byte_lengths else self.length)[docs]
        return formula.k1 * (1 - formula.b + formula.b * length / self._average)

    def _weight(self, df: int, formula: Formula) -> float:
        odds = (self.documents - df + 0.5) / (df + 0.5)
        idf = np.log1p(odds) if formula.idf == "positive" else max(1e-6, np.log(odds))
        return float(idf * (formula.k1 + 1 if formula.times_k1_plus_1 else 1))

    def scores_of(self, query: Array, docs: Array, formula: Formula) -> Array:
        """The scores of some documents."""
        total = np.zeros(len(docs))
        norm = self._norm(formula, docs)
        for term in query.tolist():
            holders, tfs = self._postings[term]
            at = np.minimum(np.searchsorted(holders, docs), max(len(holders) - 1, 0))
            tf = np.where(holders[at] == docs, tfs[at], 0.0) if len(holders) else np.zeros(len(docs))
            total += self._weight(len(holders), formula) * tf / (tf + norm)
        return total

    def best(self, number: int, formula: Formula) -> Array:
        """The best MOST scores of query `number`, descending, none that is 0; remembered, for engines share formulas."""
        known = self._best.get((number, formula))
        if known is None:
            scores = self.scores(self.queries[number], formula)
            scores = -np.sort(-np.partition(scores, -min(MOST, len(scores)))[-MOST:])
            known = self._best[number, formula] = scores[scores > 0]
        return known

    def faults(self, hits: Sequence[tuple[Array, Array]], k: int, formula: Formula) -> list[str]:
        """What is wrong with an engine's answers to the queries: nothing if each is a top k by its formula, equal scores in any order."""
        assert k <= MOST
        found = []
        for number, (query, (docs, scores)) in enumerate(zip(self.queries, hits, strict=True)):
            best = self.best(number, formula)[:k]
            if len(docs) != len(best) or len(np.unique(docs)) != len(docs):
                found.append(f"query {number}: {len(docs)} documents ({len(np.unique(docs))} distinct) instead of {len(best)}")
            elif not np.allclose(scores, best, rtol=TOLERANCE, atol=1e-6):
                found.append(f"query {number}: the scores differ from the best ones by up to {np.abs(scores - best).max():.2g}")
            elif not np.allclose(scores, own := self.scores_of(query, docs, formula), rtol=TOLERANCE, atol=1e-6):
                found.append(f"query {number}: a document's score is not what the formula gives, by up to {np.abs(scores - own).max():.2g}")
        return found


def overlap(one: Sequence[tuple[Array, Array]], other: Sequence[tuple[Array, Array]], k: int = 10) -> float:
    """The mean share of the first k documents that both have."""
    shares = [len(np.intersect1d(a[:k], b[:k])) / max(1, min(k, len(a), len(b))) for (a, _), (b, _) in zip(one, other, strict=True)]
    return float(np.mean(shares))


def _postings(collection: Collection, terms: Array) -> dict[int, tuple[Array, Array]]:
    counted = collection.counted
    wanted = np.zeros(collection.vocabulary, bool)
    wanted[terms] = True
    at = np.flatnonzero(wanted[counted.term])
    term, tf = counted.term[at], counted.tf[at].astype(np.float64)
    docs = np.searchsorted(counted.doc_start, at, side="right") - 1
    order = np.argsort(term, kind="stable")
    edges = np.searchsorted(term[order], terms, side="left"), np.searchsorted(term[order], terms, side="right")
    return {int(t): (docs[order[a:b]], tf[order[a:b]]) for t, a, b in zip(terms, *edges, strict=True)}
