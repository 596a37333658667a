"""What happened to the documents of an immutable segment after it was written: deletions and supersessions.

Each change carries the sequence number that made it and the time from which it holds, so that a reader's snapshot and `as_of` decide whether they apply. Changes are made under the
namespace's lock; readers compare sequence numbers and need none. The manifest keeps the changes since the file was written (`since_written`); the next merge writes them into the file.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
ERASED_AT = -(2**63)  # an erasure holds for every `as_of`, so it lies before all times
_NONE = np.empty(0, np.int64)

Change = tuple[int, int, int, int, int]


class Overlay:
    """deleted_seq, deleted_at, superseded_seq, superseded_at: int64 (N), NEVER_US where nothing happened; all four empty until something does."""

    def __init__(self, documents: int, written: Sequence[Array] | None = None) -> None:
        self._documents = documents
        self.deleted_seq = self.deleted_at = self.superseded_seq = self.superseded_at = _NONE
        self._changed: set[int] = set()
        if written is not None:
            self.deleted_seq, self.deleted_at, self.superseded_seq, self.superseded_at = (np.array(column) for column in written)

    def _materialise(self) -> None:
        if len(self.deleted_seq) < self._documents:
            # Readers look at deleted_seq first: it must come last.
            self.superseded_seq, self.superseded_at, self.deleted_at, self.deleted_seq = (np.full(self._documents, NEVER_US, np.int64) for _ in range(4))

    def delete(self, doc: int, seq: int, at_us: int) -> bool:
        """True if the document was alive until now."""
        self._materialise()
        alive = bool(self.deleted_seq[doc] == NEVER_US)
        if alive or at_us < self.deleted_at[doc]:
            self.deleted_at[doc] = at_us
        if alive:
            self.deleted_seq[doc] = seq
        self._changed.add(doc)
        return alive

    def supersede(self, doc: int, seq: int, at_us: int) -> None:
        self._materialise()
        self.superseded_at[doc] = at_us
        self.superseded_seq[doc] = seq
        self._changed.add(doc)

    def deleted(self) -> Array:
        """Numbers of the deleted documents."""
        return np.flatnonzero(self.deleted_seq != NEVER_US)

    def erased(self) -> Array:
        """Numbers of the erased documents: those that a rewrite must not keep."""
        return np.flatnonzero(self.deleted_at == ERASED_AT)

    def since_written(self) -> list[Change]:
        """(document, deleted_seq, deleted_at, superseded_seq, superseded_at) of every document that changed since the file was written."""
        columns = (self.deleted_seq, self.deleted_at, self.superseded_seq, self.superseded_at)
        return [(doc, *(int(column[doc]) for column in columns)) for doc in sorted(self._changed)]  # type: ignore[misc]

    def replay(self, changes: Sequence[Change]) -> None:
        """Take over what `since_written` gave."""
        for doc, *values in changes:
            self._materialise()
            self.deleted_seq[doc], self.deleted_at[doc], self.superseded_seq[doc], self.superseded_at[doc] = values
            self._changed.add(doc)
