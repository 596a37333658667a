"""Which records stand beside a record in its session, by (timestamp, sequence number).

Of each part the documents of a session are known by its filter keys; in a segment they lie in time order, in a buffer in order of arrival.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.buffer import BufferView
from agentir_ray.lexical.filters import Expression
from agentir_ray.lexical.filters.keys import SESSION_IS
from agentir_ray.lexical.filters.ranges import prefix_range
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.overlay import ERASED_AT, NO_CHANGES
from agentir_ray.lexical.search import Visibility
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.visible import column_of, refs_seen

Array = npt.NDArray[Any]
WINDOW = 2  # records on each side
REACH = 8  # on each side among which these are looked for: versions that were replaced, or that the query does not see, lie between
LONG = 4_096  # documents of a session in one part: of more, only those around the ones asked for are looked at


class _Sessions(NamedTuple):
    """The sessions of one part: session `number[name]` has the documents doc[start[i]:start[i + 1]], and document d belongs to session session_of[d], -1: to none."""

    names: list[bytes]
    number: dict[bytes, int]
    start: Array
    doc: Array
    session_of: Array

    def documents(self, name: bytes) -> Array:
        i = self.number.get(name)
        return self.doc[:0] if i is None else self.doc[self.start[i] : self.start[i + 1]]


def neighbours(snapshot: Snapshot, refs: Array, visibility: Visibility, expression: Expression) -> Array:
    """int64 (n, 2 * WINDOW): of each document (int64 refs) the refs of the records before it, the nearest first, and then of those after it, that the query sees; -1: none."""
    out = np.full((len(refs), 2 * WINDOW), -1, np.int64)
    sessions = [_of_segment(segment) for segment in snapshot.segments] + [_of_buffer(view) for view in snapshot.buffers]
    asked: dict[bytes, list[int]] = {}
    for place, (part, doc) in enumerate(zip((refs >> 32).tolist(), (refs & 0xFFFFFFFF).tolist(), strict=True)):
        session = int(sessions[part].session_of[doc])
        if session >= 0:
            asked.setdefault(sessions[part].names[session], []).append(place)
    if not asked:
        return out
    places = np.array([place for each in asked.values() for place in each])
    each_ordered = [_in_order(snapshot, sessions, name, refs[each]) for name, each in asked.items()]
    ordered = np.concatenate(each_ordered)  # of one session after the other
    session_at = np.repeat(np.arange(len(asked)), [len(each) for each in each_ordered])
    by_ref = np.argsort(ordered)
    at = by_ref[np.searchsorted(ordered, refs[places], sorter=by_ref)]
    seen = refs_seen(snapshot, ordered, visibility, expression)
    visible = np.flatnonzero(seen)
    behind = np.searchsorted(visible, at)  # the first visible place from it on
    for i in range(WINDOW):
        for column, nth in ((i, behind - 1 - i), (WINDOW + i, behind + seen[at] + i)):
            inside = np.flatnonzero((nth >= 0) & (nth < len(visible)))
            near, mine = visible[nth[inside]], at[inside]
            inside, near = (values[(session_at[near] == session_at[mine]) & (np.abs(near - mine) <= REACH)] for values in (inside, near))
            out[places[inside], column] = ordered[near]
    return out


def _in_order(snapshot: Snapshot, sessions: list[_Sessions], name: bytes, refs: Array) -> Array:
    """The refs of a session's documents by (timestamp, seq); of a long session, those around some of them."""
    ref, timestamp, seq = [], [], []
    segments = len(snapshot.segments)
    wanted = None
    for part, of_part in enumerate(sessions):
        docs = _not_erased(snapshot, part, of_part.documents(name))
        if not len(docs):
            continue
        columns = snapshot.segments[part].array if part < segments else lambda column, view=snapshot.buffers[part - segments]: getattr(view, column)
        if len(docs) > LONG and part < segments:
            if wanted is None:
                wanted = column_of(snapshot, "timestamp", refs), column_of(snapshot, "seq", refs)
            at = _places(columns("timestamp")[docs], columns("seq")[docs], *wanted)
            near = np.unique(np.clip(at[:, None] + np.arange(-REACH, REACH + 1), 0, len(docs) - 1))
            docs = docs[near]
        ref.append((part << 32) + docs.astype(np.int64))
        timestamp.append(columns("timestamp")[docs])
        seq.append(columns("seq")[docs])
    return np.concatenate(ref)[np.lexsort((np.concatenate(seq), np.concatenate(timestamp)))]


def _not_erased(snapshot: Snapshot, part: int, docs: Array) -> Array:
    """What was erased is gone for every question, and with the next purge from the files: nothing may depend on where it still lies."""
    segments = len(snapshot.segments)
    changes = snapshot.changes.get(part, NO_CHANGES) if part < segments else snapshot.buffers[part - segments].changes
    if not len(changes.deleted_at):
        return docs
    kept: Array = docs[(changes.deleted_at[docs] != ERASED_AT) | (changes.deleted_seq[docs] > snapshot.seq)]  # what is erased after the snapshot is still there
    return kept


def _places(times: Array, seqs: Array, wanted_us: Array, wanted_seq: Array) -> Array:
    """int64: where each (timestamp, sequence number) belongs among some that are in order."""
    first, end = np.searchsorted(times, wanted_us), np.searchsorted(times, wanted_us, "right")
    tied = np.flatnonzero(end > first)
    for i in tied.tolist():  # many records of one moment are what an import makes
        first[i] += np.searchsorted(seqs[first[i] : end[i]], wanted_seq[i])
    return first


def _of_segment(segment: Segment) -> _Sessions:
    found = segment.cached("sessions")
    if found is None:
        keys = [(key, docs) for key, docs in segment.keys(*prefix_range(SESSION_IS))]
        found = _sessions([key for key, _ in keys], [docs for _, docs in keys], segment.documents)
        segment.cache("sessions", found, found.start.nbytes + found.doc.nbytes + found.session_of.nbytes + 200 * len(found.names) + sum(map(len, found.names)))
    assert isinstance(found, _Sessions)
    return found


def _of_buffer(view: BufferView) -> _Sessions:
    docs: dict[bytes, list[int]] = {}
    for doc, name in enumerate(view.sessions[: view.documents]):
        if name is not None:
            docs.setdefault(name, []).append(doc)
    return _sessions(list(docs), [np.array(each) for each in docs.values()], view.documents)


def _sessions(names: list[bytes], docs: list[Array], documents: int) -> _Sessions:
    start = np.zeros(len(names) + 1, np.int64)
    np.cumsum([len(each) for each in docs], out=start[1:])
    doc = np.concatenate([np.empty(0, np.int64), *docs]).astype(np.int64)
    session_of = np.full(documents, -1, np.int32)
    session_of[doc] = np.repeat(np.arange(len(names), dtype=np.int32), np.diff(start))
    return _Sessions(names, {name: i for i, name in enumerate(names)}, start, doc, session_of)
