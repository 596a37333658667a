"""From documents to postings and back: counting-sort inversion, skylines, and the packed forward index.

Shapes: N documents in time order, P postings, T terms, B blocks. A block is the postings of one term in one window of `WINDOW` consecutive documents; documents inside are numbered
from the window's start in 16 bits. The forward index holds, per document, its term ordinals ascending: gap << 1 | (tf > 1) as LEB128, followed by the tf as LEB128 where the bit
is set.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.classes import ESCAPE, LENGTHS, TFS
from agentir_ray.kernels.memory import ones
from agentir_ray.kernels.signatures import (
    INT,
    READ_I32,
    READ_I64,
    READ_U8,
    READ_U16,
    READ_U32,
    WRITE_I32,
    WRITE_I64,
    WRITE_U8,
    WRITE_U16,
    WRITE_U32,
    WRITE_U64,
    together,
)  # fmt: skip

WINDOW = 65_536
_FEW = 96  # terms that are sorted by insertion


@numba.njit([numba.void(READ_I64, INT, INT, READ_I32, WRITE_I32, WRITE_I32)], cache=True, nogil=True)
def rename_terms(doc_start: Any, first: Any, end: Any, new_name: Any, term: Any, tf: Any) -> None:
    """Give the terms of the documents [first, end) their new names, and sort each document's (term, tf) by them, in place.

    `doc_start` int64 (N + 1); term and tf int32 (P) list the terms of each document, and the frequency of each.
    """
    key = np.empty(_FEW, np.int64)
    for d in range(first, end):
        lo = doc_start[d]
        size = doc_start[d + 1] - lo
        if size > len(key):
            key = np.empty(2 * size, np.int64)
        ascending = True
        for i in range(size):
            key[i] = np.int64(new_name[term[lo + i]]) << 32 | np.int64(tf[lo + i])
            ascending = ascending and (i == 0 or key[i] > key[i - 1])
        if not ascending:
            if size > _FEW:
                key[:size].sort()
            else:
                for i in range(1, size):
                    moved = key[i]
                    j = i
                    while j > 0 and key[j - 1] > moved:
                        key[j] = key[j - 1]
                        j -= 1
                    key[j] = moved
        for i in range(size):
            term[lo + i] = key[i] >> 32
            tf[lo + i] = key[i] & 0xFFFFFFFF


@numba.njit([numba.void(READ_I64, READ_I32, READ_I32, READ_I32, READ_I64, READ_I64, WRITE_I32, WRITE_I32)], cache=True, nogil=True)
def place_documents(own_start: Any, own_term: Any, own_tf: Any, new_name: Any, place: Any, doc_start: Any, term: Any, tf: Any) -> None:
    """Copy some documents, their terms renamed by `new_name`, to where doc_start has document place[i]."""
    for i in range(len(place)):
        at = doc_start[place[i]] - own_start[i]
        for p in range(own_start[i], own_start[i + 1]):
            term[at + p] = new_name[own_term[p]]
            tf[at + p] = own_tf[p]


@numba.njit([together((WRITE_I64, WRITE_U32))(READ_I64, READ_I64, INT, INT)], cache=True, nogil=True)
def group_pairs(group: Any, doc: Any, groups: Any, documents: Any) -> Any:
    """(start int64 (groups + 1), docs uint32): the documents paired with each group, ascending, by two counting passes."""
    by_doc = np.zeros(documents + 1, np.int64)
    for d in doc:
        by_doc[d + 1] += 1
    for d in range(documents):
        by_doc[d + 1] += by_doc[d]
    order = np.empty(len(doc), np.int64)
    for i in range(len(doc)):
        order[by_doc[doc[i]]] = i
        by_doc[doc[i]] += 1
    start = np.zeros(groups + 1, np.int64)
    for g in group:
        start[g + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    following = start.copy()
    docs = np.empty(len(doc), np.uint32)
    for at in order:
        docs[following[group[at]]] = doc[at]
        following[group[at]] += 1
    return start, docs


@numba.njit(cache=True, nogil=True)
def _larger(values: Any, size: Any) -> Any:
    larger = np.empty(size, values.dtype)
    larger[: len(values)] = values
    return larger


@numba.njit([together((WRITE_I64, WRITE_U16, WRITE_I64))(READ_I64, READ_I32, INT)], cache=True, nogil=True)
def list_blocks(doc_start: Any, term: Any, term_count: Any) -> Any:
    """(term_block int64 (T + 1): the first block of each term; block_window uint16 (B); block_posting int64 (B + 1): the first posting of each block)."""
    room = max(term_count, 1)
    found_term, found_window, found_size = np.empty(room, np.int32), np.empty(room, np.uint32), np.empty(room, np.uint32)
    blocks = 0
    term_block = np.zeros(term_count + 1, np.int64)
    here = np.zeros(term_count, np.uint32)
    documents = len(doc_start) - 1
    for window in range((documents + WINDOW - 1) // WINDOW):
        for p in range(doc_start[window * WINDOW], doc_start[min((window + 1) * WINDOW, documents)]):
            here[term[p]] += np.uint32(1)
        if blocks + term_count > room:
            room = 2 * (blocks + term_count)
            found_term, found_window, found_size = _larger(found_term, room), _larger(found_window, room), _larger(found_size, room)
        for t in range(term_count):
            if here[t]:
                found_term[blocks] = t
                found_window[blocks] = window
                found_size[blocks] = here[t]
                here[t] = np.uint32(0)
                term_block[t + 1] += 1
                blocks += 1
    for t in range(term_count):
        term_block[t + 1] += term_block[t]
    block_window, block_posting = np.empty(blocks, np.uint16), np.zeros(blocks + 1, np.int64)
    following = term_block[:-1].copy()
    for i in range(blocks):
        b = following[found_term[i]]
        following[found_term[i]] += 1
        block_window[b] = found_window[i]
        block_posting[b + 1] = found_size[i]
    for b in range(blocks):
        block_posting[b + 1] += block_posting[b]
    return term_block, block_window, block_posting


@numba.njit([numba.void(READ_I64, READ_I32, READ_I32, READ_U32, READ_U8, READ_I64, READ_I64, WRITE_U16, WRITE_U8, WRITE_I64, WRITE_U32)], cache=True, nogil=True)
def invert(
    doc_start: Any,
    term: Any,
    tf: Any,
    length: Any,
    class_of: Any,
    term_block: Any,
    block_posting: Any,
    posting_doc: Any,
    posting_class: Any,
    overflow_posting: Any,
    overflow_tf: Any,
) -> None:
    """Fill the postings, term by term, documents ascending, and list those of a tf of `TFS` or more (as many as there are), in no order. `class_of` as in `lexical/classes.py`."""
    cursor = block_posting[term_block[:-1]].copy()
    overflown = 0
    for d in range(len(doc_start) - 1):
        low = d % WINDOW
        bucket = min(np.int64(length[d]), LENGTHS - 1)
        for p in range(doc_start[d], doc_start[d + 1]):
            at = cursor[term[p]]
            cursor[term[p]] = at + 1
            posting_doc[at] = low
            if tf[p] < TFS:
                posting_class[at] = class_of[tf[p] * LENGTHS + bucket]
            else:
                posting_class[at] = ESCAPE
                overflow_posting[overflown] = at
                overflow_tf[overflown] = tf[p]
                overflown += 1


@numba.njit([numba.void(READ_I64, READ_I32, READ_I64, READ_I64, WRITE_U16, WRITE_I64)], cache=True, nogil=True)
def place_postings(doc_start: Any, term: Any, term_block: Any, block_posting: Any, posting_doc: Any, source: Any) -> None:
    """The same without frequencies, for postings that carry something else: source[p] = which of the documents' entries posting p is."""
    cursor = block_posting[term_block[:-1]].copy()
    for d in range(len(doc_start) - 1):
        low = d % WINDOW
        for i in range(doc_start[d], doc_start[d + 1]):
            at = cursor[term[i]]
            cursor[term[i]] = at + 1
            posting_doc[at] = low
            source[at] = i


