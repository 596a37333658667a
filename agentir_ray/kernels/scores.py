"""Scores of many documents at once, outside the search for the best: what the growing buffer's postings give, what priors add, and how many documents come before one."""

from typing import Any

import numba

from agentir_ray.kernels import bm25
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I32, READ_I64, READ_U64, WRITE_F64
from agentir_ray.kernels.visible import passes, visible


@numba.njit([numba.void(READ_I32, READ_F64, FLOAT, FLOAT, READ_I32, READ_I32, READ_I32, READ_I64, WRITE_F64)], cache=True, nogil=True)
def score_buffer(head: Any, gain: Any, base: Any, slope: Any, posting_doc: Any, posting_tf: Any, posting_next: Any, doc_length: Any, out: Any) -> None:
    """Add to out[d] what the terms give document d of the growing buffer, by the canonical function. head[i] is the newest posting of the i-th term, -1 for none."""
    for i in range(len(head)):
        p = head[i] if gain[i] > 0.0 else -1
        while p >= 0:
            d = posting_doc[p]
            if d < len(out):
                out[d] += bm25.contribution(gain[i], float(posting_tf[p]), float(doc_length[d]), base, slope)
            p = posting_next[p]


@numba.njit([numba.void(READ_I64, READ_F64, INT, FLOAT, FLOAT, FLOAT, WRITE_F64)], cache=True, nogil=True)
def add_priors(timestamp: Any, importance: Any, as_of_us: Any, recency_weight: Any, tau_us: Any, importance_weight: Any, score: Any) -> None:
    """Add the priors to the scores of some documents; one that no term matches has 0 and keeps it. An empty `importance` stands for zeros."""
    for j in range(len(score)):
        if score[j] > 0.0:
            of_document = importance[j] if len(importance) > 0 else 0.0
            score[j] = bm25.add_priors(score[j], timestamp[j], of_document, as_of_us, recency_weight, tau_us, importance_weight)


@numba.njit([INT(READ_F64, READ_I64, FLOAT, INT, INT, INT, READ_U64, INT, INT, INT, *[READ_I64] * 7)], cache=True, nogil=True)
def count_before(
    score: Any,
    doc_seq: Any,
    before_score: Any,
    before_seq: Any,
    since_us: Any,
    until_us: Any,
    filter_words: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    timestamp: Any,
    created_at: Any,
    expires_at: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
) -> Any:
    """How many of the documents, whose scores these are (0: no term matches), may be seen and come before (before_score, before_seq)."""
    count = 0
    for d in range(len(score)):
        if score[d] <= 0.0 or score[d] < before_score or (score[d] == before_score and doc_seq[d] <= before_seq):
            continue
        if since_us <= timestamp[d] <= until_us and passes(d, filter_words):
            count += visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us)
    return count
