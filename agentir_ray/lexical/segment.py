"""An immutable, memory-mapped part of an index, documents in time order, with the overlay of what happened to them since.

Opening reads the header and `meta`; every other section is checked and mapped at its first touch. A segment never changes its file and knows no namespace, log or manifest: the
engine opens it, tells it of deletions, and unlinks the file after the last reader let go.

Its bytes lie in the file (warm), in a copy in memory (hot), or in part elsewhere (cold, `lexical.spilled`): then its file is a remainder, which answers everything but what needs
postings. A change of temperature makes another segment over the same documents with the same overlay, and never changes one that somebody reads.
"""

import copy
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import DamagedError, FormatError, SpilledError
from agentir_ray.kernels.bitmap import Words
from agentir_ray.kernels.invert import subtract_terms
from agentir_ray.kernels.rows import ARRAYS, BM25, make_row
from agentir_ray.kernels.topk import term_tf
from agentir_ray.lexical.buffer import SUPERSEDES_SOME
from agentir_ray.lexical.builder import FORMAT_VERSION, HEAVY, OVERLAY
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.filters import Expression, evaluate, operand_bytes
from agentir_ray.lexical.filters.ranges import key_range, single
from agentir_ray.lexical.overlay import Overlay
from agentir_ray.lexical.stored import StoredFields, unpack_block
from agentir_ray.lexical.strings import Strings, hashes, pack_strings, pack_texts, take_strings
from agentir_ray.sections import SectionFile
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
_SEARCHED = (
    "term_block", "block_window", "block_posting", "block_skyline", "skyline", "posting_doc", "posting_class", "class_tf", "class_shortest", "best_worth",
    "overflow_posting", "overflow_tf", "bitmap_term", "bitmap", "bitmap_rank", "weak_classes", "length", "seq", "timestamp", "created_at", "expires_at", "importance",
    "term_hash", "term_start", "term_data",
)  # fmt: skip
OPEN_BYTES = 16_384  # an open file's table and one array a section
MAX_PLACES = 64  # of times among a segment's timestamps
MAX_KEY_BYTES = 1_024  # a filter with longer operands is evaluated anew each time rather than kept as a key beside its bitmap
_serial = itertools.count()


def _nothing(dtype: type) -> Array:
    # Read-only like the mapped arrays it stands for, so that both are one type to the compiled kernels.
    empty: Array = np.empty(0, dtype)
    empty.flags.writeable = False
    return empty


_OPTIONAL = {"expires_at": _nothing(np.int64), "importance": _nothing(np.float64)}


class ColdSegmentError(SpilledError):
    """What was asked of `segments` lies on the spill target: load them, and ask again."""

    def __init__(self, *segments: "Segment") -> None:
        super().__init__(f"{', '.join(str(segment.path) for segment in segments)} was spilled and is not loaded; open the store with `spill` as before, and call again")
        self.segments = segments


