"""A clock that goes on at every look: wherever the deadline falls, the words answer, what was not asked is named, and scores are what the channels that ran give."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.engine.policy import Limits

LIMITS = Limits(seal_at=9, max_unsealed=1_000, decent=9)
QUERY = "river mile 7"
FUSED = ["rrf", "agent_rrf", "convex"]


class Ticking(ManualClock):
    """Every look at the stopwatch takes a millisecond."""

    def monotonic_ns(self) -> int:
        self.advance(0.001)
        return super().monotonic_ns()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, background=False, clock=Ticking(), limits=LIMITS, encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder()) as memory:
        memory.add_many({"text": f"the river at mile {number}", "id": f"r{number}", "session": "s"} for number in range(60))
        memory.wait_encoded()
        memory.search(QUERY, mode="rrf", rerank="maxsim")  # the question is encoded from now on
        yield memory


@pytest.mark.parametrize("mode", FUSED)
def test_the_words_answer_wherever_the_deadline_falls(memory: Memory, mode: str) -> None:
    words = memory.search(QUERY, mode="convex", weights={"bm25": 1}, depth=1_000, k=60).hits
    stages = set()
    for deadline_ms in range(1, 40):
        result = memory.search(QUERY, mode=mode, deadline_ms=deadline_ms, k=60, depth=1_000, explain=True)
        stages.add(result.stages)
        assert result.stages[0] == "bm25" and {hit.record.id for hit in words} <= {hit.record.id for hit in result.hits}
        late = {"sparse", "dense"} - set(result.stages)
        assert all(name in result.coverage.reason for name in late) and (not late or not result.coverage.exact)
        for hit in result.hits:
            explanation: Any = hit.explanation
            assert all(channel.adds == 0.0 for channel in explanation.channels if channel.channel in late), "what did not run adds nothing"
    whole = memory.search(QUERY, mode=mode, k=60, depth=1_000)
    assert stages >= {("bm25",), ("bm25", "sparse", "dense")} and result.hits[0].record.id == whole.hits[0].record.id and whole.coverage.exact


@pytest.mark.parametrize("mode", ["dense", "sparse"])
def test_a_single_channel_says_what_it_left_out(memory: Memory, mode: str) -> None:
    whole = memory.search(QUERY, mode=mode, k=60)
    scores = {hit.record.id: hit.score for hit in whole.hits}
    cut = 0
    for deadline_ms in range(1, 40):
        result = memory.search(QUERY, mode=mode, deadline_ms=deadline_ms, k=60)
        if result.stages == (mode,):
            assert all(scores[hit.record.id] == hit.score for hit in result.hits)
            assert result.coverage.exact == (len(result.hits) == len(whole.hits))
            cut += not result.coverage.exact
    assert cut and result.hits == whole.hits
