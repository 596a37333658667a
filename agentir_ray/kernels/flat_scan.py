"""Reading codes instead of vectors: what a row's codes say of its score, stage by stage (`dense/codes.py` says why the bounds hold).

The codes of the first stage lie in blocks of 64 rows, two dimensions of a row beside each other: byte ((block * pairs + pair) * 64 + row) * 2 + 0 or 1, so that a block's sums are
vectors and a scan reads memory in order. Those of a later stage lie row after row, as only the rows that are left are read. Sums are of int32 and exact: whoever made the codes saw
that they fit.

`row_doc` names the document of each row, and is empty where rows are documents; `words` are the visible documents, empty for all; `prior` is empty for none.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.heap import largest
from agentir_ray.kernels.memory import prefetch
from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I32, READ_I64, READ_U8, READ_U64, WRITE_F32, WRITE_I64, WRITE_U8, reads, together
from agentir_ray.kernels.visible import passes

BLOCK = 64
AHEAD = 8  # rows whose codes are asked for before they are read
CHUNK = 1_024  # rows whose bounds are computed together
DONE = np.float32(-np.inf)  # the estimate of a row whose record was scored already

READ_I8, READ_I16, READ_F32 = reads(numba.int8), reads(numba.int16), reads(numba.float32)
F32 = numba.float32


@numba.njit([numba.void(READ_I8, READ_F32, READ_I16, F32, INT, INT, WRITE_F32)], cache=True, nogil=True)
def estimate(code: Any, scale: Any, query: Any, query_scale: Any, first: Any, end: Any, out: Any) -> None:
    """out[r] = the first stage's sum for each row of the blocks that first..end - 1 lie in."""
    pairs = len(query) >> 1
    total = np.empty(BLOCK, np.int32)
    for block in range(first // BLOCK, (end + BLOCK - 1) // BLOCK):
        for r in range(BLOCK):
            total[r] = 0
        for p in range(pairs):
            one, other = np.int32(query[2 * p]), np.int32(query[2 * p + 1])
            begin = (block * pairs + p) * 2 * BLOCK
            both = code[begin : begin + 2 * BLOCK]
            for r in range(BLOCK):
                total[r] += np.int32(np.int32(both[2 * r]) * one) + np.int32(np.int32(both[2 * r + 1]) * other)
        origin = block * BLOCK
        for r in range(min(BLOCK, len(out) - origin)):
            out[origin + r] = np.float32(total[r]) * (scale[origin + r] * query_scale)


@numba.njit(cache=True, nogil=True, inline="always")
def _doc_of(row: Any, row_doc: Any) -> Any:
    return np.int64(row_doc[row]) if len(row_doc) > 0 else row


@numba.njit(cache=True, nogil=True)
def _keep_best(found: Any, wanted: Any, promise: Any, out: Any) -> Any:
    """Keep `wanted` of the rows, those that promise most; returns (their number, what each promises at least)."""
    least = largest(promise, found, wanted)
    above = 0
    for i in range(found):
        above += 1 if promise[i] > least else 0
    equal = wanted - above
    kept = np.int64(0)
    for i in range(found):
        if promise[i] > least or (promise[i] == least and equal > 0):
            equal -= 1 if promise[i] == least else 0
            out[kept], promise[kept] = out[i], promise[i]
            kept += 1
    return kept, least


@numba.njit([INT(READ_F32, INT, INT, FLOAT, READ_I32, READ_U64, READ_F64, FLOAT, INT, WRITE_I64)], cache=True, nogil=True)
def leaders(value: Any, first: Any, end: Any, unit: Any, row_doc: Any, words: Any, prior: Any, largest_prior: Any, wanted: Any, out: Any) -> Any:
    """The `wanted` visible rows of first..end - 1 with the largest estimates, with their priors, in no order: written to `out`; returns how many. len(out) >= 4 * wanted."""
    room = len(out)
    promise = np.empty(room, np.float64)
    found, least = 0, -np.inf
    for row in range(first, end):
        total = np.float64(value[row]) * unit
        if total + largest_prior < least:
            continue
        doc = _doc_of(row, row_doc)
        if len(prior) > 0:
            total += prior[doc]
        if total < least or not passes(doc, words):
            continue
        out[found], promise[found] = row, total
        found += 1
        if found == room:
            found, least = _keep_best(found, wanted, promise, out)
    if found > wanted:
        found, least = _keep_best(found, wanted, promise, out)
    return found


@numba.njit([INT(READ_F32, READ_F32, READ_F32, F32, F32, F32, INT, INT, FLOAT, READ_I32, READ_U64, READ_F64, FLOAT, FLOAT, WRITE_I64, WRITE_F32)], cache=True, nogil=True)
def survivors(
    value: Any,
    error: Any,
    tail: Any,
    known: Any,
    unknown: Any,
    spare: Any,
    first: Any,
    end: Any,
    unit: Any,
    row_doc: Any,
    words: Any,
    prior: Any,
    largest_prior: Any,
    threshold: Any,
    out: Any,
    out_value: Any,
) -> Any:
    """The visible rows of first..end - 1 that may reach the threshold, ascending, and their estimates; returns how many."""
    bound, place = np.empty(CHUNK, np.float32), np.empty(CHUNK + 1, np.int64)
    # What is below this is below the threshold, whatever the rounding of the exact comparison, which those that are not are put to.
    quick = (threshold - largest_prior) / unit - 1e-12 * (abs(threshold) + abs(largest_prior)) / unit
    quick32 = np.float32(quick) - np.float32(abs(np.float32(quick)) * np.float32(3e-7)) - np.float32(1e-30) if abs(quick) < 1e30 else np.float32(-np.inf)
    found = 0
    for origin in range(first, end, CHUNK):
        size = min(CHUNK, end - origin)
        here, here_error, here_tail = value[origin : origin + size], error[origin : origin + size], tail[origin : origin + size]
        for i in range(size):
            bound[i] = here[i] + (known * here_error[i] + unknown * here_tail[i] + spare)
        promising: Any = 0
        for i in range(size):
            place[promising] = i
            promising += np.int64(bound[i] >= quick32)
        for p in range(promising):
            i = place[p]
            row = origin + i
            doc = _doc_of(row, row_doc)
            extra = prior[doc] if len(prior) > 0 else 0.0
            if np.float64(bound[i]) * unit + extra < threshold or here[i] == DONE or not passes(doc, words):
                continue
            out[found], out_value[found] = row, here[i]
            found += 1
    return found


@numba.njit(
    [INT(INT, WRITE_I64, WRITE_F32, WRITE_F32, WRITE_U8, READ_I8, READ_F32, READ_F32, READ_F32, READ_I16, F32, F32, F32, F32, FLOAT, READ_I32, READ_F64, FLOAT, INT)],
    cache=True,
    nogil=True,
)
def refine(
    count: Any,
    rows: Any,
    value: Any,
    bound: Any,
    sure: Any,
    code: Any,
    scale: Any,
    error: Any,
    tail: Any,
    query: Any,
    query_scale: Any,
    known: Any,
    unknown: Any,
    spare: Any,
    unit: Any,
    row_doc: Any,
    prior: Any,
    threshold: Any,
    judging: Any,
) -> Any:
    """Take a stage's codes into the estimates of the first `count` rows, and drop those that cannot reach the threshold, in place; returns how many are left.

    bound[i] becomes what row i reaches at most, with its prior left out. When `judging`, sure[i] becomes 1 where its score is above the threshold for certain, and stays so; such a
    row is read no further. An empty query adds nothing.
    """
    width = len(query)
    kept = 0
    for i in range(count):
        row = rows[i]
        if sure[i] != 0:
            rows[kept], value[kept], sure[kept] = row, value[i], 1
            kept += 1
            continue
        estimated = value[i]
        if width > 0:
            prefetch(code, rows[min(i + AHEAD, count - 1)] * width)
            of_row = code[row * width : (row + 1) * width]
            total = np.int32(0)
            for j in range(width):
                total = np.int32(total + np.int32(np.int32(of_row[j]) * np.int32(query[j])))
            estimated += np.float32(total) * (scale[row] * query_scale)
        slack = known * error[row] + unknown * tail[row] + spare
        extra = prior[_doc_of(row, row_doc)] if len(prior) > 0 else 0.0
        if np.float64(estimated + slack) * unit + extra < threshold:
            continue
        rows[kept], value[kept], bound[kept] = row, estimated, estimated + slack
        sure[kept] = judging != 0 and np.float64(estimated - slack) * unit + extra > threshold
        kept += 1
    return kept


@numba.njit([INT(INT, READ_I64, READ_F32, READ_I32, WRITE_I64, WRITE_F32)], cache=True, nogil=True)
def by_document(count: Any, rows: Any, bound: Any, row_doc: Any, out: Any, out_bound: Any) -> Any:
    """Ascending rows as documents, each with the largest bound of its rows; returns how many."""
    found = 0
    for i in range(count):
        doc = _doc_of(rows[i], row_doc)
        if found > 0 and out[found - 1] == doc:
            out_bound[found - 1] = max(out_bound[found - 1], bound[i])
        else:
            out[found], out_bound[found] = doc, bound[i]
            found += 1
    return found


@numba.njit([together((INT, INT))(INT, READ_I64, READ_U8, READ_I32, WRITE_I64)], cache=True, nogil=True)
def sure_and_open(count: Any, rows: Any, sure: Any, row_doc: Any, out: Any) -> Any:
    """(documents of which some row is sure, documents of which none is): of ascending rows. The latter are written to `out`."""
    certain = undecided = 0
    i = 0
    while i < count:
        doc = _doc_of(rows[i], row_doc)
        some = False
        while i < count and _doc_of(rows[i], row_doc) == doc:
            some |= sure[i] != 0
            i += 1
        if some:
            certain += 1
        else:
            out[undecided] = doc
            undecided += 1
    return certain, undecided
