"""A namespace's index: its segments, the buffer being sealed if any, and the growing buffer, as one.

It owns the one short lock of the namespace. Writers (one at a time: the engine sees to it) change it under the lock; a search takes a `Snapshot` under it and then reads without it. It
knows no log and no manifest: the engine tells it what was committed, and hands it segments that are already durable.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.bitmap import Words
from agentir_ray.lexical.buffer import Buffer, BufferView
from agentir_ray.lexical.document import IndexedDocument
from agentir_ray.lexical.filters import EVERYTHING, Expression, evaluate
from agentir_ray.lexical.filters.keys import field_key, scalar_key
from agentir_ray.lexical.filters.ranges import single
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.lexical.query import Statistics
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.strings import hashes, pack_strings
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
MAX_KNOWN_TERMS = 65_536  # query terms whose places are remembered; forgotten all at once beyond that


class Place(NamedTuple):
    """Where a version of a record lies."""

    part: Segment | Buffer
    doc: int


class Snapshot(NamedTuple):
    """A consistent look at the index for one query. `ordinals` holds one array a segment; `buffer_filters` one bitmap a buffer (empty: no filter)."""

    seq: int
    statistics: Statistics
    segments: tuple[Segment, ...]
    ordinals: tuple[Array, ...]
    buffers: tuple[BufferView, ...]
    buffer_filters: tuple[Words, ...]


class _Directory:
    """Where terms lie in a fixed list of segments, and how many of their live documents hold them; filled as queries ask. A change of segments or a deletion in one starts a new one."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self.segments = segments
        self._known: dict[str, tuple[tuple[int, ...], int]] = {}

    def look_up(self, terms: Sequence[str]) -> list[tuple[tuple[int, ...], int]]:
        """Per term: its ordinal in each segment (-1: none), and its document frequency in all."""
        known = self._known
        try:
            return [known[term] for term in terms]
        except KeyError:
            pass
        missing = [term for term in terms if term not in known]
        if len(known) + len(missing) > MAX_KNOWN_TERMS:
            known = self._known = {}
            missing = list(terms)
        strings = pack_strings([term.encode(errors="surrogatepass") for term in missing])
        hashed = hashes(strings)
        columns = [segment.ordinals(strings, hashed).tolist() for segment in self.segments]
        for i, term in enumerate(missing):
            ordinals = tuple(column[i] for column in columns)
            known[term] = ordinals, sum(segment.document_frequency(t) for segment, t in zip(self.segments, ordinals, strict=True) if t >= 0)
        return [known[term] for term in terms]


