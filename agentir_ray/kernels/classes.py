"""Counting what the classes of a segment are chosen from.

A posting does not carry its tf but the number of a class: a tf and a range of lengths (`lexical/classes.py` chooses them). So one byte, read in order, tells what the posting can
add at most, at any statistics, and the document's length need not be fetched.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import READ_I32, READ_I64, READ_U32, WRITE_I64

TFS = 16  # a tf from here on has no class of its own
LENGTHS = 4_096  # lengths from here on are one
ESCAPE = 255  # the class of all postings without one: their tf is in a table


@numba.njit([numba.void(READ_I64, READ_I32, READ_U32, WRITE_I64)], cache=True, nogil=True)
def count_pairs(doc_start: Any, tf: Any, length: Any, counts: Any) -> None:
    """counts[tf * LENGTHS + length] += 1 for every posting with tf < TFS; documents list their postings' tf in tf[doc_start[d]:doc_start[d + 1]]."""
    for d in range(len(doc_start) - 1):
        bucket = min(np.int64(length[d]), LENGTHS - 1)
        for p in range(doc_start[d], doc_start[d + 1]):
            if tf[p] < TFS:
                counts[tf[p] * LENGTHS + bucket] += 1
