"""What is left of a query when its leading coordinates along some axes are taken away."""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.flat import READ_F32_2D
from agentir_ray.kernels.signatures import READ_F64, READ_I64, WRITE_F64


@numba.njit([numba.void(READ_F32_2D, READ_F64, READ_I64, WRITE_F64, WRITE_F64)], cache=True, nogil=True)
def unexplained(axes: Any, along: Any, ends: Any, query: Any, out: Any) -> None:
    """out[s] = the length of the query minus along[j] * axes[j] for all j < ends[s]; the query is overwritten."""
    begin = 0
    for s in range(len(ends)):
        for j in range(begin, ends[s]):
            axis = axes[j]
            for i in range(len(query)):
                query[i] -= along[j] * np.float64(axis[i])
        begin = ends[s]
        squares = 0.0
        for i in range(len(query)):
            squares += query[i] * query[i]
        out[s] = np.sqrt(squares)
