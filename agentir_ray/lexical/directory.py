"""Where terms lie in the segments of an index, and how many documents hold them: one look-up a term, whatever the number of segments."""

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.lookup import look_up
from agentir_ray.kernels.rows import NUMBER, WIDTH
from agentir_ray.lexical.segment import Segment

Array = npt.NDArray[Any]
FEW_SEGMENTS = 4  # so many dictionaries are searched sooner than remembered
MAX_KNOWN_BYTES = 16 * 2**20  # of query terms whose places are remembered; forgotten all at once beyond that
KNOWN_TERM_BYTES = 200  # a string, a number, and their place in the dictionary
FIRST_ROWS = 16


class _Known:
    """What is remembered of terms: row_of[term] is a row of `ordinals` and `df`, int64 (terms, segments), and of `total`, the sums of `df`. Rows are only added, under `lock`."""

    def __init__(self, segments: int) -> None:
        self.row_of: dict[str, int] = {}
        self.ordinals: Array = np.empty((FIRST_ROWS, segments), np.int64)
        self.df: Array = np.empty((FIRST_ROWS, segments), np.int64)
        self.total: Array = np.empty(FIRST_ROWS, np.int64)
        self.lock = threading.Lock()

    def add(self, terms: Sequence[str], ordinals: Array, df: Array) -> None:
        """New rows, which are there before anybody is told of them."""
        first = len(self.row_of)
        end = first + len(terms)
        if end > len(self.total):
            room = max(end, 2 * len(self.total))
            self.ordinals, self.df, self.total = (_with_room(values, first, room) for values in (self.ordinals, self.df, self.total))
        self.ordinals[first:end], self.df[first:end], self.total[first:end] = ordinals, df, df.sum(axis=1)
        self.row_of.update(zip(terms, range(first, end), strict=True))

    @property
    def nbytes(self) -> int:
        return KNOWN_TERM_BYTES * len(self.row_of) + self.ordinals.nbytes + self.df.nbytes + self.total.nbytes


def _with_room(values: Array, kept: int, room: int) -> Array:
    larger = np.empty((room, *values.shape[1:]), values.dtype)
    larger[:kept] = values[:kept]
    return larger


class Directory:
    """Where terms lie in a fixed list of segments, and how many of their live documents hold them.

    A change of segments, a deletion in one of them, and whatever first happens to one's documents, start a new one. Of many segments it remembers what queries asked for.
    """

    def __init__(self, segments: tuple[Segment, ...], before: "Directory | None" = None) -> None:
        """`before` knew other segments, of which those that are still here lost no document since: what it remembers of them is taken over, when it is asked for."""
        self.segments = segments
        self._known = _Known(len(segments) if len(segments) > FEW_SEGMENTS else 0)
        self._before = _Known(0)
        if before is not None and len(segments) > FEW_SEGMENTS:
            self._before = before._known
            place = {segment: i for i, segment in enumerate(before.segments)}
            self._place_before = np.array([place.get(segment, -1) for segment in segments], np.int64)

    @cached_property
    def rows(self) -> Array:
        """int64 (segments, WIDTH): what the kernel is told of the segments."""
        if len(self.segments) == 1:
            return self.segments[0].row[np.newaxis]
        rows = np.stack([segment.row for segment in self.segments]) if self.segments else np.empty((0, WIDTH), np.int64)
        rows[:, NUMBER] = np.arange(len(rows))
        return rows

    @cached_property
    def cold(self) -> Array:
        """bool (segments): whose postings are not here."""
        return np.array([segment.cold for segment in self.segments], bool)

    @cached_property
    def newest_first(self) -> Array:
        """The segments that can be searched by their newest document, the newest first."""
        here = np.flatnonzero(~self.cold)
        newest = np.array([self.segments[i].span_us[1] for i in here.tolist()], np.int64)
        return here[np.argsort(-newest, kind="stable")].astype(np.int64)

    @cached_property
    def spans(self) -> tuple[Array, Array]:
        """The oldest and the newest timestamp of each segment, int64."""
        oldest, newest = zip(*[segment.span_us for segment in self.segments], strict=True) if self.segments else ((), ())
        return np.array(oldest, np.int64), np.array(newest, np.int64)

    @cached_property
    def changed(self) -> tuple[int, ...]:
        """The segments to whose documents something happened; made under the lock of the index, where the first change of a segment starts a new directory."""
        return tuple([i for i, segment in enumerate(self.segments) if len(segment.overlay.deleted_seq)])

    @cached_property
    def live(self) -> tuple[int, int]:
        """The documents that are not deleted, and their tokens; made under the lock of the index, as deletions are."""
        return sum([segment.live_documents for segment in self.segments]), sum([segment.live_length for segment in self.segments])

    def look_up(self, terms: Sequence[str]) -> tuple[Array, list[int]]:
        """Per term its ordinals in the segments (int64 (terms, segments), -1: not there), and its document frequency in all of them."""
        if len(self.segments) <= FEW_SEGMENTS:
            ordinals, df = _find(terms, self.rows)
            return ordinals, df.sum(axis=1).tolist()
        known = self._known  # which another thread may replace meanwhile
        rows = [known.row_of.get(term, -1) for term in terms]
        if -1 in rows:
            known = self._learn(known, terms)
            rows = [known.row_of[term] for term in terms]
        return known.ordinals.take(rows, axis=0), known.total.take(rows).tolist()

    def _learn(self, known: _Known, terms: Sequence[str]) -> _Known:
        """Look for the terms that are not known; returns what now knows all of them."""
        if known.nbytes > MAX_KNOWN_BYTES:
            known, self._before = _Known(len(self.segments)), _Known(0)
            self._known = known
        before = self._before
        with known.lock:
            missing = [term for term in dict.fromkeys(terms) if term not in known.row_of]
            fresh = [term for term in missing if term not in before.row_of]
            known.add(fresh, *_find(fresh, self.rows))
            seen = [term for term in missing if term in before.row_of]
            if seen:  # which are looked for in the new segments alone
                rows, new = [before.row_of[term] for term in seen], np.flatnonzero(self._place_before < 0)
                ordinals, df = before.ordinals[rows][:, self._place_before], before.df[rows][:, self._place_before]
                ordinals[:, new], df[:, new] = _find(seen, self.rows[new])
                known.add(seen, ordinals, df)
        return known

    def memory_bytes(self) -> int:
        return self._known.nbytes + self._before.nbytes + 8 * WIDTH * len(self.segments)


def _find(terms: Sequence[str], rows: Array) -> tuple[Array, Array]:
    """int64 (terms, rows): ordinals and document frequencies, from the segments' dictionaries."""
    ordinals, df = np.empty((len(terms), len(rows)), np.int64), np.empty((len(terms), len(rows)), np.int64)
    if terms and len(rows):
        joined = "".join(terms)
        data = joined.encode(errors="surrogatepass")
        size = map(len, terms) if len(data) == len(joined) else (len(term.encode(errors="surrogatepass")) for term in terms)
        look_up(rows, np.frombuffer(data or b"\0", np.uint8), np.array(list(size)), ordinals, df)
    return ordinals, df
