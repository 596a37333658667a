"""Every mode answers what its oracle does: over sealing, merging, updates, deletions and records that have no vectors yet, under filters, ranges of time, priors and offsets."""

from collections.abc import Iterator
from contextlib import contextmanager
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
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.engine.policy import Limits
from agentir_ray.types import Explanation, FusedExplanation, SearchResult
from tests.conftest import LONG
from tests.naive import NaiveIndex, Question
from tests.naive_channels import Asked, NaiveChannels

ANALYZER = get_analyzer("multilingual")
DAY_US = 86_400_000_000
START_US = 400 * DAY_US
WORDS = ["river", "bank", "lisbon", "dog", "tram", "rain", "tea", "market"]
LIMITS = Limits(seal_at=8, max_unsealed=10, decent=16, largest=24)
MODES = ["bm25", "dense", "sparse", "rrf", "convex", "agent_rrf"]


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(START_US)
        encoders = HashingEncoder(dim=16), HashingSparseEncoder()
        self.memory = Memory.open(
            folder, clock=self.clock, background=False, durability="process", limits=LIMITS, encoder=encoders[0], sparse_encoder=encoders[1]
        )  # fmt: skip
        self.oracle = NaiveIndex()
        self.naive = NaiveChannels(self.oracle, *encoders)
        self.ids: list[str] = []

    def step(self, random: Random) -> None:
        self.clock.advance(random.uniform(0.0, 5.0))
        what = random.random()
        if what < 0.06 and self.ids:
            self.forget(random.choice(self.ids))
        elif what < 0.12 and self.ids:
            self.update(random.choice(self.ids), self.text(random))
        elif what < 0.2:
            self.encode()
        else:
            self.add(random)

    def text(self, random: Random) -> str:
        length = random.choice([1, 2, 3, 5, 5, 8, 300])  # the last one makes several passages
        return " ".join(random.choices(WORDS, k=length)) if random.random() < 0.95 else "..."

    def add(self, random: Random) -> None:
        fields: dict[str, Any] = {
            "text": self.text(random), "timestamp": START_US - random.randrange(90) * DAY_US, "importance": random.choice([0.0, 0.0, 0.5, 1.0]),
            "session": random.choice([None, "s1", "s2", "s3"]),
        }  # fmt: skip
        record = self.memory.add(**fields)
        self.oracle.add(record.seq, record, ANALYZER.tokens(record.text))
        self.ids.append(record.id)

    def update(self, id: str, text: str) -> None:
        record = self.memory.update(id, text=text)
        self.oracle.replace(record.seq, record, ANALYZER.tokens(record.text))

    def forget(self, id: str) -> None:
        self.memory.forget(ids=[id])
        self.oracle.erase([id])
        self.ids.remove(id)

    def encode(self) -> None:
        self.memory.wait_encoded()
        if self.oracle.versions:
            self.naive.encoded = max(version.seq for version in self.oracle.versions)


@contextmanager
def world() -> Iterator[World]:
    with TemporaryDirectory() as name:
        made = World(Path(name))
        try:
            yield made
        finally:
            made.memory.close()


def asked_of(random: Random, clock: ManualClock, mode: str) -> tuple[Asked, dict[str, Any]]:
    text = " ".join(random.choices([*WORDS, "nowhere"], k=random.randrange(1, 4))) if random.random() < 0.95 else "?"
    counted: dict[str, float] = {}
    for term in ANALYZER.tokens(text):
        counted[term] = counted.get(term, 0.0) + 1.0
    options: dict[str, Any] = {"mode": mode}
    now_us = clock.now_us()
    changed: dict[str, Any] = {}
    if random.random() < 0.3:
        options["recency"], changed = (0.01, "20d"), changed | {"recency_weight": 0.01, "tau_us": 20.0 * DAY_US}
    elif mode == "agent_rrf":
        changed |= {"recency_weight": 0.002, "tau_us": 30.0 * DAY_US}
    if random.random() < 0.3:
        options["importance"], changed = 0.02, changed | {"importance_weight": 0.02}
    elif mode == "agent_rrf":
        changed |= {"importance_weight": 0.001}
    if random.random() < 0.3:
        since_us, until_us = sorted(START_US - random.randrange(90) * DAY_US for _ in range(2))
        options |= {"since": since_us, "until": until_us}
        changed |= {"since_us": since_us, "until_us": until_us}
    if random.random() < 0.3:
        options["session"], changed = "s1", changed | {"where": {"session": {"eq": "s1"}}}
    if random.random() < 0.2:
        as_of_us = now_us - random.randrange(20_000_000)
        options["as_of"], changed = as_of_us, changed | {"as_of_us": as_of_us}
    if random.random() < 0.2:
        options["min_score"], changed = 0.02, changed | {"min_score": 0.02}
    question = Question(list(counted), list(counted.values()), k=10_000, now_us=now_us, **changed)
    asked = Asked(text, question, mode)
    if mode in ("rrf", "convex", "agent_rrf"):
        depth = random.choice([1, 3, 10, 100])
        weights = random.choice([None, {"bm25": 0.2, "sparse": 0.5, "dense": 0.3}, {"dense": 1.0}, {"sparse": 2.0, "bm25": 0.0}, {"bm25": 1, "dense": 0.1}])
        share = random.choice([0.0, 0.0, 0.3, 1.0])
        options |= {"depth": depth, "context_weight": share, "weights": weights}
        asked = asked._replace(depth=depth, context_weight=share)
        if weights is not None:
            asked = asked._replace(weights=weights)
        if mode == "convex" and random.random() < 0.3:
            options["passage_penalty"], asked = 0.05, asked._replace(passage_penalty=0.05)
    return asked, options


