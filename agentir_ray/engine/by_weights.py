"""Asking by learned sparse weights: stored-weight postings in sidecars, and the young.

A record without weights is in no list of this channel. Cold segments are asked as any other: their sidecars and columns are here.
"""

import numpy as np
import numpy.typing as npt

from agentir_ray.encoders.protocol import SparseVector
from agentir_ray.engine.asker import Bools, EncoderExchangedError
from agentir_ray.engine.channel import SPARSE, Channel
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.priors import importance_of, recency_of
from agentir_ray.engine.request import Request
from agentir_ray.lexical.index import Array, Snapshot
from agentir_ray.lexical.query import Priors
from agentir_ray.lexical.search import Expired, Found, TopK, Visibility
from agentir_ray.lexical.weighted import sidecars_of, weighted_scores, weighted_top_k
from agentir_ray.lexical.young_weights import YoungWeightsView
from agentir_ray.types import ChannelScore, FusedExplanation, Record

NO_PRIORS = Priors()


class ByWeights:
    name = SPARSE
    terms = ()

    def __init__(self, vector: SparseVector, channel: Channel | None, request: Request) -> None:
        """`vector` is by the encoder of the channel; None: nothing has weights yet."""
        self._vector, self._channel, self._request = vector, channel, request
        self._young: YoungWeightsView | None = None

    def before(self, namespace: Namespace) -> "ByWeights":
        channel = self._channel
        if channel is not namespace.channels.get(SPARSE):
            raise EncoderExchangedError
        self._young = None if channel is None or channel.young is None else channel.young.view()
        return self

    def at(self, snapshot: Snapshot) -> "WeightAnswers":
        return WeightAnswers(snapshot, self._vector, None if self._channel is None else self._channel.encoder, self._young, self._request)

    def look(self, namespace: Namespace) -> "WeightAnswers":
        self.before(namespace)
        return self.at(namespace.index.snapshot((), self._request.expression))


class WeightAnswers:
    """`ChannelAnswers` by weights."""

    name = SPARSE
    lowest = 0.0
    stages = (SPARSE,)
    reservation = ""

    def __init__(self, snapshot: Snapshot, vector: SparseVector, encoder: str | None, young: YoungWeightsView | None, request: Request) -> None:
        """Raises EncoderExchangedError where a sidecar is of another encoder."""
        self._sidecars = sidecars_of(snapshot)
        if any(sidecar is not None and sidecar.encoder != encoder for sidecar in self._sidecars):
            raise EncoderExchangedError
        self.snapshot = snapshot
        self._vector, self._young, self._request = vector, young, request

    def top_k(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        return self._best(k, visibility, self._request.priors, self._request.min_score, expired)

    def listed(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        return self._best(k, visibility, NO_PRIORS, -np.inf, expired)

    def _best(self, k: int, visibility: Visibility, priors: Priors, min_score: float, expired: Expired | None) -> TopK:
        terms, weights = self._vector
        return weighted_top_k(self.snapshot, self._sidecars, self._young, terms, weights, k, visibility, self._request.expression, priors, min_score, expired)

    def scores(self, refs: Array) -> npt.NDArray[np.float64]:
        return weighted_scores(self.snapshot, self._sidecars, self._young, *self._vector, refs)

    def could_matter(self, best: TopK, visibility: Visibility, wanted: int) -> Bools:
        return best.left

    def explain(self, found: Found, record: Record) -> FusedExplanation:
        """One channel, and the priors that were added to it."""
        ref = np.array([found.part << 32 | found.doc])
        dot = float(self.scores(ref)[0])
        asked = self._request
        recency = float(recency_of(self.snapshot, ref, asked.visibility.as_of_us, asked.priors)[0]) if asked.priors.recency_weight else 0.0
        importance = float(importance_of(self.snapshot, ref, asked.priors)[0])
        score = dot + recency + importance
        return FusedExplanation((ChannelScore(SPARSE, 1.0, dot, None, None, dot),), 0.0, dot, None, recency, importance, score, None, score)
