"""Finding a query's terms in the dictionaries of segments, all in one call."""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.hashing import hash_bytes, same_bytes
from agentir_ray.kernels.rows import dictionary_of
from agentir_ray.kernels.signatures import READ_I64, READ_I64_2D, READ_U8, WRITE_I64, WRITE_I64_2D


@numba.njit([numba.void(READ_I64_2D, READ_U8, READ_I64, WRITE_I64_2D, WRITE_I64)], cache=True)
def look_up(rows: Any, data: Any, size: Any, ordinals: Any, df: Any) -> None:
    """ordinals[i, s] = the ordinal of the i-th term in segment s, -1 where it does not occur; df[i] = in how many documents of all segments that are not deleted.

    The terms lie end to end in `data`, size[i] bytes each. Both outputs are written whole.
    """
    for i in range(len(size)):
        df[i] = 0
    for s in range(len(rows)):
        dictionary = dictionary_of(rows[s])
        start = 0
        for i in range(len(size)):
            ordinals[i, s] = -1
            wanted = hash_bytes(data, start, start + size[i])
            t = np.searchsorted(dictionary.term_hash, wanted)
            while t < len(dictionary.term_hash) and dictionary.term_hash[t] == wanted:
                first = dictionary.term_start[t]
                if dictionary.term_start[t + 1] - first == size[i] and same_bytes(dictionary.term_data, first, data, start, size[i]):
                    ordinals[i, s] = t
                    df[i] += np.int64(dictionary.block_posting[dictionary.term_block[t + 1]]) - np.int64(dictionary.block_posting[dictionary.term_block[t]])
                    if len(dictionary.dead_df) > 0:
                        df[i] -= dictionary.dead_df[t]
                    break
                t += 1
            start += size[i]