def found(result: SearchResult) -> list[tuple[int, float]]:
    return [(hit.record.seq, hit.score) for hit in result.hits]


def check_explained(explanation: Explanation | FusedExplanation | None, score: float, asked: Asked) -> None:
    """The sums that explanations promise, to the last bit."""
    assert explanation is not None and explanation.score == score
    if isinstance(explanation, Explanation):
        total = 0.0
        for term in explanation.terms:
            total += term.score
        assert total + explanation.recency + explanation.importance == score
        return
    own = 0.0
    for channel in explanation.channels:
        own += channel.adds
    own -= explanation.passages
    assert own == explanation.own
    if explanation.context is not None:
        own = (1.0 - asked.context_weight) * own + asked.context_weight * explanation.context
    if asked.mode == "dense":
        assert own + (explanation.recency + explanation.importance) == explanation.fused
    else:
        assert own + explanation.recency + explanation.importance == explanation.fused
    assert explanation.reranked is None and explanation.fused == score


@settings(max_examples=150 if LONG else 25, deadline=None)
@given(st.integers(0, 2**32 - 1).map(Random), st.integers(1, 70))
def test_every_mode_is_its_oracle(random: Random, steps: int) -> None:
    with world() as here:
        here.add(random)
        for _ in range(steps):
            here.step(random)
        for mode in [*MODES, "rrf", "convex"] * 2:
            if random.random() < 0.2:
                here.step(random)
            asked, options = asked_of(random, here.clock, mode)
            k, offset = random.choice([1, 3, 10, 100]), random.choice([0, 0, 2])
            asked = asked._replace(depth=max(asked.depth, k + offset))
            expected = here.naive.search(asked)
            result = here.memory.search(asked.text, k=k, offset=offset, explain=True, **options)
            assert found(result) == expected[offset : offset + k], (asked, options)
            for hit in result.hits:
                check_explained(hit.explanation, hit.score, asked)
            if mode in ("bm25", "dense", "sparse"):
                assert result.coverage.exact and result.stages == (mode,)
            else:
                assert set(result.stages) == {name for name in ("bm25", "sparse", "dense") if asked.weights.get(name)}
                cut = [name for name in result.stages if len(here.naive.listed(name, here.naive.known(name, asked))) >= asked.depth]
                assert result.coverage.exact == (not cut), result.coverage
                assert all(name in result.coverage.reason for name in cut)


def test_a_world_is_searched_alike_after_it_was_opened_again(tmp_path: Path) -> None:
    random = Random(3)
    here = World(tmp_path)
    for _ in range(60):
        here.step(random)
    here.encode()
    here.add(random)  # which has no vector before the end, and gets none by opening
    questions = [asked_of(random, here.clock, mode) for mode in MODES * 3]
    before = [here.memory.search(asked.text, **options) for asked, options in questions]
    here.memory.close()
    with Memory.open(tmp_path, clock=here.clock, background=False, limits=LIMITS, encoder=here.naive.dense, sparse_encoder=here.naive.sparse) as memory:
        after = [memory.search(asked.text, **options) for asked, options in questions]
    assert [found(result) for result in after] == [found(result) for result in before]
    with Memory.open(tmp_path, clock=here.clock, read_only=True, encoder=here.naive.dense, sparse_encoder=here.naive.sparse) as memory:
        assert [found(memory.search(asked.text, **options)) for asked, options in questions] == [found(result) for result in before]


@pytest.mark.parametrize("mode", MODES)
def test_a_memory_without_records_finds_nothing(tmp_path: Path, mode: str) -> None:
    here = World(tmp_path)
    record = here.memory.add("river")
    here.memory.forget(ids=[record.id])
    assert here.memory.search("river", mode=mode).hits == ()
    here.memory.wait_encoded()
    assert here.memory.search("river", mode=mode).hits == ()
    here.memory.close()
