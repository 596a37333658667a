"""Learned sparse vectors of records that no sidecar has yet: in memory, by sequence number.

It knows neither segments nor the buffer: whoever searches resolves the sequence numbers, and leaves out those that a sidecar has by now. Writers take a lock; a reader takes a
view, which is one reference to arrays that are only ever appended to behind its end, or replaced whole. Some thousands of records are few enough to score one after the other.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import EncodingError
from agentir_ray.kernels.sparse import score_vectors

Array = npt.NDArray[Any]
ROOM = 64  # records for which there is room at first
TERM_BYTES = 120  # a term's text and its place in the dictionary


class YoungWeightsView(NamedTuple):
    """Record i, which has the sequence number seq[i] (int64, in no order), has the entries start[i]:start[i + 1] of `term` (int32) and `weight` (float32).

    `number` tells the terms' numbers, of which those below `terms` are meant.
    """

    seq: Array
    start: Array
    term: Array
    weight: Array
    number: Mapping[str, int]
    terms: int

    def scores(self, which: Array, terms: Sequence[str], gain: Array) -> npt.NDArray[np.float64]:
        """float64: of records `which` (int64) the sum of gain * weight over these distinct terms, 0 where none matches. gain float64, one a term."""
        place = np.full(self.terms, -1, np.int32)
        for p, term in enumerate(terms):
            t = self.number.get(term, self.terms)
            if t < self.terms:
                place[t] = p
        out = np.empty(len(which), np.float64)
        score_vectors(which, self.start, self.term, self.weight, place, gain, out)
        return out


class YoungWeights:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[int, int] = {}
        self._number: dict[str, int] = {}
        self._seq = np.empty(ROOM, np.int64)
        self._start = np.zeros(ROOM + 1, np.int64)
        self._term = np.empty(ROOM, np.int32)
        self._weight = np.empty(ROOM, np.float32)
        self._show(0, 0)

    def __len__(self) -> int:
        return len(self._view.seq)

    def memory_bytes(self) -> int:
        """Estimate."""
        return self._seq.nbytes + self._start.nbytes + self._term.nbytes + self._weight.nbytes + TERM_BYTES * len(self._number)

    def add(self, seq: int, terms: Sequence[str], weights: Array) -> None:
        """The vector of a record: distinct terms, weights float32 (terms); it replaces the one that it has. Raises EncodingError where a weight is negative or not finite."""
        weights = np.asarray(weights, np.float32)
        if len(terms) != len(weights) or len(set(terms)) != len(terms):
            raise EncodingError(f"a sparse vector of {len(terms):,} terms, {len(set(terms)):,} of them distinct, came with {len(weights):,} weights; give each term one")
        if not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise EncodingError("a sparse vector has a weight that is negative or not finite; see what the encoder makes of its text, such vectors cannot be kept")
        with self._lock:
            if seq in self._places:
                self._remove({seq})
            records, entries = len(self._view.seq), len(self._view.term)
            used = np.flatnonzero(weights)
            end = entries + len(used)
            self._make_room(records + 1, end)
            number = self._number
            self._term[entries:end] = [number.setdefault(terms[i], len(number)) for i in used.tolist()]
            self._weight[entries:end] = weights[used]
            self._seq[records] = seq
            self._start[records + 1] = end
            self._places[seq] = records
            self._show(records + 1, end)

    def remove(self, seqs: Iterable[int]) -> None:
        """Forget these records; those that are not there are passed over."""
        with self._lock:
            there = {seq for seq in seqs if seq in self._places}
            if there:
                self._remove(there)

    def view(self) -> YoungWeightsView:
        """What is there now. It stays as it is, whatever is added or removed later."""
        return self._view

    def _remove(self, seqs: set[int]) -> None:
        """Into new arrays, and terms that are left into new numbers: views keep the old ones."""
        view = self._view
        gone = np.array([self._places[seq] for seq in seqs], np.int64)
        kept = np.ones(len(view.seq), bool)
        kept[gone] = False
        size = np.diff(view.start)
        entries = np.repeat(kept, size)
        used, term = np.unique(view.term[entries], return_inverse=True)
        names = list(self._number)  # a term's number is its place in the order of addition
        self._number = {names[t]: i for i, t in enumerate(used.tolist())}
        self._seq, self._term, self._weight = view.seq[kept], term.astype(np.int32), view.weight[entries]
        self._start = np.zeros(len(self._seq) + 1, np.int64)
        np.cumsum(size[kept], out=self._start[1:])
        self._places = {seq: i for i, seq in enumerate(self._seq.tolist())}
        self._show(len(self._seq), len(self._term))

    def _make_room(self, records: int, entries: int) -> None:
        if records > len(self._seq):
            room = max(ROOM, 2 * records)
            self._seq, self._start = _grown(self._seq, room), _grown(self._start, room + 1)
        if entries > len(self._term):
            room = max(ROOM, 2 * entries)
            self._term, self._weight = _grown(self._term, room), _grown(self._weight, room)

    def _show(self, records: int, entries: int) -> None:
        seq, start = self._seq[:records], self._start[: records + 1]
        self._view = YoungWeightsView(seq, start, self._term[:entries], self._weight[:entries], self._number, len(self._number))


def _grown(values: Array, room: int) -> Array:
    grown = np.empty(room, values.dtype)
    grown[: len(values)] = values
    return grown
