"""64-bit FNV-1a over byte strings laid end to end: names of terms and ids in segment files.

It is the file format's hash: changing it changes every segment. It is not meant to resist an adversary, and need not be: strings stand beside the hashes and are compared, so that
two terms of one hash both work.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_I64, READ_U8, READ_U64, WRITE_I32, WRITE_I64, WRITE_U64

_OFFSET_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


@numba.njit(cache=True, nogil=True)
def hash_bytes(data: Any, start: Any, stop: Any) -> Any:
    """FNV-1a of data[start:stop]."""
    h = _OFFSET_BASIS
    for j in range(start, stop):
        h = (h ^ np.uint64(data[j])) * _PRIME
    return h


@numba.njit([numba.void(READ_U8, READ_I64, WRITE_U64)], cache=True, nogil=True)
def hash_strings(data: Any, start: Any, out: Any) -> None:
    """out[i] = FNV-1a of data[start[i]:start[i + 1]]; data uint8, start int64 (n + 1), out uint64 (n)."""
    for i in range(len(out)):
        out[i] = hash_bytes(data, start[i], start[i + 1])


@numba.njit(cache=True, nogil=True)
def same_bytes(a: Any, a_start: Any, b: Any, b_start: Any, size: Any) -> Any:
    """Whether a[a_start:a_start + size] equals b[b_start:b_start + size]."""
    for j in range(size):  # noqa: SIM110 - Numba compiles no generator expression
        if a[a_start + j] != b[b_start + j]:
            return False
    return True


@numba.njit([numba.void(READ_U64, READ_I64, READ_U8, READ_U64, READ_I64, READ_U8, WRITE_I64)], cache=True)
def find_strings(hashes: Any, start: Any, data: Any, wanted_hash: Any, wanted_start: Any, wanted_data: Any, out: Any) -> None:
    """out[i] = position in the dictionary (hashes ascending, strings data[start[t]:start[t + 1]]) of the i-th wanted string, or -1."""
    for i in range(len(out)):
        out[i] = -1
        t = np.searchsorted(hashes, wanted_hash[i])
        size = wanted_start[i + 1] - wanted_start[i]
        while t < len(hashes) and hashes[t] == wanted_hash[i]:
            if start[t + 1] - start[t] == size and same_bytes(data, start[t], wanted_data, wanted_start[i], size):
                out[i] = t
                break
            t += 1


@numba.njit([INT(READ_U64, READ_I64, READ_U8, READ_I64, WRITE_I32)], cache=True, nogil=True)
def unite_strings(hashes: Any, start: Any, data: Any, order: Any, united: Any) -> Any:
    """Number the distinct strings of `order` (positions by ascending hash): united[p] = the number of string p; returns how many there are.

    Numbers ascend with the hash; strings of one hash get adjacent numbers in order of appearance.
    """
    count = 0
    group = 0  # where the run of equal hashes began in `order`
    for i in range(len(order)):
        p = order[i]
        if i > 0 and hashes[p] != hashes[order[i - 1]]:
            group = i
        size = start[p + 1] - start[p]
        number = -1
        for g in range(i - 1, group - 1, -1):
            q = order[g]
            if start[q + 1] - start[q] == size and same_bytes(data, start[p], data, start[q], size):
                number = united[q]
                break
        if number < 0:
            number = count
            count += 1
        united[p] = number
    return count
