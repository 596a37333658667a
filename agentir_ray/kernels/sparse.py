"""Scores of sparse vectors that lie one after the other, in no postings: for the few that no sidecar has yet."""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import READ_F64, READ_I32, READ_I64, WRITE_F64, reads


@numba.njit([numba.void(READ_I64, READ_I64, READ_I32, reads(numba.float32), READ_I32, READ_F64, WRITE_F64)], cache=True)
def score_vectors(which: Any, start: Any, term: Any, weight: Any, place: Any, gain: Any, out: Any) -> None:
    """out[i] = the sum of gain[p] * weight over the terms of vector which[i], in the order of the query's places p: to the last bit what postings give.

    Vector v has term[start[v]:start[v + 1]], no number twice, and as many weights > 0. place[t] is where the query has the term t, -1: nowhere.
    """
    found = np.zeros(len(gain), np.float64)
    for i in range(len(which)):
        matches = False
        for j in range(start[which[i]], start[which[i] + 1]):
            p = place[term[j]]
            if p >= 0:
                found[p] = weight[j]
                matches = True
        score = 0.0
        if matches:
            for p in range(len(gain)):
                score += gain[p] * found[p]
                found[p] = 0.0
        out[i] = score
