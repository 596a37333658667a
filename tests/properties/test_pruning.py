"""What the search leaves out never belonged to the answer: statistics, weights and corpora at their worst, against scoring every document.

A score is compared to its last bit. The other questions that a snapshot answers (`lexical.asking`, `lexical.search_many`) are held to the same oracle.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from agentir_ray.errors import InvalidInputError
from agentir_ray.lexical.asking import bounds, count_before, scores
from agentir_ray.lexical.document import IndexedDocument
from agentir_ray.lexical.filters import EVERYTHING, parse_filter
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.query import Bm25, Priors, Query, Scoring, Statistics, inverse_document_frequencies, inverse_document_frequency, scoring
from agentir_ray.lexical.search import Visibility, top_k
from agentir_ray.lexical.search_many import top_k_many
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US
from tests.conftest import LONG
from tests.naive import Question, bm25
from tests.properties.index_world import write_segment
from tests.properties.table_world import draft_of_table, word

Array = npt.NDArray[Any]
BITMAPS = 2_100  # documents from which a segment has bitmaps
WINDOWS = 70_000  # documents in two windows
KS = [1, 2, 10, 1_000, 10_000]


class Asked(NamedTuple):
    """A question to a snapshot. `created` bounds created_at, as the filter of the query; None: no filter."""

    terms: Sequence[int]
    weights: Sequence[float]
    k: int = 10
    statistics: Statistics | None = None  # None: the snapshot's
    bm25: Bm25 = Bm25()
    since: int = MIN_TIME_US
    until: int = MAX_TIME_US
    as_of: int | None = None
    created: tuple[int, int] | None = None
    priors: Priors = Priors()
    min_score: float = -math.inf


@dataclass
class World:
    """Documents in time order (row d of tf is document d, created at its timestamp) and the index that holds them."""

    tf: Array
    length: Array
    seq: Array
    timestamp: Array
    importance: Array
    expires_at: Array
    hidden: Array  # deleted or superseded, at every `as_of`
    index: Index

    @property
    def now(self) -> int:
        return int(self.timestamp[-1]) if len(self.timestamp) else 0

    def delete(self, docs: Array) -> None:
        """As the engine does; the directory of terms starts anew."""
        with self.index.lock:
            self.index.seq += 1
            for part in self.index.parts:
                here = np.flatnonzero(np.isin(part.column("seq"), self.seq[docs]))
                if len(here):
                    part.delete(here, self.index.seq, 0)
            self.index.install([])
        self.hidden[docs] = True

    def supersede(self, docs: Array) -> None:
        """Statistics go on counting them."""
        with self.index.lock:
            self.index.seq += 1
            for part in self.index.parts:
                for doc in np.flatnonzero(np.isin(part.column("seq"), self.seq[docs])).tolist():
                    part.overlay.supersede(doc, self.index.seq, 0)
        self.hidden[docs] = True

    def merge(self, path: Path) -> None:
        """All segments into one file, which keeps what is hidden."""
        segments = self.index.segments
        merged = write_segment(draft_segments(segments, "n", "f"), path)
        with self.index.lock:
            self.index.install(segments, merged)

    def scored(self, asked: Asked, scores_by: Scoring) -> tuple[Array, Array]:
        """(documents that are the query's to see, their scores), whatever k and min_score."""
        score, matched = np.zeros(len(self.tf)), np.zeros(len(self.tf), bool)
        for term, gain in zip(asked.terms, scores_by.gain.tolist(), strict=True):
            holds = np.flatnonzero(self.tf[:, term]) if gain > 0 else np.empty(0, np.int64)
            tf = self.tf[holds, term].astype(np.float64)
            score[holds] += gain * (tf / (tf + (scores_by.base + scores_by.slope * self.length[holds])))
            matched[holds] = True
        now = self.now if asked.as_of is None else asked.as_of
        seen = matched & ~self.hidden & (self.timestamp >= asked.since) & (self.timestamp <= asked.until) & (self.expires_at > now)
        if asked.as_of is not None:
            seen &= self.timestamp <= asked.as_of
        if asked.created is not None:
            seen &= (self.timestamp >= asked.created[0]) & (self.timestamp < asked.created[1])
        docs = np.flatnonzero(seen)
        score = score[docs]
        if asked.priors.recency_weight:
            ages = np.maximum(0, now - self.timestamp[docs]).tolist()
            score = score + asked.priors.recency_weight * np.array([math.exp(-age / asked.priors.tau_us) for age in ages])
        if asked.priors.importance_weight:
            score = score + asked.priors.importance_weight * self.importance[docs]
        return docs, score


def make_world(
    tf: Array, folder: Path, length: Array | None = None, cuts: Sequence[int] = (), buffered: int = 0, importance: Array | None = None, expires_at: Array | None = None,
    seed: int = 0, spread: bool = False,
) -> World:  # fmt: skip
    """Segments cut at these documents, and the last `buffered` documents in two buffers; `spread`: each document goes to any segment, so that their times overlap."""
    documents, rng = len(tf), np.random.default_rng(seed)
    sealed = documents - buffered
    timestamp = np.cumsum(rng.random(documents) < 0.75).astype(np.int64)
    seq = np.concatenate([rng.permutation(sealed), np.arange(sealed, documents)]).astype(np.int64) + 1
    length = tf.sum(axis=1).astype(np.int64) if length is None else length
    importance = np.zeros(documents) if importance is None else importance
    expires_at = np.full(documents, NEVER_US) if expires_at is None else expires_at
    in_time = np.lexsort((seq[:sealed], timestamp[:sealed]))
    seq[:sealed] = seq[in_time]
    part = rng.integers(0, len(cuts) + 1, sealed) if spread else np.searchsorted(cuts, np.arange(sealed), side="right")
    segments: list[Segment] = []
    for number in range(len(cuts) + 1):
        docs = np.flatnonzero(part == number)
        draft = draft_of_table(tf[docs], length[docs], seq[docs], timestamp[docs], importance[docs], expires_at[docs])
        segment = write_segment(draft, folder / f"{number}.segment")
        if segment is not None:
            segments.append(segment)
    index = Index(segments, sealed)
    for doc in range(sealed, documents):
        terms = np.flatnonzero(tf[doc])
        at = int(timestamp[doc])
        words = tuple(map(word, terms.tolist()))
        index.add(
            int(seq[doc]), IndexedDocument(str(doc), at, at, int(expires_at[doc]), float(importance[doc]), None, int(length[doc]), words, tf[doc, terms].astype(np.int32), [], b"")
        )
        index.seq = int(seq[doc])
        if doc == sealed + buffered // 2:
            index.freeze()
    return World(tf, length, seq, timestamp, importance, expires_at, np.zeros(documents, bool), index)


def check(world: World, asked: Asked, rng: np.random.Generator) -> None:
    """The best k, in any order of the segments; scores of what was found; bounds; and places."""
    expression = EVERYTHING if asked.created is None else parse_filter({"created_at": {"gte": asked.created[0], "lt": asked.created[1]}})
    snapshot = world.index.snapshot(tuple(map(word, asked.terms)), expression)
    query = Query(tuple(map(word, asked.terms)), tuple(asked.weights))
    by = scoring(query, asked.statistics or snapshot.statistics, asked.bm25)
    now = world.now if asked.as_of is None else asked.as_of
    visibility = Visibility(now, NEVER_US - 1 if asked.as_of is None else asked.as_of, asked.since, asked.until)

    docs, score = world.scored(asked, by)
    order = np.lexsort((-world.seq[docs], -score))
    docs, score, seq = docs[order], score[order], world.seq[docs[order]]
    enough = int(np.count_nonzero(score >= asked.min_score))
    expected = list(zip(seq[: min(asked.k, enough)].tolist(), score.tolist(), strict=False))

    best = top_k(snapshot, by, asked.k, visibility, expression, asked.priors, asked.min_score)
    assert [(hit.seq, hit.score) for hit in best.found] == expected, asked
    if len(snapshot.segments) > 1:
        shuffled = snapshot._replace(newest_first=rng.permutation(len(snapshot.segments)))
        again = top_k(shuffled, by, asked.k, visibility, expression, asked.priors, asked.min_score)
        assert [(hit.seq, hit.score) for hit in again.found] == expected, asked
        one_by_one = top_k(snapshot, by, asked.k, visibility, expression, asked.priors, asked.min_score, expired=lambda: False)
        assert [(hit.seq, hit.score) for hit in one_by_one.found] == expected, asked

    assert np.array_equal(scores(snapshot, by, best.ref[::-1], visibility, asked.priors), best.score[::-1])
    limits = bounds(snapshot, by, visibility, asked.priors)
    for segment, limit in zip(snapshot.segments, limits.tolist(), strict=True):
        assert score[np.isin(seq, segment.array("seq"))].max(initial=-math.inf) <= limit, asked
    for _ in range(3):
        if len(seq):
            place = int(rng.integers(len(seq)))
            asked_score, asked_seq = float(score[place]), int(seq[place])
            assert count_before(snapshot, by, asked_score, asked_seq, visibility, expression, asked.priors) == place, asked
        between = float(rng.choice([-math.inf, 0.0, math.inf, score.mean() if len(score) else 1.0]))
        before = int(np.count_nonzero((score > between) | ((score == between) & (seq > 5))))
        assert count_before(snapshot, by, between, 5, visibility, expression, asked.priors) == before, asked


def some_statistics(rng: np.random.Generator, world: World, terms: Sequence[int]) -> Statistics | None:
    """As they might be long after sealing, or on another host."""
    if rng.random() < 0.3:
        return None
    documents = max(1, int(len(world.tf) * rng.choice([0.1, 1, 10])))
    length = int(world.length.mean() * documents * rng.choice([0.001, 0.1, 0.5, 1, 2, 10, 1_000]))
    df = [int(rng.choice([0, 1, min(documents, np.count_nonzero(world.tf[:, term])), documents // 2, documents])) for term in terms]
    return Statistics(documents, length, tuple(df))


def some_weights(rng: np.random.Generator, count: int) -> list[float]:
    kind = rng.integers(5)
    if kind == 0:
        return (10.0 ** rng.uniform(-30, 30, count)).tolist()
    if kind == 1:
        return rng.choice([1e-30, 1.0, 1e30], count).tolist()
    if kind == 2:
        return rng.choice([1.0, 0.0, -1.0, -1e30], count).tolist()
    return rng.choice([1.0, 1.0, 2.0], count).tolist()


def some_asked(rng: np.random.Generator, world: World) -> Asked:
    terms = rng.choice(world.tf.shape[1], int(rng.integers(1, min(8, world.tf.shape[1]) + 1)), replace=False).tolist()
    last, documents = world.now, len(world.tf)
    since, until = MIN_TIME_US, MAX_TIME_US
    if rng.random() < 0.4:
        since, until = sorted(rng.integers(-2, last + 3, 2).tolist())
    created = None
    if rng.random() < 0.3:
        one = int(world.timestamp[rng.integers(documents)])
        created = [(0, 0), (one, one + 1), (0, last + 1), tuple(sorted(rng.integers(0, last + 2, 2).tolist()))][rng.integers(4)]
    asked = Asked(
        terms,
        some_weights(rng, len(terms)),
        int(rng.choice([*KS, 100])),
        some_statistics(rng, world, terms),
        Bm25(float(rng.choice([0.0, 0.9, 0.9, 1.2, 100.0, 1e6, 1e-6])), float(rng.choice([0.0, 0.4, 0.4, 0.75, 1.0]))),
        since,
        until,
        int(rng.integers(0, last + 2)) if rng.random() < 0.2 else None,
        created,
        Priors(float(rng.choice([0.0, 0.5, 1e-9, 50.0])), float(rng.choice([1.0, last / 3 + 1])), float(rng.choice([0.0, 2.0]))) if rng.random() < 0.3 else Priors(),
    )
    return asked._replace(min_score=some_threshold(rng, world, asked))


def some_threshold(rng: np.random.Generator, world: World, asked: Asked) -> float:
    """None, an existing score, or one just above it: somewhere near the k-th place."""
    if rng.random() < 0.5:
        return -math.inf
    statistics = asked.statistics or world.index.snapshot(tuple(map(word, asked.terms))).statistics
    _, score = world.scored(asked, scoring(Query(tuple(map(word, asked.terms)), tuple(asked.weights)), statistics, asked.bm25))
    if not len(score):
        return float(rng.choice([0.0, 1.0, math.inf]))
    chosen = float(np.sort(score)[::-1][min(len(score) - 1, int(asked.k * rng.choice([0.5, 1.0, 1.5])))])
    return chosen if rng.random() < 0.7 else math.nextafter(chosen, math.inf)


def some_table(rng: np.random.Generator, documents: int, terms: int = 10) -> tuple[Array, Array]:
    """(tf, length): a term in nearly every document, rare ones, some in one place only, tf and lengths beyond what classes tell apart, or all alike."""
    share = rng.choice([0.05, 0.3, 0.95]) / np.arange(1, terms + 1)
    share[rng.integers(terms)] = 1.0
    kind = rng.integers(3)
    occurs = rng.random((documents, terms)) < share
    if kind == 0:
        tf = occurs.astype(np.int32)  # ties everywhere
        return tf, np.full(documents, terms, np.int64)
    tf = occurs * rng.geometric(0.6, (documents, terms)).astype(np.int32)
    rows = rng.integers(0, documents, max(1, documents // 50))
    tf[rows, rng.integers(0, terms, len(rows))] = rng.choice([14, 15, 16, 17, 255, 256, 3_000], len(rows))
    tf[documents // 2 :, rng.integers(terms)] = 0
    tf[: documents // 3, rng.integers(terms)] = 0
    length = tf.sum(axis=1).astype(np.int64)
    if kind == 2:
        length = length + rng.choice([0, 0, 1, 50, 4_000, 4_090, 4_095, 4_096, 5_000, 200_000], documents)
    return tf, length


def some_world(rng: np.random.Generator, folder: Path, documents: int) -> World:
    tf, length = some_table(rng, documents)
    cuts = sorted(rng.integers(0, documents, int(rng.choice([0, 0, 1, 3, 8]))).tolist())
    importance = np.where(rng.random(documents) < 0.1, rng.random(documents), 0.0) if rng.random() < 0.5 else None
    expires_at = np.where(rng.random(documents) < 0.1, rng.integers(0, documents, documents), NEVER_US) if rng.random() < 0.3 else None
    buffered = int(rng.choice([0, 0, 1, min(documents, 200)]))
    world = make_world(tf, folder, length, cuts, buffered, importance, expires_at, int(rng.integers(1 << 30)), bool(rng.random() < 0.3))
    if rng.random() < 0.5:
        world.delete(np.flatnonzero(rng.random(documents) < rng.choice([0.01, 0.5, 0.99])))
    if rng.random() < 0.3:
        world.supersede(np.flatnonzero(rng.random(documents) < rng.choice([0.001, 0.1])))
    if rng.random() < 0.3 and world.index.segments:
        world.merge(folder / "merged.segment")
        if rng.random() < 0.5:
            world.delete(np.flatnonzero((rng.random(documents) < 0.01) & ~world.hidden))
    return world


@pytest.mark.parametrize("seed", range(2_000 if LONG else 60))
def test_any_world(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    documents = int(rng.choice([1, 7, 300, BITMAPS, 6_000])) if seed % 20 else WINDOWS
    world = some_world(rng, tmp_path, documents)
    for _ in range(10):
        check(world, some_asked(rng, world), rng)


def test_the_oracle() -> None:
    """Its arithmetic over arrays is the canonical function."""
    rng = np.random.default_rng(0)
    tf, length = some_table(rng, 50)
    world = World(tf, length, np.arange(50), np.arange(50), np.zeros(50), np.full(50, NEVER_US), np.zeros(50, bool), Index([], 0))
    asked = Asked([3, 1, 7], [1.0, 2.0, 0.5], bm25=Bm25(1.2, 0.75))
    statistics = Statistics(90, 1_000, (3, 50, 17))
    by = scoring(Query(("a", "b", "c"), tuple(asked.weights)), statistics, asked.bm25)
    question = Question(["a", "b", "c"], asked.weights, k1=1.2, b=0.75)
    for doc, score in zip(*world.scored(asked, by), strict=True):
        found = dict(zip(question.terms, tf[doc, asked.terms].tolist(), strict=True))
        assert score == bm25(question, found, int(length[doc]), 90, 1_000 / 90, statistics.df)


@pytest.mark.parametrize("documents", [300, BITMAPS, WINDOWS])
def test_every_document_equal(documents: int, tmp_path: Path) -> None:
    """Newest first, at every k, and no bound may cut a tie."""
    rng = np.random.default_rng(documents)
    world = make_world(np.ones((documents, 3), np.int32), tmp_path, cuts=[documents // 2], buffered=5)
    for k in KS:
        for statistics in (None, Statistics(documents, 1, (1, 1, 1)), Statistics(documents, 1_000 * documents, (documents, 1, 2))):
            check(world, Asked([0, 1, 2], [1.0, 0.7, 0.1], k, statistics), rng)
    score = world.scored(Asked([0], [1.0]), scoring(Query(("t0",), (1.0,)), Statistics(documents, 3 * documents, (documents,)), Bm25()))[1][0]
    for min_score in (score, math.nextafter(score, 9)):
        check(world, Asked([0], [1.0], 10, Statistics(documents, 3 * documents, (documents,)), min_score=min_score), rng)


@pytest.mark.parametrize("documents", [300, BITMAPS, WINDOWS])
def test_everything_deleted_but_one(documents: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(documents)
    tf, length = some_table(rng, documents)
    world = make_world(tf, tmp_path, length, cuts=[documents // 3, documents // 2])
    holders = np.flatnonzero(tf.any(axis=1))
    world.delete(np.setdiff1d(np.arange(documents), holders[[len(holders) // 2]]))
    for k in KS:
        check(world, Asked(list(range(10)), [1.0] * 10, k), rng)
        check(world, Asked([0], [1.0], k, Statistics(documents, int(length.sum()), (documents,))), rng)


def test_average_length_and_df_move(tmp_path: Path) -> None:
    """From what the segments were sealed with: ten times either way, every df from one to all."""
    rng = np.random.default_rng(5)
    tf, length = some_table(rng, 20_000)
    world = make_world(tf, tmp_path, length, cuts=[9_000, 15_000])
    total = int(length.sum())
    for factor in (0.01, 0.1, 0.5, 2, 10, 100):
        for df in (1, 200, 20_000):
            for k in (1, 10, 1_000):
                terms = rng.choice(10, 4, replace=False).tolist()
                check(world, Asked(terms, [1.0] * 4, k, Statistics(20_000, int(total * factor), (df, 1, 10_000, 20_000 // df))), rng)


@pytest.mark.parametrize("k1", [0.0, 1e-6, 0.9, 1_000.0, 1e6])
@pytest.mark.parametrize("b", [0.0, 0.4, 1.0])
def test_any_k1_and_b(k1: float, b: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(int(10 * b))
    tf, length = some_table(rng, 5_000)
    world = make_world(tf, tmp_path, length, cuts=[2_500], buffered=50)
    for k in (1, 10, 1_000):
        check(world, Asked([0, 3, 5, 9], [1.0] * 4, k, bm25=Bm25(k1, b)), rng)


def uneven(rng: np.random.Generator, documents: int, good: Array) -> tuple[Array, Array]:
    """(tf, length) where good documents may lie together, as in the order of time or of sources: all have both terms, the good in a short text that repeats them."""
    tf = np.ones((documents, 2), np.int32)
    tf[good] = rng.integers(6, 12, (len(good), 2))
    length = rng.integers(50, 200, documents)
    length[good] = rng.integers(20, 30, len(good))
    return tf, length


@pytest.mark.parametrize("k", [100, 1_000])
@pytest.mark.parametrize("share", [0.1, 0.4, 0.99, 1.0, 3.0])
def test_the_best_lie_at_the_beginning(k: int, share: float, tmp_path: Path) -> None:
    """All the good documents are among the first of a big segment, a tenth of k to three times k of them: they say nothing of the rest, where the others of the k best are."""
    rng = np.random.default_rng(k)
    good = rng.choice(4_000, int(k * share), replace=False)
    world = make_world(*_with(uneven(rng, WINDOWS, good), tmp_path))
    for asked in (
        Asked([0, 1], [1.0, 1.0], k),
        Asked([1], [1.0], k),
        Asked([0, 1], [1.0, 1.0], k, since=world.timestamp[3_000]),
        Asked([0, 1], [1.0, 1.0], k, priors=Priors(importance_weight=1.0)),
        Asked([0, 1], [1.0, 1.0], k, priors=Priors(5.0, world.now / 4)),
        Asked([0, 1], [1.0, 1.0], k, created=(0, world.now // 2)),
    ):
        check(world, asked, rng)


def _with(table: tuple[Array, Array], folder: Path) -> tuple[Array, Path, Array]:
    return table[0], folder, table[1]


@pytest.mark.parametrize("k", [100, 1_000])
def test_the_best_lie_in_one_segment_or_the_buffers(k: int, tmp_path: Path) -> None:
    """The newest of many segments, so that others may be skipped or not; or the buffers, which are searched first, so that there are k results before any segment, or nearly."""
    rng = np.random.default_rng(k)
    documents = 30_000
    cuts = list(range(1_500, documents, 1_500))
    for folder, good, buffered in (
        ("newest", documents - 1_500 + rng.choice(1_500, k // 2, replace=False), 0),
        ("buffers", documents - 1 - np.arange(k // 2), k // 2),
        ("full", documents - 1 - np.arange(k + 10), k + 10),
        ("both", documents - 1 - np.arange(k), k // 2),
    ):
        (tmp_path / folder).mkdir()
        tf, length = uneven(rng, documents, good)
        world = make_world(tf, tmp_path / folder, length, cuts=cuts, buffered=buffered)
        for priors in (Priors(), Priors(3.0, world.now / 10)):
            check(world, Asked([0, 1], [1.0, 1.0], k, priors=priors), rng)
            check(world, Asked([0], [1.0], k, priors=priors), rng)


@pytest.mark.parametrize("seed", range(300 if LONG else 6))
def test_many_queries_are_each_the_same(seed: int, tmp_path: Path) -> None:
    """A batch answers what `top_k` answers each of its queries, whatever the number of threads."""
    rng = np.random.default_rng(seed)
    world = some_world(rng, tmp_path, int(rng.choice([1, 300, 6_000])) if seed % 6 else WINDOWS)
    queries = []
    for _ in range(int(rng.integers(0, 60))):
        terms = rng.choice(12, int(rng.integers(0, 8)), replace=False).tolist()
        queries.append(Query(tuple(map(word, terms)), tuple(some_weights(rng, len(terms)))))
    for _ in range(4):
        asked = some_asked(rng, world)
        expression = EVERYTHING if asked.created is None else parse_filter({"created_at": {"gte": asked.created[0], "lt": asked.created[1]}})
        visibility = Visibility(world.now, since_us=asked.since, until_us=asked.until)
        threads = int(rng.choice([1, 2, 5]))
        many = top_k_many(world.index, queries, asked.k, visibility, asked.bm25, expression, asked.priors, asked.min_score, threads)
        assert many.score.shape[0] == len(queries) and many.score.shape[1] <= asked.k
        for i, query in enumerate(queries):
            snapshot = world.index.snapshot(query.terms, expression)
            single = top_k(snapshot, scoring(query, snapshot.statistics, asked.bm25), asked.k, visibility, expression, asked.priors, asked.min_score)
            assert many.found(i) == single.found, (i, asked)


def test_what_a_batch_refuses() -> None:
    index, query = Index([], 0), Query(("a",), (1.0,))
    anything = Visibility(0)
    assert top_k_many(index, [query], 10, anything).found(0) == []
    assert len(top_k_many(index, [], 10, anything, threads=3).size) == 0
    refused: list[dict[str, Any]] = [{"k": 0}, {"k": 10_001}, {"k": 1.5}, {"k": True}, {"threads": 0}, {"threads": 2.0}, {"min_score": math.nan}]
    refused += [{"bm25": Bm25(-1.0)}, {"bm25": Bm25(1.0, 1.1)}, {"bm25": Bm25(math.nan)}, {"priors": Priors(-1.0)}, {"priors": Priors(1.0, 0.0)}]
    refused += [{"queries": [query, Query(("a",), ())]}, {"queries": [Query(("a", "b"), (1.0, math.inf))]}, {"queries": [Query(("a",), (math.nan,))]}]
    refused += [{"queries": [Query(("a",), (weight,))]} for weight in (1e101, -1e101, 1e-320)]
    for wrong in refused:
        with pytest.raises(InvalidInputError, match=str(next(iter(wrong))).replace("queries", "weight")):
            top_k_many(index, **{"queries": [query], "k": 10, "visibility": anything, **wrong})


def test_refs_of_nothing(tmp_path: Path) -> None:
    world = make_world(np.ones((10, 1), np.int32), tmp_path, buffered=4)
    snapshot = world.index.snapshot(("t0",))
    by = scoring(Query(("t0",), (1.0,)), snapshot.statistics, Bm25())
    for ref in (6, 1 << 32 | 3, 3 << 32, -1):
        with pytest.raises(IndexError):
            scores(snapshot, by, np.array([0, ref]), Visibility(0))
    with pytest.raises(ValueError, match="NaN"):
        count_before(snapshot, by, math.nan, 0, Visibility(0))


def test_frequencies_of_many_terms_at_once() -> None:
    df = np.random.default_rng(0).integers(0, 10**7, 20_000)
    assert inverse_document_frequencies(10**7, df).tolist() == [inverse_document_frequency(10**7, n) for n in df.tolist()]
