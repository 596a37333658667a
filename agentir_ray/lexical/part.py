"""What a segment and a buffer have in common: documents with columns, filter keys, ids and stored bytes, and an overlay of what happened to them.

Whoever reads or deletes records asks for this much, and need not know which of the two it holds.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.filters import FilterIndex
from agentir_ray.lexical.overlay import Overlay

Array = npt.NDArray[Any]


class Part(FilterIndex, Protocol):
    """Changes happen under the namespace's lock. Parts are equal only to themselves, so that they serve as keys."""

    overlay: Overlay
    documents: int
    live_documents: int
    live_length: int

    @property
    def supersedes_some(self) -> bool:
        """Whether some document supersedes a record."""
        ...

    def stored(self, doc: int) -> bytes:
        """The stored bytes of a document."""
        ...

    def documents_of_ids(self, ids: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(which, docs): document docs[i] is a version of the record ids[which[i]], for every version that this part holds."""
        ...

    def memory_bytes(self) -> int:
        """An estimate of the memory that it holds of its own."""
        ...

    def delete(self, docs: Array, seq: int, at_us: int) -> None:
        """Hide distinct documents from snapshots of `seq` and later; the statistics lose exactly what they added. Of two calls the earlier `at_us` holds."""
        ...
