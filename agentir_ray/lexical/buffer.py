"""The growing part of an index: records become searchable the moment they are added, and leave it together when it is sealed into a segment.

One writer at a time changes it, under the namespace's lock; readers take a `BufferView` under that lock and then read without it: arrays are appended to or replaced, never
changed where a reader can see, except the overlay, whose entries carry the sequence number that made them (`lexical.overlay`). Documents are numbered in order of arrival.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.growing import append_postings, find_tf
from agentir_ray.lexical.document import IndexedDocument
from agentir_ray.lexical.filters.keys import EXISTS, SESSION_IS, field_key
from agentir_ray.lexical.overlay import Changes, Overlay
from agentir_ray.types import MIN_TIME_US

Array = npt.NDArray[Any]
SUPERSEDES_SOME = field_key("supersedes") + EXISTS
# A store may hold ten thousand namespaces of a few records each: arrays begin small and double.
_FIRST_CAPACITY = 16
_FIRST_POSTINGS = 256
_FIRST_TERMS = 128


class BufferView(NamedTuple):
    """A consistent look at a buffer: its first `documents` documents, and of each asked term its newest posting (`head`, -1: none), its number and its largest tf (int32).

    `shortest` (tokens), `newest_us` and `largest_importance` bound all its documents.
    """

    documents: int
    head: Array
    number: Array
    most_tf: Array
    shortest: float
    newest_us: int
    largest_importance: float
    posting_doc: Array
    posting_term: Array
    posting_tf: Array
    posting_next: Array
    doc_posting: Array
    length: Array
    seq: Array
    timestamp: Array
    created_at: Array
    expires_at: Array
    importance: Array
    changes: Changes
    bodies: Sequence[bytes]
    sessions: Sequence[bytes | None]

    def tf(self, term: int, doc: int) -> int:
        """tf of the `term`-th asked term in `doc`."""
        return int(find_tf(int(self.head[term]), doc, self.posting_doc, self.posting_tf, self.posting_next))

    def stored(self, doc: int) -> bytes:
        """The stored bytes of a document."""
        return self.bodies[doc]


class Buffer:
    def __init__(self) -> None:
        self.documents = 0
        self.live_documents = 0
        self.live_length = 0
        self.bodies: list[bytes] = []
        self.sessions: list[bytes | None] = []  # the key of each document's session
        self.stored_bytes = 0
        self.id_docs: dict[str, tuple[int, ...]] = {}  # tuples of ints, which the garbage collector soon leaves alone
        self.doc_ids: list[str] = []
        self.term_number: dict[str, int] = {}
        self.key_docs: dict[bytes, array[int]] = {}  # machine ints, so that a filter reads them without touching each
        self.sorted_keys: list[bytes] = []
        self._postings = 0
        self.overlay = Overlay(_FIRST_CAPACITY)
        self.length = np.empty(_FIRST_CAPACITY, np.int64)
        self.seq = np.empty(_FIRST_CAPACITY, np.int64)
        self.timestamp = np.empty(_FIRST_CAPACITY, np.int64)
        self.created_at = np.empty(_FIRST_CAPACITY, np.int64)
        self.expires_at = np.empty(_FIRST_CAPACITY, np.int64)
        self.importance = np.empty(_FIRST_CAPACITY, np.float64)
        self.doc_posting = np.zeros(_FIRST_CAPACITY + 1, np.int64)
        self.posting_doc = np.empty(_FIRST_POSTINGS, np.int32)
        self.posting_term = np.empty(_FIRST_POSTINGS, np.int32)
        self.posting_tf = np.empty(_FIRST_POSTINGS, np.int32)
        self.posting_next = np.empty(_FIRST_POSTINGS, np.int32)
        # The last place of both stands for a term that is not there, so that number -1 finds it.
        self._head = np.full(_FIRST_TERMS, -1, np.int32)
        self.df = np.zeros(_FIRST_TERMS, np.int32)
        self._most_tf = np.zeros(_FIRST_TERMS, np.int32)
        self._shortest = np.inf
        self._newest_us = MIN_TIME_US
        self._largest_importance = 0.0

    def add(self, seq: int, document: IndexedDocument) -> int:
        """Append a document and return its number. `seq` is larger than all before."""
        doc = self.documents
        if doc == len(self.seq):
            self._grow_documents()
        self.seq[doc] = seq
        self.timestamp[doc] = document.timestamp_us
        self.created_at[doc] = document.created_at_us
        self.expires_at[doc] = document.expires_at_us
        self.importance[doc] = document.importance
        self.length[doc] = document.length
        numbers = self._number_terms(document.terms)
        if self._postings + len(numbers) > len(self.posting_doc):
            self._grow_postings(self._postings + len(numbers))
        append_postings(
            doc, numbers, document.tfs, self._postings, self._head, self.df, self._most_tf, self.posting_doc, self.posting_term, self.posting_tf, self.posting_next
        )  # fmt: skip
        self._shortest = min(self._shortest, document.length)
        self._newest_us = max(self._newest_us, document.timestamp_us)
        self._largest_importance = max(self._largest_importance, document.importance)
        self._postings += len(numbers)
        self.doc_posting[doc + 1] = self._postings
        session = None
        for key in document.keys:
            if key.startswith(SESSION_IS):
                session = key
            docs = self.key_docs.get(key)
            if docs is None:
                self.key_docs[key] = array("I", (doc,))
                insort(self.sorted_keys, key)
            else:
                docs.append(doc)
        self.id_docs[document.id] = (*self.id_docs.get(document.id, ()), doc)
        self.doc_ids.append(document.id)
        self.bodies.append(document.stored)
        self.sessions.append(session)
        self.stored_bytes += len(document.stored)
        self.live_documents += 1
        self.live_length += document.length
        self.documents = doc + 1
        return doc

    def _number_terms(self, terms: tuple[str, ...]) -> Array:
        known = self.term_number
        numbers = [known.setdefault(term, len(known)) for term in terms]
        if len(known) >= len(self._head):
            size = max(2 * len(self._head), len(known) + 1)
            self._head = _resized(self._head, size, -1)
            self.df = _resized(self.df, size, 0)
            self._most_tf = _resized(self._most_tf, size, 0)
        return np.array(numbers, np.int32)

    def _grow_documents(self) -> None:
        size = 2 * len(self.seq)
        for name in ("length", "seq", "timestamp", "created_at", "expires_at", "importance"):
            setattr(self, name, _resized(getattr(self, name), size, 0))
        self.overlay.grow(size)
        self.doc_posting = _resized(self.doc_posting, size + 1, 0)

    def _grow_postings(self, needed: int) -> None:
        size = max(2 * len(self.posting_doc), needed)
        for name in ("posting_doc", "posting_term", "posting_tf", "posting_next"):
            setattr(self, name, _resized(getattr(self, name), size, 0))

    def delete(self, docs: Array, seq: int, at_us: int) -> None:
        """Hide distinct documents from snapshots of `seq` and later; the statistics lose what they added."""
        for doc in self.overlay.delete(docs, seq, at_us).tolist():
            self.live_documents -= 1
            self.live_length -= int(self.length[doc])
            self.df[self.posting_term[self.doc_posting[doc] : self.doc_posting[doc + 1]]] -= 1

    def view(self, terms: Iterable[str]) -> tuple[BufferView, list[int]]:
        """What a reader of `terms` needs, and how many live documents hold each; call under the namespace's lock."""
        number = self.term_number.get
        numbers = np.array([number(term, -1) for term in terms], np.int32)
        view = BufferView(
            self.documents,
            self._head.take(numbers),
            numbers,
            self._most_tf.take(numbers),
            self._shortest,
            self._newest_us,
            self._largest_importance,
            self.posting_doc,
            self.posting_term,
            self.posting_tf,
            self.posting_next,
            self.doc_posting,
            self.length,
            self.seq,
            self.timestamp,
            self.created_at,
            self.expires_at,
            self.importance,
            self.overlay.view(),
            self.bodies,
            self.sessions,
        )
        return view, self.df.take(numbers).tolist()

    # What a filter asks (lexical/filters); call under the namespace's lock.

    @property
    def document_count(self) -> int:
        return self.documents

    def postings(self, low: bytes, high: bytes) -> Array:
        """Documents of all keys in [low, high)."""
        lists = [docs for _, docs in self.keys(low, high)]
        return lists[0] if len(lists) == 1 else np.concatenate([*lists, np.empty(0, np.uint32)])

    def keys(self, low: bytes, high: bytes) -> Iterable[tuple[bytes, Array]]:
        first, last = bisect_left(self.sorted_keys, low), bisect_left(self.sorted_keys, high)
        return ((key, np.array(self.key_docs[key], np.uint32)) for key in self.sorted_keys[first:last])

    def column(self, name: str) -> Array:
        column: Array = getattr(self, name)
        return column[: self.documents]

    @property
    def supersedes_some(self) -> bool:
        """Whether some document supersedes a record."""
        return SUPERSEDES_SOME in self.key_docs

    def documents_of_id(self, id: str) -> Sequence[int]:
        return self.id_docs.get(id, ())

    def documents_of_ids(self, ids: Sequence[str]) -> tuple[Array, Array]:
        """(which, docs): document docs[i] is a version of the record ids[which[i]], for every version that this buffer holds."""
        places = np.array([(i, doc) for i, id in enumerate(ids) for doc in self.id_docs.get(id, ())], np.int64).reshape(-1, 2)
        return places[:, 0], places[:, 1]

    def stored(self, doc: int) -> bytes:
        """The stored bytes of a document."""
        return self.bodies[doc]

    def memory_bytes(self) -> int:
        """An estimate of the anonymous memory held."""
        arrays = 7 * self.seq.nbytes + self.overlay.nbytes + 4 * self.posting_doc.nbytes + 3 * self._head.nbytes
        return arrays + self.stored_bytes + 120 * (len(self.term_number) + len(self.key_docs) + len(self.id_docs))


def _resized(values: Array, size: int, fill: int) -> Array:
    larger = np.full(size, fill, values.dtype)
    larger[: len(values)] = values
    return larger
