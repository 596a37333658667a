"""An expression as a bitmap of documents, from whatever index can list keys, columns and ids.

The index is an interface: a sealed segment answers from its mapped file, the growing buffer from dictionaries. The cost is that of the documents that the keys list plus, for a
column, one pass over the 64-document words that the tests before it left alive; no record is ever read.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.bitmap import Words, everything, invert, keep_in_range, nothing, scatter
from agentir_ray.lexical.filters.expression import And, Expression, HasId, HasKey, HasText, InRange, Not, Or
from agentir_ray.lexical.filters.ranges import prefix_successor

DocumentArray = npt.NDArray[np.uint32] | npt.NDArray[np.int32] | npt.NDArray[np.int64]


class FilterIndex(Protocol):
    """The keys and columns of `document_count` documents, numbered from 0."""

    @property
    def document_count(self) -> int: ...

    def postings(self, low: bytes, high: bytes) -> DocumentArray:
        """The documents of all keys in [low, high), in any order, repeats allowed; contiguous uint32, int32 or int64."""
        ...

    def keys(self, low: bytes, high: bytes) -> Iterable[tuple[bytes, DocumentArray]]:
        """The keys in [low, high), each with its documents."""
        ...

    def column(self, name: str) -> npt.NDArray[Any]:
        """timestamp, created_at and expires_at (NEVER_US for none) as int64, importance as float64; contiguous, one value a document."""
        ...

    def documents_of_id(self, id: str) -> Sequence[int]:
        """The documents with this id."""
        ...


def evaluate(expression: Expression, index: FilterIndex) -> Words:
    """The documents for which `expression` holds: uint64 words, document d at bit d % 64 of word d // 64, zero beyond the last document. The array is the caller's."""
    match expression:
        case HasKey(ranges):
            words = nothing(index.document_count)
            for low, high in ranges:
                scatter(index.postings(low, high), words)
            return words
        case HasText(prefix, text):
            words = nothing(index.document_count)
            for key, documents in index.keys(prefix, prefix_successor(prefix)):
                if key.find(text, len(prefix)) >= 0:
                    scatter(documents, words)
            return words
        case HasId(ids):
            words = nothing(index.document_count)
            for id in ids:
                scatter(np.asarray(index.documents_of_id(id), np.int64), words)
            return words
        case InRange(column, low, high):
            words = everything(index.document_count)
            keep_in_range(index.column(column), low, high, words)
            return words
        case Not(part):
            words = evaluate(part, index)
            invert(words, index.document_count)
            return words
        case Or(parts):
            words = nothing(index.document_count)
            for part in parts:
                words |= evaluate(part, index)
            return words
        case And(parts):
            return _all_of(parts, index)


def _all_of(parts: Sequence[Expression], index: FilterIndex) -> Words:
    """Columns come last, so that they look only at what the others left."""
    words: Words | None = None
    for part in parts:
        if not isinstance(part, InRange):
            found = evaluate(part, index)
            words = found if words is None else np.bitwise_and(words, found, out=found)
    if words is None:
        words = everything(index.document_count)
    for part in parts:
        if isinstance(part, InRange):
            keep_in_range(index.column(part.column), part.low, part.high, words)
    return words
