"""An immutable, memory-mapped part of an index, documents in time order, with the overlay of what happened to them since.

Opening reads the header and `meta`; every other section is checked and mapped at its first touch. A segment never changes its file and knows no namespace, log or manifest: the
engine opens it, tells it of deletions, and unlinks the file after the last reader let go.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import DamagedError, FormatError
from agentir_ray.kernels.bitmap import Words
from agentir_ray.kernels.invert import subtract_terms
from agentir_ray.kernels.rows import BM25, make_row
from agentir_ray.kernels.topk import term_tf
from agentir_ray.lexical.buffer import SUPERSEDES_SOME
from agentir_ray.lexical.builder import FORMAT_VERSION, OVERLAY
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.filters import Expression, evaluate, operand_bytes
from agentir_ray.lexical.filters.ranges import key_range, single
from agentir_ray.lexical.overlay import Overlay
from agentir_ray.lexical.stored import StoredFields, unpack_block
from agentir_ray.lexical.strings import Strings, hashes, pack_strings, pack_texts
from agentir_ray.sections import SectionFile
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
_SEARCHED = (
    "term_block", "block_window", "block_posting", "block_skyline", "skyline", "posting_doc", "posting_class", "class_tf", "class_shortest", "best_worth",
    "overflow_posting", "overflow_tf", "bitmap_term", "bitmap", "bitmap_rank", "weak_classes", "length", "seq", "timestamp", "created_at", "expires_at", "importance",
    "term_hash", "term_start", "term_data",
)  # fmt: skip
OPEN_BYTES = 16_384  # an open file's table and one array a section
MAX_KEY_BYTES = 1_024  # a filter with longer operands is evaluated anew each time rather than kept as a key beside its bitmap
_serial = itertools.count()


def _nothing(dtype: type) -> Array:
    # Read-only like the mapped arrays it stands for, so that both are one type to the compiled kernels.
    empty: Array = np.empty(0, dtype)
    empty.flags.writeable = False
    return empty


_OPTIONAL = {"expires_at": _nothing(np.int64), "importance": _nothing(np.float64)}


class Segment:
    def __init__(self, path: Path, cache: SegmentCache, id_of: Callable[[bytes], str]) -> None:
        """`id_of` reads a record's id from its stored bytes. Raises DamagedError for a missing, truncated or damaged file, FormatError for one of a newer version."""
        self.path = path
        self.serial = next(_serial)
        self._file = SectionFile(path)
        self._cache = cache
        self._id_of = id_of
        try:
            meta = json.loads(self._file.array("meta").tobytes())
            if meta["format"] > FORMAT_VERSION:
                raise FormatError(f"{path} has segment format {meta['format']}; this version of agentir_ray reads {FORMAT_VERSION}")
            self.namespace: str = meta["namespace"]
            self.fingerprint: str = meta["fingerprint"]
            self.documents: int = meta["documents"]
            self.live_documents: int = meta["live_documents"]
            self.live_length: int = meta["live_length"]
            self.largest_importance: float = meta["largest_importance"]
            self.newest_created_us: int = meta["newest_created"]
            self.sealed: tuple[float, float] = tuple(meta["sealed"])
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{path} has unreadable metadata ({error}); it is rebuilt from the log when the store is opened for writing") from error
        self.bytes = self._file.length_bytes
        written = [self._file.array(name) for name in OVERLAY] if OVERLAY[0] in self._file else None
        self.overlay = Overlay(self.documents, written)
        self._dead_df: Array | None = None
        if written is not None:
            self._subtract(self.overlay.deleted())

    def array(self, name: str) -> Array:
        """A section; an optional one that the file lacks is empty."""
        if name in _OPTIONAL and name not in self._file:
            return _OPTIONAL[name]
        return self._file.array(name)

    @property
    def sections(self) -> list[str]:
        return self._file.names()

    def memory_bytes(self) -> int:
        """Estimate of what it holds in memory of its own, beside the mapped file."""
        own = [*self.overlay.now, self._dead_df, vars(self).get("by_seq")]
        return OPEN_BYTES + sum(array.nbytes for array in own if array is not None)

    def verify(self) -> None:
        self._file.verify()

    def touch(self) -> None:
        """Check and map every section now, so that no search has to at its first touch."""
        for name in self._file.names():
            self._file.array(name)
        _ = self.row, self.terms, self.stored_fields, self.span_us

    @cached_property
    def _row_arrays(self) -> dict[str, Array]:
        return {name: self.array(name) for name in _SEARCHED} | {"numbers": np.array([self.largest_importance, 1.0, *self.sealed])}

    @cached_property
    def row(self) -> Array:
        """What the top-k kernel is told of this segment (`kernels.rows`); valid as long as the segment is held."""
        dead = {} if self._dead_df is None else {"dead_df": self._dead_df}
        return make_row(self._row_arrays | dead, BM25, self.newest_created_us, self.documents)

    # Terms.

    @cached_property
    def terms(self) -> Strings:
        return Strings(self.array("term_data"), self.array("term_start"))

    def tf(self, ordinal: int, doc: int) -> int:
        return int(term_tf(self.row[np.newaxis], 0, ordinal, doc)) if ordinal >= 0 else 0

    # Documents.

    def delete(self, docs: Array, seq: int, at_us: int) -> None:
        """Hide distinct documents from snapshots of `seq` and later; the statistics lose exactly what they added."""
        self._forget_statistics(self.overlay.delete(docs, seq, at_us))

    def replay(self, changes: Sequence[Any]) -> None:
        """Take over the overlay's changes that the manifest kept."""
        before = self.overlay.deleted()
        self.overlay.replay(changes)
        self._forget_statistics(np.setdiff1d(self.overlay.deleted(), before))

    def _forget_statistics(self, docs: Array) -> None:
        if len(docs):
            self.live_documents -= len(docs)
            self.live_length -= int(self.array("length")[docs].sum())
            self._subtract(docs)

    def _subtract(self, docs: Array) -> None:
        if len(docs):
            if self._dead_df is None:
                self._dead_df = np.zeros(len(self.array("term_hash")), np.int32)
                self.__dict__.pop("row", None)
            subtract_terms(self.array("forward_start"), self.array("forward"), docs, self._dead_df)

    @cached_property
    def by_seq(self) -> Array:
        """The documents by ascending sequence number."""
        return np.argsort(self.array("seq"))

    @cached_property
    def stored_fields(self) -> StoredFields:
        return StoredFields(*(self.array(f"stored_{name}") for name in StoredFields._fields))

    def stored(self, doc: int) -> bytes:
        """The stored bytes of a document."""
        stored = self.stored_fields
        block = int(stored.block[doc])
        content = self._cache.get(self.serial, block)
        if content is None:
            content = unpack_block(stored.data, stored.block_start, block, str(self.path))
            self._cache.put(self.serial, block, content, len(content))
        assert isinstance(content, bytes)
        start = int(stored.start[doc])
        return content[start : start + int(stored.length[doc])]

    def id(self, doc: int) -> str:
        """The id of the record that a document is a version of."""
        return self._id_of(self.stored(doc))

    def time_range(self, since_us: int, until_us: int) -> tuple[int, int]:
        """(first, end): the documents whose timestamp lies in [since_us, until_us]."""
        timestamp = self.array("timestamp")
        return int(np.searchsorted(timestamp, since_us, "left")), int(np.searchsorted(timestamp, until_us, "right"))

    @cached_property
    def span_us(self) -> tuple[int, int]:
        """The oldest and the newest timestamp."""
        timestamp = self.array("timestamp")
        return (int(timestamp[0]), int(timestamp[-1])) if self.documents else (0, 0)

    def passing(self, expression: Expression) -> Words:
        """The bitmap of the documents that pass a filter; not the caller's to change."""
        key_bytes = operand_bytes(expression)
        if key_bytes > MAX_KEY_BYTES:
            return evaluate(expression, self)
        words = self._cache.get(self.serial, expression)
        if words is None:
            words = evaluate(expression, self)
            self._cache.put(self.serial, expression, words, words.nbytes + key_bytes)
        assert isinstance(words, np.ndarray)
        return words

    # What a filter asks (lexical/filters).

    @property
    def document_count(self) -> int:
        return self.documents

    def _key_range(self, low: bytes, high: bytes) -> tuple[int, int]:
        return key_range(self.array("key_start"), self.array("key_data"), low, high)

    def postings(self, low: bytes, high: bytes) -> Array:
        """Documents of all keys in [low, high): one slice."""
        first, last = self._key_range(low, high)
        posting = self.array("key_posting")
        return self.array("key_doc")[int(posting[first]) : int(posting[last])]

    def keys(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, Array]]:
        first, last = self._key_range(low, high)
        strings, posting, docs = Strings(self.array("key_data"), self.array("key_start")), self.array("key_posting"), self.array("key_doc")
        return ((strings.get(i), docs[int(posting[i]) : int(posting[i + 1])]) for i in range(first, last))

    def column(self, name: str) -> Array:
        values = self.array(name)
        if len(values) == 0 and self.documents:
            return np.full(self.documents, NEVER_US if name == "expires_at" else 0, values.dtype)
        return values

    @cached_property
    def supersedes_some(self) -> bool:
        """Whether some document supersedes a record."""
        first, last = self._key_range(*single(SUPERSEDES_SOME))
        return first < last

    def documents_of_id(self, id: str) -> Sequence[int]:
        """Every version of the record that this segment holds."""
        values, docs = self.array("id_hash"), self.array("id_doc")
        wanted = hashes(pack_strings([id.encode()]))
        first, last = np.searchsorted(values, wanted[0], "left"), np.searchsorted(values, wanted[0], "right")
        return [doc for doc in docs[first:last].tolist() if self.id(doc) == id]

    def documents_of_ids(self, ids: Sequence[str]) -> tuple[Array, Array]:
        """(which, docs): document docs[i] is a version of the record ids[which[i]], for every version that this segment holds."""
        values, docs = self.array("id_hash"), self.array("id_doc")
        wanted = hashes(pack_texts(ids))
        first = np.searchsorted(values, wanted, "left")
        count = np.searchsorted(values, wanted, "right") - first
        which = np.repeat(np.arange(len(ids)), count)
        candidates = docs[np.repeat(first - (np.cumsum(count) - count), count) + np.arange(len(which))].astype(np.int64)
        by_block = np.argsort(self.stored_fields.block[candidates], kind="stable")  # each block is decompressed once
        which, candidates = which[by_block], candidates[by_block]
        same = np.fromiter((self.id(doc) == ids[i] for i, doc in zip(which.tolist(), candidates.tolist(), strict=True)), bool, len(which))
        return which[same], candidates[same]

    def release(self) -> None:
        """Drop what the shared cache holds of this segment."""
        self._cache.drop(self.serial)
