"""Asking several channels at once, and making one ranking of theirs (`retrieval.fusion`).

Each channel gives its list: its best documents by its own score, as many as the depth says. `rrf` and `agent_rrf` go by the places in these lists; `convex` gives every document
that some list has its exact score in every channel. Then come the neighbours of each document, if asked for, then recency and importance.

Lists that were cut off at the depth may hide a document that the complete lists would have put into the answer: an answer is called exact only where every list was complete.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.asker import Bools, ChannelAnswers, Channelled
from agentir_ray.engine.by_vectors import VectorAnswers
from agentir_ray.engine.by_words import WordAnswers
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.neighbours import neighbours
from agentir_ray.engine.priors import importance_of, recency_of
from agentir_ray.engine.request import CONVEX, Request
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.search import Expired, Found, TopK, Visibility
from agentir_ray.retrieval.context import mean_of_neighbours, smoothed
from agentir_ray.retrieval.fusion import best_first, convex, normalised, reciprocal_ranks, summed, table_of
from agentir_ray.types import ChannelScore, FusedExplanation, Record

Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


class Fused(NamedTuple):
    """The documents of an answer and what each row of channels adds to them: all (channels, n) or (n). `place` finds a document by its sequence number."""

    place: dict[int, int]
    raw: Float64s
    rank: Int64s
    between: Float64s | None
    added: Float64s
    passages: Float64s
    own: Float64s
    context: Float64s
    recency: Float64s
    importance: Float64s
    score: Float64s


class ByChannels:
    """An asker of several channels, at least one, with their weights. The first one is asked whatever the time."""

    def __init__(self, channels: Sequence[Channelled], weights: Sequence[float], request: Request) -> None:
        self._channels, self._weights, self._request = channels, weights, request

    def look(self, namespace: Namespace) -> "FusedAnswers":
        channels = [channel.before(namespace) for channel in self._channels]
        snapshot = namespace.index.snapshot(next((channel.terms for channel in channels if channel.terms), ()), self._request.expression)
        return FusedAnswers(snapshot, [channel.at(snapshot) for channel in channels], self._weights, self._request)


class FusedAnswers:
    def __init__(self, snapshot: Snapshot, channels: Sequence[ChannelAnswers], weights: Sequence[float], request: Request) -> None:
        self.snapshot = snapshot
        self._channels, self._weights, self._request = channels, weights, request
        self._ran: list[str] = []
        self._cut_off: list[str] = []
        self._fused: Fused | None = None

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(self._ran)

    @property
    def reservation(self) -> str:
        late = [channel.name for channel in self._channels if channel.name not in self._ran]
        reasons = [f"there was no time for {', '.join(late)}"] if late else []
        if self._cut_off:
            reasons.append(f"only the best {self._depth} by {', '.join(self._cut_off)} were ranked")
        reasons += [channel.reservation for channel in self._channels if channel.name in self._ran and channel.reservation]
        return "; ".join(reasons)

    @property
    def _depth(self) -> int:
        return max(self._request.fusion.depth, self._request.wanted)

    def top_k(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        lists = self._lists(visibility, expired)
        segments = len(self.snapshot.segments)
        left = np.zeros(segments, bool)
        for listed in lists:
            left |= listed.left
        seq, rank = table_of([listed.seq for listed in lists])
        ref, raw = np.empty(len(seq), np.int64), np.full(rank.shape, np.nan)
        for row, listed in zip(raw, lists, strict=True):
            at = np.searchsorted(seq, listed.seq)
            ref[at], row[at] = listed.ref, listed.score
        score = self._fuse(seq, ref, rank, raw, [float(listed.score[0]) if len(listed.score) else -np.inf for listed in lists], visibility)
        wanted = np.flatnonzero(score >= self._request.min_score)
        wanted = wanted[best_first(score[wanted], seq[wanted])[:k]]
        return TopK(score[wanted], seq[wanted], ref[wanted], np.zeros(segments, bool), left)

    def _lists(self, visibility: Visibility, expired: Expired | None) -> list[TopK]:
        self._ran, self._cut_off = [], []
        lists: list[TopK] = []
        for channel in self._channels:
            if lists and expired is not None and expired():
                nothing = np.zeros(len(self.snapshot.segments), bool)
                lists.append(TopK(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), nothing, nothing))
                continue
            listed = channel.listed(self._depth, visibility, expired)
            lists.append(listed)
            self._ran.append(channel.name)
            if len(listed.seq) == self._depth:
                self._cut_off.append(channel.name)
        return lists

    def _fuse(self, seq: Int64s, ref: Int64s, rank: Int64s, raw: Float64s, highest: Sequence[float], visibility: Visibility) -> Float64s:
        """The scores of the listed documents; keeps how they came about."""
        request, fusion = self._request, self._request.fusion
        beside = np.full((len(ref), 0), -1, np.int64)
        everyone = ref
        if fusion.context_weight:
            beside = neighbours(self.snapshot, ref, visibility, request.expression)
            others = np.setdiff1d(beside[beside >= 0], ref)
            everyone = np.concatenate([ref, others])
            rank, raw = (np.concatenate([rows, np.full((len(rows), len(others)), nothing, rows.dtype)], axis=1) for rows, nothing in ((rank, 0), (raw, np.nan)))
        between: Float64s | None = None
        if request.mode == CONVEX:
            for channel, row in zip(self._channels, raw, strict=True):
                if channel.name in self._ran:
                    missing = np.flatnonzero(np.isnan(row))
                    row[missing] = channel.scores(everyone[missing])
            between = np.array([normalised(row, channel.lowest, top) for channel, row, top in zip(self._channels, raw, highest, strict=True)])
            added = convex(between, self._weights)
        else:
            added = reciprocal_ranks(rank, self._weights)
        passages = self._passages(everyone)
        own = summed(added, len(everyone)) - passages
        context = np.full(len(ref), np.nan)
        relevance = own[: len(ref)]
        if fusion.context_weight:
            context = mean_of_neighbours(own, _places(everyone, beside))
            relevance = smoothed(relevance, context, fusion.context_weight)
        priors = request.priors
        recency = recency_of(self.snapshot, ref, visibility.as_of_us, priors) if priors.recency_weight else np.zeros(len(ref))
        importance = importance_of(self.snapshot, ref, priors) if priors.importance_weight else np.zeros(len(ref))
        score = relevance + recency + importance
        self._fused = Fused({number: i for i, number in enumerate(seq.tolist())}, raw, rank, between, added, passages, own, context, recency, importance, score)
        return score

    def _passages(self, refs: Int64s) -> Float64s:
        """What a document loses for its many passages: each is a chance to be close to the query by accident."""
        penalty = self._request.fusion.passage_penalty
        dense = next((channel for channel in self._channels if isinstance(channel, VectorAnswers)), None)
        if not penalty or dense is None:
            return np.zeros(len(refs))
        return penalty * np.log2(np.maximum(dense.rows(refs), 1))

    def could_matter(self, best: TopK, visibility: Visibility, wanted: int) -> Bools:
        """What was cut short could, whatever its scores: it may move the others' places. Of segments that only the words were not asked of, those that have some of them."""
        words = next((channel for channel in self._channels if isinstance(channel, WordAnswers)), None)
        if words is None:
            return best.left
        cold: Bools = best.left & self.snapshot.cold
        could: Bools = (best.left & ~self.snapshot.cold) | words.may_match(cold, visibility, self._request.priors, -np.inf)
        return could

    def explain(self, found: Found, record: Record) -> FusedExplanation:
        fused = self._fused
        assert fused is not None
        i = fused.place[found.seq]
        channels = tuple(
            ChannelScore(
                channel.name,
                weight,
                None if np.isnan(fused.raw[c, i]) else float(fused.raw[c, i]),
                int(fused.rank[c, i]) or None,
                None if fused.between is None else float(fused.between[c, i]),
                float(fused.added[c, i]),
            )
            for c, (channel, weight) in enumerate(zip(self._channels, self._weights, strict=True))
        )
        context = None if np.isnan(fused.context[i]) else float(fused.context[i])
        score = float(fused.score[i])
        return FusedExplanation(channels, float(fused.passages[i]), float(fused.own[i]), context, float(fused.recency[i]), float(fused.importance[i]), score, None, score)


def _places(everyone: Int64s, refs: Int64s) -> Int64s:
    """Where each of `refs` lies in `everyone`, which has them all; -1 where it is -1."""
    order = np.argsort(everyone)
    at: Int64s = order[np.minimum(np.searchsorted(everyone, refs, sorter=order), len(everyone) - 1)] if len(everyone) else refs
    return np.where(refs >= 0, at, -1)
