"""What a search covers is what it says: `exact` and `auto` are the oracle over all partitions, a probability is the oracle over the partitions that it names.

Records fall into many partitions, late and out of order, some after the query's now; sealing, merging and cutting go on between; recency and importance are terms of the score.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray import Memory
from agentir_ray.analysis import get_analyzer
from agentir_ray.clock import ManualClock
from agentir_ray.engine.by_words import ByWords
from agentir_ray.engine.covering import rank
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.request import make_request
from agentir_ray.lexical.query import Bm25, parse_query
from agentir_ray.types import SearchResult
from tests.conftest import LONG
from tests.naive import FOREVER, NaiveIndex, Question

ANALYZER = get_analyzer("multilingual")
WIDTH_US = 7 * 86_400_000_000
NOW_US = 30 * WIDTH_US + 12_345
WORDS = ["river", "bank", "lisbon", "dog", "tram", "rain"]
ASKED: dict[str, Any] = {
    "offset": 0, "mode": "auto", "since": None, "until": None, "where": None, "session": None, "role": None, "as_of": None, "recency": None, "importance": None,
    "min_score": None, "deadline_ms": None, "max_tokens": None, "explain": False,
}  # fmt: skip
LIMITS = Limits(seal_at=8, max_unsealed=10, decent=16, largest=24)


class World:
    """A memory, and the oracle of the same records."""

    def __init__(self, folder: Path, random: Random, records: int, ahead: bool = True) -> None:
        self.clock = ManualClock(NOW_US)
        self.memory = Memory.open(folder, clock=self.clock, background=False, durability="process", limits=LIMITS)
        self.oracle = NaiveIndex()
        for number in range(records):
            self.add(number, random, ahead)

    def add(self, number: int, random: Random, ahead: bool) -> None:
        fields = {
            "id": f"r{number}",
            "text": " ".join(random.choices(WORDS, k=random.randrange(1, 6))),
            "timestamp": NOW_US - int(random.expovariate(1 / 4) * WIDTH_US) + random.choice([0, 0, 0, ahead * 3 * WIDTH_US]),
            "importance": random.choice([0.0, 0.0, 0.5, 1.0]),
        }
        record = self.memory.add(**fields)  # type: ignore[arg-type]
        self.oracle.add(record.seq, record, ANALYZER.tokens(record.text))

    def buckets(self) -> list[int]:
        """The non-empty partitions, newest first."""
        return sorted({version.record.timestamp_us // WIDTH_US for version in self.oracle.versions if version.record.timestamp_us // WIDTH_US <= NOW_US // WIDTH_US}, reverse=True)

    def ahead(self) -> int:
        """How many partitions lie after now: they are searched whatever the coverage, and have no age."""
        return len({version.record.timestamp_us // WIDTH_US for version in self.oracle.versions} - set(self.buckets()))

    def teach(self, ages: Iterator[int] | list[int]) -> None:
        """Feedback on exact searches: answers of these ages."""
        buckets = self.buckets()
        of_bucket = {bucket: [version.record.id for version in self.oracle.versions if version.record.timestamp_us // WIDTH_US == bucket] for bucket in buckets}
        result = self.memory.search("river", coverage="exact")
        for age in ages:
            self.memory.feedback(of_bucket[buckets[min(age, len(buckets) - 1)]][:1], result.query_id)

    def close(self) -> None:
        self.memory.close()


@pytest.fixture
def random() -> Random:
    return Random(7)


def question_of(random: Random, k: int) -> tuple[Question, dict[str, object]]:
    terms = random.sample(WORDS, random.randrange(1, 4))
    recency, importance = random.choice([(0.0, 1.0), (0.4, 2.0 * WIDTH_US), (3.0, 5.0 * WIDTH_US)]), random.choice([0.0, 0.3, 2.0])
    min_score = random.choice([-FOREVER, -FOREVER, 0.5, 2.0])
    question = Question(terms, [1.0] * len(terms), k=k, now_us=NOW_US, recency_weight=recency[0], tau_us=recency[1], importance_weight=importance, min_score=min_score)
    options: dict[str, object] = {"k": k, "importance": importance or None, "min_score": None if min_score == -FOREVER else min_score}
    if recency[0]:
        options["recency"] = (recency[0], recency[1] / 1e6)
    return question, options


def found(result: SearchResult) -> list[tuple[int, float]]:
    return [(hit.record.seq, hit.score) for hit in result.hits]


def normalised(question: Question) -> Question:
    """The oracle matches the analyzer's terms."""
    terms = [ANALYZER.tokens(term)[0] for term in question.terms]
    return question._replace(terms=terms)


@settings(max_examples=60 if LONG else 15, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(5, 70))
def test_exact_and_auto_are_the_oracle_over_all_partitions(random: Random, records: int) -> None:
    with TemporaryDirectory() as name:
        world = World(Path(name), random, records)
        buckets = world.buckets()
        for _ in range(8):
            question, options = question_of(random, random.choice([1, 3, 10, 100]))
            expected = world.oracle.search(normalised(question))
            text = " ".join(question.terms)
            for coverage in ("exact", "auto", 0.9):
                result = world.memory.search(text, coverage=coverage, **options)  # type: ignore[arg-type]
                assert found(result) == expected
                told = result.coverage
                assert told.exact and told.mass == 1.0 and told.not_searched == 0 and told.mode == str(coverage)
                assert told.searched + told.skipped_by_bound == len(buckets) + world.ahead()
            assert "no recency prior is supported" in result.coverage.reason
        world.close()


