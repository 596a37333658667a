"""A namespace's index: its segments, the buffer being sealed if any, and the growing buffer, as one.

It owns the one short lock of the namespace. Writers (one at a time: the engine sees to it) change it under the lock; a search takes a `Snapshot` under it and then reads without
it. It knows no log and no manifest: the engine tells it what was committed, and hands it segments that are already durable.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.bitmap import Words
from agentir_ray.lexical.buffer import SUPERSEDES_SOME, Buffer, BufferView
from agentir_ray.lexical.directory import Directory
from agentir_ray.lexical.document import IndexedDocument
from agentir_ray.lexical.filters import EVERYTHING, Expression, evaluate
from agentir_ray.lexical.filters.keys import STRING, field_key, scalar_key
from agentir_ray.lexical.filters.ranges import prefix_range, single
from agentir_ray.lexical.overlay import ERASED_AT, Changes
from agentir_ray.lexical.part import Part
from agentir_ray.lexical.query import Statistics
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]


class Place(NamedTuple):
    """Where a version of a record lies."""

    part: Part
    doc: int


class Versions(NamedTuple):
    """Document docs[i] of a part is a version of record number which[i] of those asked for; `superseded` are the ids that these documents supersede."""

    which: Array
    docs: Array
    superseded: list[str]


class Located(NamedTuple):
    """Where the versions of records (distinct `ids`) lay in the segments of some moment. Segments never change, so it holds for those of them that are still there."""

    ids: tuple[str, ...]
    parts: dict[Part, Versions]


class Supersession(NamedTuple):
    """A record is superseded for [begin, end) by versions of another that follow each other and all name it; `seq` is that of the first of them."""

    seq: int
    begin_us: int
    end_us: int


class Snapshot(NamedTuple):
    """A consistent look at the index for one query.

    `rows` int64 (segments, WIDTH) and `newest_first` (segments that are not cold) are for the kernel (`kernels.rows`); ordinals int64 (terms, segments): -1 where a term does not
    occur; `oldest` and `newest` timestamp int64, `cold` bool (segments).
    `changes` has those of the segments to whose documents something happened, `buffer_filters` one bitmap a buffer (empty: no filter). Empty buffers are left out.
    """

    seq: int
    statistics: Statistics
    segments: tuple[Segment, ...]
    rows: Array
    newest_first: Array
    oldest: Array
    newest: Array
    cold: Array
    ordinals: Array
    changes: Mapping[int, Changes]
    buffers: tuple[BufferView, ...]
    buffer_filters: tuple[Words, ...]


class Index:
    def __init__(self, segments: Sequence[Segment], seq: int) -> None:
        """`segments` hold everything up to sequence number `seq`."""
        self.lock = threading.Lock()
        self.segments = tuple(segments)
        self.sealing: Buffer | None = None
        self.buffer = Buffer()
        self.seq = seq
        self._directory = Directory(self.segments)

    @property
    def parts(self) -> list[Part]:
        """In no order of time once segments were merged: versions are ordered by their sequence numbers."""
        return [*self.segments, *([self.sealing] if self.sealing is not None else []), self.buffer]

    @property
    def buffers(self) -> list[Buffer]:
        return [self.buffer] if self.sealing is None else [self.sealing, self.buffer]

    @property
    def live_documents(self) -> int:
        return sum(part.live_documents for part in self.parts)

    def memory_bytes(self) -> int:
        """Estimate of what it holds in memory of its own."""
        return sum(part.memory_bytes() for part in self.parts) + self._directory.memory_bytes()

    # Reading.

    def snapshot(self, terms: Sequence[str], expression: Expression = EVERYTHING) -> Snapshot:
        """What a query of these terms reads. The look-up of the terms in the segments runs before the lock is taken."""
        while True:
            directory = self._directory
            ordinals, df = directory.look_up(terms)
            rows, newest_first, spans, cold = directory.rows, directory.newest_first, directory.spans, directory.cold  # made before the lock is taken
            views, filters = [], []
            with self.lock:
                if directory is not self._directory:
                    continue
                documents, length = directory.live
                changed = directory.changed
                changes = {i: directory.segments[i].overlay.view() for i in changed} if changed else NOTHING_CHANGED
                for buffer in self.buffers:
                    if buffer.documents:
                        documents += buffer.live_documents
                        length += buffer.live_length
                        view, df_here = buffer.view(terms)
                        df = list(map(add, df, df_here))
                        views.append(view)
                        filters.append(NO_FILTER if expression is EVERYTHING else evaluate(expression, buffer))
                seq = self.seq
            statistics = Statistics(documents, length, tuple(df))
            return Snapshot(seq, statistics, directory.segments, rows, newest_first, *spans, cold, ordinals, changes, tuple(views), tuple(filters))

    def find(self, id: str) -> list[Place]:
        """Every version of the record that was not erased, oldest first."""
        return [place for place in self._versions(id) if not _is_erased(place)]

    def locate(self, ids: Iterable[str]) -> Located:
        """Where the records lie, without the lock: their ids are read from the files, which for many takes longer than anyone should wait."""
        distinct = tuple(dict.fromkeys(ids))
        return Located(distinct, {segment: _versions_in(segment, distinct) for segment in self.segments})

    def _versions_of(self, part: Part, located: Located) -> Versions:
        """In any part of now; what came since `located` was made is looked up."""
        return located.parts.get(part) or _versions_in(part, located.ids)

    def known(self, located: Located) -> list[str]:
        """The ids of the records that were not erased; call under the lock."""
        known = np.zeros(len(located.ids), bool)
        for part in self.parts:
            which, docs, _ = self._versions_of(part, located)
            deleted_at = part.overlay.deleted_at
            known[which if len(deleted_at) == 0 else which[deleted_at[docs] != ERASED_AT]] = True
        return [located.ids[i] for i in np.flatnonzero(known).tolist()]

    def _versions(self, id: str) -> list[Place]:
        """Every version that some part holds, oldest first."""
        places = [Place(part, doc) for part in self.parts for doc in part.documents_of_id(id)]
        if len(places) > 1:
            places.sort(key=_seq)
        return places

    def current(self, id: str) -> Place | None:
        """The version that is not deleted, if any."""
        for place in reversed(self.find(id)):
            deleted_seq = place.part.overlay.deleted_seq
            if len(deleted_seq) == 0 or deleted_seq[place.doc] == NEVER_US:
                return place
        return None

    # Writing; the caller holds the lock.

    def add(self, seq: int, document: IndexedDocument) -> None:
        """Add a document. Supersession needs no order: it may name a record that comes later."""
        doc = self.buffer.add(seq, document)
        if document.supersedes is not None:
            marks = [place.part.overlay.superseded_at[place.doc : place.doc + 1] for place in self.find(document.supersedes)]
            if any(len(mark) == 0 or document.created_at_us < mark[0] for mark in marks):
                self._restore(document.supersedes)
        if any(part.supersedes_some for part in self.parts):
            self._mark(Place(self.buffer, doc), *_since(self._supersessions(document.id)))

    def replace(self, seq: int, document: IndexedDocument) -> None:
        """Add a new version; the one before is deleted as of its creation, and supersedes no more."""
        places = self.find(document.id)
        place = self.current(document.id)
        if place is not None:
            self._delete(place, seq, document.created_at_us)
        self.add(seq, document)
        for part, before in places[-1:]:
            if document.supersedes is None or before not in part.postings(*_superseders(document.supersedes)):
                for id in _superseded_by(part, np.array([before])):
                    self._restore(id)

    def erase(self, seq: int, located: Located) -> None:
        """Delete every version of the records for every `as_of`. What they superseded stands again."""
        restored: set[str] = set()
        for part in self.parts:
            _, docs, superseded = self._versions_of(part, located)
            part.delete(docs, seq, ERASED_AT)
            restored.update(superseded)
        self._directory = Directory(self.segments)
        for id in restored.difference(located.ids):
            self._restore(id)

    def withdraw(self, seqs: Sequence[int]) -> None:
        """Undo what the versions of these sequence numbers superseded: they were erased before they came to this index, which only sees what they did to its segments."""
        if not seqs:
            return
        for segment in self.segments:
            superseded = segment.overlay.superseded_seq
            # What needed one of them was marked by it or by a later one.
            for doc in np.flatnonzero((superseded >= min(seqs)) & (superseded != NEVER_US)).tolist():
                self._restore(segment.id(doc))

    def _restore(self, id: str) -> None:
        """Mark a record superseded by those that do now, and by nothing else."""
        seq, at_us = _since(self._supersessions(id))
        for place in self.find(id):
            self._mark(place, seq, at_us)

    def _delete(self, place: Place, seq: int, at_us: int) -> None:
        place.part.delete(np.array([place.doc]), seq, at_us)
        if place.part not in self.buffers:
            self._directory = Directory(self.segments)

    def _mark(self, place: Place, seq: int, at_us: int) -> None:
        overlay = place.part.overlay
        present = (overlay.superseded_seq[place.doc], overlay.superseded_at[place.doc]) if len(overlay.superseded_seq) else (NEVER_US, NEVER_US)
        if present != (seq, at_us):  # a change may cost a copy of the overlay
            first = len(overlay.superseded_seq) == 0
            overlay.supersede(place.doc, seq, at_us)
            if first and place.part not in self.buffers:
                self._directory = Directory(self.segments, self._directory)

    def _supersessions(self, id: str) -> list[Supersession]:
        """By what the record is and was superseded, erased versions aside, in order of their sequence numbers."""
        low, high = _superseders(id)
        versions: list[tuple[int, int, int, int]] = []  # seq, created_at, deleted_seq, deleted_at
        for part in self.parts:
            docs = part.postings(low, high) if part.supersedes_some else ()
            if len(docs):
                never = np.full(len(docs), NEVER_US)
                fates = (part.overlay.deleted_seq, part.overlay.deleted_at)
                columns = (part.column("seq")[docs], part.column("created_at")[docs], *(fate[docs] if len(fate) else never for fate in fates))
                versions += zip(*(column.tolist() for column in columns), strict=True)
        found: dict[int, Supersession] = {}
        for seq, begin_us, replaced_seq, end_us in sorted(versions, reverse=True):
            if end_us != ERASED_AT:
                after = found.pop(replaced_seq, None)  # the next version of the same record supersedes this one, too
                found[seq] = Supersession(seq, begin_us, end_us if after is None else after.end_us)
        return sorted(found.values())

    # Sealing and merging: freeze, build outside the lock, install.

    def freeze(self) -> Buffer:
        """Set the growing buffer aside for sealing and start a new one."""
        assert self.sealing is None
        self.sealing, self.buffer = self.buffer, Buffer()
        return self.sealing

    def install(self, replaced: Sequence[Part], *segments: Segment) -> None:
        """Put `segments` (none: nothing was left) in the place of the parts that they were built from, with what happened to their documents meanwhile."""
        self.carry_over(replaced, *segments)
        self.segments = (*self.without(replaced), *segments)
        if self.sealing in replaced:
            self.sealing = None
        self._directory = Directory(self.segments, self._directory)

    def without(self, replaced: Sequence[Part]) -> list[Segment]:
        """The segments but for these, over whatever bytes: one that is being merged may be loaded meanwhile. Call under the lock."""
        gone = {part.path for part in replaced if isinstance(part, Segment)}
        return [segment for segment in self.segments if segment.path not in gone]

    def exchange(self, old: Segment, new: Segment) -> bool:
        """Put `new`, which is `old` over other bytes (`Segment.over`), in its place; call under the lock. False when `old` is not here any more."""
        if old not in self.segments:
            return False
        new.take_over(old)
        self.segments = tuple([new if segment is old else segment for segment in self.segments])
        self._directory = Directory(self.segments, self._directory)
        return True

    @staticmethod
    def carry_over(replaced: Sequence[Part], *segments: Segment) -> None:
        """Apply to the new segments what happened to their sources' documents since they were drafted.

        `install` does it. Whoever saves the segments' changes before that (a manifest) does it first under the same lock: changes that belong together are then saved together.
        """
        for part, segment in product(replaced, segments):
            old = part.overlay.now
            if len(old.deleted_seq) == 0:
                continue
            docs, places = _same_documents(part, segment)
            before = [column[places] if len(column) else np.full(len(places), NEVER_US) for column in segment.overlay.now]
            now = [column[docs] for column in old]
            deleted = np.flatnonzero((now[0] != NEVER_US) & ((now[0] != before[0]) | (now[1] != before[1])))
            for i in deleted.tolist():
                segment.delete(places[i : i + 1], int(now[0][i]), int(now[1][i]))
            for i in np.flatnonzero((now[2] != before[2]) | (now[3] != before[3])).tolist():
                segment.overlay.supersede(int(places[i]), int(now[2][i]), int(now[3][i]))


NOTHING_CHANGED: Mapping[int, Changes] = MappingProxyType({})
NO_FILTER: Words = np.empty(0, np.uint64)
_SUPERSEDES = field_key("supersedes")


def _superseders(id: str) -> tuple[bytes, bytes]:
    """The range of keys that holds the documents that supersede the record."""
    return single(_SUPERSEDES + scalar_key(id))


def _since(supersessions: Sequence[Supersession]) -> tuple[int, int]:
    """(seq, time) since which a record is superseded without a break, NEVER_US if it stands: the time, and the first sequence number that gave it.

    `supersessions` are in order of `seq`.
    """
    at_us = _begin(supersessions)
    if at_us == NEVER_US:
        return NEVER_US, NEVER_US
    needed = bisect_left(range(1, len(supersessions)), -at_us, key=lambda count: -_begin(supersessions[:count]))
    return supersessions[needed].seq, at_us


def _begin(supersessions: Sequence[Supersession]) -> int:
    """Where the unbroken row of them that has no end begins."""
    at_us = NEVER_US
    for _, begin_us, end_us in sorted(supersessions, key=lambda one: -one.end_us):
        if end_us < at_us:
            break
        at_us = min(at_us, begin_us) if begin_us < end_us else at_us
    return at_us


def _is_erased(place: Place) -> bool:
    deleted_at = place.part.overlay.deleted_at
    return len(deleted_at) > 0 and bool(deleted_at[place.doc] == ERASED_AT)


def _seq(place: Place) -> int:
    return int(place.part.column("seq")[place.doc])


def _versions_in(part: Part, ids: Sequence[str]) -> Versions:
    which, docs = part.documents_of_ids(ids)
    return Versions(which, docs, _superseded_by(part, docs))


def _superseded_by(part: Part, docs: Array) -> list[str]:
    """The ids that the documents supersede, read from their filter keys."""
    if not len(docs) or not part.supersedes_some or not np.isin(docs, part.postings(*single(SUPERSEDES_SOME))).any():
        return []
    prefix = _SUPERSEDES + STRING
    chosen = np.zeros(part.documents, bool)
    chosen[docs] = True
    return [key[len(prefix) :].decode() for key, holders in part.keys(*prefix_range(prefix)) if chosen[holders].any()]


def _same_documents(part: Part, segment: Segment) -> tuple[Array, Array]:
    """(documents of `part`, their places in `segment`) for those that the segment has; the others were erased before it was drafted."""
    wanted, seq, by_seq = part.column("seq"), segment.array("seq"), segment.by_seq
    at = np.minimum(np.searchsorted(seq, wanted, sorter=by_seq), len(seq) - 1)
    places = by_seq[at]
    docs = np.flatnonzero(seq[places] == wanted)
    return docs, places[docs]
