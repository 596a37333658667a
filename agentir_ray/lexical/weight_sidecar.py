"""A weight sidecar opened beside its segment, and searches by its weights.

A sidecar has postings of its own (`lexical/weights.py`) and no documents: times, importance, filters, deletions and supersessions are the segment's, so a search by weights sees
exactly what a search by words sees. It is `search.top_k` of a snapshot in which each segment's postings are its sidecar's: score = sum of q_t * w, no idf, no length. Documents
without any of the query's terms are not in the list; so are all of a segment that has no sidecar, and the buffers', which have no weights.

A sidecar is never modified: it is replaced whole, and belongs to one segment file, whose stamp it carries. When that is rewritten (merged, purged), so must it be.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import DamagedError, FormatError, InvalidInputError
from agentir_ray.kernels.hashing import find_strings
from agentir_ray.kernels.rows import CLASS_WEIGHT, F32_WEIGHT, NUMBER, U16_WEIGHT, WIDTH, make_row
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Query, Scoring
from agentir_ray.lexical.segment import OPEN_BYTES, Segment
from agentir_ray.lexical.strings import Strings, hashes, pack_strings
from agentir_ray.lexical.weights import FORMAT_VERSION, LARGEST_WEIGHT, SMALLEST_WEIGHT, stamp
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
    def __init__(self, path: Path, segment: Segment) -> None:
        """Raises DamagedError for a missing, truncated or damaged file and for one that belongs to other documents, FormatError for one of a newer version."""
        self.path = path
        self.segment = segment
        self._file = SectionFile(path)
        try:
            meta = json.loads(self._file.array("meta").tobytes())
            if meta["format"] > FORMAT_VERSION:
                raise FormatError(f"{path} has weight format {meta['format']}; this version of agentir_ray reads {FORMAT_VERSION}")
            self.encoding: str = meta["encoding"]
            self.scale = float(meta["scale"])
            self._kind = _KINDS[self.encoding]
            belongs = {name: meta[name] for name in ("namespace", "documents", "seq_crc")}
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{path} has unreadable metadata ({error}); build the sidecar again from the vectors of {segment.path}") from error
        if belongs != stamp(segment):
            raise DamagedError(f"{path} holds the weights of other documents than those of {segment.path}; build the sidecar again from their vectors")
        self.bytes = self._file.length_bytes

    def array(self, name: str) -> Array:
        return self._file.array(name)

    def verify(self) -> None:
        """Check every section; raises DamagedError at the first that differs."""
        self._file.verify()

    def memory_bytes(self) -> int:
        """Estimate of what it holds in memory of its own, beside the mapped file."""
        return OPEN_BYTES

    @cached_property
    def _row_arrays(self) -> dict[str, Array]:
        beside = () if self.encoding == "u8" else (f"posting_{self.encoding}",)
        postings = {name: self._file.array(name) for name in (*_POSTINGS, *beside)}
        return postings | {name: self.segment.array(name) for name in _COLUMNS} | {"numbers": np.array([self.segment.largest_importance, self.scale, 0.0, 0.0])}

    @cached_property
    def row(self) -> Array:
        """What the top-k kernel is told (`kernels.rows`): these postings, the segment's documents; valid as long as this is held."""
        return make_row(self._row_arrays, self._kind, self.segment.newest_created_us, self.segment.documents)

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
    """The snapshot as a search by the weights of these terms reads it, for everything that reads one of words. `sidecars`: one a segment of it, None where there is none.

    Its `statistics.df` count postings, to tell long searches from short ones; nothing is scored by them.
    """
    for sidecar, segment in zip(sidecars, snapshot.segments, strict=True):
        assert sidecar is None or sidecar.segment is segment
    strings = pack_strings([term.encode(errors="surrogatepass") for term in terms])
    hashed = hashes(strings)
    ordinals = np.full((len(terms), len(sidecars)), -1, np.int64)
    rows = snapshot.rows.copy()
    df = [0] * len(terms)
    for i, sidecar in enumerate(sidecars):
        if sidecar is not None:
            rows[i] = sidecar.row
            rows[i, NUMBER] = i
            ordinals[:, i] = sidecar.ordinals(strings, hashed)
            df = [count + sidecar.posting_count(t) for count, t in zip(df, ordinals[:, i].tolist(), strict=True)]
    return snapshot._replace(statistics=snapshot.statistics._replace(df=tuple(df)), rows=rows.reshape(-1, WIDTH), ordinals=ordinals, buffers=(), buffer_filters=())


def weight_scoring(query: Query) -> Scoring:
    """gain = q_t; a term of weight 0 matches nothing. Raises InvalidInputError for a weight that is negative or beyond what float32 can hold, where products would overflow."""
    for term, weight in zip(query.terms, query.weights, strict=True):
        if weight != 0.0 and not SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT:
            raise InvalidInputError(f"the query's weight {weight} of the term {term!r} is neither 0 nor between {SMALLEST_WEIGHT:.3g} and {LARGEST_WEIGHT:.3g}")
    return Scoring(np.array(query.weights, np.float64), 0.0, 0.0)
