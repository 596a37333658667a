"""Sidecars as files: what they refuse, and what they give back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray.dense.codes import LEAST_ROWS
from agentir_ray.dense.rotation import askew, fit_axes
from agentir_ray.dense.sidecar import DenseSidecar, build_sidecar
from agentir_ray.dense.vectors import RecordVectors, joined, take
from agentir_ray.errors import DamagedError, EncodingError, FormatError, InvalidInputError
from agentir_ray.sections import encode_sections

STAMP = {"namespace": "n", "documents": 3, "seq_crc": 7}


def rows(count: int, dim: int = 4, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def write(path: Path, vectors: RecordVectors, rotation: Any = None, stamp: Any = STAMP) -> DenseSidecar:
    path.write_bytes(b"".join(encode_sections(build_sidecar(vectors, "e@1", stamp, rotation))))
    return DenseSidecar(path, stamp)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    vectors = RecordVectors(np.array([0, 1, 1, 3]), rows(3))
    sidecar = write(tmp_path / "a", vectors)
    assert (sidecar.encoder, sidecar.dim, sidecar.documents, sidecar.rows, sidecar.rotation) == ("e@1", 4, 3, 3, None)
    assert sidecar.has(np.array([2, 1, 0])).tolist() == [True, False, True]
    some = sidecar.vectors_of(np.array([2, 1, 2]))
    assert some.start.tolist() == [0, 2, 2, 4]
    assert some.vectors.tolist() == vectors.vectors[[1, 2, 1, 2]].tolist()
    assert sidecar.row_doc.tolist() == [0, 2, 2]
    sidecar.verify()


def test_many_rows_have_codes_and_hand_their_rotation_on(tmp_path: Path) -> None:
    start = np.arange(LEAST_ROWS + 1)
    first = write(tmp_path / "a", RecordVectors(start, rows(LEAST_ROWS)))
    assert first.codes is not None and first.rotation is not None
    second = write(tmp_path / "b", RecordVectors(start, rows(LEAST_ROWS, seed=1)), first.rotation)
    assert second.codes is not None and second.codes.axes_identity == first.codes.axes_identity
    assert write(tmp_path / "c", RecordVectors(start[:-1], rows(LEAST_ROWS - 1))).codes is None
    assert len(first.row_doc) == 0


def test_no_rows_at_all(tmp_path: Path) -> None:
    sidecar = write(tmp_path / "a", RecordVectors(np.zeros(4, np.int64), np.empty((0, 384), np.float32)))
    assert (sidecar.rows, sidecar.documents, sidecar.dim) == (0, 3, 384)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    vectors = rows(3)
    vectors[1, 2] = bad
    with pytest.raises(EncodingError, match="vector 1 is not finite"):
        build_sidecar(RecordVectors(np.arange(4), vectors), "e@1", STAMP)


@pytest.mark.parametrize(
    "vectors",
    [
        RecordVectors(np.arange(4), rows(2)),
        RecordVectors(np.array([0, 2, 1, 3]), rows(3)),
        RecordVectors(np.array([1, 2, 3]), rows(3)),
        RecordVectors(np.empty(0, np.int64), rows(0)),
        RecordVectors(np.arange(4), rows(3).astype(np.float64)),
        RecordVectors(np.arange(4), rows(3, dim=4_097)),
        RecordVectors(np.arange(4), rows(3)[:, 0]),
    ],
)
def test_what_does_not_fit_together_is_refused(vectors: RecordVectors) -> None:
    with pytest.raises(InvalidInputError):
        build_sidecar(vectors, "e@1", STAMP)


def test_a_matrix_that_is_no_rotation_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no rotation"):
        build_sidecar(RecordVectors(np.arange(LEAST_ROWS + 1), rows(LEAST_ROWS)), "e@1", STAMP, np.ones((4, 4), np.float32))


def test_other_documents_newer_formats_and_damage_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, RecordVectors(np.arange(4), rows(3)))
    with pytest.raises(DamagedError, match="other documents"):
        DenseSidecar(path, STAMP | {"seq_crc": 8})
    with pytest.raises(DamagedError, match="missing"):
        DenseSidecar(tmp_path / "b", STAMP)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DamagedError):
        DenseSidecar(path, STAMP)
    path.write_bytes(whole.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(DamagedError):
        DenseSidecar(path, STAMP)  # its checksum is the old one
    sections = build_sidecar(RecordVectors(np.arange(4), rows(3)), "e@1", STAMP)
    sections["meta"] = np.frombuffer(sections["meta"].tobytes().replace(b'"format": 1', b'"format": 2'), np.uint8)
    path.write_bytes(b"".join(encode_sections(sections)))
    with pytest.raises(FormatError):
        DenseSidecar(path, STAMP)
    damaged = bytearray(whole)
    damaged[-30] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DamagedError):
        DenseSidecar(path, STAMP).verify()


def test_the_strongest_axes_come_first() -> None:
    spread = np.array([0.1, 3.0, 1.0, 0.5], np.float32)
    axes = fit_axes(rows(500) * spread)
    assert np.abs(axes).argmax(axis=1).tolist() == [1, 2, 3, 0]
    assert askew(axes) < 1e-5
    assert np.array_equal(axes, fit_axes(rows(500) * spread))


def test_vectors_are_joined_and_taken() -> None:
    one, other = RecordVectors(np.array([0, 2, 2]), rows(2)), RecordVectors(np.array([0, 1]), rows(1, seed=1))
    both = joined([one, other])
    assert both.start.tolist() == [0, 2, 2, 3]
    assert take(both, np.array([2])).vectors.tolist() == other.vectors.tolist()
    assert take(both, np.empty(0, np.int64)).start.tolist() == [0]
