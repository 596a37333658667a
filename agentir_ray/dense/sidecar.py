"""The vectors of one segment's documents as a file beside it, and the same file opened.

It knows documents by their numbers alone: times, filters and deletions are the segment's. A sidecar is never modified: it is replaced whole, and belongs to one segment file, whose
stamp it carries (what tells the segment's documents from others; whoever builds and opens it makes the stamp).

Sections:

    meta                JSON: format, encoder, dim, documents, rows, the stamp, and of the codes, if any, their unit, how askew the axes are, and what tells these
    row_start int64 (documents + 1): the rows of document d are row_start[d]:row_start[d + 1]
    vectors float32 (rows * dim)
    and, where there are rows enough for them, the codes (`codes.py`)

Sections are checked as a whole when they are first touched, as in every file of sections; the first search of a large sidecar pays for that.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.codes import Codes, encode, has_codes
from agentir_ray.dense.rotation import identity
from agentir_ray.dense.vectors import RecordVectors, checked, take
from agentir_ray.errors import DamagedError, FormatError
from agentir_ray.sections import SectionFile

Array = npt.NDArray[Any]
FORMAT_VERSION = 1
OPEN_BYTES = 8_192  # what an open file and its table take


def build_sidecar(vectors: RecordVectors, encoder: str, stamp: Mapping[str, Any], rotation: Array | None = None) -> dict[str, Array]:
    """The sections of a sidecar, for `sections.encode_sections`; one entry of `vectors` a document of the segment, in its order. `encoder` is its identity.

    `rotation` is one that another sidecar has, whose vectors are like these; without one, axes are fitted to the vectors. Few rows have no codes, and need none.

    Raises InvalidInputError where the arrays do not fit together, EncodingError where a number is not finite.
    """
    start, rows = checked(*vectors)
    coded = encode(rows, rotation) if has_codes(*rows.shape) else None
    of_codes = {"unit": coded.unit, "askew": coded.askew, "axes": identity(coded.sections["axes"])} if coded else None
    meta = {"format": FORMAT_VERSION, "encoder": encoder, "dim": int(rows.shape[1]), "documents": len(start) - 1, "rows": len(rows), "stamp": dict(stamp), "codes": of_codes}
    sections = {"meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8), "row_start": start, "vectors": rows.ravel()}
    return sections | (coded.sections if coded else {})


class DenseSidecar:
    def __init__(self, path: Path, stamp: Mapping[str, Any]) -> None:
        """Raises DamagedError for a missing, truncated or damaged file and for one that belongs to other documents, FormatError for one of a newer version."""
        self.path = path
        self._file = SectionFile(path)
        try:
            meta = json.loads(self._file.array("meta").tobytes())
            if meta["format"] > FORMAT_VERSION:
                raise FormatError(f"{path} has vector format {meta['format']}; this version of agentir_ray reads {FORMAT_VERSION}")
            self.encoder: str = meta["encoder"]
            self.dim, self.documents, self.rows = int(meta["dim"]), int(meta["documents"]), int(meta["rows"])
            of = meta["stamp"]
            self.codes = Codes(self._file.array, meta["codes"], self.dim, self.rows) if meta["codes"] else None
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{path} has unreadable metadata ({error}); build the sidecar again from the kept vectors") from error
        if of != json.loads(json.dumps(dict(stamp))):
            raise DamagedError(f"{path} holds the vectors of other documents ({of}) than those asked for ({dict(stamp)}); build the sidecar again from the kept vectors")
        self.bytes = self._file.length_bytes
        self.graph: Any = None  # an `approximate.HnswGraph` over it, where one was built: in memory alone, and gone with this object

    def verify(self) -> None:
        """Check every section; raises DamagedError at the first that differs."""
        self._file.verify()

    def memory_bytes(self) -> int:
        """Estimate of what it holds in memory of its own, beside the mapped file."""
        of_graph = 0 if self.graph is None else int(self.graph.memory_bytes())
        return OPEN_BYTES + (self.__dict__["row_doc"].nbytes if "row_doc" in self.__dict__ else 0) + of_graph

    @cached_property
    def row_start(self) -> Array:
        """int64 (documents + 1)."""
        start: Array = self._file.array("row_start")
        return start

    @cached_property
    def vectors(self) -> Array:
        """float32 (rows, dim)."""
        values: Array = self._file.array("vectors").reshape(self.rows, self.dim)
        return values

    @cached_property
    def row_doc(self) -> Array:
        """int32 (rows): the document of each row; empty where row d is document d's and no other's."""
        if self.rows == self.documents and (self.row_start == np.arange(self.documents + 1)).all():
            return np.empty(0, np.int32)
        return np.repeat(np.arange(self.documents, dtype=np.int32), np.diff(self.row_start))

    @property
    def rotation(self) -> Array | None:
        """float32 (dim, dim), for `build_sidecar` of a merge; None where the sidecar is too small to have codes."""
        return self.codes.axes if self.codes else None

    def has(self, docs: Array) -> Array:
        """bool: which of these documents (int64) have a vector."""
        there: Array = self.row_start[docs + 1] > self.row_start[docs]
        return there

    def vectors_of(self, docs: Array) -> RecordVectors:
        """The vectors of these documents (int64), in their order."""
        return take(RecordVectors(self.row_start, self.vectors), docs)
