"""Finding a query's terms in the dictionaries of segments, all in one call.

A dictionary is as large as its segment, and nothing of it is in a cache: each of its arrays costs a wait for memory. So all terms are looked for in all segments in steps, each of
which asks for what the next one reads, and the waits overlap. Hashes are spread evenly: where one lies is guessed from its value, twice, and only then searched for.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.hashing import hash_bytes, same_bytes
from agentir_ray.kernels.memory import prefetch
from agentir_ray.kernels.rows import dictionary_of
from agentir_ray.kernels.signatures import READ_I64, READ_I64_2D, READ_U8, WRITE_I64_2D

SPREAD = 2.0**64
NEAR = 8  # entries of a cache line


@numba.njit(cache=True, nogil=True)
def _from_guess(hashes: Any, wanted: Any, guess: Any) -> Any:
    """The first place of a hash that is not below `wanted`: steps that double away from the guess, then bisection."""
    step = NEAR
    if hashes[guess] < wanted:
        low = guess + 1
        high = min(len(hashes), low + step)
        while high < len(hashes) and hashes[high - 1] < wanted:
            low = high
            step *= 2
            high = min(len(hashes), low + step)
    else:
        high = guess
        low = max(0, high - step)
        while low > 0 and hashes[low] >= wanted:
            high = low
            step *= 2
            low = max(0, high - step)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit([numba.void(READ_I64_2D, READ_U8, READ_I64, WRITE_I64_2D, WRITE_I64_2D)], cache=True)
def look_up(rows: Any, data: Any, size: Any, ordinals: Any, df: Any) -> None:
    """ordinals[i, s] = the ordinal of the i-th term in segment s, -1 where it does not occur; df[i, s] = in how many of its documents that are not deleted.

    The terms lie end to end in `data`, size[i] bytes each. Both outputs are written whole.
    """
    terms = len(size)
    start = np.zeros(terms + 1, np.int64)
    wanted = np.empty(terms, np.uint64)
    for i in range(terms):
        start[i + 1] = start[i] + size[i]
        wanted[i] = hash_bytes(data, start[i], start[i + 1])
    for s in range(len(rows)):
        hashes = dictionary_of(rows[s]).term_hash
        for i in range(terms):
            df[i, s] = 0
            ordinals[i, s] = -1
            if len(hashes) > 0:
                ordinals[i, s] = min(len(hashes) - 1, np.int64(float(wanted[i]) / SPREAD * len(hashes)))
                prefetch(hashes, ordinals[i, s])
    for s in range(len(rows)):
        hashes = dictionary_of(rows[s]).term_hash
        for i in range(terms):
            if len(hashes) > 0:
                off = np.int64((float(wanted[i]) - float(hashes[ordinals[i, s]])) / SPREAD * len(hashes))
                ordinals[i, s] = max(0, min(len(hashes) - 1, ordinals[i, s] + off))
                prefetch(hashes, ordinals[i, s])
    for s in range(len(rows)):
        dictionary = dictionary_of(rows[s])
        hashes = dictionary.term_hash
        for i in range(terms):
            if len(hashes) > 0:
                t = _from_guess(hashes, wanted[i], ordinals[i, s])
                ordinals[i, s] = t if t < len(hashes) and hashes[t] == wanted[i] else -1
                if ordinals[i, s] >= 0:
                    prefetch(dictionary.term_start, t)
                    prefetch(dictionary.term_block, t)
    for s in range(len(rows)):
        dictionary = dictionary_of(rows[s])
        for i in range(terms):
            t = ordinals[i, s]
            if t >= 0:
                prefetch(dictionary.term_data, dictionary.term_start[t])
                prefetch(dictionary.block_posting, dictionary.term_block[t])
                prefetch(dictionary.block_posting, dictionary.term_block[t + 1])
                if len(dictionary.dead_df) > 0:
                    prefetch(dictionary.dead_df, t)
    for s in range(len(rows)):
        dictionary = dictionary_of(rows[s])
        for i in range(terms):
            t = ordinals[i, s]
            ordinals[i, s] = -1
            while 0 <= t < len(dictionary.term_hash) and dictionary.term_hash[t] == wanted[i]:
                first = dictionary.term_start[t]
                if dictionary.term_start[t + 1] - first == size[i] and same_bytes(dictionary.term_data, first, data, start[i], size[i]):
                    ordinals[i, s] = t
                    df[i, s] = np.int64(dictionary.block_posting[dictionary.term_block[t + 1]]) - np.int64(dictionary.block_posting[dictionary.term_block[t]])
                    if len(dictionary.dead_df) > 0:
                        df[i, s] -= dictionary.dead_df[t]
                    break
                t += 1
