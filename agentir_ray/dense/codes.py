"""Vectors as int8 codes along rotated axes, in stages, and what the stages read so far say of a dot product.

The first stage has the first 64 dimensions, where most of a vector lies; the next ones reach to 128, 256, 512, and then go by 512. Let A be the axes up to a stage's end (as
columns), y a row's codes times its scale, x the row, u the query's code times its scale, q the query. Whatever A, y and u are, with r = x - A y and w = q - A u:

    <q, x> = <u, A'x> + <w, x> = <u, y> + <u, A'x - y> + <A'w, y> + <w, r>

so by Cauchy-Schwarz <q, x> is <u, y> give or take

    |u| * |A'x - y|  +  |w| * |r|  +  |A'w| * |y|

where |A'x - y| (the `error` of rounding) and |r| (the `tail`) are stored with the row, |u| and |w| belong to the query, and the last term is small: A'w = (A'q - u) - (A'A - 1) u,
the rounding of the query and what the axes lack of being orthonormal. That much holds for any numbers. What arithmetic adds is inside the margins, in units in which |x| <= 1.01
(so that |y| <= 1.4, at any width up to 4,096) and |q_i| < 2: errors and tails come from float64, with an absolute error below 1e-10 in the square of the tail, and are rounded up;
the sums of codes are exact; each of at most 11 stages adds a product of float32, rounded four times, so an estimate is off by 3e-6 |u| |y| at most; the canonical float64 sum by
5e-13 |q| |x|. `spare` has 1e-5 (|u| + |w|) for all that. Where |q| <= 1.001 |u| + |w|, that is more than all of them together.

Sections:

    axes float32 (dim * dim), a row an axis
    code_0 int8: the first stage as `kernels.flat_scan` reads it | code_1, code_2, ... int8 (rows * width): the later stages, row after row
    code_scale float32 (rows) | code_error, code_tail float32 (stages * rows)
"""

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.rotation import RotatedQuery, askew, fit_axes, power_of_two, rotate_query, rounded_up
from agentir_ray.kernels.flat_scan import BLOCK

Array = npt.NDArray[Any]
FIRST_STAGE, WIDEST_STAGE = 64, 512  # sums of 512 products of an int8 and an int16 fit into an int32
LEAST_ROWS, ROWS_A_DIMENSION = 4_096, 8  # with fewer, codes would save little, and the axes would take a large part of the file
LARGEST_CODE = 127
SMALLEST_SCALE = 1e-30  # in units of the largest row: what is smaller has codes of zero and is all tail
CHUNK = 4_096  # rows that are coded together
LARGEST_ROW, LARGEST_CODED = 1.01, 1.4  # lengths of a row and of its codes, in the unit
MARGIN = 1e-5


def stage_ends(dim: int) -> list[int]:
    """Up to which dimension each stage reaches: 64, 128, 256, 512, 1024, 1536, ... and dim."""
    ends, end = [], FIRST_STAGE
    while end < dim:
        ends.append(end)
        end += min(end, WIDEST_STAGE)
    return [*ends, dim]


def has_codes(rows: int, dim: int) -> bool:
    """Whether so many rows are worth codes."""
    return rows >= max(LEAST_ROWS, ROWS_A_DIMENSION * dim)


class Coded(NamedTuple):
    """The sections, and what the meta section says of them."""

    sections: dict[str, Array]
    unit: float
    askew: float