@numba.njit([INT(READ_I64, READ_U8, READ_U32, READ_U32, WRITE_I64, WRITE_U8)], cache=True, nogil=True)
def skylines(block_posting: Any, posting_class: Any, class_tf: Any, class_shortest: Any, block_skyline: Any, skyline: Any) -> Any:
    """Per block the classes that no other posting's class beats in both tf and length; returns how many were written (`skyline` must hold min(TFS, postings) a block).

    The score grows with tf and falls with length for every k1, b and average length, so the best contribution of a block at any statistics is among them.
    """
    best_of = np.full(TFS + 1, -1, np.int64)  # by tf, the class of the shortest documents; those without a class of their own come last
    written = 0
    for b in range(len(block_posting) - 1):
        block_skyline[b] = written
        largest = np.int64(0)
        for p in range(block_posting[b], block_posting[b + 1]):
            c = np.int64(posting_class[p])
            f = np.int64(class_tf[c]) if c != ESCAPE else TFS
            largest = max(largest, np.int64(f))
            best_of[f] = max(best_of[f], c)
        shortest = np.int64(2**62)
        for f in range(largest, 0, -1):
            c = best_of[f]
            if c >= 0 and class_shortest[c] < shortest:
                shortest = np.int64(class_shortest[c])
                skyline[written] = c
                written += 1
            best_of[f] = -1
    block_skyline[len(block_posting) - 1] = written
    return written


