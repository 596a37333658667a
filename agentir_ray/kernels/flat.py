"""The score of a vector: its dot product with the query, as one canonical function.

Products of two float32 are exact in float64, so the score depends on the order of the sum alone (and not on whether the machine fuses a product with its sum): lane j of 16 adds
the products of dimensions j, j + 16, j + 32, ... in this order, and the lanes are added in halves, j and j + 8, then j and j + 4, and so on. `tests/naive_dense.py` has the same.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import READ_F64, READ_I64, WRITE_F64, table

LANES = 16
READ_F32_2D = table(numba.float32, readonly=True)


@numba.njit(cache=True, nogil=True)
def dot(vector: Any, query: Any, lane: Any) -> Any:
    """The canonical dot product of a float32 vector and a float64 query, whose values are float32; `lane` is scratch, float64 (LANES)."""
    lane[:] = 0.0
    whole = len(query) // LANES * LANES
    for i in range(0, whole, LANES):
        for j in range(LANES):
            lane[j] += np.float64(vector[i + j]) * query[i + j]
    for j in range(len(query) - whole):
        lane[j] += np.float64(vector[whole + j]) * query[whole + j]
    width = LANES >> 1
    while width > 0:
        for j in range(width):
            lane[j] += lane[j + width]
        width >>= 1
    return lane[0]


@numba.njit([numba.void(READ_I64, READ_F32_2D, READ_I64, READ_F64, READ_F64, WRITE_F64)], cache=True, nogil=True)
def score_documents(start: Any, vectors: Any, docs: Any, query: Any, prior: Any, out: Any) -> None:
    """out[j] = the score of document docs[j]: the best of its rows start[d]:start[d + 1], plus its prior (an empty array stands for zeros); NaN where it has no row."""
    lane = np.empty(LANES, np.float64)
    for j in range(len(docs)):
        d = docs[j]
        best = -np.inf
        for row in range(start[d], start[d + 1]):
            best = max(best, dot(vectors[row], query, lane))
        if start[d] == start[d + 1]:
            best = np.nan
        out[j] = best + prior[d] if len(prior) > 0 else best
