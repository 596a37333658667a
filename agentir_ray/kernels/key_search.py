"""Where a range of byte keys lies in a sorted dictionary: keys laid end to end, key i is data[offsets[i]:offsets[i + 1]], ascending as bytes.

A binary search compares a key from its first differing byte only, touches about log2(n) keys, and so suits a mapped file: nothing is read but the keys compared.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_U8, READ_U64


@numba.njit([numba.boolean(READ_U64, READ_U8, INT, READ_U8)], cache=True, nogil=True)
def _below(offsets: Any, data: Any, i: Any, bound: Any) -> Any:
    """Whether key i < bound."""
    start = np.int64(offsets[i])
    size = np.int64(offsets[i + 1]) - start
    for j in range(min(size, bound.size)):
        if data[start + j] != bound[j]:
            return data[start + j] < bound[j]
    return size < bound.size


@numba.njit([INT(READ_U64, READ_U8, INT, INT, READ_U8)], cache=True, nogil=True)
def _lower_bound(offsets: Any, data: Any, first: Any, last: Any, bound: Any) -> Any:
    """The first of the keys first..last that is not below bound; `last` if all are."""
    while first < last:
        middle = (first + last) >> 1
        if _below(offsets, data, middle, bound):
            first = middle + 1
        else:
            last = middle
    return first


@numba.njit([(READ_U64, READ_U8, READ_U8, READ_U8)], cache=True)
def find_range(offsets: Any, data: Any, low: Any, high: Any) -> Any:
    """(first, last): keys first..last - 1 are those with low <= key < high. An empty range when there are none, or when high <= low."""
    keys = offsets.size - 1
    first = _lower_bound(offsets, data, 0, keys, low)
    # Most ranges hold one key: gallop from the first instead of searching all over again.
    step = 1
    while first + step <= keys and _below(offsets, data, first + step - 1, high):
        step <<= 1
    return first, _lower_bound(offsets, data, first + (step >> 1), min(first + step, keys), high)