@numba.njit([numba.void(READ_I64, READ_I64, READ_U16, READ_I64, READ_U16, READ_U8, INT, INT, WRITE_U64, WRITE_U16)], cache=True, nogil=True)
def fill_bitmaps(
    terms: Any,
    term_block: Any,
    block_window: Any,
    block_posting: Any,
    posting_doc: Any,
    posting_class: Any,
    weak_classes: Any,
    words: Any,
    bitmap: Any,
    rank: Any,
) -> None:
    """Bitmaps of some terms' documents, `words` (a multiple of 8) pairs of 64-bit words each, zero before: who has the term, and whose posting's class is not weak.

    rank: how many documents of its block lie before each eighth pair.
    """
    for i in range(len(terms)):
        for b in range(term_block[terms[i]], term_block[terms[i] + 1]):
            first = i * words + block_window[b] * (WINDOW >> 6)
            for p in range(block_posting[b], block_posting[b + 1]):
                d = np.int64(posting_doc[p])
                bit = np.uint64(1) << np.uint64(d & 63)
                at = 2 * (first + (d >> 6))
                bitmap[at] |= bit
                if posting_class[p] >= weak_classes:
                    bitmap[at + 1] |= bit
        for word in range(words):
            if word & ((WINDOW >> 6) - 1) == 0:
                before = 0
            if word & 7 == 0:
                rank[(i * words + word) >> 3] = before
            before += ones(bitmap[2 * (i * words + word)])


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


@numba.njit(cache=True, nogil=True, inline="always")
def _size_of(value: Any) -> Any:
    """Bytes of a number below 2^35 as LEB128."""
    return 1 + (value >= 1 << 7) + (value >= 1 << 14) + (value >= 1 << 21) + (value >= 1 << 28)


@numba.njit([INT(READ_I64, READ_I32, READ_I32)], cache=True, nogil=True)
def measure_forward(doc_start: Any, term: Any, tf: Any) -> Any:
    """Bytes of the forward index of documents whose terms ascend."""
    size = 0
    for d in range(len(doc_start) - 1):
        previous = np.int64(-1)
        for p in range(doc_start[d], doc_start[d + 1]):
            size += _size_of((np.int64(term[p]) - previous) << 1)
            previous = np.int64(term[p])
            if tf[p] > 1:
                size += _size_of(np.int64(tf[p]))
    return size


@numba.njit([INT(READ_I64, READ_I32, READ_I32, WRITE_I64, WRITE_U8)], cache=True, nogil=True)
def pack_forward(doc_start: Any, term: Any, tf: Any, forward_start: Any, out: Any) -> Any:
    """Write the forward index of documents whose terms ascend; returns its size in bytes (`measure_forward`)."""
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
