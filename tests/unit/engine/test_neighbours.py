"""Neighbours in a session: what was erased lies between no two records, before it is purged as after."""

from pathlib import Path

import numpy as np
import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.engine import neighbours
from agentir_ray.engine.policy import Limits
from agentir_ray.lexical.filters import EVERYTHING
from agentir_ray.lexical.search import Visibility
from agentir_ray.lexical.visible import refs_of
from agentir_ray.types import FusedExplanation

LIMITS = Limits(seal_at=8, max_unsealed=10, decent=16, largest=24)


@pytest.mark.parametrize("sealed", [False, True])
def test_erased_records_stand_between_nobody(tmp_path: Path, sealed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path, background=False, clock=ManualClock(), limits=LIMITS if sealed else Limits()) as memory:
        records = [memory.add(f"river {'bank' if number in (0, 29) else 'tea'} {number}", timestamp=number, session="s") for number in range(30)]
        with monkeypatch.context() as patch:
            patch.setattr(memory._store, "look_after", lambda *arguments, **options: None)  # so that they are hidden, and not purged
            memory.forget(ids=[record.id for record in records[2:28]])

        def contexts() -> list[float | None]:
            result = memory.search("river bank", mode="convex", weights={"bm25": 1}, context_weight=0.5, explain=True)
            assert len(result) == 4
            return [hit.explanation.context for hit in result if isinstance(hit.explanation, FusedExplanation)]

        before = contexts()
        assert None not in before and sum(part.documents for part in memory._store.acquire(memory.namespace).index.parts) == 30
        memory.forget(ids=[memory.add("river", session="other").id], wait=True)
        assert contexts() == before
    with Memory.open(tmp_path / "alone", background=False, clock=ManualClock()) as memory:
        for number in (0, 1, 28, 29):
            memory.add(f"river {'bank' if number in (0, 29) else 'tea'} {number}", timestamp=number, session="s")
        assert contexts() == before


@pytest.mark.parametrize("long", [1, 4_096])
def test_in_a_long_session_of_one_moment_the_order_is_that_of_writing(tmp_path: Path, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "LONG", long)
    with Memory.open(tmp_path, background=False, clock=ManualClock(), limits=LIMITS) as memory:
        for number in range(70):
            memory.add(f"river w{number}", timestamp=1, session="s")
        with memory._store.namespace(memory.namespace) as namespace:
            snapshot = namespace.index.snapshot(())
            assert len(snapshot.segments) > 2 and len(snapshot.buffers)
            refs = refs_of(snapshot, np.arange(1, 71))
            beside = neighbours.neighbours(snapshot, refs, Visibility(2), EVERYTHING)
            for at in (0, 1, 5, 23, 24, 30, 48, 60, 69):
                for asked in ([at], [at, (at + 40) % 70]):  # alone, and beside another
                    row = neighbours.neighbours(snapshot, refs[asked], Visibility(2), EVERYTHING)[0]
                    assert row.tolist() == beside[at].tolist() == [int(refs[i]) if 0 <= i < 70 else -1 for i in (at - 1, at - 2, at + 1, at + 2)]
