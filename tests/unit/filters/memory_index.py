"""A FilterIndex in memory, its keys laid end to end as a segment file lays them, so that the search in them is tested too."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.filters import document_keys
from agentir_ray.lexical.filters.ranges import key_range
from agentir_ray.types import NEVER_US, Record


class MemoryIndex:
    def __init__(self, records: Sequence[Record], dtype: Any = np.uint32) -> None:
        postings: dict[bytes, list[int]] = {}
        self._ids: dict[str, list[int]] = {}
        for document, record in enumerate(records):
            self._ids.setdefault(record.id, []).append(document)
            for key in document_keys(session=record.session, role=record.role, supersedes=record.supersedes, metadata=record.metadata):
                postings.setdefault(key, []).append(document)
        self._keys = sorted(postings)
        self._key_bytes = np.frombuffer(b"".join(self._keys), np.uint8)
        self._key_start = np.cumsum([0, *map(len, self._keys)]).astype(np.uint64)
        self._posting_start = np.cumsum([0, *(len(postings[key]) for key in self._keys)])
        self._postings = np.array([document for key in self._keys for document in postings[key]], dtype)
        self._columns = {
            "timestamp": np.array([record.timestamp_us for record in records], np.int64),
            "created_at": np.array([record.created_at_us for record in records], np.int64),
            "expires_at": np.array([NEVER_US if record.expires_at_us is None else record.expires_at_us for record in records], np.int64),
            "importance": np.array([record.importance for record in records], np.float64),
        }
        self.document_count = len(records)

    def postings(self, low: bytes, high: bytes) -> npt.NDArray[np.uint32]:
        first, last = key_range(self._key_start, self._key_bytes, low, high)
        return self._postings[self._posting_start[first] : self._posting_start[last]]

    def keys(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, npt.NDArray[np.uint32]]]:
        first, last = key_range(self._key_start, self._key_bytes, low, high)
        for i in range(first, last):
            yield self._keys[i], self._postings[self._posting_start[i] : self._posting_start[i + 1]]

    def column(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    def documents_of_id(self, id: str) -> Sequence[int]:
        return self._ids.get(id, [])
