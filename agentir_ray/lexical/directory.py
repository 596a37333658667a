"""Where terms lie in the segments of an index, and how many documents hold them: one look-up a term, whatever the number of segments."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.lookup import look_up
from agentir_ray.kernels.rows import NUMBER, WIDTH
from agentir_ray.lexical.segment import Segment

Array = npt.NDArray[Any]
FEW_SEGMENTS = 4  # so many dictionaries are searched sooner than remembered
MAX_KNOWN_BYTES = 16 * 2**20  # of query terms whose places are remembered; forgotten all at once beyond that
KNOWN_TERM_BYTES = 500  # two strings, two arrays, a tuple, a number, and their place in the dictionary


class Known(NamedTuple):
    """Of a term, by segment: its ordinal (-1: not there) and its document frequency, int64; and the sum of these."""

    ordinals: Array
    df: Array
    total: int


class Directory:
    """Where terms lie in a fixed list of segments, and how many of their live documents hold them.

    A change of segments, a deletion in one of them, and whatever first happens to one's documents, start a new one. Of many segments it remembers what queries asked for.
    """

    def __init__(self, segments: tuple[Segment, ...], before: "Directory | None" = None) -> None:
        """`before` knew other segments, of which those that are still here lost no document since: what it remembers of them is taken over, when it is asked for."""
        self.segments = segments
        self._known: dict[str, Known] = {}
        self._before: dict[str, Known] = {}
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
        missing = [term for term in terms if term not in known]
        if missing:
            if (len(known) + len(missing)) * self._term_bytes > MAX_KNOWN_BYTES:
                missing, known, self._before = list(terms), {}, {}
                self._known = known
            before = self._before
            known.update(self._found_here([term for term in missing if term not in before]))
            known.update(self._found_since([term for term in missing if term in before], before))
        found = [known[term] for term in terms]
        ordinals = np.array([one.ordinals for one in found], np.int64).reshape(len(terms), len(self.segments))
        return ordinals, [one.total for one in found]

    def _found_here(self, terms: Sequence[str]) -> Iterator[tuple[str, Known]]:
        ordinals, df = _find(terms, self.rows)
        for i, term in enumerate(terms):
            yield term, Known(ordinals[i], df[i], int(df[i].sum()))

    def _found_since(self, terms: Sequence[str], before: Mapping[str, Known]) -> Iterator[tuple[str, Known]]:
        """Of terms that are known from before, looked for in the new segments alone."""
        new = np.flatnonzero(self._place_before < 0) if terms else np.empty(0, np.int64)
        ordinals, df = _find(terms, self.rows[new])
        for i, term in enumerate(terms):
            of_all, frequencies = before[term].ordinals[self._place_before], before[term].df[self._place_before]
            of_all[new], frequencies[new] = ordinals[i], df[i]
            yield term, Known(of_all, frequencies, int(frequencies.sum()))

    @property
    def _term_bytes(self) -> int:
        return KNOWN_TERM_BYTES + 16 * len(self.segments)

    def memory_bytes(self) -> int:
        return (len(self._known) + len(self._before)) * self._term_bytes + 8 * WIDTH * len(self.segments)


def _find(terms: Sequence[str], rows: Array) -> tuple[Array, Array]:
    """int64 (terms, rows): ordinals and document frequencies, from the segments' dictionaries."""
    ordinals, df = np.empty((len(terms), len(rows)), np.int64), np.empty((len(terms), len(rows)), np.int64)
    if terms and len(rows):
        joined = "".join(terms)
        data = joined.encode(errors="surrogatepass")
        size = map(len, terms) if len(data) == len(joined) else (len(term.encode(errors="surrogatepass")) for term in terms)
        look_up(rows, np.frombuffer(data or b"\0", np.uint8), np.array(list(size)), ordinals, df)
    return ordinals, df
