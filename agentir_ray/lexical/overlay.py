"""What happened to the documents of a segment or a buffer after they were written: deletions and supersessions.

Each change carries the sequence number that made it and the time from which it holds, so that a reader's snapshot and `as_of` decide whether they apply. Changes are made under the
namespace's lock. A document's first change is written in place: a reader that took its view before sees a later sequence number than its own, or nothing yet. A change of a change
(an erasure after a deletion, an earlier supersession, a restored record) would show through, so it is made in a copy when some reader holds a view.

The manifest keeps the changes since a segment's file was written (`since_written`); the next merge writes them into the file.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
ERASED_AT = -(2**63)  # an erasure holds for every `as_of`, so it lies before all times
_NONE = np.empty(0, np.int64)

Change = tuple[int, int, int, int, int]


class Changes(NamedTuple):
    """int64 (N), NEVER_US where nothing happened; all four empty until something does."""

    deleted_seq: Array
    deleted_at: Array
    superseded_seq: Array
    superseded_at: Array


NO_CHANGES = Changes(_NONE, _NONE, _NONE, _NONE)


class Overlay:
    """`now` is the present state; call under the namespace's lock, readers outside it use the `view` they took."""

    def __init__(self, documents: int, written: Sequence[Array] | None = None) -> None:
        self._documents = documents
        self.now = NO_CHANGES if written is None else Changes(*(np.array(column) for column in written))
        self._viewed = False
        self._changed: set[int] = set()
        self._changed_before = 0 if written is None else int(np.any([column != NEVER_US for column in self.now], axis=0).sum())

    @property
    def deleted_seq(self) -> Array:
        return self.now.deleted_seq

    @property
    def deleted_at(self) -> Array:
        return self.now.deleted_at

    @property
    def superseded_seq(self) -> Array:
        return self.now.superseded_seq

    @property
    def superseded_at(self) -> Array:
        return self.now.superseded_at

    @property
    def changed_at_most(self) -> int:
        """No more documents than this are deleted or superseded, now or in any view taken before."""
        return self._changed_before + len(self._changed)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.now)

    def columns(self) -> dict[str, Array]:
        """A copy of the present state by name, at its full length."""
        return {name: column.copy() if len(column) else np.full(self._documents, NEVER_US, np.int64) for name, column in zip(Changes._fields, self.now, strict=True)}

    def view(self) -> Changes:
        """The present state for a reader that compares sequence numbers with its own."""
        self._viewed = True
        return self.now

    def _materialise(self) -> None:
        if len(self.now.deleted_seq) < self._documents:
            self.now = Changes(*(np.full(self._documents, NEVER_US, np.int64) for _ in range(4)))

    def _own(self) -> None:
        if self._viewed:
            self.now = Changes(*(column.copy() for column in self.now))
            self._viewed = False

    def grow(self, documents: int) -> None:
        """Make room for documents to come, to which nothing happened."""
        if len(self.now.deleted_seq):
            self.now = Changes(*(np.concatenate([column, np.full(documents - len(column), NEVER_US)]) for column in self.now))
            self._viewed = False
        self._documents = documents

    def delete(self, docs: Array, seq: int, at_us: int) -> Array:
        """Delete distinct documents; returns those that were alive until now. Of two calls the earlier `at_us` holds (an erasure after a deletion)."""
        self._materialise()
        alive: Array = docs[self.now.deleted_seq[docs] == NEVER_US]
        earlier = docs[(self.now.deleted_seq[docs] != NEVER_US) & (at_us < self.now.deleted_at[docs])]
        if len(earlier):
            self._own()
        self.now.deleted_at[docs[at_us < self.now.deleted_at[docs]]] = at_us
        self.now.deleted_seq[alive] = seq
        self._changed.update(alive.tolist(), earlier.tolist())
        return alive

    def supersede(self, doc: int, seq: int, at_us: int) -> None:
        """`seq` and `at_us` NEVER_US: it is superseded no more."""
        self._materialise()
        self._changed.add(doc)
        if self.now.superseded_seq[doc] != NEVER_US:
            self._own()
        self.now.superseded_at[doc] = at_us
        self.now.superseded_seq[doc] = seq

    def deleted(self) -> Array:
        """Numbers of the deleted documents."""
        return np.flatnonzero(self.now.deleted_seq != NEVER_US)

    def erased(self) -> Array:
        """Numbers of the erased documents: those that a rewrite must not keep."""
        return np.flatnonzero(self.now.deleted_at == ERASED_AT)

    def since_written(self) -> list[Change]:
        """(document, deleted_seq, deleted_at, superseded_seq, superseded_at) of every document that changed since the file was written."""
        docs = sorted(self._changed)
        return list(zip(docs, *(column[docs].tolist() for column in self.now), strict=True)) if docs else []

    def replay(self, changes: Sequence[Change]) -> None:
        """Take over what `since_written` gave."""
        if changes:
            self._materialise()
            self._own()
            rows = np.array(changes, np.int64)
            for column, values in zip(self.now, rows.T[1:], strict=True):
                column[rows[:, 0]] = values
            self._changed.update(rows[:, 0].tolist())
