"""What a search by vectors is told and tells, beside the order itself (`tests/properties/test_dense.py`)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray.dense.codes import LEAST_ROWS
from agentir_ray.dense.parts import DensePart
from agentir_ray.dense.search import Deeper, YoungRows, count_before, count_interval, scores, top_k
from agentir_ray.dense.sidecar import DenseSidecar, build_sidecar
from agentir_ray.dense.vectors import RecordVectors
from agentir_ray.errors import InvalidInputError
from agentir_ray.sections import encode_sections

ALL = np.empty(0, np.uint64)


def part_of(path: Path, vectors: Any, start: Any = None, number: int = 0) -> DensePart:
    start = np.arange(len(vectors) + 1) if start is None else start
    path.write_bytes(b"".join(encode_sections(build_sidecar(RecordVectors(start, vectors), "e@1", {}))))
    return DensePart(DenseSidecar(path, {}), number, 0, len(start) - 1, ALL, np.arange(len(start) - 1) + 1_000 * number)


def unit_rows(count: int, dim: int, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).normal(size=(count, dim)) * (1.0 + np.arange(dim)) ** -0.7
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def test_nothing_to_search() -> None:
    query = np.ones(3, np.float32)
    assert len(top_k([], None, query, 5).score) == 0
    assert len(scores([], None, query, np.array([1])).tolist()) == 1
    assert count_before([], None, query, 0.0, 0) == 0 and count_interval([], None, query, 0.0, 0) == (0, 0)
    assert len(Deeper([], None, query).next(3).score) == 0
    none = YoungRows(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64), np.empty((0, 3), np.float32))
    assert len(top_k([], none, query, 5).score) == 0
    assert np.isnan(scores([], none, query, np.array([1]))).all()


def test_what_the_clock_cuts_is_named(tmp_path: Path) -> None:
    parts = [part_of(tmp_path / str(i), unit_rows(10, 8, i), number=i) for i in range(4)]
    asked = iter([False, False, True, False])
    top = top_k(parts, None, unit_rows(1, 8)[0], 100, expired=lambda: next(asked))
    assert top.left.tolist() == [False, False, True, False]
    assert set((top.ref >> 32).tolist()) == {0, 1, 3}


@pytest.mark.parametrize("query", [np.ones(7, np.float32), np.ones(8), np.ones((1, 8), np.float32), np.array([np.nan] * 8, np.float32)])
def test_a_query_that_does_not_fit_is_refused(tmp_path: Path, query: Any) -> None:
    with pytest.raises(InvalidInputError):
        top_k([part_of(tmp_path / "a", unit_rows(10, 8))], None, query, 1)


def test_a_count_before_nan_is_refused() -> None:
    for count in (count_before, count_interval):
        with pytest.raises(ValueError, match="NaN"):
            count([], None, np.ones(3, np.float32), float("nan"), 0)


def test_thousands_of_equal_rows_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    part = part_of(tmp_path / "a", np.repeat(unit_rows(1, 70), LEAST_ROWS, axis=0))
    assert part.sidecar.codes is not None
    assert top_k([part], None, unit_rows(1, 70)[0], 300).seq.tolist() == list(range(LEAST_ROWS - 1, LEAST_ROWS - 301, -1))


def test_an_interval_from_codes_is_close(tmp_path: Path) -> None:
    part = part_of(tmp_path / "a", unit_rows(LEAST_ROWS, 128))
    query = unit_rows(1, 128, seed=5)[0]
    tenth = top_k([part], None, query, 10)
    least, most = count_interval([part], None, query, float(tenth.score[9]), int(tenth.seq[9]))
    assert count_before([part], None, query, float(tenth.score[9]), int(tenth.seq[9])) == 9
    assert 0 <= least <= 9 <= most <= 60
