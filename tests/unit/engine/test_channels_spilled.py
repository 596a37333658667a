"""Segments whose words were spilled are searched by vectors and weights where they lie; a fusion with words loads what it needs, and nothing is missed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.types import SearchResult
from tests.spill_targets import BUDGET, LIMITS, temperatures, write_weeks

QUESTION = "token0x7 token3x7 token9x7"
FUSED = [{"mode": mode, "context_weight": share} for mode in ("rrf", "agent_rrf", "convex") for share in (0.0, 0.4)]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """Twelve weeks, once with the oldest spilled, and once with all here."""
    with ExitStack() as stack:
        options: dict[str, Any] = {"background": False, "limits": LIMITS, "durability": "process", "encoder": HashingEncoder(16), "sparse_encoder": HashingSparseEncoder()}
        spilling = stack.enter_context(Memory.open(tmp_path / "one", clock=ManualClock(), spill=tmp_path / "spilled", memory_budget_bytes=BUDGET, **options))
        keeping = stack.enter_context(Memory.open(tmp_path / "other", clock=ManualClock(), **options))
        for memory in (spilling, keeping):
            write_weeks(memory, 12)
            memory.wait_encoded()
            memory.forget(ids=["w0-1"])
        assert temperatures(spilling)["cold_segments"] >= 4
        yield spilling, keeping


def found(result: SearchResult) -> list[tuple[str, float]]:
    return [(hit.record.id, hit.score) for hit in result.hits]


@pytest.mark.parametrize("mode", ["dense", "sparse"])
def test_vectors_and_weights_need_no_words(both: tuple[Memory, Memory], mode: str) -> None:
    spilling, keeping = both
    before = temperatures(spilling)
    for options in ({}, {"where": {"session": {"eq": "s1"}}}, {"recency": (0.1, "60d")}, {"k": 300}, {"until": "2020-10-01"}):
        for asked in (QUESTION, "w0 common"):
            result = spilling.search(asked, mode=mode, explain=True, **options)  # type: ignore[arg-type]
            assert found(result) == found(keeping.search(asked, mode=mode, **options))  # type: ignore[arg-type]
            assert result.coverage.exact and result.coverage.not_searched == 0
    alone = spilling.search(QUESTION, mode="convex", weights={mode: 1.0}, context_weight=0.3, depth=1_000)
    assert found(alone) == found(keeping.search(QUESTION, mode="convex", weights={mode: 1.0}, context_weight=0.3, depth=1_000)) and alone.coverage.exact
    assert temperatures(spilling) == before, "nothing was loaded"


@pytest.mark.parametrize("options", FUSED)
def test_a_fusion_with_words_loads_what_has_some_of_them(both: tuple[Memory, Memory], options: dict[str, Any]) -> None:
    spilling, keeping = both
    cold = temperatures(spilling)["cold_segments"]
    result = spilling.search(QUESTION, depth=1_000, **options)
    assert found(result) == found(keeping.search(QUESTION, depth=1_000, **options)) and result.coverage.exact
    assert 0 < temperatures(spilling)["cold_segments"] < cold, "those alone"
