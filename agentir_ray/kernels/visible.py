"""Which documents a query sees: the filter's bitmap, and what time and the log did to a document."""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_I64, READ_U64, WRITE_I64


@numba.njit(cache=True, nogil=True)
def visible(
    doc: Any,
    created_at: Any,
    expires_at: Any,
    deleted_seq: Any,
    deleted_at: Any,
    superseded_seq: Any,
    superseded_at: Any,
    snapshot_seq: Any,
    expiry_now_us: Any,
    written_until_us: Any,
) -> Any:
    """Whether the query sees the document: written by `written_until_us`, and not expired, deleted or superseded then, as far as the snapshot knows.

    Empty arrays stand for "none is". Erasures carry the earliest time as deleted_at: they hold for every `as_of`.
    """
    if created_at[doc] > written_until_us:
        return False
    if len(expires_at) > 0 and expires_at[doc] <= expiry_now_us:
        return False
    if len(deleted_seq) > 0:
        if deleted_seq[doc] <= snapshot_seq and deleted_at[doc] <= written_until_us:
            return False
        if superseded_seq[doc] <= snapshot_seq and superseded_at[doc] <= written_until_us:
            return False
    return True


@numba.njit(cache=True, nogil=True, inline="always")
def passes(doc: Any, words: Any) -> Any:
    """Whether the bitmap holds the document; an empty one holds all."""
    return len(words) == 0 or (words[doc >> 6] >> np.uint64(doc & 63)) & np.uint64(1) != 0


@numba.njit([INT(INT, INT, READ_U64, INT, INT, INT, READ_I64, READ_I64, READ_I64, READ_I64, READ_I64, READ_I64, WRITE_I64)], cache=True, nogil=True)
def last_visible(
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
) -> Any:
    """Fill `out` with the documents of [first, end) that pass and are visible, the last one first, until it is full; returns how many there are. Reads no more than it must."""
    found = 0
    d = end - 1
    while d >= first and found < len(out):
        if len(filter_words) > 0 and filter_words[d >> 6] << np.uint64(63 - (d & 63)) == 0:
            d = ((d >> 6) << 6) - 1  # none is left in this word
            continue
        if passes(d, filter_words) and visible(d, created_at, expires_at, deleted_seq, deleted_at, superseded_seq, superseded_at, snapshot_seq, expiry_now_us, written_until_us):
            out[found] = d
            found += 1
        d -= 1
    return found
