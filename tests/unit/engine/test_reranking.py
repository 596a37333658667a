"""A second look: what it gives, mixed with the first as promised; how deep it goes; what it does not reach."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.encoders.hashing import HashingEncoder
from agentir_ray.errors import EncoderMissingError, InvalidInputError
from agentir_ray.retrieval.reranker import Candidate
from agentir_ray.types import FusedExplanation

MODES: list[dict[str, Any]] = [{"mode": "bm25"}, {"mode": "dense"}, {"mode": "rrf"}, {"mode": "convex", "weights": {"bm25": 0.3, "dense": 0.7}, "context_weight": 0.2}]


class ByLength:
    """Longer texts are better; of those beyond `reach` nothing is said."""

    def __init__(self, lowest: float | None, reach: int = 1_000) -> None:
        self.lowest, self.reach = lowest, reach
        self.seen: list[str] = []

    def rerank(self, query: str, candidates: Sequence[Candidate], deadline_ns: int | None, now_ns: Callable[[], int]) -> npt.NDArray[np.float64]:
        self.seen = [candidate.text for candidate in candidates]
        return np.array([float(len(text)) if place < self.reach else math.nan for place, text in enumerate(self.seen)])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, background=False, clock=ManualClock(), encoder=HashingEncoder(16)) as memory:
        for number in range(30):
            memory.add(f"river {'bank ' * (number % 4)}{'x' * (number * 7 % 30)}", session="s")
        memory.wait_encoded()
        yield memory


def floor_of(mode: str) -> float:
    return -1.0 if mode == "dense" else 0.0


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("lowest", [None, 0.0, 10.0])
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("reach", [1_000, 5, 0])
def test_both_looks_are_mixed_as_promised(memory: Memory, options: dict[str, Any], lowest: float | None, weight: float, reach: int) -> None:
    first = memory.search("river bank", k=20, **options).hits
    result = memory.search("river bank", k=8, offset=2, rerank=ByLength(lowest, reach), rerank_weight=weight, rerank_depth=20, explain=True, **options)
    floor = floor_of(options["mode"])
    lengths = [float(len(hit.record.text)) for hit in first[:reach]]
    least = (min(lengths, default=0.0) if lowest is None else lowest) if lengths else 0.0
    expected = {}
    for place, hit in enumerate(first):
        own = max((hit.score - floor) / (first[0].score - floor), 0.0)
        second = max((lengths[place] - least) / (max(lengths) - least), 0.0) if place < len(lengths) else 0.0
        expected[hit.record.seq] = (1.0 - weight) * own + weight * second
    ordered = sorted(expected.items(), key=lambda one: (-one[1], -one[0]))[2:10]
    assert [(hit.record.seq, pytest.approx(hit.score)) for hit in result.hits] == ordered
    for hit in result.hits:
        assert isinstance(hit.explanation, FusedExplanation) and hit.explanation.score == hit.score
        before = next(one for one in first if one.record.seq == hit.record.seq)
        assert hit.explanation.fused == before.score
        assert (hit.explanation.reranked is None) == (first.index(before) >= reach)
    assert result.stages[-1] == "ByLength"
    assert ("no time to rerank" in result.coverage.reason) == (reach < 20) and (reach >= 20 or not result.coverage.exact)


def test_it_looks_at_the_best_and_no_deeper_than_told(memory: Memory) -> None:
    first = [hit.record.text for hit in memory.search("river bank", k=30).hits]
    reranker = ByLength(None)
    result = memory.search("river bank", k=9, rerank=reranker, rerank_depth=4)
    assert reranker.seen == first[:4] and len(result.hits) == 9
    memory.search("river bank", k=3, rerank=reranker)
    assert reranker.seen == first, "50 by default"
    memory.search("nowhere", rerank=reranker)
    assert memory.search("nowhere", rerank=reranker).hits == ()


def test_tokens_are_kept_or_made(tmp_path: Path, memory: Memory) -> None:
    """Kept ones are rounded, which changes no order here."""
    made = memory.search("river bank xx", mode="dense", rerank="maxsim", rerank_weight=1.0)
    assert made.stages == ("dense", "maxsim") and made.coverage.exact
    with Memory.open(tmp_path / "kept", background=False, clock=ManualClock(), encoder=HashingEncoder(16), token_vectors=True) as other:
        for record in reversed(memory.recent(100).records):
            other.add(record.text, session="s")
        other.wait_encoded()
        kept = other.search("river bank xx", mode="dense", rerank="maxsim", rerank_weight=1.0)
    assert [hit.score for hit in kept.hits] == pytest.approx([hit.score for hit in made.hits], abs=2e-2)


def test_maxsim_without_an_encoder_of_tokens_says_what_it_needs(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.add("river")
        with pytest.raises(EncoderMissingError, match="open the store with encoder="):
            memory.search("river", rerank="maxsim")


@pytest.mark.parametrize("given", [[], [1.0], [math.inf] * 30, [-math.inf] * 30, [[1.0]] * 30, None, "scores", ["1x"] * 30, [None, []] * 15, np.ones((30, 2))])
def test_what_a_reranker_gives_is_checked(memory: Memory, given: Any) -> None:
    class Odd:
        lowest = None

        def rerank(self, *arguments: Any) -> Any:
            return given

    with pytest.raises(InvalidInputError, match="reranker Odd did not give one number for each of 30 candidates"):
        memory.search("river", rerank=Odd())
    given = [1] * 30  # a plain list will do
    assert len(memory.search("river", rerank=Odd())) == 10
