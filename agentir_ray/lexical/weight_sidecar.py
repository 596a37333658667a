"""A weight sidecar opened beside its segment, and searches by its weights.

A sidecar has postings of its own (`lexical/weights.py`) and no documents: times, importance, filters, deletions and supersessions are the segment's, so a search by weights sees
exactly what a search by words sees. It is `search.top_k` of a snapshot in which each segment's postings are its sidecar's: score = sum of q_t * w, no idf, no length. Documents
without any of the query's terms are not in the list; so are all of a segment that has no sidecar, and the buffers', which have no weights.

A sidecar is never modified: it is replaced whole, and belongs to the documents of one segment, whose stamp it carries. When those are rewritten (merged, purged), so must it be.
Whether their segment lies in memory, in a file or is cold makes no difference to it: what a search needs of the segment, its remainder has.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import DamagedError, FormatError, InvalidInputError
from agentir_ray.kernels.hashing import find_strings
from agentir_ray.kernels.rows import CLASS_WEIGHT, F32_WEIGHT, NUMBER, U16_WEIGHT, WIDTH, make_row
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Query, Scoring
from agentir_ray.lexical.segment import OPEN_BYTES, Segment
from agentir_ray.lexical.strings import Strings, hashes, pack_strings
from agentir_ray.lexical.weights import FORMAT_VERSION, LARGEST_WEIGHT, SMALLEST_WEIGHT
from agentir_ray.sections import SectionFile

Array = npt.NDArray[Any]
_KINDS = {"u8": CLASS_WEIGHT, "u16": U16_WEIGHT, "f32": F32_WEIGHT}
_POSTINGS = (
    "term_block",
    "block_window",
    "block_posting",
    "block_skyline",
    "skyline",
    "posting_doc",
    "posting_class",
    "class_weight",
    "bitmap_term",
    "bitmap",
    "bitmap_rank",
    "weak_classes",
)
_COLUMNS = ("length", "seq", "timestamp", "created_at", "expires_at", "importance")


class WeightedPostings:
    """`encoder` is the identity of what made the weights."""

    def __init__(self, path: Path, stamp: Mapping[str, Any]) -> None:
        """`stamp` is that of the segment (`weights.stamp`).

        Raises DamagedError for a missing, truncated or damaged file and for one that belongs to other documents, FormatError for one of a newer version.
        """
        self.path = path
        self._file = SectionFile(path)
        try:
            meta = json.loads(self._file.array("meta").tobytes())
            if meta["format"] > FORMAT_VERSION:
                raise FormatError(f"{path} has weight format {meta['format']}; this version of agentir_ray reads {FORMAT_VERSION}")
            self.encoding: str = meta["encoding"]
            self.scale = float(meta["scale"])
            self._kind = _KINDS[self.encoding]
            self.encoder: str = meta["encoder"]
            belongs = {name: meta[name] for name in stamp}
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{path} has unreadable metadata ({error}); build the sidecar again from the kept vectors") from error
        if belongs != stamp:
            raise DamagedError(f"{path} holds the weights of other documents ({belongs}) than those asked for ({dict(stamp)}); build the sidecar again from the kept vectors")
        self.bytes = self._file.length_bytes
        self._rows: WeakKeyDictionary[Segment, tuple[Array, dict[str, Array]]] = WeakKeyDictionary()

    def array(self, name: str) -> Array:
        return self._file.array(name)

    def verify(self) -> None:
        """Check every section; raises DamagedError at the first that differs."""
        self._file.verify()

    def memory_bytes(self) -> int:
        """Estimate of what it holds in memory of its own, beside the mapped file."""
        return OPEN_BYTES

    @cached_property
    def encoded(self) -> npt.NDArray[np.bool_]:
        """bool (documents): which of them have a vector, be it an empty one."""
        return self._file.array("encoded").view(np.bool_)

    def has(self, docs: Array) -> npt.NDArray[np.bool_]:
        """bool: which of these documents (int64) have a vector, be it an empty one."""
        return self.encoded[docs]

    def row(self, segment: Segment) -> Array:
        """What the top-k kernel is told (`kernels.rows`): these postings, the documents of the segment that has them; valid as long as both are held."""
        made = self._rows.get(segment)
        if made is None:
            beside = () if self.encoding == "u8" else (f"posting_{self.encoding}",)
            arrays = {name: self._file.array(name) for name in (*_POSTINGS, *beside)} | {name: segment.array(name) for name in _COLUMNS}
            arrays["numbers"] = np.array([segment.largest_importance, self.scale, 0.0, 0.0])
            # Of several threads that make it one wins: what the row of another points to would be gone.
            made = self._rows.setdefault(segment, (make_row(arrays, self._kind, segment.newest_created_us, segment.documents), arrays))
        return made[0]

    @cached_property
    def terms(self) -> Strings:
        return Strings(self._file.array("term_data"), self._file.array("term_start"))

    def ordinals(self, wanted: Strings, wanted_hash: Array) -> Array:
        """int64: the ordinal of each wanted term, -1 where it does not occur."""
        out = np.empty(len(wanted), np.int64)
        find_strings(self._file.array("term_hash"), self.terms.start, self.terms.data, wanted_hash, wanted.start, wanted.data, out)
        return out

    def posting_count(self, ordinal: int) -> int:
        """How many documents have the term, deleted ones included."""
        if ordinal < 0:
            return 0
        block, posting = self._file.array("term_block"), self._file.array("block_posting")
        return int(posting[block[ordinal + 1]]) - int(posting[block[ordinal]])


def weighted_snapshot(snapshot: Snapshot, sidecars: Sequence[WeightedPostings | None], terms: Sequence[str]) -> Snapshot:
    """The snapshot as a search by the weights of these terms reads it, for everything that reads one of words; valid as long as snapshot and sidecars are held.

    `sidecars`: one a segment of it, None where there is none: there no term occurs. No segment is cold to it. Its `statistics.df` count postings, to tell long searches from short
    ones; nothing is scored by them.
    """
    strings = pack_strings([term.encode(errors="surrogatepass") for term in terms])
    hashed = hashes(strings)
    ordinals = np.full((len(terms), len(sidecars)), -1, np.int64)
    rows = snapshot.rows.copy()
    df = [0] * len(terms)
    for i, (sidecar, segment) in enumerate(zip(sidecars, snapshot.segments, strict=True)):
        if sidecar is not None:
            rows[i] = sidecar.row(segment)
            rows[i, NUMBER] = i
            ordinals[:, i] = sidecar.ordinals(strings, hashed)
            df = [count + sidecar.posting_count(t) for count, t in zip(df, ordinals[:, i].tolist(), strict=True)]
    here = np.flatnonzero((ordinals >= 0).any(axis=0))
    return snapshot._replace(
        statistics=snapshot.statistics._replace(df=tuple(df)),
        rows=rows.reshape(-1, WIDTH),
        newest_first=here[np.argsort(-snapshot.newest[here], kind="stable")],
        cold=np.zeros(len(sidecars), bool),
        ordinals=ordinals,
        buffers=(),
        buffer_filters=(),
    )


def weight_scoring(query: Query) -> Scoring:
    """gain = q_t; a term of weight 0 matches nothing. Raises InvalidInputError for a weight that is negative or beyond what float32 can hold, where products would overflow."""
    for term, weight in zip(query.terms, query.weights, strict=True):
        if weight != 0.0 and not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
            raise InvalidInputError(f"the query's weight {weight} of the term {term!r} is neither 0 nor between {SMALLEST_WEIGHT:.3g} and {LARGEST_WEIGHT:.3g}")
    return Scoring(np.array(query.weights, np.float64), 0.0, 0.0)
