"""Lists that graphs give: what is in them is visible and exactly scored, how much is missing, and when the exact search is asked instead."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from agentir_ray.dense import approximate
from agentir_ray.dense.approximate import HnswGraph, nearest, recall
from agentir_ray.dense.parts import DensePart
from agentir_ray.dense.search import YoungRows, top_k
from agentir_ray.errors import EncoderMissingError, InvalidInputError
from tests.unit.dense.test_search import part_of, unit_rows


def graphed(path: Path, vectors: Any, start: Any = None, number: int = 0) -> DensePart:
    pytest.importorskip("faiss")
    part = part_of(path, vectors, start, number)
    part.sidecar.graph = HnswGraph(part.sidecar)
    return part


def words_of(mask: Any) -> Any:
    bits = np.zeros((len(mask) + 63) // 64 * 64, bool)
    bits[: len(mask)] = mask
    return np.packbits(bits, bitorder="little").view(np.uint64)


def same(one: Any, other: Any) -> bool:
    return bool(one.ref.tolist() == other.ref.tolist() and one.score.tolist() == other.score.tolist())


def test_the_graph_finds_most_with_exact_scores(tmp_path: Path) -> None:
    vectors = unit_rows(2_000, 16)
    part = graphed(tmp_path / "a", vectors, np.arange(0, 2_001, 2))
    graph = part.sidecar.graph
    queries = list(unit_rows(20, 16, seed=2))
    assert recall(graph, part, queries, 10) > 0.9
    top, exact = graph.top_k(part, queries[0], 10), top_k([part], None, queries[0], 1_000)
    assert part.sidecar.memory_bytes() > graph.memory_bytes() > vectors.nbytes
    place = dict(zip(exact.ref.tolist(), exact.score.tolist(), strict=True))
    assert top.score.tolist() == [place[ref] for ref in top.ref.tolist()] == sorted(top.score.tolist(), reverse=True)
    words = np.zeros(16, np.uint64)
    words[3] = np.uint64(2**64 - 1)
    filtered = graph.top_k(part._replace(visible=words, first=200, end=230), queries[0], 100)
    assert len(filtered.ref) > 10 and all(200 <= ref < 230 for ref in filtered.ref.tolist())
    assert len(graph.top_k(part._replace(end=0), queries[0], 10).ref) == 0


def test_lists_of_graphs_of_exact_parts_and_of_the_young_become_one(tmp_path: Path) -> None:
    parts = [graphed(tmp_path / "0", unit_rows(3_000, 16)), part_of(tmp_path / "1", unit_rows(50, 16, 1), number=1), graphed(tmp_path / "2", unit_rows(3_000, 16, 2), number=2)]
    young = YoungRows(np.arange(9_000, 9_020), (3 << 32) + np.arange(20), np.arange(21), unit_rows(20, 16, 3))
    missed = 0
    for query in unit_rows(20, 16, seed=4):
        found, by_graphs = nearest(parts, young, query, 40)
        exact = top_k(parts, young, query, 10_000)
        place = dict(zip(exact.ref.tolist(), exact.score.tolist(), strict=True))
        assert by_graphs and len(found.ref) == 40 and not found.left.any()
        assert [place[ref] for ref in found.ref.tolist()] == found.score.tolist() == sorted(found.score.tolist(), reverse=True)
        missed += len(set(exact.ref[:40].tolist()) - set(found.ref.tolist()))
        least = float(exact.score[20])
        assert nearest(parts, young, query, 40, least)[0].score.min() >= least
    assert missed <= 40  # of 800


def test_what_narrows_a_graph_too_much_is_searched_exactly(tmp_path: Path) -> None:
    part = graphed(tmp_path / "a", unit_rows(2_000, 16))
    query = unit_rows(1, 16, seed=5)[0]
    few, most = np.arange(2_000) % 5 < 2, np.arange(2_000) % 5 < 3
    assert nearest([part], None, query, 10)[1]
    assert nearest([part._replace(visible=words_of(most))], None, query, 10)[1]
    for exactly in (part._replace(visible=words_of(few)), part._replace(first=100, end=900), part._replace(prior=np.zeros(2_000))):
        found, by_graphs = nearest([exactly], None, query, 10)
        assert not by_graphs and same(found, top_k([exactly], None, query, 10))
    found, by_graphs = nearest([part], None, query, 126)  # a 16th of the rows, and no more
    assert not by_graphs and same(found, top_k([part], None, query, 126))


def test_a_list_that_is_too_short_is_made_again(tmp_path: Path) -> None:
    part = graphed(tmp_path / "a", unit_rows(2_000, 16))
    query = unit_rows(1, 16, seed=5)[0]
    nothing = approximate.ApproximateTop(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    with patch.object(HnswGraph, "top_k", lambda *_: nothing):
        found, by_graphs = nearest([part], None, query, 10)
    assert not by_graphs and same(found, top_k([part], None, query, 10))


def test_the_clock_cuts_between_graphs_too(tmp_path: Path) -> None:
    parts = [graphed(tmp_path / str(i), unit_rows(500, 8, i), number=i) for i in range(3)]
    asked = iter([False, True, True])
    found, by_graphs = nearest(parts, None, unit_rows(1, 8)[0], 5, expired=lambda: next(asked))
    assert by_graphs and found.left.tolist() == [False, True, True] and set((found.ref >> 32).tolist()) == {0}


def test_a_query_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    part = graphed(tmp_path / "a", unit_rows(500, 8))
    for query in (np.ones(7, np.float32), np.array([np.nan] * 8, np.float32)):
        with pytest.raises(InvalidInputError):
            nearest([part], None, query, 5)


def test_building_can_be_called_off(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    part = part_of(tmp_path / "a", unit_rows(500, 8))

    def enough() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HnswGraph(part.sidecar, check=enough)
    assert part.sidecar.graph is None


def test_without_faiss_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    part = part_of(tmp_path / "a", unit_rows(5, 8))
    with patch.object(approximate.importlib.util, "find_spec", lambda _: None), pytest.raises(EncoderMissingError, match=r"agentir-ray\[dense\]"):
        HnswGraph(part.sidecar)