@settings(max_examples=60 if LONG else 12, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(30, 90))
def test_a_probability_searches_the_newest_partitions_alone(random: Random, records: int) -> None:
    with TemporaryDirectory() as name:
        world = World(Path(name), random, records)
        world.teach([0 if random.random() < 0.9 else 1 for _ in range(80)])
        buckets = world.buckets()
        for _ in range(8):
            question, options = question_of(random, random.choice([1, 3, 10, 100]))
            question = normalised(question)
            result = world.memory.search(" ".join(question.terms), coverage=0.9, **options)  # type: ignore[arg-type]
            told = result.coverage
            hottest = len(buckets) - told.not_searched
            assert told.searched + told.skipped_by_bound == hottest + world.ahead()
            since_us = buckets[hottest - 1] * WIDTH_US
            assert found(result) == world.oracle.search(question if told.exact else question._replace(since_us=since_us))
            assert told.exact == (hottest == len(buckets))
            if not told.exact:
                assert len(result.hits) == question.k, "fewer than k always widen"
                assert told.mass is not None and 0.9 <= told.mass < 1.0 and str(hottest) in told.reason
            exact = world.memory.search(" ".join(question.terms), coverage="exact", **options)  # type: ignore[arg-type]
            assert found(exact) == world.oracle.search(question) and exact.coverage.exact
        world.close()


@settings(max_examples=30 if LONG else 8, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(20, 60))
def test_an_explicit_range_of_time_says_all(random: Random, records: int) -> None:
    with TemporaryDirectory() as name:
        world = World(Path(name), random, records)
        world.teach([0] * 70)
        for _ in range(6):
            question, options = question_of(random, 5)
            since_us, until_us = sorted(NOW_US - random.randrange(12 * WIDTH_US) for _ in range(2))
            question = normalised(question)._replace(since_us=since_us, until_us=until_us)
            for coverage in (0.9, "auto", "exact"):
                result = world.memory.search(" ".join(question.terms), coverage=coverage, since=since_us, until=until_us, **options)  # type: ignore[arg-type]
                assert found(result) == world.oracle.search(question)
                assert result.coverage.exact and result.coverage.not_searched == 0
        world.close()


def test_a_deadline_keeps_what_was_found_before_widening(tmp_path: Path, random: Random) -> None:
    world = World(tmp_path, random, 80, ahead=False)
    world.teach([0] * 100)
    request = make_request("river", NOW_US, **{**ASKED, "k": 60, "coverage": 0.9})
    with world.memory._store.namespace(world.memory.namespace) as namespace:
        query = parse_query(namespace.analyzer, "river")
        whole = rank(namespace, ByWords(query, Bm25(), request), request, None)
        assert whole.hottest == whole.partitions.total
        for looks in range(1, 30):
            asked = iter(range(looks))
            best = rank(namespace, ByWords(query, Bm25(), request), request, lambda asked=asked: next(asked, None) is None)
            since_us = best.partitions.since_us(best.hottest)
            if not best.left.any():
                expected = world.oracle.search(Question(["river"], [1.0], k=60, now_us=NOW_US, since_us=since_us))
                assert [(found.seq, found.score) for found in best.best.found] == expected
    world.close()


def test_a_flat_life_is_searched_whole(tmp_path: Path, random: Random) -> None:
    world = World(tmp_path, random, 80)
    world.teach([random.randrange(len(world.buckets())) for _ in range(150)])
    result = world.memory.search("river", coverage=0.95)
    assert result.coverage.exact and "no recency prior is supported" in result.coverage.reason
    world.close()


def test_what_was_learnt_outlives_the_process(tmp_path: Path, random: Random) -> None:
    world = World(tmp_path, random, 80)
    world.teach([0] * 100)
    before = world.memory.search("river bank", k=1, coverage=0.9).coverage
    assert not before.exact
    world.close()
    with Memory.open(tmp_path, clock=world.clock, background=False, limits=LIMITS) as memory:
        assert memory.search("river bank", k=1, coverage=0.9).coverage == before
    with Memory.open(tmp_path, clock=world.clock, read_only=True) as memory:
        assert memory.search("river bank", k=1, coverage=0.9).coverage == before


def test_searches_of_everything_teach_by_themselves(tmp_path: Path, random: Random) -> None:
    world = World(tmp_path, random, 80, ahead=False)
    newest = max(version.record.timestamp_us for version in world.oracle.versions)
    for number in range(6):
        world.memory.add(f"river answer{number}", timestamp=newest - number)
    for i in range(4_000):
        world.memory.search(f"answer{i % 6} river", k=1 + i % 2)
    result = world.memory.search("river", k=1, coverage=0.9)
    assert not result.coverage.exact and result.coverage.not_searched > 0
    for i in range(2_000):  # and goes on learning when only a part is searched
        world.memory.search(f"answer{i % 6}", k=1, coverage=0.9)
    assert math.isclose(world.memory.search("river", k=1, coverage=0.9).coverage.mass or 0.0, result.coverage.mass or 0.0, rel_tol=0.2)
    world.close()
