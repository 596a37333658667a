"""Vectors of records that no sidecar has yet: in memory, by sequence number.

It knows neither segments nor the buffer: whoever searches resolves the sequence numbers, and leaves out those that a sidecar has by now. Writers take a lock; a reader takes a
view, which is one reference to arrays that are only ever appended to behind its end, or replaced whole.
"""

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.vectors import RecordVectors, check_finite, take
from agentir_ray.errors import EncodingError

Array = npt.NDArray[Any]
ROOM = 64  # records for which there is room at first


class YoungView(NamedTuple):
    """Record i, which has the sequence number seq[i] (int64, in no order), has the rows start[i]:start[i + 1] of `vectors`, float32 (rows, dim)."""

    seq: Array
    start: Array
    vectors: Array


class YoungVectors:
    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._lock = threading.Lock()
        self._place: dict[int, int] = {}
        self._seq = np.empty(ROOM, np.int64)
        self._start = np.zeros(ROOM + 1, np.int64)
        self._vectors = np.empty((ROOM, dim), np.float32)
        self._view = YoungView(self._seq[:0], self._start[:1], self._vectors[:0])

    def __len__(self) -> int:
        return len(self._view.seq)

    def memory_bytes(self) -> int:
        return self._seq.nbytes + self._start.nbytes + self._vectors.nbytes

    def add(self, seq: int, vectors: Array) -> None:
        """The vectors of a record, float32 (n, dim); they replace those that it has. Raises EncodingError where they have another width or are not finite."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise EncodingError(f"vectors of shape {vectors.shape} came where (n, {self.dim}) is kept; see that the encoder is the one that the namespace's vectors are of")
        check_finite(vectors)
        with self._lock:
            if seq in self._place:
                self._remove({seq})
            records, rows = len(self._view.seq), len(self._view.vectors)
            self._make_room(records + 1, rows + len(vectors))
            self._seq[records] = seq
            self._start[records + 1] = rows + len(vectors)
            self._vectors[rows : rows + len(vectors)] = vectors
            self._place[seq] = records
            self._show(records + 1, rows + len(vectors))

    def remove(self, seqs: Iterable[int]) -> None:
        """Forget these records; those that are not there are passed over."""
        with self._lock:
            there = {seq for seq in seqs if seq in self._place}
            if there:
                self._remove(there)

    def view(self) -> YoungView:
        """What is there now. It stays as it is, whatever is added or removed later."""
        return self._view

    def get(self, seqs: Iterable[int]) -> RecordVectors:
        """The vectors of these records, in their order; no row where a record is not there."""
        with self._lock:
            view, wanted = self._view, list(seqs)
            docs = np.array([self._place.get(seq, len(view.seq)) for seq in wanted], np.int64)
        return take(RecordVectors(np.append(view.start, view.start[-1]), view.vectors), docs)

    def _remove(self, seqs: set[int]) -> None:
        """Into new arrays: views keep the old ones."""
        view = self._view
        kept = np.array([i for i, seq in enumerate(view.seq.tolist()) if seq not in seqs], np.int64)
        start, vectors = take(RecordVectors(view.start, view.vectors), kept)
        self._seq, self._start, self._vectors = view.seq[kept], start, vectors
        self._place = {seq: i for i, seq in enumerate(self._seq.tolist())}
        self._show(len(kept), len(vectors))

    def _make_room(self, records: int, rows: int) -> None:
        if records > len(self._seq):
            room = max(ROOM, 2 * records)
            self._seq, self._start = _grown(self._seq, room), _grown(self._start, room + 1)
        if rows > len(self._vectors):
            self._vectors = _grown(self._vectors, max(ROOM, 2 * rows))

    def _show(self, records: int, rows: int) -> None:
        self._view = YoungView(self._seq[:records], self._start[: records + 1], self._vectors[:rows])


def _grown(values: Array, room: int) -> Array:
    grown = np.empty((room, *values.shape[1:]), values.dtype)
    grown[: len(values)] = values
    return grown
