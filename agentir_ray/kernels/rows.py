"""What a kernel is told of a segment: one row of addresses and numbers, so that any number of segments is one argument (`kernels.memory` says why).

A row is int64 (WIDTH). An array takes two fields, its address and its length; an empty one stands for "there is none". Whoever makes a row keeps its arrays alive. The fields of
the index are made once a segment; those of the query (what it may see) are filled in for each search.
"""

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.memory import f32_at, f64_at, i32_at, i64_at, u8_at, u16_at, u32_at, u64_at

# The arrays, in order: the index, the documents, the dictionary, then what this query may see.
ARRAYS = {
    "term_block": np.int64, "block_window": np.uint16, "block_posting": np.uint32, "block_skyline": np.uint32, "skyline": np.uint8,
    "posting_doc": np.uint16, "posting_class": np.uint8, "class_tf": np.uint32, "class_shortest": np.uint32, "class_weight": np.float32,
    "best_worth": np.uint8, "overflow_posting": np.uint32, "overflow_tf": np.uint32, "posting_u16": np.uint16, "posting_f32": np.float32,
    "bitmap_term": np.uint32, "bitmap": np.uint64, "bitmap_rank": np.uint16, "weak_classes": np.uint32, "numbers": np.float64,
    "length": np.uint32, "seq": np.int64, "timestamp": np.int64, "created_at": np.int64, "expires_at": np.int64, "importance": np.float64,
    "term_hash": np.uint64, "term_start": np.int64, "term_data": np.uint8, "dead_df": np.int32,
    "filter": np.uint64, "deleted_seq": np.int64, "deleted_at": np.int64, "superseded_seq": np.int64, "superseded_at": np.int64,
}  # fmt: skip
AT = {name: 2 * i for i, name in enumerate(ARRAYS)}
FILTER, CHANGES = AT["filter"], AT["deleted_seq"]
KIND, NEWEST_CREATED, HIDDEN, FIRST, END, NUMBER = range(2 * len(ARRAYS), 2 * len(ARRAYS) + 6)  # NUMBER: what refs call the segment, whichever rows are searched
WIDTH = NUMBER + 1
UNKNOWN = 2**62  # in HIDDEN, how many of the documents a query may not see: any number

# What a posting's contribution is: gain * tf / (tf + base + slope * length), or gain * weight with the weight in its class, or beside it.
BM25, CLASS_WEIGHT, U16_WEIGHT, F32_WEIGHT = range(4)
# Of `numbers`: the largest importance of a document, what a stored integer weight is multiplied by, and the base and slope at which `best_worth` holds.
LARGEST_IMPORTANCE, SCALE, SEALED_BASE, SEALED_SLOPE = range(4)

(
    _TERM_BLOCK, _BLOCK_WINDOW, _BLOCK_POSTING, _BLOCK_SKYLINE, _SKYLINE, _POSTING_DOC, _POSTING_CLASS, _CLASS_TF, _CLASS_SHORTEST, _CLASS_WEIGHT, _BEST_WORTH,
    _OVERFLOW_POSTING, _OVERFLOW_TF, _POSTING_U16, _POSTING_F32, _BITMAP_TERM, _BITMAP, _BITMAP_RANK, _WEAK_CLASSES, _NUMBERS,
    _LENGTH, _SEQ, _TIMESTAMP, _CREATED_AT, _EXPIRES_AT, _IMPORTANCE,
    _TERM_HASH, _TERM_START, _TERM_DATA, _DEAD_DF, _FILTER, _DELETED_SEQ, _DELETED_AT, _SUPERSEDED_SEQ, _SUPERSEDED_AT,
) = AT.values()  # fmt: skip

Array = npt.NDArray[Any]
Postings = namedtuple(
    "Postings",
    "kind term_block block_window block_posting block_skyline skyline posting_doc posting_class class_tf class_shortest class_weight best_worth overflow_posting overflow_tf"
    " posting_u16 posting_f32 bitmap_term bitmap bitmap_rank weak_classes scale sealed_base sealed_slope length",
)
Dictionary = namedtuple("Dictionary", "term_hash term_start term_data dead_df term_block block_posting")
Documents = namedtuple("Documents", "seq timestamp importance largest_importance filter created_at expires_at deleted_seq deleted_at superseded_seq superseded_at")


def make_row(arrays: Mapping[str, Array], kind: int, newest_created_us: int, documents: int) -> Array:
    """The row of a segment whose whole range of documents is visible. Arrays that are left out are empty; the others are of the types of `ARRAYS` and outlive the row."""
    assert len(arrays["numbers"]) and len(arrays["weak_classes"])  # kernels read their elements unasked
    row = np.zeros(WIDTH, np.int64)
    for name, values in arrays.items():
        assert values.dtype == ARRAYS[name] and values.flags.c_contiguous, name
        point_to(row, AT[name], values)
    row[KIND], row[NEWEST_CREATED], row[HIDDEN], row[FIRST], row[END] = kind, newest_created_us, 0, 0, documents
    return row


def point_to(row: Array, field: int, values: Array) -> None:
    row[field], row[field + 1] = values.ctypes.data, len(values)


@numba.njit(nogil=True, inline="always")
def postings_of(row: Any) -> Any:
    return Postings(
        row[KIND], i64_at(row, _TERM_BLOCK), u16_at(row, _BLOCK_WINDOW), u32_at(row, _BLOCK_POSTING), u32_at(row, _BLOCK_SKYLINE), u8_at(row, _SKYLINE),
        u16_at(row, _POSTING_DOC), u8_at(row, _POSTING_CLASS), u32_at(row, _CLASS_TF), u32_at(row, _CLASS_SHORTEST), f32_at(row, _CLASS_WEIGHT), u8_at(row, _BEST_WORTH),
        u32_at(row, _OVERFLOW_POSTING), u32_at(row, _OVERFLOW_TF), u16_at(row, _POSTING_U16), f32_at(row, _POSTING_F32),
        u32_at(row, _BITMAP_TERM), u64_at(row, _BITMAP), u16_at(row, _BITMAP_RANK), np.int64(u32_at(row, _WEAK_CLASSES)[0]), f64_at(row, _NUMBERS)[SCALE],
        f64_at(row, _NUMBERS)[SEALED_BASE], f64_at(row, _NUMBERS)[SEALED_SLOPE], u32_at(row, _LENGTH),
    )  # fmt: skip


@numba.njit(nogil=True, inline="always")
def documents_of(row: Any) -> Any:
    return Documents(
        i64_at(row, _SEQ), i64_at(row, _TIMESTAMP), f64_at(row, _IMPORTANCE), f64_at(row, _NUMBERS)[LARGEST_IMPORTANCE], u64_at(row, _FILTER),
        i64_at(row, _CREATED_AT), i64_at(row, _EXPIRES_AT), i64_at(row, _DELETED_SEQ), i64_at(row, _DELETED_AT), i64_at(row, _SUPERSEDED_SEQ), i64_at(row, _SUPERSEDED_AT),
    )  # fmt: skip


@numba.njit(nogil=True, inline="always")
def dictionary_of(row: Any) -> Any:
    return Dictionary(
        u64_at(row, _TERM_HASH), i64_at(row, _TERM_START), u8_at(row, _TERM_DATA), i32_at(row, _DEAD_DF), i64_at(row, _TERM_BLOCK), u32_at(row, _BLOCK_POSTING)
    )  # fmt: skip
