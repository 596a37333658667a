"""Asking by a vector: the records that lie closest to it in sidecars and among the young, exactly unless the request lets graphs answer.

A record without a vector is in no list of this channel. Cold segments are asked as any other: their sidecars and columns are here.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.approximate import nearest
from agentir_ray.dense.parts import NO_PRIOR, DensePart
from agentir_ray.dense.search import YoungRows, scores, top_k
from agentir_ray.dense.sidecar import DenseSidecar
from agentir_ray.dense.vectors import RecordVectors, take
from agentir_ray.dense.young import YoungView
from agentir_ray.engine.asker import Bools, EncoderExchangedError
from agentir_ray.engine.channel import DENSE, Channel
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.priors import importance_of, priors_of, recency_of
from agentir_ray.engine.request import Request
from agentir_ray.lexical.index import Array, Snapshot
from agentir_ray.lexical.query import Priors
from agentir_ray.lexical.search import Expired, Found, TopK, Visibility
from agentir_ray.lexical.visible import documents_seen, refs_of, refs_seen
from agentir_ray.types import ChannelScore, FusedExplanation, Record

NO_PRIORS = Priors()


class ByVectors:
    name = DENSE
    terms = ()

    def __init__(self, vector: Array, channel: Channel | None, request: Request) -> None:
        """`vector` float32 (dim), by the encoder of the channel; None: nothing has a vector yet."""
        self._vector, self._channel, self._request = vector, channel, request
        self._young: YoungView | None = None

    def before(self, namespace: Namespace) -> "ByVectors":
        channel = self._channel
        if channel is not namespace.channels.get(DENSE):
            raise EncoderExchangedError
        self._young = None if channel is None or channel.young is None else channel.young.view()
        return self

    def at(self, snapshot: Snapshot) -> "VectorAnswers":
        return VectorAnswers(snapshot, self._vector, None if self._channel is None else self._channel.encoder, self._young, self._request)

    def look(self, namespace: Namespace) -> "VectorAnswers":
        self.before(namespace)
        return self.at(namespace.index.snapshot((), self._request.expression))


class VectorAnswers:
    """`ChannelAnswers` by a vector."""

    name = DENSE
    lowest = -1.0
    stages = (DENSE,)

    def __init__(self, snapshot: Snapshot, vector: Array, encoder: str | None, young: YoungView | None, request: Request) -> None:
        """Raises EncoderExchangedError where a sidecar is of another encoder."""
        self.snapshot = snapshot
        self._vector, self._request = vector, request
        self._by_graphs = False
        self._sidecars: list[DenseSidecar | None] = [segment.sidecars.get(DENSE) for segment in snapshot.segments]
        if any(sidecar is not None and sidecar.encoder != encoder for sidecar in self._sidecars):
            raise EncoderExchangedError
        self._young = None if young is None or not len(young.seq) else self._resolved(young)

    @property
    def reservation(self) -> str:
        return "the list by dense is approximate (FAISS HNSW)" if self._by_graphs else ""

    def _resolved(self, young: YoungView) -> YoungRows:
        """The young whose documents the snapshot has and no sidecar does."""
        ref = refs_of(self.snapshot, young.seq)
        left = ref >= 0
        for i, sidecar in enumerate(self._sidecars):
            if sidecar is not None:
                here = np.flatnonzero(ref >> 32 == i)
                left[here] &= ~sidecar.has(ref[here] & 0xFFFFFFFF)
        if left.all():
            return YoungRows(young.seq, ref, young.start, young.vectors)
        return _taken(YoungRows(young.seq, ref, young.start, young.vectors), left)

    def top_k(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        return self._best(k, visibility, self._request.priors, self._request.min_score, expired)

    def listed(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        return self._best(k, visibility, NO_PRIORS, -np.inf, expired)

    def _best(self, k: int, visibility: Visibility, priors: Priors, min_score: float, expired: Expired | None) -> TopK:
        snapshot, expression = self.snapshot, self._request.expression
        if not self._vector.any():  # there is nothing to read in the query: all are as far from it
            nothing = np.zeros(len(snapshot.segments), bool)
            return TopK(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), nothing, nothing)
        parts, places = [], []
        for i in np.argsort(-snapshot.newest, kind="stable").tolist():
            sidecar, segment = self._sidecars[i], snapshot.segments[i]
            if sidecar is None:
                continue
            first, end, words = documents_seen(snapshot, i, visibility, expression)
            if first < end:
                prior = NO_PRIOR
                if priors != NO_PRIORS:
                    prior = np.zeros(segment.documents)
                    refs = (i << 32) + np.arange(first, end)
                    prior[first:end] = priors_of(snapshot, refs, visibility.as_of_us, priors)
                parts.append(DensePart(sidecar, i, first, end, words, segment.array("seq"), prior))
                places.append(i)
        young = self._young
        if young is not None:
            seen = refs_seen(snapshot, young.ref, visibility, expression)
            young = young if seen.all() else _taken(young, seen)
            if priors != NO_PRIORS:
                young = young._replace(prior=priors_of(snapshot, young.ref, visibility.as_of_us, priors))
        if self._request.approximate:
            found, self._by_graphs = nearest(parts, young, self._vector, k, min_score, expired)
        else:
            found = top_k(parts, young, self._vector, k, min_score, expired)
        left = np.zeros(len(snapshot.segments), bool)
        left[places] = found.left
        return TopK(found.score, found.seq, found.ref, np.zeros(len(left), bool), left)

    def scores(self, refs: Array) -> npt.NDArray[np.float64]:
        snapshot = self.snapshot
        if not self._vector.any():
            return np.full(len(refs), np.nan)
        parts = [
            DensePart(sidecar, i, 0, snapshot.segments[i].documents, NOTHING, snapshot.segments[i].array("seq"))
            for i in np.unique(refs >> 32).tolist()
            if i < len(self._sidecars) and (sidecar := self._sidecars[i]) is not None
        ]
        found: npt.NDArray[np.float64] = scores(parts, self._young, self._vector, refs)
        return found

    def rows(self, refs: Array) -> npt.NDArray[np.int64]:
        """int64: how many vectors each document (int64 refs) has."""
        count = np.zeros(len(refs), np.int64)
        part = refs >> 32
        for i in np.unique(part).tolist():
            sidecar = self._sidecars[i] if i < len(self._sidecars) else None
            if sidecar is not None:
                here = np.flatnonzero(part == i)
                docs = refs[here] & 0xFFFFFFFF
                count[here] = sidecar.row_start[docs + 1] - sidecar.row_start[docs]
        if self._young is not None and len(self._young.ref):
            order = np.argsort(self._young.ref)
            at = np.minimum(np.searchsorted(self._young.ref, refs, sorter=order), len(order) - 1)
            there = self._young.ref[order[at]] == refs
            count[there] = np.diff(self._young.start)[order[at[there]]]
        return count

    def could_matter(self, best: TopK, visibility: Visibility, wanted: int) -> Bools:
        return best.left

    def explain(self, found: Found, record: Record) -> FusedExplanation:
        """One channel, and the priors that were added to it."""
        ref = np.array([found.part << 32 | found.doc])
        dot = float(self.scores(ref)[0])
        asked = self._request
        recency = float(recency_of(self.snapshot, ref, asked.visibility.as_of_us, asked.priors)[0]) if asked.priors.recency_weight else 0.0
        importance = float(importance_of(self.snapshot, ref, asked.priors)[0])
        score = dot + (recency + importance)
        return FusedExplanation((ChannelScore(DENSE, 1.0, dot, None, None, dot),), 0.0, dot, None, recency, importance, score, None, score)


NOTHING: Any = np.empty(0, np.uint64)


def _taken(rows: YoungRows, chosen: Bools) -> YoungRows:
    which = np.flatnonzero(chosen)
    vectors = take(RecordVectors(rows.start, rows.vectors), which)
    return YoungRows(rows.seq[which], rows.ref[which], vectors.start, vectors.vectors, rows.prior[which] if len(rows.prior) else rows.prior)
