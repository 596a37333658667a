"""The log's entries that an index lacks, read ahead far enough to see whether they may go straight into segments.

They may where many new records follow each other and none of them supersedes another: such a record changes nothing but itself, and what it is does not depend on the index.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from agentir_ray.lexical.bulk import BATCH, Documents
from agentir_ray.lexical.filters import document_keys
from agentir_ray.storage.codec import decode_body
from agentir_ray.storage.protocol import Entry, EntryKind
from agentir_ray.types import NEVER_US, Record

BATCH_CHARACTERS = 4 * 2**20  # of texts
AHEAD_BYTES = 32 * 2**20  # of bodies


class _Read(NamedTuple):
    entry: Entry
    record: Record | None  # of an ADD that was not erased


class EntriesAhead:
    """Entries in the order of the log, each taken once. `seq` is that of the last one taken, `erased` holds those of the taken ones that were erased."""

    def __init__(self, entries: Iterable[Entry], seq: int) -> None:
        self._entries = iter(entries)
        self._ahead: deque[_Read] = deque()
        self._ahead_bytes = 0
        self.seq = seq
        self.erased: list[int] = []

    def _look(self) -> _Read | None:
        """The next entry, left where it is."""
        return self._ahead[0] if self._fill(1) else None

    def _fill(self, count: int) -> bool:
        """Whether at least so many entries are left, or as many as it is well to hold at once."""
        while len(self._ahead) < count and self._ahead_bytes < AHEAD_BYTES:
            entry = next(self._entries, None)
            if entry is None:
                return False
            self._ahead_bytes += len(entry.body or b"")
            self._ahead.append(_Read(entry, decode_body(entry.body, entry.seq) if entry.kind is EntryKind.ADD and entry.body is not None else None))
        return True

    def _take(self) -> _Read:
        taken = self._ahead.popleft()
        self._ahead_bytes -= len(taken.entry.body or b"")
        self.seq = taken.entry.seq
        if taken.entry.body is None:
            self.erased.append(self.seq)
        return taken

    def more(self) -> bool:
        return self._fill(1)

    def take(self, count: int) -> Iterator[Entry]:
        """Up to `count` entries."""
        while count and self.more():
            count -= 1
            yield self._take().entry

    def only_new(self, count: int) -> bool:
        """Whether `count` entries follow, or fewer long ones, that are new records and supersede nothing."""
        return self._fill(count) and all(map(_is_new, self._ahead))

    def new_documents(self) -> Iterator[Documents]:
        """The new records up to the first entry that is something else, in batches."""
        while batch := list(self._new_records()):
            yield _documents(batch)

    def _new_records(self) -> Iterator[tuple[Record, bytes]]:
        characters = documents = 0
        while documents < BATCH and characters < BATCH_CHARACTERS and (following := self._look()) is not None and _is_new(following):
            entry, record = self._take()
            if record is not None and entry.body is not None:
                documents, characters = documents + 1, characters + len(record.text)
                yield record, entry.body


def _is_new(read: _Read) -> bool:
    return read.entry.kind is EntryKind.ADD and (read.record is None or read.record.supersedes is None)


def _documents(batch: list[tuple[Record, bytes]]) -> Documents:
    records = [record for record, _ in batch]

    def times(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.fromiter(values, np.int64, len(records))

    return Documents(
        texts=[record.text for record in records],
        ids=[record.id for record in records],
        stored=[body for _, body in batch],
        seq=times(record.seq for record in records),
        timestamp=times(record.timestamp_us for record in records),
        created_at=times(record.created_at_us for record in records),
        expires_at=times(NEVER_US if record.expires_at_us is None else record.expires_at_us for record in records),
        importance=np.fromiter((record.importance for record in records), np.float64, len(records)),
        keys=[document_keys(session=record.session, role=record.role, supersedes=None, metadata=record.metadata) for record in records],
    )