def encode(vectors: Array, axes: Array | None) -> Coded:
    """Codes of float32 (rows, dim), finite, along these axes, by default those that suit a sample of them. Raises InvalidInputError where the axes are no rotation."""
    rows, dim = vectors.shape
    axes = fit_axes(vectors) if axes is None else np.ascontiguousarray(axes, np.float32)
    off, ends = askew(axes), stage_ends(dim)
    unit = power_of_two(max(float(np.linalg.norm(vectors[i : i + CHUNK].astype(np.float64), axis=1).max()) for i in range(0, rows, CHUNK)) / LARGEST_ROW)
    first = FIRST_STAGE if dim >= FIRST_STAGE else dim + dim % 2
    blocks = -(-rows // BLOCK)
    code = [np.zeros((blocks * BLOCK, first), np.int8)] + [np.empty((rows, end - begin), np.int8) for begin, end in pairwise(ends)]
    scale, error, tail = np.empty(rows, np.float32), np.empty((len(ends), rows), np.float32), np.empty((len(ends), rows), np.float32)
    along_axes = np.ascontiguousarray(axes.T, np.float64)
    for i in range(0, rows, CHUNK):
        here = slice(i, min(i + CHUNK, rows))
        x = vectors[here].astype(np.float64) / unit
        y = x @ along_axes
        scale[here] = rounded_up(np.maximum(np.abs(y).max(axis=1) / LARGEST_CODE, SMALLEST_SCALE))
        step = scale[here].astype(np.float64)[:, None]
        coded = np.rint(y / step)
        squares = np.einsum("ij,ij->i", x, x)
        off_squares, dots, coded_squares = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
        for s, (begin, end) in enumerate(pairwise([0, *ends])):
            code[s][here, : end - begin] = coded[:, begin:end]
            back, true = coded[:, begin:end] * step, y[:, begin:end]
            off_squares += ((true - back) ** 2).sum(axis=1)
            dots += (true * back).sum(axis=1)
            coded_squares += (back * back).sum(axis=1)
            error[s, here] = rounded_up(np.sqrt(off_squares))
            tail[s, here] = rounded_up(np.sqrt(np.maximum(squares - 2.0 * dots + (1.0 + off) * coded_squares, 0.0) + 1e-10))
    blocked = code[0].reshape(blocks, BLOCK, first // 2, 2).transpose(0, 2, 1, 3)
    sections = {"axes": axes.ravel(), "code_0": np.ascontiguousarray(blocked).ravel()}
    sections |= {f"code_{s}": code[s].ravel() for s in range(1, len(ends))}
    return Coded(sections | {"code_scale": scale, "code_error": error.ravel(), "code_tail": tail.ravel()}, unit, off)


class Codes:
    """The codes of an opened sidecar; `array` gives its sections."""

    def __init__(self, array: Callable[[str], Array], meta: Mapping[str, Any], dim: int, rows: int) -> None:
        self._array = array
        self.unit, self.askew, self.axes_identity = float(meta["unit"]), float(meta["askew"]), int(meta["axes"])
        self.ends = stage_ends(dim)
        self._dim, self._rows = dim, rows

    @cached_property
    def axes(self) -> Array:
        axes: Array = self._array("axes").reshape(self._dim, self._dim)
        return axes

    @cached_property
    def code(self) -> list[Array]:
        """int8, a stage each."""
        return [self._array(f"code_{s}") for s in range(len(self.ends))]

    @cached_property
    def scale(self) -> Array:
        """float32 (rows), in the unit."""
        return self._array("code_scale")

    @cached_property
    def error(self) -> Array:
        """float32 (stages, rows), in the unit."""
        error: Array = self._array("code_error").reshape(-1, self._rows)
        return error

    @cached_property
    def tail(self) -> Array:
        """float32 (stages, rows), in the unit."""
        tail: Array = self._array("code_tail").reshape(-1, self._rows)
        return tail


class StageQuery(NamedTuple):
    """What a kernel is told of the query at a stage: its code there, int16, and the factors of the bound (float32, rounded up)."""

    code: Array
    scale: np.float32
    known: np.float32
    unknown: np.float32
    spare: np.float32


class QueryRotations:
    """One query along the axes of any sidecar, rotated once for all that share them."""

    def __init__(self, query: Array) -> None:
        """query float64 (dim), of float32 values."""
        self._query = query
        self._rotated: dict[int, tuple[list[StageQuery], float]] = {}

    def stages(self, codes: Codes) -> tuple[list[StageQuery], float]:
        """(the query at each stage, the unit of what is estimated: the query's times the rows')."""
        found = self._rotated.get(codes.axes_identity)
        if found is None:
            rotated = rotate_query(self._query, codes.axes, codes.ends)
            found = self._rotated[codes.axes_identity] = _stages(rotated, codes), rotated.unit
        return found[0], found[1] * codes.unit


def _stages(rotated: RotatedQuery, codes: Codes) -> list[StageQuery]:
    stages = []
    for s, (begin, end) in enumerate(pairwise([0, *codes.ends])):
        known, unknown = float(rotated.known[s]), float(rotated.unknown[s])
        off = math.sqrt(end) * rotated.rounding + codes.askew * known
        spare = rounded_up(np.array([LARGEST_CODED * off + MARGIN * (known + unknown) + SMALLEST_SCALE]))[0]
        code = rotated.code[begin:end]
        stages.append(StageQuery(np.append(code, np.int16(0)) if s == 0 and end % 2 else code, rotated.scale, rotated.known[s], rotated.unknown[s], spare))
    return stages
