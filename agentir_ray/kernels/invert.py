"""From documents to postings and back: counting-sort inversion, skylines, and the packed forward index.

Shapes: N documents in time order, P postings, T terms, B blocks. A block is the postings of one term in one window of `WINDOW` consecutive documents; documents inside are numbered
from the window's start in 16 bits. The forward index holds, per document, its term ordinals ascending: gap << 1 | (tf > 1) as LEB128, followed by the tf as LEB128 where the bit
is set.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.signatures import INT, READ_I32, READ_I64, READ_U8, READ_U16, READ_U32, WRITE_I32, WRITE_I64, WRITE_U8, WRITE_U16, WRITE_U32

WINDOW = 65_536
TF_LIMIT = 255  # a stored tf of 255 says: look into the overflow table


@numba.njit([WRITE_I64(READ_I64, READ_I32, INT)], cache=True, nogil=True)
def count_blocks(doc_start: Any, term: Any, term_count: Any) -> Any:
    """term_block int64 (T + 1): the first block of each term. doc_start int64 (N + 1) and term int32 (P) list the terms of each document."""
    term_block = np.zeros(term_count + 1, np.int64)
    last_window = np.full(term_count, -1, np.int64)
    for d in range(len(doc_start) - 1):
        window = d // WINDOW
        for p in range(doc_start[d], doc_start[d + 1]):
            if last_window[term[p]] != window:
                last_window[term[p]] = window
                term_block[term[p] + 1] += 1
    for t in range(term_count):
        term_block[t + 1] += term_block[t]
    return term_block


@numba.njit([numba.void(READ_I64, READ_I32, READ_I32, READ_I64, WRITE_U32, WRITE_I64, WRITE_U16, WRITE_U8, WRITE_I32)], cache=True, nogil=True)
def invert(doc_start: Any, term: Any, tf: Any, term_block: Any, block_window: Any, block_posting: Any, posting_doc: Any, posting_tf: Any, posting_tf_exact: Any) -> None:
    """Fill the postings, term by term, documents ascending, by two counting passes over the documents."""
    term_count = len(term_block) - 1
    blocks = len(block_window)
    block = term_block[:-1].copy() - 1
    last_window = np.full(term_count, -1, np.int64)
    count = np.zeros(blocks + 1, np.int64)
    for d in range(len(doc_start) - 1):
        window = d // WINDOW
        for p in range(doc_start[d], doc_start[d + 1]):
            t = term[p]
            if last_window[t] != window:
                last_window[t] = window
                block[t] += 1
                block_window[block[t]] = window
            count[block[t] + 1] += 1
    for b in range(blocks):
        count[b + 1] += count[b]
    block_posting[:] = count
    cursor = block_posting[term_block[:-1]].copy()
    for d in range(len(doc_start) - 1):
        low = d % WINDOW
        for p in range(doc_start[d], doc_start[d + 1]):
            t = term[p]
            posting_doc[cursor[t]] = low
            posting_tf[cursor[t]] = min(tf[p], TF_LIMIT)
            posting_tf_exact[cursor[t]] = tf[p]
            cursor[t] += 1


@numba.njit([INT(READ_U32, READ_I64, READ_U16, READ_I32, READ_U32, WRITE_I64, WRITE_U32, WRITE_U32)], cache=True, nogil=True)
def skylines(block_window: Any, block_posting: Any, posting_doc: Any, posting_tf: Any, doc_length: Any, block_skyline: Any, skyline_tf: Any, skyline_length: Any) -> Any:
    """Per block the pairs (tf, length) that no other posting beats in both; returns how many were written (the arrays must hold min(256, postings) a block).

    The score grows with tf and falls with length for every k1, b and average length, so the best contribution of a block at any statistics is among them. tf over 255 share one
    pair (largest tf, smallest length), which bounds them all.
    """
    shortest = np.full(TF_LIMIT + 1, np.int64(2**62))
    written = 0
    for b in range(len(block_window)):
        block_skyline[b] = written
        base = np.int64(block_window[b]) * WINDOW
        largest = np.int64(0)
        for p in range(block_posting[b], block_posting[b + 1]):
            f = np.int64(posting_tf[p])
            length = np.int64(doc_length[base + posting_doc[p]])
            if f > largest:
                largest = f
            bucket = f if f < TF_LIMIT else TF_LIMIT
            if length < shortest[bucket]:
                shortest[bucket] = length
        best = np.int64(2**62)
        for bucket in range(largest if largest < TF_LIMIT else TF_LIMIT, 0, -1):
            if shortest[bucket] < best:
                best = shortest[bucket]
                skyline_tf[written] = largest if bucket == TF_LIMIT else bucket
                skyline_length[written] = best
                written += 1
            shortest[bucket] = np.int64(2**62)
    block_skyline[len(block_window)] = written
    return written


@numba.njit([numba.void(READ_I64, WRITE_I32, WRITE_I32)], cache=True, nogil=True)
def sort_terms(doc_start: Any, term: Any, tf: Any) -> None:
    """Sort each document's (term, tf) by term, in place."""
    for d in range(len(doc_start) - 1):
        lo, hi = doc_start[d], doc_start[d + 1]
        order = np.argsort(term[lo:hi])
        term[lo:hi] = term[lo:hi][order]
        tf[lo:hi] = tf[lo:hi][order]


