"""Where terms lie in the segments of an index, and how many documents hold them: one look-up a term, whatever the number of segments."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.lookup import look_up
from agentir_ray.kernels.rows import WIDTH
from agentir_ray.lexical.segment import Segment

Array = npt.NDArray[Any]
FEW_SEGMENTS = 4  # so many dictionaries are searched sooner than remembered
MAX_KNOWN_TERMS = 65_536  # query terms whose places are remembered; forgotten all at once beyond that
KNOWN_TERM_BYTES = 400  # a string, an array, a tuple, a number, and their place in the dictionary


class Directory:
    """Where terms lie in a fixed list of segments, and how many of their live documents hold them.

    A change of segments, or a deletion in one of them, starts a new one. Of many segments it remembers what queries asked for.
    """

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self.segments = segments
        self._known: dict[str, tuple[Array, int]] = {}

    @cached_property
    def rows(self) -> Array:
        """int64 (segments, WIDTH): what the kernel is told of the segments."""
        if len(self.segments) == 1:
            return self.segments[0].row[np.newaxis]
        return np.stack([segment.row for segment in self.segments]) if self.segments else np.empty((0, WIDTH), np.int64)

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

    def look_up(self, terms: Sequence[str]) -> tuple[Array, list[int]]:
        """Per term its ordinals in the segments (int64 (terms, segments), -1: not there), and its document frequency in all of them."""
        if len(self.segments) <= FEW_SEGMENTS:
            ordinals, df = self._find(terms)
            return ordinals, df.tolist()
        missing = [term for term in terms if term not in self._known]
        if missing:
            if len(self._known) + len(missing) > MAX_KNOWN_TERMS:
                missing, self._known = list(terms), {}
            self._known.update(zip(missing, zip(*self._find(missing), strict=True), strict=True))
        places, frequencies = zip(*[self._known[term] for term in terms], strict=True) if terms else ((), ())
        return np.array(places, np.int64).reshape(len(terms), len(self.segments)), list(map(int, frequencies))

    def memory_bytes(self) -> int:
        return len(self._known) * (KNOWN_TERM_BYTES + 8 * len(self.segments)) + 8 * WIDTH * len(self.segments)

    def _find(self, terms: Sequence[str]) -> tuple[Array, Array]:
        """The same from the segments' dictionaries."""
        ordinals, df = np.empty((len(terms), len(self.segments)), np.int64), np.empty(len(terms), np.int64)
        if terms:
            joined = "".join(terms)
            data = joined.encode(errors="surrogatepass")
            size = map(len, terms) if len(data) == len(joined) else (len(term.encode(errors="surrogatepass")) for term in terms)
            look_up(self.rows, np.frombuffer(data or b"\0", np.uint8), np.array(list(size)), ordinals, df)
        return ordinals, df
