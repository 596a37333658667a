"""What records have of a dense encoder: none, one or several vectors each, all of one width. Checked here, so that nothing that is not finite ever reaches an index."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import EncodingError, InvalidInputError

Array = npt.NDArray[Any]
MAX_DIM = 4_096


class RecordVectors(NamedTuple):
    """Document d has the rows start[d]:start[d + 1], none or more. start int64 (n + 1), from 0 to the number of rows; vectors float32 (rows, dim)."""

    start: Array
    vectors: Array

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])


def checked(start: Array, vectors: Array) -> RecordVectors:
    """Raises InvalidInputError where they do not fit together, EncodingError where a number is not finite."""
    if vectors.ndim != 2 or vectors.dtype != np.float32 or not 1 <= vectors.shape[1] <= MAX_DIM:
        raise InvalidInputError(f"vectors must be float32 (rows, dim) with dim from 1 to {MAX_DIM:,}, not {vectors.dtype} {vectors.shape}")
    if start.ndim != 1 or len(start) == 0 or start[0] != 0 or start[-1] != len(vectors) or (np.diff(start) < 0).any():
        raise InvalidInputError(f"start must ascend from 0 to the number of rows ({len(vectors):,})")
    check_finite(vectors)
    return RecordVectors(np.ascontiguousarray(start, np.int64), np.ascontiguousarray(vectors))


def check_finite(vectors: Array) -> None:
    """Raises EncodingError, naming the first row that is not finite."""
    finite = np.isfinite(vectors).all(axis=-1)
    if not finite.all():
        raise EncodingError(f"vector {int(np.argmin(finite)):,} is not finite; see what the encoder makes of its text, such vectors cannot be kept")


def take(vectors: RecordVectors, docs: Array) -> RecordVectors:
    """The vectors of some documents, in the order of `docs` (int64, repeats allowed)."""
    rows, start = rows_of(vectors.start, docs)
    return RecordVectors(start, vectors.vectors[rows])


def rows_of(start: Array, docs: Array) -> tuple[Array, Array]:
    """(int64 (rows): the rows of some documents, int64 (docs + 1): where each one's begin among them)."""
    count = start[docs + 1] - start[docs]
    new_start = np.zeros(len(docs) + 1, np.int64)
    np.cumsum(count, out=new_start[1:])
    return np.arange(new_start[-1]) + np.repeat(start[docs] - new_start[:-1], count), new_start


def joined(parts: Sequence[RecordVectors]) -> RecordVectors:
    """The documents of several, one after the other; at least one."""
    before = np.cumsum([0, *(len(part.vectors) for part in parts)])
    start = np.concatenate([[0], *(part.start[1:] + rows for part, rows in zip(parts, before[:-1], strict=True))]).astype(np.int64)
    return RecordVectors(start, np.concatenate([part.vectors for part in parts]))
