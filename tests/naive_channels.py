"""The oracle of a search by channels: the vectors of every record by itself, every list sorted, the fusion of the lists as its formula is written (`naive_fusion`)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.encoders.records import encode_query, encode_records, encode_sparse_query, encode_sparse_records
from tests import naive_fusion
from tests.naive import NaiveIndex, Question, Version, add_priors, bm25
from tests.naive_dense import dot

BESIDE = 2  # neighbours on each side
REACH = 8  # places on each side, of all versions that were not erased, among which they are looked for


class Asked(NamedTuple):
    """`question` has the analyzed terms, the filter and the priors, of a k that keeps everything."""

    text: str
    question: Question
    mode: str
    weights: Mapping[str, float] = {"bm25": 1.0, "sparse": 1.0, "dense": 1.0}
    depth: int = 100
    context_weight: float = 0.0
    passage_penalty: float = 0.0


class NaiveChannels:
    """Versions up to sequence number `encoded` have vectors."""

    def __init__(self, oracle: NaiveIndex, dense: HashingEncoder, sparse: HashingSparseEncoder) -> None:
        self.oracle, self.dense, self.sparse = oracle, dense, sparse
        self.encoded = 0
        self._vectors: dict[str, Any] = {}

    def vectors(self, version: Version) -> Any:
        text = version.record.text
        if text not in self._vectors:
            self._vectors[text] = encode_records(self.dense, [text]).vectors, encode_sparse_records(self.sparse, [text])[0]
        return self._vectors[text]

    def seen(self, question: Question) -> list[Version]:
        return [
            version
            for version in self.oracle.versions
            if self.oracle.visible(version, question)
            and question.since_us <= version.record.timestamp_us <= question.until_us
            and (not question.where or version.record.session == question.where["session"]["eq"])
        ]

    def known(self, channel: str, asked: Asked) -> dict[int, float]:
        """The channel's score of every record that is seen and that it can score; of no priors."""
        seen = self.seen(asked.question)
        if channel == "bm25":
            documents, length, df = self.oracle.statistics(asked.question.terms)
            average = length / documents if length else 1.0
            counted = {version.seq: {term: version.tokens.count(term) for term in asked.question.terms} for version in seen}
            return {version.seq: bm25(asked.question, counted[version.seq], len(version.tokens), documents, average, df) for version in seen}
        encoded = [version for version in seen if version.seq <= self.encoded]
        if channel == "sparse":
            query = dict(zip(*encode_sparse_query(self.sparse, asked.text), strict=True))
            found = {}
            for version in encoded:
                weights = dict(zip(*self.vectors(version)[1], strict=True))
                found[version.seq] = 0.0
                for term, weight in query.items():
                    if term in weights:
                        found[version.seq] += float(weight) * float(weights[term])
            return found
        vector = encode_query(self.dense, asked.text)
        if not vector.any():
            return {}
        return {version.seq: max(dot(row, vector) for row in self.vectors(version)[0]) for version in encoded if len(self.vectors(version)[0])}

    def listed(self, channel: str, known: Mapping[int, float]) -> list[tuple[int, float]]:
        return naive_fusion.ordered({seq: score for seq, score in known.items() if channel == "dense" or score > 0.0})

    def search(self, asked: Asked) -> list[tuple[int, float]]:
        """(seq, score) of all that is found, best first."""
        question = asked.question
        by_seq = {version.seq: version.record for version in self.oracle.versions}

        def with_priors(scores: Mapping[int, float]) -> list[tuple[int, float]]:
            found = {}
            for seq, score in scores.items():
                record = by_seq[seq]
                if asked.mode == "dense":  # a vector's record has one prior, the sum of both
                    found[seq] = score + add_priors(question, 0.0, record.timestamp_us, record.importance)
                else:
                    found[seq] = add_priors(question, score, record.timestamp_us, record.importance)
            return naive_fusion.ordered({seq: score for seq, score in found.items() if score >= question.min_score})

        if asked.mode in ("bm25", "sparse", "dense"):
            return with_priors(dict(self.listed(asked.mode, self.known(asked.mode, asked))))
        channels = [name for name in ("bm25", "sparse", "dense") if asked.weights.get(name)]
        weights = [asked.weights[name] for name in channels]
        known = [self.known(name, asked) for name in channels]
        lists = [self.listed(name, scores)[: asked.depth] for name, scores in zip(channels, known, strict=True)]
        own = self._own(asked, channels, weights, lists, known)
        scores = {}
        for seq in {seq for listed in lists for seq, _ in listed}:
            beside = self.neighbours(question, seq) if asked.context_weight else []
            scores[seq] = own[seq]
            if beside:
                total = 0.0
                for other in beside:
                    total += own[other]
                scores[seq] = (1.0 - asked.context_weight) * own[seq] + asked.context_weight * (total / len(beside))
        return with_priors(scores)

    def _own(self, asked: Asked, channels: Sequence[str], weights: Sequence[float], lists: Sequence[naive_fusion.Listed], known: Sequence[Mapping[int, float]]) -> dict[int, float]:
        """Of everyone that is seen: 0 by ranks for those in no list."""
        everyone = [version.seq for version in self.seen(asked.question)]
        if asked.mode == "convex":
            lowest = [-1.0 if name == "dense" else 0.0 for name in channels]
            own = {}
            for seq in everyone:
                total = 0.0
                for number, listed in enumerate(lists):
                    if seq in known[number] and listed and listed[0][1] > lowest[number]:
                        total += weights[number] * max((known[number][seq] - lowest[number]) / (listed[0][1] - lowest[number]), 0.0)
                own[seq] = total - (asked.passage_penalty * math.log2(max(self.rows(seq), 1)) if "dense" in channels else 0.0)
            return own
        return dict.fromkeys(everyone, 0.0) | naive_fusion.rrf(lists, weights)

    def rows(self, seq: int) -> int:
        version = next(version for version in self.oracle.versions if version.seq == seq)
        return len(self.vectors(version)[0]) if seq <= self.encoded else 0

    def neighbours(self, question: Question, seq: int) -> list[int]:
        """Up to two before it, the nearest first, and then up to two after it, of those within reach that are seen."""
        record = next(version.record for version in self.oracle.versions if version.seq == seq)
        if record.session is None:
            return []
        in_session = [version for version in self.oracle.versions if version.record.session == record.session and not version.erased]
        places = sorted((version.record.timestamp_us, version.seq) for version in in_session)
        seen = {version.seq for version in self.seen(question)}
        at = places.index((record.timestamp_us, seq))
        before = [other for _, other in reversed(places[max(0, at - REACH) : at]) if other in seen]
        after = [other for _, other in places[at + 1 : at + 1 + REACH] if other in seen]
        return [*before[:BESIDE], *after[:BESIDE]]
