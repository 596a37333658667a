"""The record log: the durable, ordered truth of which every index is a cache (DESIGN 9).

A log holds, per namespace, entries (records and deletions) in commit order, and one row with owner, epoch, next sequence number and the manifest. It knows nothing of postings,
scores or files of segments: an entry's `body`, the `manifest` and the `prior` are bytes to it.

Invariants that the contract suite (`tests/contracts`) holds every implementation to:
- sequence numbers of a namespace start at 1, have no gaps, and are given at commit in commit order;
- an append is atomic: all of a batch or nothing, and what was acknowledged survives a power cut;
- (namespace, id, version) is unique for ever: a retry is answered with the first entry;
- a writer whose (owner, epoch) is not the namespace's changes nothing and gets FencedError;
- a manifest is replaced only by compare-and-swap on (epoch, generation);
- what was learnt of a namespace (its prior) is bytes beside the manifest, replaced by the owner whenever it likes, and goes with the namespace;
- after an erasure no body of the erased ids can be read, and their ids never come back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol


class EntryKind(IntEnum):
    """ADD: a record's first version. UPDATE: its next one, under the same id. FORGET: ids to erase; body = JSON list of them."""

    ADD = 1
    UPDATE = 2
    FORGET = 3


class Status(IntEnum):
    """What became of an entry. APPENDED: it has a new seq. DUPLICATE: same id and digest, `seq` is the first one's. CONFLICT: the id (or version) is taken by other content; for a
    FORGET, one of its ids has a version later than its `up_to_seq`.

    ERASED: the id was erased. MISSING: an UPDATE of an id that the log does not hold.
    """

    APPENDED = 1
    DUPLICATE = 2
    CONFLICT = 3
    ERASED = 4
    MISSING = 5


class NewEntry(NamedTuple):
    """An entry before commit. `digest` (16 bytes) identifies what the caller supplied; `version` is 0 for ADD, previous + 1 for UPDATE.

    `up_to_seq`: a FORGET erases nothing where one of its ids has a version later than that; None: whatever they have.
    """

    kind: EntryKind
    id: str | None
    version: int
    created_at_us: int
    timestamp_us: int
    digest: bytes
    body: bytes
    erase_ids: tuple[str, ...] = ()
    up_to_seq: int | None = None


class Entry(NamedTuple):
    """A committed entry. `body` is None when it was erased since."""

    seq: int
    kind: EntryKind
    id: str | None
    version: int
    epoch: int
    created_at_us: int
    timestamp_us: int
    digest: bytes | None
    body: bytes | None


class Appended(NamedTuple):
    status: Status
    seq: int


class NamespaceState(NamedTuple):
    """A namespace's row. `number` is its stable small integer (names its folder); `manifest` is empty before the first swap."""

    number: int
    name: str
    owner: str
    epoch: int
    next_seq: int
    generation: int
    manifest: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What one caller wants appended to one namespace, all of it or nothing; an entry that meets its own id (DUPLICATE, CONFLICT, ERASED, MISSING) does not keep the others out.

    `operation` (with `operation_result`) makes a whole verb idempotent: a second batch with the same id within 7 days is not applied; its `CommitResult.operation_result` is the
    first one's. Only an operation whose entries were all APPENDED or DUPLICATE is remembered.
    """

    number: int
    epoch: int
    entries: Sequence[NewEntry]
    operation: str | None = None
    operation_result: bytes = b""


class CommitResult(NamedTuple):
    """Per batch: one `Appended` per entry, or the stored result of the same operation, or the error that kept this batch (alone) out."""

    appended: Sequence[Appended] = ()
    operation_result: bytes | None = None
    error: Exception | None = None


class ReadableLog(Protocol):
    """What a follower needs."""

    def namespaces(self, prefix: str = "") -> list[str]:
        """Names in order. `prefix` counts whole segments, every character literal: "acme" gives "acme" and "acme/x", never "acme-corp"; "" gives all."""
        ...

    def state(self, name: str) -> NamespaceState | None:
        """The namespace's row, or None."""
        ...

    def read(self, number: int, after_seq: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Entries with seq > `after_seq`, in order. A damaged row raises DamagedError naming the database, the namespace number and the seq."""
        ...

    def find(self, number: int, id: str) -> Entry | None:
        """The newest version of a record by id (body None if erased), or None."""
        ...

    def prior(self, number: int) -> bytes:
        """What `save_prior` kept last; empty if it never did."""
        ...

    def verify(self) -> list[str]:
        """Every row's checksum and the database's own check; one line a problem, empty when sound."""
        ...

    def close(self) -> None: ...


class RecordLog(ReadableLog, Protocol):
    """A log with one writing owner per namespace."""

    def claim(self, name: str) -> NamespaceState:
        """Create the namespace if needed and become its owner (epoch + 1); idempotent for the present owner, whose epoch stays."""
        ...

    def commit(self, batches: Sequence[Batch]) -> list[CommitResult]:
        """Append several callers' batches with one sync. One result per batch, in order; a batch with an error leaves nothing and does not harm the others.

        Within a FORGET entry's commit the bodies and digests of all versions of `erase_ids` are wiped. Raises StorageFullError, UnknownOutcomeError or DamagedError when the whole
        commit failed.
        """
        ...

    def swap_manifest(self, number: int, epoch: int, generation: int, manifest: bytes) -> int:
        """Replace the manifest if (epoch, generation) still hold; returns generation + 1, raises FencedError or ConflictError otherwise."""
        ...

    def save_prior(self, number: int, epoch: int, prior: bytes) -> None:
        """Replace what was learnt of the namespace; apart from the manifest, so that readers need not load it anew. Raises FencedError."""
        ...

    def drop(self, name: str) -> bool:
        """Delete the namespace and all its entries; False when there was none. A later `claim` of the name starts anew under a new number."""
        ...

    def purge(self) -> bool:
        """Make sure that no file of the log holds wiped bytes (SQLite: checkpoint and truncate the WAL). False while a reader pins them; call again."""
        ...

    def backup(self, path: str) -> None:
        """A consistent copy while open, complete and sound at `path` when this returns."""
        ...
