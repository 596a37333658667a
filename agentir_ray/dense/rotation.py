"""Axes along which vectors differ most, and a query as it looks along them.

The axes are the rows of a float32 matrix: the eigenvectors of the second moments of a sample, the strongest first, so that a few leading coordinates hold most of a dot product.
Nothing else depends on how good they are: bounds hold for any matrix that is close to orthonormal (`dense/codes.py`).
"""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.flat_query import unexplained

Array = npt.NDArray[Any]
SAMPLE = 16_384  # rows
SEED = 0
LARGEST_CODE = 32_767
MOST_ASKEW = 1e-3  # of a matrix that is taken for a rotation
ABOVE = 1.0 + 1e-6


class RotatedQuery(NamedTuple):
    """The query = its code, int16 (dim) times `scale`, along the axes, and a rest. Of the first dimensions up to each stage's end: what length the code has (`known`), what the
    rest.

    Both are float32, rounded up. No coordinate of the code is further than `rounding` from the query's. All is in units of `unit`, a power of two, in which the query's coordinates
    are below 2.
    """

    code: Array
    scale: np.float32
    known: Array
    unknown: Array
    rounding: float
    unit: float


def fit_axes(vectors: Array) -> Array:
    """float32 (dim, dim), from float32 (rows, dim); at least one row."""
    rows = len(vectors)
    chosen = np.sort(np.random.default_rng(SEED).choice(rows, SAMPLE, replace=False)) if rows > SAMPLE else slice(None)
    sample = vectors[chosen].astype(np.float64)
    sample /= power_of_two(np.abs(sample).max())
    _, axes = np.linalg.eigh(sample.T @ sample)
    return np.ascontiguousarray(axes[:, ::-1].T, np.float32)


def askew(axes: Array) -> float:
    """How far the axes are from orthonormal: no less than the norm of axes @ axes.T - 1. Raises InvalidInputError where they are no rotation."""
    wide = axes.astype(np.float64)
    off = float(np.linalg.norm(wide @ wide.T - np.eye(len(wide)))) * ABOVE + 1e-10
    if not off <= MOST_ASKEW:
        raise InvalidInputError(f"the rotation is no rotation: its rows are {off:.2g} from orthonormal. Take one that a sidecar has, or none")
    return off


def identity(axes: Array) -> int:
    """What tells rotations apart: a query is rotated once for all sidecars that share one."""
    return zlib.crc32(np.ascontiguousarray(axes).data)


def rotate_query(query: Array, axes: Array, ends: Sequence[int]) -> RotatedQuery:
    """query float64 (dim); `ends` are the numbers of leading dimensions that the stages reach to."""
    unit = power_of_two(np.abs(query).max()) / 2.0
    query = query / unit
    along = (axes @ query.astype(np.float32)).astype(np.float64)
    scale = np.float32(max(np.abs(along).max() / LARGEST_CODE, 1e-30))
    code = np.clip(np.rint(along / scale), -LARGEST_CODE, LARGEST_CODE).astype(np.int16)
    coded = code * np.float64(scale)
    rest = np.empty(len(ends), np.float64)
    unexplained(axes, coded, np.array(ends, np.int64), query.copy(), rest)
    # A dot product of float32 in any order is off by dim * 2**-24 times the product of the lengths at most; and a half step of the code.
    rounding = 0.5 * float(scale) + 1.01 * len(query) * 2.0**-24 * float(np.linalg.norm(query)) + 1e-30
    length = np.sqrt(np.cumsum(coded * coded)[np.array(ends) - 1])
    return RotatedQuery(code, scale, rounded_up(length * ABOVE), rounded_up(rest * ABOVE + 1e-12), rounding, unit)


def power_of_two(largest: Any) -> float:
    """A power of two above it; 1 for zero."""
    return float(2.0 ** np.frexp(largest)[1]) if largest > 0 else 1.0


def rounded_up(values: Array) -> Array:
    """float64 to the next float32 that is not below."""
    nearest = values.astype(np.float32)
    return np.where(nearest < values, np.nextafter(nearest, np.float32(np.inf)), nearest)