class Segment:
    """`cold`: its postings and stored fields are not here. `spilled` names what holds them, also while they are loaded; empty for a segment whose file is complete.

    `answers` counts the hits that came from it lately, `loaded_ns` is when it was loaded last, by the engine's clock. `lost`: what was spilled of it is damaged or gone for good.
    """

    def __init__(self, path: Path, cache: SegmentCache, id_of: Callable[[bytes], str], spilled: str = "", body_of: Callable[[int], bytes | None] | None = None) -> None:
        """`id_of` reads a record's id from its stored bytes; `body_of` gives the stored bytes of a sequence number while the segment is cold, None where they were erased since.

        Raises DamagedError for a missing, truncated or damaged file, FormatError for one of a newer version.
        """
        self.path = path
        self.serial = next(_serial)
        self._file = SectionFile(path)
        self._heavy: SectionFile | None = None
        self._cache = cache
        self._id_of = id_of
        self.body_of = body_of
        self.spilled = spilled
        self.answers = 0.0
        self.loaded_ns = -(2**62)
        self.lost = False
        self.sidecars: Mapping[str, Any] = {}  # what channels have of these documents, by channel, opened; replaced whole by the engine
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
        self._measure()
        written = [self._file.array(name) for name in OVERLAY] if OVERLAY[0] in self._file else None
        self.overlay = Overlay(self.documents, written)
        self._dead_df: Array | None = None
        self._row: tuple[Array | None, Array] | None = None
        self._places: dict[int, int] = {}
        if written is not None:
            self._subtract(self.overlay.deleted())

    def _measure(self) -> None:
        self.is_remainder = HEAVY[0] not in self._file
        self.cold = self._heavy is None and self.is_remainder
        self.bytes = sum(file.length_bytes for file in self._files)
        self.heavy_bytes = sum(file.section(name).bytes for file in self._files for name in HEAVY if name in file)  # that spilling it frees, or has freed: none while it is cold

    @property
    def _files(self) -> list[SectionFile]:
        return [self._file] if self._heavy is None else [self._file, self._heavy]

    def array(self, name: str) -> Array:
        """A section; an optional one that the file lacks is empty. Raises ColdSegmentError for one that was spilled."""
        if self.is_remainder and name in HEAVY:
            if self._heavy is None:
                raise ColdSegmentError(self)
            return self._heavy.array(name)
        if name in _OPTIONAL and name not in self._file:
            return _OPTIONAL[name]
        return self._file.array(name)

    @property
    def sections(self) -> list[str]:
        return [name for file in self._files for name in file.names()]

    @property
    def hot(self) -> bool:
        """Whether its file was copied into memory."""
        return self._file.copied

    def memory_bytes(self) -> int:
        """Estimate of what it holds in memory of its own, beside mapped files."""
        own = [*self.overlay.now, self._dead_df, vars(self).get("by_seq")]
        copied = self._file.length_bytes if self._file.copied else 0
        return OPEN_BYTES + copied + sum(array.nbytes for array in own if array is not None)

    def verify(self) -> None:
        """Check every section that is here."""
        for file in self._files:
            file.verify()

    def touch(self) -> None:
        """Check and map every section now, so that no search has to at its first touch."""
        for file in self._files:
            for name in file.names():
                file.array(name)
        _ = self.row, self.terms, self.span_us, None if self.cold else self.stored_fields

    # Temperature.

    def over(self, file: SectionFile | None = None, heavy: SectionFile | None = None, spilled: str | None = None) -> "Segment":
        """Another segment of the same documents over other bytes: `file` (default: as here) is complete, or a remainder to which `heavy` has what was spilled.

        It takes its place by `Index.exchange`; what is cached of the one is of the other, too.
        """
        other = copy.copy(self)
        for name in ("_row_arrays", "terms", "stored_fields", "_stored_places", "_ids"):
            vars(other).pop(name, None)
        other._row = None
        other._file = self._file if file is None else file
        other.path = other._file.path
        other._heavy = heavy
        other.spilled = self.spilled if spilled is None else spilled
        other._measure()
        return other

    def take_over(self, other: "Segment") -> None:
        """What happened to the documents of `other`, which are these, up to now and from now on; call under the namespace's lock."""
        self.overlay, self._dead_df = other.overlay, other._dead_df
        self.live_documents, self.live_length, self.answers = other.live_documents, other.live_length, other.answers
        self.sidecars = other.sidecars

    @cached_property
    def _row_arrays(self) -> dict[str, Array]:
        arrays = {name: _nothing(ARRAYS[name]) if self.cold and name in HEAVY else self.array(name) for name in _SEARCHED}
        return arrays | {"numbers": np.array([self.largest_importance, 1.0, *self.sealed])}

    @property
    def row(self) -> Array:
        """What kernels are told of this segment (`kernels.rows`); valid as long as the segment is held. That of a cold one serves look-ups and bounds, and no search.

        It is made outside the namespace's lock, maybe while the first deletion comes: one that does not know of it is not served again.
        """
        dead, made = self._dead_df, self._row
        if made is not None and made[0] is dead:
            return made[1]
        row = make_row(self._row_arrays | ({} if dead is None else {"dead_df": dead}), BM25, self.newest_created_us, self.documents)
        self._row = dead, row
        return row

    # Terms.

    @cached_property
    def terms(self) -> Strings:
        return Strings(self.array("term_data"), self.array("term_start"))

    def tf(self, ordinal: int, doc: int) -> int:
        if self.cold:
            raise ColdSegmentError(self)
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
            subtract_terms(self.array("forward_start"), self.array("forward"), docs, self._dead_df)

    @cached_property
    def by_seq(self) -> Array:
        """The documents by ascending sequence number."""
        return np.argsort(self.array("seq"))

    @cached_property
    def seq_span(self) -> tuple[int, int]:
        """The least and the largest sequence number."""
        seq = self.array("seq")
        return (int(seq.min()), int(seq.max())) if self.documents else (0, -1)

    @cached_property
    def stored_fields(self) -> StoredFields:
        places = [self.array(f"stored_{name}") for name in StoredFields._fields[1:]]
        file = self._file if self._heavy is None else self._heavy
        return StoredFields(file.unchecked("stored_data"), *places)  # its blocks have checksums of their own

    def stored(self, doc: int) -> bytes:
        """The stored bytes of a document. Raises ColdSegmentError where they can only be had by loading it, or were erased since the caller's snapshot."""
        if self.cold:
            body = None if self.body_of is None else self.body_of(int(self.array("seq")[doc]))
            if body is None:
                raise ColdSegmentError(self)
            return body
        block_of, start_of, length_of = self._stored_places
        block, start = block_of[doc], start_of[doc]
        content = self._cache.get(self.serial, block)
        if content is None:
            stored = self.stored_fields
            content = unpack_block(stored.data, stored.block_start, block, str(self.path))
            self._cache.put(self.serial, block, content, len(content))
        assert isinstance(content, bytes)
        return content[start : start + length_of[doc]]

    @cached_property
    def _stored_places(self) -> tuple[memoryview, memoryview, memoryview]:
        """Block, start and length of each document's stored bytes, as what gives Python's integers at a fifth of an array's cost."""
        stored = self.stored_fields
        return stored.block.data, stored.start.data, stored.length.data

    def id(self, doc: int) -> str:
        """The id of the record that a document is a version of."""
        return self._ids.get(doc).decode() if self._ids else self._id_of(self.stored(doc))

    @cached_property
    def _ids(self) -> Strings | None:
        return Strings(self.array("id_data"), self.array("id_start")) if self.is_remainder else None

    def ids(self) -> Strings:
        """The ids of all documents."""
        if self._ids is not None:
            return self._ids
        stored, path = self.stored_fields, str(self.path)
        by_block = np.argsort(stored.block, kind="stable")  # each block is decompressed once, and none stays in the cache that searches share
        found: list[bytes] = []
        present, content = -1, b""
        for block, start, length in zip(*(values[by_block].tolist() for values in (stored.block, stored.start, stored.length)), strict=True):
            if block != present:
                present, content = block, unpack_block(stored.data, stored.block_start, block, path)
            found.append(self._id_of(content[start : start + length]).encode())
        place = np.empty(len(by_block), np.int64)
        place[by_block] = np.arange(len(by_block))
        return take_strings(pack_strings(found), place)

    def time_range(self, since_us: int, until_us: int) -> tuple[int, int]:
        """(first, end): the documents whose timestamp lies in [since_us, until_us]."""
        return self._place(since_us), self._place(until_us + 1)

    def _place(self, time_us: int) -> int:
        """How many documents are older. Remembered: the questions of an agent are about the same few ranges."""
        places = self._places
        place = places.get(time_us)
        if place is None:
            if len(places) >= MAX_PLACES:
                places = self._places = {}
            place = places[time_us] = int(np.searchsorted(self.array("timestamp"), time_us))
        return place

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

    def cached(self, what: str) -> Sized | None:
        """What somebody made from this segment and put into the store's cache."""
        return self._cache.get(self.serial, what)

    def cache(self, what: str, value: Sized, size_bytes: int) -> None:
        self._cache.put(self.serial, what, value, size_bytes)

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
        if not self.is_remainder:
            by_block = np.argsort(self.stored_fields.block[candidates], kind="stable")  # each block is decompressed once
            which, candidates = which[by_block], candidates[by_block]
        same = np.fromiter((self.id(doc) == ids[i] for i, doc in zip(which.tolist(), candidates.tolist(), strict=True)), bool, len(which))
        return which[same], candidates[same]

    def release(self) -> None:
        """Drop what the shared cache holds of this segment."""
        self._cache.drop(self.serial)
