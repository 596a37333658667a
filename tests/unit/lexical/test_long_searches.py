"""A search with much to do gives the GIL away; nothing else about it is different."""

from pathlib import Path

import pytest

from agentir_ray import Memory
from agentir_ray.engine.policy import Limits
from agentir_ray.lexical import search


def test_long_and_short_searches_give_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(tmp_path, background=False, limits=Limits(seal_at=40, max_unsealed=40)) as memory:
        memory.add_many({"text": f"rain {'snow ' * (i % 4)} day{i % 7}", "importance": i % 5 / 5, "session": f"s{i % 3}"} for i in range(130))
        memory.forget(where={"session": {"eq": "s2"}})
        asked = [
            {"query": query, "k": k, "session": session, "importance": 0.1} for query in ("rain", "snow day3", "day1 day2 rain") for k in (1, 7, 200) for session in (None, "s1")
        ]
        short = [memory.search(**options).hits for options in asked]
        monkeypatch.setattr(search, "LONG_POSTINGS", -1)
        assert [memory.search(**options).hits for options in asked] == short
        assert any(short)