class Index:
    def __init__(self, segments: Sequence[Segment], seq: int) -> None:
        """`segments` hold everything up to sequence number `seq`."""
        self.lock = threading.Lock()
        self.segments = tuple(segments)
        self.sealing: Buffer | None = None
        self.buffer = Buffer()
        self.seq = seq
        self._directory = _Directory(self.segments)

    @property
    def parts(self) -> list[Segment | Buffer]:
        """Oldest first."""
        return [*self.segments, *([self.sealing] if self.sealing is not None else []), self.buffer]

    @property
    def buffers(self) -> list[Buffer]:
        return [self.buffer] if self.sealing is None else [self.sealing, self.buffer]

    @property
    def live_documents(self) -> int:
        return sum(part.live_documents for part in self.parts)

    @property
    def unsealed_documents(self) -> int:
        return sum(buffer.documents for buffer in self.buffers)

    # Reading.

    def snapshot(self, terms: Sequence[str], expression: Expression = EVERYTHING) -> Snapshot:
        """What a query of these terms reads. The look-up of the terms in the segments runs before the lock is taken."""
        while True:
            directory = self._directory
            found = directory.look_up(terms)
            with self.lock:
                if directory is not self._directory:
                    continue
                buffers = self.buffers
                df = [entry[1] for entry in found]
                for buffer in buffers:
                    if buffer.documents:
                        df = [sealed + buffer.document_frequency(term) for sealed, term in zip(df, terms, strict=True)]
                parts: list[Segment | Buffer] = [*directory.segments, *buffers]
                statistics = Statistics(sum(part.live_documents for part in parts), sum(part.live_length for part in parts), tuple(df))
                views = tuple(buffer.view(terms) for buffer in buffers)
                filters = tuple(_NO_FILTER if expression is EVERYTHING else evaluate(expression, buffer) for buffer in buffers)
                seq = self.seq
            ordinals = np.array([entry[0] for entry in found], np.int64).reshape(len(found), len(directory.segments)).T
            return Snapshot(seq, statistics, directory.segments, tuple(np.ascontiguousarray(row) for row in ordinals), views, filters)

    def find(self, id: str) -> list[Place]:
        """Every version of the record that was not erased, oldest first."""
        return [
            Place(part, doc)
            for part in self.parts
            for doc in part.documents_of_id(id)
            if not (isinstance(part, Buffer) or len(part.overlay.deleted_at)) or _overlay(part)[1][doc] != ERASED_AT
        ]

    def current(self, id: str) -> Place | None:
        """The version that is not deleted, if any."""
        for place in reversed(self.find(id)):
            deleted_seq = _overlay(place.part)[0]
            if len(deleted_seq) == 0 or deleted_seq[place.doc] == NEVER_US:
                return place
        return None

    # Writing; the caller holds the lock.

    def add(self, seq: int, document: IndexedDocument) -> None:
        self.buffer.add(seq, document)
        if document.supersedes is not None:
            for place in self.find(document.supersedes):
                self._mark_superseded(place, seq, document.created_at_us)

    def replace(self, seq: int, document: IndexedDocument) -> None:
        """Add a new version; the one before is deleted as of its creation."""
        place = self.current(document.id)
        if place is not None:
            self._delete(place, seq, document.created_at_us)
        self.add(seq, document)
        for superseding_seq, at_us in self._superseders(document.id):
            self._mark_superseded(Place(self.buffer, self.buffer.documents - 1), superseding_seq, at_us)

    def erase(self, seq: int, ids: Sequence[str]) -> int:
        """Delete every version of the records for every `as_of`; returns how many records there were. What they superseded stands again."""
        erased = 0
        restored: set[str] = set()
        for id in ids:
            places = self.find(id)
            erased += bool(places)
            for place in places:
                restored.update(_superseded_by(place))
                self._delete(place, seq, ERASED_AT)
        for id in restored:
            superseders = self._superseders(id)
            for place in self.find(id):
                place.part.supersede(place.doc, NEVER_US, NEVER_US)
                for superseding_seq, at_us in superseders:
                    self._mark_superseded(place, superseding_seq, at_us)
        return erased

    def _delete(self, place: Place, seq: int, at_us: int) -> None:
        place.part.delete(place.doc, seq, at_us)
        if isinstance(place.part, Segment):
            self._directory = _Directory(self.segments)

    @staticmethod
    def _mark_superseded(place: Place, seq: int, at_us: int) -> None:
        superseded_at = _overlay(place.part)[3]
        if len(superseded_at) == 0 or at_us < superseded_at[place.doc]:
            place.part.supersede(place.doc, seq, at_us)

    def _superseders(self, id: str) -> list[tuple[int, int]]:
        """(seq, created_at) of every version that supersedes the record and was not erased."""
        low, high = single(field_key("supersedes") + scalar_key(id))
        found = []
        for part in self.parts:
            deleted_at = _overlay(part)[1]
            for doc in part.postings(low, high).tolist():
                if len(deleted_at) == 0 or deleted_at[doc] != ERASED_AT:
                    found.append((int(part.column("seq")[doc]), int(part.column("created_at")[doc])))
        return found

    # Sealing and merging: freeze, build outside the lock, install.

    def freeze(self) -> Buffer:
        """Set the growing buffer aside for sealing and start a new one."""
        assert self.sealing is None
        self.sealing, self.buffer = self.buffer, Buffer()
        return self.sealing

    def install(self, replaced: Sequence[Segment | Buffer], segment: Segment | None) -> None:
        """Put `segment` (None: nothing was left) in the place of the parts that it was built from, with what happened to their documents meanwhile."""
        if segment is not None:
            _carry_over(replaced, segment)
        kept = [part for part in self.segments if part not in replaced]
        if segment is not None:
            kept.append(segment)
        self.segments = tuple(kept)
        if self.sealing in replaced:
            self.sealing = None
        self._directory = _Directory(self.segments)

    def each_live(self, visit: Callable[[Segment | Buffer, Array], None]) -> None:
        """Call `visit` with every part and the numbers of its documents that are not deleted."""
        for part in self.parts:
            deleted_seq = _overlay(part)[0]
            visit(part, np.flatnonzero(deleted_seq == NEVER_US) if len(deleted_seq) else np.arange(part.document_count))


_NO_FILTER: Words = np.empty(0, np.uint64)


def _overlay(part: Segment | Buffer) -> tuple[Array, Array, Array, Array]:
    if isinstance(part, Buffer):
        return part.column("deleted_seq"), part.column("deleted_at"), part.column("superseded_seq"), part.column("superseded_at")
    overlay = part.overlay
    return overlay.deleted_seq, overlay.deleted_at, overlay.superseded_seq, overlay.superseded_at


def _superseded_by(place: Place) -> list[str]:
    """The id that the document supersedes, read from its filter keys."""
    prefix = field_key("supersedes") + b"s"
    low, high = prefix, prefix[:-1] + b"t"
    return [key[len(prefix) :].decode() for key, docs in place.part.keys(low, high) if place.doc in docs]


def _carry_over(replaced: Sequence[Segment | Buffer], segment: Segment) -> None:
    """Apply to the new segment what its sources' overlays hold and its file does not yet."""
    seq = segment.array("seq")
    by_seq = np.argsort(seq)
    for part in replaced:
        old = _overlay(part)
        if len(old[0]) == 0:
            continue
        docs = np.flatnonzero((old[0] != NEVER_US) | (old[2] != NEVER_US) | (old[3] != NEVER_US))
        at = np.searchsorted(seq, part.column("seq")[docs], sorter=by_seq)
        for doc, place in zip(docs.tolist(), at.tolist(), strict=True):
            if place == len(seq) or seq[by_seq[place]] != part.column("seq")[doc]:
                continue  # erased before the segment was written
            new = int(by_seq[place])
            now = [int(column[doc]) for column in old]
            before = [int(column[new]) if len(column) else NEVER_US for column in _overlay(segment)]
            if now[:2] != before[:2] and now[0] != NEVER_US:
                segment.delete(new, now[0], now[1])
            if now[2:] != before[2:]:
                segment.supersede(new, now[2], now[3])
