"""Deadlines and encoders: nobody waits longer for a channel than its deadline, what was late is named, and the words always answer."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from agentir_ray import Memory
from agentir_ray.clock import SystemClock
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.encoders.protocol import Floats, LateVectors, SparseVector
from agentir_ray.engine.query_encoding import AT_ONCE, QueryEncodings, TooLateError

LONG_MS = 50_000.0


class Gate:
    """Queries wait until it is open; `asked` counts the calls."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.asked = 0

    def pass_through(self) -> None:
        self.asked += 1
        assert self.open.wait(60)


class SlowEncoder(HashingEncoder):
    def __init__(self, gate: Gate) -> None:
        super().__init__(16)
        self.gate = gate

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        self.gate.pass_through()
        return super().encode_queries(texts)

    def encode_queries_late(self, texts: Sequence[str]) -> LateVectors:
        self.gate.pass_through()
        return super().encode_queries_late(texts)


class SlowSparseEncoder(HashingSparseEncoder):
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        self.gate.pass_through()
        return super().encode_queries(texts)


@pytest.fixture
def gates() -> Iterator[tuple[Gate, Gate]]:
    """Of the dense and of the sparse encoder; open at the end, so that no thread is left."""
    both = Gate(), Gate()
    yield both
    for gate in both:
        gate.open.set()


@pytest.fixture
def memory(tmp_path: Path, gates: tuple[Gate, Gate]) -> Iterator[Memory]:
    encoders = SlowEncoder(gates[0]), SlowSparseEncoder(gates[1])
    with Memory.open(tmp_path, background=False, clock=SystemClock(), encoder=encoders[0], sparse_encoder=encoders[1]) as memory:
        memory.add_many({"text": f"the river at mile {number}"} for number in range(20))
        memory.wait_encoded()
        yield memory


def ids(result: Any) -> list[str]:
    return [hit.record.id for hit in result]


def test_the_words_answer_when_every_encoder_hangs(memory: Memory, gates: tuple[Gate, Gate]) -> None:
    words = memory.search("mile 7", mode="rrf", weights={"bm25": 1})
    for gate in gates:
        gate.open.clear()
    for mode, late in [("rrf", ["sparse", "dense"]), ("convex", ["sparse", "dense"]), ("dense", ["dense"]), ("sparse", ["sparse"])]:
        result = memory.search("mile 7", mode=mode, deadline_ms=5)
        assert result.stages == ("bm25",) and ids(result) == ids(words)
        assert not result.coverage.exact and all(name in result.coverage.reason for name in late)
    only_dense = memory.search("mile 7", mode="convex", weights={"dense": 1}, deadline_ms=5)
    assert only_dense.stages == ("bm25",) and ids(only_dense) == ids(words)


def test_a_channel_that_is_in_time_is_used_beside_one_that_is_not(memory: Memory, gates: tuple[Gate, Gate]) -> None:
    gates[0].open.clear()
    memory.search("mile 7", mode="rrf", weights={"bm25": 1, "sparse": 1})
    result = memory.search("mile 7", mode="rrf", deadline_ms=1_000)
    assert result.stages == ("bm25", "sparse") and "no time to encode the query for dense" in result.coverage.reason


def test_what_was_late_once_is_there_for_the_next_one(memory: Memory, gates: tuple[Gate, Gate]) -> None:
    gates[0].open.clear()
    assert memory.search("mile 7", mode="dense", deadline_ms=5).stages == ("bm25",)
    gates[0].open.set()
    result = memory.search("mile 7", mode="dense", deadline_ms=LONG_MS)
    assert result.stages == ("dense",) and result.coverage.exact
    memory.search("mile 7", mode="dense")
    assert gates[0].asked == 1, "each question is encoded once"


def test_reranking_is_given_up_where_the_query_is_late(memory: Memory, gates: tuple[Gate, Gate]) -> None:
    plain = memory.search("mile 7")
    gates[0].open.clear()
    began_s = monotonic()
    result = memory.search("mile 7", rerank="maxsim", deadline_ms=100)
    assert monotonic() - began_s < 30, "far less than the gate's patience"
    assert ids(result) == ids(plain) and result.stages == ("bm25",)
    assert not result.coverage.exact and "no time to rerank" in result.coverage.reason


def test_a_second_look_at_what_the_words_gave_instead_is_one_at_words(memory: Memory, gates: tuple[Gate, Gate]) -> None:
    class Zeros:
        lowest = 0.0

        def rerank(self, query: str, candidates: Sequence[Any], *rest: Any) -> Any:
            return np.zeros(len(candidates))

    gates[0].open.clear()
    instead = memory.search("mile 7", mode="dense", deadline_ms=1_000, rerank=Zeros())
    assert instead.stages == ("bm25", "Zeros") and instead.hits == memory.search("mile 7", rerank=Zeros()).hits


def test_an_encoder_that_hangs_holds_few_threads(gates: tuple[Gate, Gate]) -> None:
    gate = gates[0]
    gate.open.clear()
    encodings, encoder = QueryEncodings(), SlowEncoder(gate)
    for number in range(3 * AT_ONCE):
        with pytest.raises(TooLateError):
            encodings.dense(encoder, f"question {number}", False, 0.0)
    assert len(encodings._under_way) == AT_ONCE
    gate.open.set()
    vector = encodings.dense(encoder, "question 0", False, 50.0)
    assert np.array_equal(vector, HashingEncoder(16).encode_queries(["question 0"])[0])


def test_what_an_encoder_raises_reaches_who_waits_and_is_not_kept(gates: tuple[Gate, Gate]) -> None:
    encodings, encoder = QueryEncodings(), SlowEncoder(gates[0])
    failing = True

    def encode(texts: Sequence[str]) -> Floats:
        if failing:
            raise RuntimeError("out of memory")
        return HashingEncoder(16).encode_queries(texts)

    encoder.encode_queries = encode  # type: ignore[method-assign]
    for patience_s in (None, 50.0):
        with pytest.raises(Exception, match="out of memory"):
            encodings.dense(encoder, "question", False, patience_s)
    failing = False
    assert encodings.dense(encoder, "question", False, 50.0).shape == (16,)
