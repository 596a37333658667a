"""A query as weighted terms, and the numbers that turn it into scores.

The statistics come from outside: they are the namespace's, so that scores compare across segments, partitions and hosts.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.analysis import Analyzer

Float64s = npt.NDArray[np.float64]


class Bm25(NamedTuple):
    """k1 and b: how soon a repeated term stops counting, and how much length counts. Defaults are those that Lucene's reproductions of BEIR use."""

    k1: float = 0.9
    b: float = 0.4


class Query(NamedTuple):
    """Distinct terms in order of first appearance; a term that occurs n times weighs n."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]


class Statistics(NamedTuple):
    """Of the live documents: how many, their tokens, and for each query term how many hold it."""

    documents: int
    length: int
    df: tuple[int, ...]

    @property
    def average_length(self) -> float:
        return self.length / self.documents if self.length else 1.0


class Scoring(NamedTuple):
    """What the kernel needs: gain = weight * idf * (k1 + 1) a term, base = k1 * (1 - b), slope = k1 * b / average length."""

    gain: Float64s
    base: float
    slope: float


class Priors(NamedTuple):
    """Soft preferences added to the score: recency_weight * exp(-age / tau) and importance_weight * importance. A weight of 0 leaves the term out."""

    recency_weight: float = 0.0
    tau_us: float = 1.0
    importance_weight: float = 0.0


def parse_query(analyzer: Analyzer, text: str) -> Query:
    counted: dict[str, float] = {}
    for term in analyzer.tokens(text):
        counted[term] = counted.get(term, 0.0) + 1.0
    return Query(tuple(counted), tuple(counted.values()))


def inverse_document_frequency(documents: int, df: int) -> float:
    return math.log(1.0 + (documents - df + 0.5) / (df + 0.5))


def inverse_document_frequencies(documents: int, df: npt.NDArray[np.int64]) -> Float64s:
    """`inverse_document_frequency` of many terms, to the last bit: numpy's logarithm may differ from `math.log` in it."""
    odds: Float64s = (documents - df + 0.5) / (df + 0.5)
    return np.fromiter(map(math.log, (1.0 + odds).tolist()), np.float64, len(df))


def scoring(query: Query, statistics: Statistics, bm25: Bm25) -> Scoring:
    documents, factor = statistics.documents, bm25.k1 + 1.0
    # `inverse_document_frequency`, written out: a call a term is a good part of a short search
    gain = [weight * math.log(1.0 + (documents - df + 0.5) / (df + 0.5)) * factor for weight, df in zip(query.weights, statistics.df, strict=True)]
    return Scoring(np.array(gain, np.float64), bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / statistics.average_length)