@numba.njit(cache=True, nogil=True, inline="always")
def _write_number(value: Any, out: Any, at: Any) -> Any:
    """Write an unsigned number as LEB128; returns the place behind it."""
    while value >= 128:
        out[at] = np.uint8(value & np.uint64(127) | np.uint64(128))
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _read_number(data: Any, at: Any) -> Any:
    """(the LEB128 number at this place, the place behind it)."""
    value = np.int64(0)
    shift = np.int64(0)
    while data[at] >= 128:
        value |= np.int64(data[at] & 127) << shift
        shift += 7
        at += 1
    return value | np.int64(data[at]) << shift, at + 1


@numba.njit([INT(READ_I64, READ_I32, READ_I32, WRITE_I64, WRITE_U8)], cache=True, nogil=True)
def pack_forward(doc_start: Any, term: Any, tf: Any, forward_start: Any, out: Any) -> Any:
    """Write the forward index of documents whose terms ascend; returns its size in bytes (`out` must hold 10 bytes a posting)."""
    at = 0
    for d in range(len(doc_start) - 1):
        forward_start[d] = at
        previous = np.int64(-1)
        for p in range(doc_start[d], doc_start[d + 1]):
            many = 1 if tf[p] > 1 else 0
            value = np.uint64((np.int64(term[p]) - previous) << 1 | many)
            previous = np.int64(term[p])
            at = _write_number(value, out, at)
            if many:
                at = _write_number(np.uint64(tf[p]), out, at)
    forward_start[len(doc_start) - 1] = at
    return at


@numba.njit([INT(READ_I64, READ_U8, INT)], cache=True, nogil=True)
def count_forward(forward_start: Any, forward: Any, doc: Any) -> Any:
    """How many (term, tf) pairs document `doc` has."""
    pairs = 0
    at = forward_start[doc]
    while at < forward_start[doc + 1]:
        value, at = _read_number(forward, at)
        if value & 1:
            _, at = _read_number(forward, at)
        pairs += 1
    return pairs


@numba.njit([INT(READ_I64, READ_U8, INT, WRITE_I32, WRITE_I32, INT)], cache=True, nogil=True)
def unpack_forward(forward_start: Any, forward: Any, doc: Any, term: Any, tf: Any, offset: Any) -> Any:
    """Read document `doc` into term[offset:], tf[offset:]; returns the offset behind the last pair."""
    previous = np.int64(-1)
    at = forward_start[doc]
    while at < forward_start[doc + 1]:
        value, at = _read_number(forward, at)
        previous += value >> 1
        frequency = np.int64(1)
        if value & 1:
            frequency, at = _read_number(forward, at)
        term[offset] = previous
        tf[offset] = frequency
        offset += 1
    return offset


@numba.njit([numba.void(READ_I64, READ_U8, READ_I64, READ_I32, READ_I64, READ_I64, WRITE_I32, WRITE_I32)], cache=True, nogil=True)
def gather_forward(forward_start: Any, forward: Any, docs: Any, new_ordinal: Any, place: Any, doc_start: Any, term: Any, tf: Any) -> None:
    """For a merge: write document docs[i], its terms renamed by `new_ordinal`, to the place that doc_start gives to document place[i]."""
    for i in range(len(docs)):
        lo = doc_start[place[i]]
        hi = unpack_forward(forward_start, forward, docs[i], term, tf, lo)
        for p in range(lo, hi):
            term[p] = new_ordinal[term[p]]


@numba.njit([numba.void(READ_I64, READ_U8, READ_I64, WRITE_I64)], cache=True, nogil=True)
def count_each(forward_start: Any, forward: Any, docs: Any, out: Any) -> None:
    """out[i] = pairs of document docs[i]."""
    for i in range(len(docs)):
        out[i] = count_forward(forward_start, forward, docs[i])


@numba.njit([numba.void(READ_I64, READ_U8, READ_I64, WRITE_I32)], cache=True, nogil=True)
def subtract_terms(forward_start: Any, forward: Any, docs: Any, dead_df: Any) -> None:
    """dead_df[t] += 1 for every term of the documents `docs`: what a deletion takes back is exactly what the index added."""
    for d in docs:
        pairs = count_forward(forward_start, forward, d)
        term = np.empty(pairs, np.int32)
        tf = np.empty(pairs, np.int32)
        unpack_forward(forward_start, forward, d, term, tf, 0)
        for t in term:
            dead_df[t] += 1
