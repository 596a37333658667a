"""Sets of documents as bitmaps: document d is bit d % 64 of word d // 64, little end first.

A bitmap over n documents has `word_count(n)` words, and its bits from n on are zero: every function here keeps that so, and relies on it. Union, intersection and difference
are numpy's `|`, `&` and `& ~` on the words, which run at the speed of memory already. What numpy lacks is here: scattering documents into bits, a column's range as bits,
counting, listing.

The loops are plain on purpose: over 100,000 documents, a scatter that gathers a word in a register won a third on some dense ordered lists and lost as much on all others, and
packing a range by bytes cost four times packing it by words, which the compiler turns into vector code. Document numbers are trusted to be below n; whoever reads them from a
file has checked the file.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.signatures import FLOAT, INT, READ_F64, READ_I32, READ_I64, READ_U32, READ_U64, WRITE_U32, WRITE_U64

Words = npt.NDArray[np.uint64]
Documents = npt.NDArray[np.uint32]

_ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


def word_count(documents: int) -> int:
    return (documents + 63) >> 6


def nothing(documents: int) -> Words:
    """The empty set over `documents` documents."""
    return np.zeros(word_count(documents), np.uint64)


def everything(documents: int) -> Words:
    """All of `documents` documents."""
    words = np.full(word_count(documents), _ALL)
    clear_tail(words, documents)
    return words


def invert(words: Words, documents: int) -> None:
    """Replace a set by its complement, in place."""
    np.invert(words, out=words)
    clear_tail(words, documents)


def clear_tail(words: Words, documents: int) -> None:
    """Zero the bits from `documents` on, all of them in the last word."""
    if documents & 63:
        words[-1] &= np.uint64((1 << (documents & 63)) - 1)


@numba.njit([numba.void(documents, WRITE_U64) for documents in (READ_U32, READ_I32, READ_I64)], cache=True)
def scatter(documents: Any, words: Any) -> None:
    """Add documents (uint32, int32 or int64; any order, repeats allowed) to the set."""
    for i in range(documents.size):
        document = np.uint64(documents[i])
        words[document >> np.uint64(6)] |= _ONE << (document & np.uint64(63))


@numba.njit([numba.void(READ_I64, INT, INT, WRITE_U64), numba.void(READ_F64, FLOAT, FLOAT, WRITE_U64)], cache=True)
def keep_in_range(column: Any, low: Any, high: Any, words: Any) -> None:
    """Keep of the set the documents with low <= column[d] <= high (int64 or float64; NaN is in no range). Words that are zero already cost nothing."""
    whole = column.size >> 6
    for k in range(whole):
        if words[k]:
            mask = np.uint64(0)
            for j in range(64):
                value = column[(k << 6) + j]
                mask |= np.uint64((value >= low) & (value <= high)) << np.uint64(j)
            words[k] &= mask
    if column.size & 63:
        mask = np.uint64(0)
        for j in range(column.size & 63):
            value = column[(whole << 6) + j]
            mask |= np.uint64((value >= low) & (value <= high)) << np.uint64(j)
        words[whole] &= mask


@numba.njit([INT(numba.uint64)], cache=True, nogil=True)
def _ones(word: Any) -> Any:
    """Ones in a word, by adding neighbours; the compiler knows the idiom and emits the machine's popcount."""
    word -= (word >> _ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@numba.njit([INT(READ_U64)], cache=True)
def count(words: Any) -> Any:
    """How many documents the set holds."""
    total = 0
    for k in range(words.size):
        total += _ones(words[k])
    return total


@numba.njit([WRITE_U32(READ_U64)], cache=True)
def members(words: Any) -> Any:
    """The set's documents, ascending (uint32)."""
    documents = np.empty(count(words), np.uint32)
    filled = 0
    for k in range(words.size):
        word = words[k]
        while word:
            below = word & (word - _ONE)  # the word without its lowest one
            documents[filled] = (k << 6) + _ones((word ^ below) - _ONE)
            filled += 1
            word = below
    return documents
