"""The oracle of the index: what an answer must be, by looking at every record. Plain Python, no shared code but the filters' oracle, no thought of speed.

A record is a list of versions. Adding and updating append one; an update deletes the version before as of its own creation; an erasure takes all versions away, for every `as_of`.
A version supersedes from its creation until it is deleted.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from agentir_ray.types import Record
from tests.naive_filters import matches

FOREVER = math.inf


@dataclass
class Version:
    seq: int
    record: Record
    tokens: list[str]
    deleted_at: float = FOREVER
    erased: bool = False

    @property
    def deleted(self) -> bool:
        return self.erased or self.deleted_at != FOREVER


class Shuffler(Protocol):
    def shuffle(self, values: list[Any]) -> None: ...


class Question(NamedTuple):
    """`terms` are distinct, with weights. `as_of_us` None: everything acknowledged, expiry by `now_us`."""

    terms: Sequence[str]
    weights: Sequence[float]
    k: int = 10
    now_us: int = 0
    as_of_us: int | None = None
    since_us: float = -FOREVER
    until_us: float = FOREVER
    where: Mapping[str, Any] = {}
    recency_weight: float = 0.0
    tau_us: float = 1.0
    importance_weight: float = 0.0
    min_score: float = -FOREVER
    k1: float = 0.9
    b: float = 0.4


class NaiveIndex:
    def __init__(self) -> None:
        self.versions: list[Version] = []

    def add(self, seq: int, record: Record, tokens: list[str]) -> None:
        self.versions.append(Version(seq, record, tokens))

    def replace(self, seq: int, record: Record, tokens: list[str]) -> None:
        current = self.current(record.id)
        if current is not None:
            current.deleted_at = record.created_at_us
        self.add(seq, record, tokens)

    def erase(self, ids: Sequence[str]) -> int:
        found = {version.record.id for version in self.versions if version.record.id in ids and not version.erased}
        for version in self.versions:
            if version.record.id in ids:
                version.erased = True
        return len(found)

    def find(self, id: str) -> list[Version]:
        return [version for version in self.versions if version.record.id == id and not version.erased]

    def current(self, id: str) -> Version | None:
        alive = [version for version in self.find(id) if not version.deleted]
        assert len(alive) <= 1
        return alive[0] if alive else None

    def superseded_at(self, id: str) -> float:
        """Since when the record is superseded without a break: it is as long as some version that supersedes it is not deleted. FOREVER: it stands now, whatever was before."""
        periods = [(version.record.created_at_us, version.deleted_at) for version in self.versions if version.record.supersedes == id and not version.erased]
        since = FOREVER
        while earlier := [begin for begin, end in periods if begin < since <= end]:
            since = min(earlier)
        return since

    def statistics(self, terms: Sequence[str]) -> tuple[int, int, tuple[int, ...]]:
        """Documents, their tokens, and how many hold each term: of all that are not deleted."""
        alive = [version for version in self.versions if not version.deleted]
        return len(alive), sum(len(version.tokens) for version in alive), tuple(sum(term in version.tokens for version in alive) for term in terms)

    def visible(self, version: Version, question: Question) -> bool:
        record, as_of = version.record, question.as_of_us
        now = question.now_us if as_of is None else as_of
        if version.erased or (record.expires_at_us is not None and record.expires_at_us <= now):
            return False
        if as_of is None:
            return not version.deleted and self.superseded_at(record.id) == FOREVER
        return record.created_at_us <= as_of and version.deleted_at > as_of and self.superseded_at(record.id) > as_of

    def search(self, question: Question) -> list[tuple[int, float]]:
        """(seq, score), best first, equal scores newer first."""
        documents, length, df = self.statistics(question.terms)
        average_length = length / documents if length else 1.0
        return self._best(question, lambda version: bm25(question, Counter(version.tokens), len(version.tokens), documents, average_length, df))

    def search_weights(self, question: Question, weights: Mapping[int, Mapping[str, float]]) -> list[tuple[int, float]]:
        """The same by stored weights: of each version (by seq), the weights of its terms; one that has none is not in the list."""
        return self._best(question, lambda version: dot(question, weights.get(version.seq, {})))

    def _best(self, question: Question, score_of: Callable[[Version], float]) -> list[tuple[int, float]]:
        found = []
        for version in self.versions:
            record = version.record
            if not self.visible(version, question) or not question.since_us <= record.timestamp_us <= question.until_us or not matches(question.where, record):
                continue
            score = score_of(version)
            if score == 0.0:
                continue  # no term of the query
            score = add_priors(question, score, record.timestamp_us, record.importance)
            if score >= question.min_score:
                found.append((version.seq, score))
        return sorted(found, key=lambda hit: (-hit[1], -hit[0]))[: question.k]


def dot(question: Question, weights: Mapping[str, float]) -> float:
    """The canonical score of stored weights: float64, in the order of the query's terms."""
    score = 0.0
    for term, weight in zip(question.terms, question.weights, strict=True):
        if term in weights:
            score += weight * weights[term]
    return score


def bm25(question: Question, tf: Mapping[str, int], length: int, documents: int, average_length: float, df: Sequence[int]) -> float:
    """The canonical score: float64, in the order of the query's terms."""
    base, slope = question.k1 * (1.0 - question.b), question.k1 * question.b / average_length
    score = 0.0
    for term, weight, frequency in zip(question.terms, question.weights, df, strict=True):
        if tf.get(term):
            idf = math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))
            gain = weight * idf * (question.k1 + 1.0)
            score += gain * (tf[term] / (tf[term] + (base + slope * length)))
    return score


def add_priors(question: Question, score: float, timestamp_us: int, importance: float) -> float:
    now = question.now_us if question.as_of_us is None else question.as_of_us
    if question.recency_weight:
        score += question.recency_weight * math.exp(-max(0, now - timestamp_us) / question.tau_us)
    if question.importance_weight:
        score += question.importance_weight * importance
    return score


def blocks(documents: Mapping[int, Mapping[int, int]], window: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """(term, window, its postings (document in the window, tf)) of every block of a segment, from the terms and frequencies of each document."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for doc in sorted(documents):
        for term, tf in documents[doc].items():
            found.setdefault((term, doc // window), []).append((doc % window, tf))
    return [(term, at, pairs) for (term, at), pairs in sorted(found.items())]


def skyline(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs (tf, length) that no other equals or beats in both, largest tf first."""
    distinct = set(pairs)
    return sorted((pair for pair in distinct if not any(f >= pair[0] and n <= pair[1] and (f, n) != pair for f, n in distinct)), reverse=True)
