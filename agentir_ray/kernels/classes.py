"""Counting what the classes of a segment are chosen from, and what a term's best postings are worth at least.

A posting does not carry its tf but the number of a class: a tf and a range of lengths (`lexical/classes.py` chooses them). So one byte, read in order, tells what the posting can
add at most, at any statistics, and the document's length need not be fetched.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import READ_I32, READ_I64, READ_U8, READ_U32, WRITE_I64, WRITE_U8

TFS = 16  # a tf from here on has no class of its own
LENGTHS = 4_096  # lengths from here on are one
ESCAPE = 255  # the class of all postings without one: their tf is in a table
RANKS = (10, 100, 1_000)  # of the best postings of a term whose worth is kept: a first threshold for as many results


@numba.njit([numba.void(READ_I64, READ_I32, READ_U32, WRITE_I64)], cache=True, nogil=True)
def count_pairs(doc_start: Any, tf: Any, length: Any, counts: Any) -> None:
    """counts[tf * LENGTHS + length] += 1 for every posting with tf < TFS; documents list their postings' tf in tf[doc_start[d]:doc_start[d + 1]]."""
    for d in range(len(doc_start) - 1):
        bucket = min(np.int64(length[d]), LENGTHS - 1)
        for p in range(doc_start[d], doc_start[d + 1]):
            if tf[p] < TFS:
                counts[tf[p] * LENGTHS + bucket] += 1


@numba.njit([numba.void(READ_I64, READ_I64, READ_U8, READ_U8, READ_U8, WRITE_U8)], cache=True, nogil=True)
def best_worth(term_block: Any, block_posting: Any, posting_class: Any, by_worth: Any, worth: Any, best: Any) -> None:
    """best[3 * t + r] = what the RANKS[r]-th best posting of term t is worth at least; 0, as it was before, where it has fewer. `worth` of each class, `by_worth` from the best."""
    counts = np.zeros(256, np.int64)
    for t in range(len(term_block) - 1):
        first, end = block_posting[term_block[t]], block_posting[term_block[t + 1]]
        if end - first < RANKS[0]:
            continue
        for p in range(first, end):
            counts[posting_class[p]] += 1
        seen = 0
        r = 0
        for c in by_worth:
            seen += counts[c]
            counts[c] = 0
            while r < len(RANKS) and seen >= RANKS[r]:
                best[3 * t + r] = worth[c]
                r += 1
