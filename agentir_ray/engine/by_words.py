"""Asking by words: BM25 over a namespace's index."""

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.asker import Bools
from agentir_ray.engine.explain import explain
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.request import Request
from agentir_ray.lexical.asking import bounds, scores
from agentir_ray.lexical.filters import EVERYTHING
from agentir_ray.lexical.index import Array, Snapshot
from agentir_ray.lexical.query import Bm25, Priors, Query, scoring
from agentir_ray.lexical.search import Expired, Found, TopK, Visibility, top_k
from agentir_ray.types import Explanation, Record

BM25 = "bm25"
NO_PRIORS = Priors()


class ByWords:
    name = BM25

    def __init__(self, query: Query, bm25: Bm25, request: Request, always: bool = False) -> None:
        """`always`: these answer whatever the time is, when other channels may have used it up."""
        self._query, self._bm25, self._request, self._always = query, bm25, request, always

    @property
    def terms(self) -> tuple[str, ...]:
        return self._query.terms

    def before(self, namespace: Namespace) -> "ByWords":
        return self

    def at(self, snapshot: Snapshot) -> "WordAnswers":
        return WordAnswers(snapshot, self._query, self._bm25, self._request, self._always)

    def look(self, namespace: Namespace) -> "WordAnswers":
        return self.at(namespace.index.snapshot(self._query.terms, self._request.expression))


class WordAnswers:
    """`ChannelAnswers` by words."""

    name = BM25
    lowest = 0.0
    stages = (BM25,)
    reservation = ""

    def __init__(self, snapshot: Snapshot, query: Query, bm25: Bm25, request: Request, always: bool) -> None:
        self.snapshot = snapshot
        self._query, self._bm25, self._request, self._always = query, bm25, request, always
        self._scoring = scoring(query, snapshot.statistics, bm25)

    def top_k(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        request = self._request
        return top_k(self.snapshot, self._scoring, k, visibility, request.expression, request.priors, request.min_score, None if self._always else expired)

    def listed(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        return top_k(self.snapshot, self._scoring, k, visibility, self._request.expression, expired=None if self._always else expired)

    def scores(self, refs: Array) -> npt.NDArray[np.float64]:
        """NaN for what lies in cold segments, whose postings are not here."""
        out = np.full(len(refs), np.nan)
        segments = len(self.snapshot.segments)
        part = refs >> 32
        here = np.ones(len(refs), bool) if not np.count_nonzero(self.snapshot.cold) else (part >= segments) | ~self.snapshot.cold[np.minimum(part, segments - 1)]
        out[here] = scores(self.snapshot, self._scoring, refs[here], self._request.visibility, NO_PRIORS)
        return out

    def could_matter(self, best: TopK, visibility: Visibility, wanted: int) -> Bools:
        request = self._request
        threshold = float(best.score[-1]) if len(best.score) == wanted else -np.inf
        could = self.may_match(best.left, visibility, request.priors, max(threshold, request.min_score))
        return could

    def may_match(self, left: Bools, visibility: Visibility, priors: Priors, threshold: float) -> Bools:
        """Those of some segments that may hold a document of at least this score."""
        reach = bounds(self.snapshot, self._scoring, visibility, priors)
        could: Bools = left & (reach > -np.inf) & (reach >= threshold)
        if self._request.expression is not EVERYTHING:
            for i in np.flatnonzero(could).tolist():
                could[i] = bool(self.snapshot.segments[i].passing(self._request.expression).any())
        return could

    def explain(self, found: Found, record: Record) -> Explanation:
        return explain(self._query, self.snapshot, self._scoring, self._bm25, self._request, found, record)
