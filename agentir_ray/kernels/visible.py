"""Which documents a query sees: the filter's bitmap, and what time and the log did to a document."""

from typing import Any

import numba
import numpy as np


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
