"""Which of many documents a query sees: a range of them as a bitmap, or given ones. Document by document it is `kernels.visible`'s rule, as in the search for the best."""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_I64, READ_U64, WRITE_U64, writes
from agentir_ray.kernels.visible import passes, visible

_FATES = (READ_I64, READ_I64, READ_I64, READ_I64, READ_I64, READ_I64)  # created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at


@numba.njit([numba.void(INT, INT, READ_U64, INT, INT, INT, *_FATES, WRITE_U64)], cache=True, nogil=True)
def mark_seen(
    first: Any,
    end: Any,
    filter_words: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
    created_at: Any,
    expires_at: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
    out: Any,
) -> None:
    """Add to the bitmap `out` the documents of [first, end) that pass the filter (empty: all do) and are visible. Words of the filter that are zero cost nothing."""
    for word in range(first >> 6, (end + 63) >> 6):
        if len(filter_words) > 0 and filter_words[word] == 0:
            continue
        bits = np.uint64(0)
        for d in range(max(first, word << 6), min(end, (word + 1) << 6)):
            seen = passes(d, filter_words) and visible(
                d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us
            )
            bits |= np.uint64(seen) << np.uint64(d & 63)
        out[word] |= bits


@numba.njit([numba.void(READ_I64, INT, INT, READ_U64, INT, INT, INT, READ_I64, *_FATES, writes(numba.boolean))], cache=True, nogil=True)
def which_seen(
    docs: Any,
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
    out: Any,
) -> None:
    """out[j] = whether document docs[j] lies in the time range, passes the filter and is visible."""
    for j in range(len(docs)):
        d = docs[j]
        out[j] = (
            since_us <= timestamp[d] <= until_us
            and passes(d, filter_words)
            and visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us)
        )
