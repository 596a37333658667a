"""Which channels a search asks: what their absence says, what weights leave out, how often a question is encoded, and that feedback and token budgets hold for every mode."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray import Memory
from agentir_ray.client.asynchronous import AsyncMemory
from agentir_ray.clock import ManualClock
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.encoders.protocol import Floats, LateVectors, SparseVector
from agentir_ray.engine import query_encoding
from agentir_ray.engine.asker import EncoderExchangedError
from agentir_ray.engine.modes import asker_for
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.request import Request, make_request
from agentir_ray.errors import EncoderMismatchError, EncoderMissingError
from agentir_ray.lexical.query import Bm25, parse_query

MODES = ["bm25", "dense", "sparse", "rrf", "agent_rrf", "convex"]
Open = Callable[..., Memory]


class Counted(HashingEncoder):
    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        self.asked += texts
        return super().encode_queries(texts)

    def encode_queries_late(self, texts: Sequence[str]) -> LateVectors:
        self.asked += texts
        return super().encode_queries_late(texts)


class CountedSparse(HashingSparseEncoder):
    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        self.asked += texts
        return super().encode_queries(texts)


@pytest.fixture
def open_memory(tmp_path: Path) -> Open:
    def open_memory(**options: Any) -> Memory:
        return Memory.open(tmp_path, clock=ManualClock(), background=False, **options)

    return open_memory


def fill(memory: Memory, records: int = 20) -> None:
    for number in range(records):
        memory.add(f"the river at mile {number}", id=f"r{number}", session="s")
    memory.wait_encoded()


@pytest.mark.parametrize(("mode", "parameter"), [("dense", "encoder="), ("sparse", "sparse_encoder="), ("rrf", "encoder="), ("convex", "encoder="), ("agent_rrf", "encoder=")])
def test_without_an_encoder_it_is_said_what_is_missing_and_how_to_get_it(open_memory: Open, mode: str, parameter: str) -> None:
    with open_memory() as memory:
        fill(memory)
        with pytest.raises(EncoderMissingError) as raised:
            memory.search("river", mode=mode)
        assert all(word in str(raised.value) for word in (parameter, "agentir doctor", "mode='bm25'")), str(raised.value)
        assert len(memory.search("river", k=100)) == 20


@pytest.mark.parametrize("read_only", [False, True])
def test_vectors_of_another_encoder_are_not_searched_by_and_the_words_serve(open_memory: Open, read_only: bool) -> None:
    with open_memory(encoder=HashingEncoder(8)) as memory:
        fill(memory)
    with open_memory(encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder(), read_only=read_only) as memory:
        for options in ({"mode": "dense"}, {"mode": "rrf"}, {"mode": "convex", "weights": {"dense": 1}}):
            with pytest.raises(EncoderMismatchError, match=r"hashing@1-8.*hashing@1-16.*reembed"):
                memory.search("river", **options)  # type: ignore[arg-type]
        assert len(memory.search("river", k=100)) == 20
        assert len(memory.search("river", mode="convex", weights={"bm25": 1}, k=100)) == 20
        if not read_only:
            memory.reembed()
            assert len(memory.search("river", mode="dense", k=100)) == 20


def test_a_channel_of_no_weight_is_not_asked(open_memory: Open) -> None:
    dense, sparse = Counted(), CountedSparse()
    with open_memory(encoder=dense, sparse_encoder=sparse) as memory:
        fill(memory)
        for weights, stages in (({"bm25": 1}, ("bm25",)), ({"bm25": 1, "dense": 0}, ("bm25",)), ({"sparse": 0.5, "dense": 0.0}, ("sparse",))):
            assert memory.search("river", mode="convex", weights=weights).stages == stages
        assert dense.asked == [] and sparse.asked == ["river"]
        assert memory.search("river", mode="rrf").stages == ("bm25", "sparse", "dense")
        same = memory.search("river", mode="rrf", weights={"dense": 1, "bm25": 1, "sparse": 1})
        assert same.hits == memory.search("river", mode="rrf").hits, "1 each by default, in whatever order"


def test_by_default_those_channels_are_fused_that_there_are(open_memory: Open) -> None:
    with open_memory(encoder=HashingEncoder(16)) as memory:
        fill(memory)
        assert memory.search("river", mode="rrf").stages == ("bm25", "dense")
        with pytest.raises(EncoderMissingError, match="sparse_encoder="):
            memory.search("river", mode="rrf", weights={"bm25": 1, "sparse": 1})


def test_a_question_is_encoded_once_with_its_tokens(open_memory: Open) -> None:
    dense = Counted()
    with open_memory(encoder=dense) as memory:
        fill(memory)
        for _ in range(2):
            memory.search("mile 7", mode="convex", rerank="maxsim")
            memory.search("mile 7", mode="dense")
        assert dense.asked == ["mile 7"]


def test_of_many_questions_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_encoding, "KEPT", 2)
    encoder, encodings = Counted(), query_encoding.QueryEncodings()
    for query in ("a", "b", "a", "c", "a", "b"):
        encodings.dense(encoder, query, False)
    assert encoder.asked == ["a", "b", "c", "b"], "a was asked for in between, b was not"


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_takes_feedback_and_keeps_to_a_budget_of_tokens(open_memory: Open, mode: str) -> None:
    with open_memory(encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder()) as memory:
        fill(memory)
        result = memory.search("mile 7", mode=mode, rerank="maxsim" if mode == "convex" else None)
        memory.feedback([result.hits[0].record.id], result.query_id)
        tokens = [-(-len(hit.record.text) // 4) for hit in result.hits]
        short = memory.search("mile 7", mode=mode, max_tokens=sum(tokens[:3]))
        assert [hit.record.id for hit in short] == [hit.record.id for hit in memory.search("mile 7", mode=mode).hits[:3]]
        assert result.timings_us.keys() >= {"analyse", "rank", "read", "total"} and ("encode" in result.timings_us) == (mode != "bm25")


def test_asyncio_takes_the_same_arguments(open_memory: Open) -> None:
    with open_memory(encoder=HashingEncoder(16)) as memory:
        fill(memory)
        options: dict[str, Any] = {
            "mode": "convex", "weights": {"bm25": 0.3, "dense": 0.7}, "depth": 50, "context_weight": 0.2, "passage_penalty": 0.01, "rerank": "maxsim", "rerank_weight": 0.5,
            "rerank_depth": 5, "explain": True,
        }  # fmt: skip
        assert asyncio.run(AsyncMemory(memory).search("mile 7", **options)).hits == memory.search("mile 7", **options).hits
        assert asyncio.run(AsyncMemory(memory).wait_encoded())


class Shifted(HashingSparseEncoder):
    """Gives every text the same weights twice as large: another encoder, as its revision says."""

    revision = "shifted"

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        return [vector._replace(weights=2 * vector.weights) for vector in super().encode_documents(texts)]


@pytest.mark.parametrize("mode", ["dense", "sparse", "convex"])
def test_one_look_stays_what_it_was_when_encoders_are_exchanged_meanwhile(open_memory: Open, mode: str) -> None:
    with open_memory(encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder(), limits=Limits(seal_at=8, max_unsealed=1_000, decent=8)) as memory:
        fill(memory)
        request = memory_request("mile 7", mode)
        with memory._store.namespace(memory.namespace) as namespace:
            asker, _ = asker_for(memory._store, namespace, parse_query(namespace.analyzer, "mile 7"), request, Bm25(), None)
            answers = asker.look(namespace)
            before = answers.top_k(10, request.visibility, None)
            memory.reembed(HashingEncoder(32), Shifted())
            after = answers.top_k(10, request.visibility, None)
            assert before.listed() == after.listed()
            with pytest.raises(EncoderExchangedError):
                asker.look(namespace)
        assert len(memory.search("mile 7", mode=mode)) == 10


@pytest.mark.parametrize("mode", ["dense", "sparse", "rrf"])
def test_a_sidecar_that_stays_another_encoders_is_an_error_and_not_an_endless_search(open_memory: Open, mode: str) -> None:
    with open_memory(encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder(), limits=Limits(seal_at=8, max_unsealed=1_000)) as memory:
        fill(memory)
        with memory._store.namespace(memory.namespace) as namespace:
            sidecars = [sidecar for segment in namespace.index.segments for sidecar in segment.sidecars.values()]
            assert sidecars
            for sidecar in sidecars:
                sidecar.encoder = "another@1"
        with pytest.raises(EncoderMismatchError, match="open the store anew"):
            memory.search("mile 7", mode=mode)
        assert len(memory.search("mile 7")) == 10


def memory_request(query: str, mode: str) -> Request:
    return make_request(
        query, ManualClock().now_us() + 1_000_000_000, k=10, offset=0, mode=mode, since=None, until=None, where=None, session=None, role=None, coverage="exact", as_of=None,
        recency=None, importance=None, min_score=None, deadline_ms=None, max_tokens=None, explain=False,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", " ", "?!", "🎉", "\ud800", "a\0b", "मिलते हैं", "川のほとり", "river " * 20_000, "x" * 100_000, "ＲＩＶＥＲ\u0301"])
def test_odd_questions_get_an_answer_in_every_mode(open_memory: Open, mode: str, query: str) -> None:
    with open_memory(encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder()) as memory:
        fill(memory, 3)
        for text in ("🎉", "川のほとり", "x" * 100_000, "..."):
            memory.add(text)
        memory.wait_encoded()
        for rerank in (None, "maxsim"):
            result = memory.search(query, mode=mode, explain=True, rerank=rerank)
            assert all(np.isfinite(hit.score) for hit in result.hits)
