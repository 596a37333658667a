"""Questions as vectors, each encoded once: an agent asks the same again, and one pass of an encoder may serve two channels."""

import threading
from collections import OrderedDict
from typing import Any

from agentir_ray.encoders.protocol import Floats, LateVectors, SparseVector, identity
from agentir_ray.encoders.records import encode_late_query, encode_query, encode_sparse_query

KEPT = 256  # questions


class QueryEncodings:
    """Raises what `encoders.records` does for an encoder that fails or gives what cannot be searched by."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, str, str], Any] = OrderedDict()
        self._lock = threading.Lock()

    def dense(self, encoder: Any, query: str, late: bool) -> Floats:
        """float32 (dim), of length 1, or zero. `late`: the vectors of its tokens will be asked for, too."""
        if late or self._kept("late", encoder, query) is not None:
            return self.late(encoder, query).vectors[0]  # type: ignore[no-any-return]
        vector: Floats | None = self._kept("dense", encoder, query)
        if vector is None:
            vector = encode_query(encoder, query)
            self._keep("dense", encoder, query, vector)
        return vector

    def late(self, encoder: Any, query: str) -> LateVectors:
        found: LateVectors | None = self._kept("late", encoder, query)
        if found is None:
            found = encode_late_query(encoder, query)
            self._keep("late", encoder, query, found)
        return found

    def sparse(self, encoder: Any, query: str) -> SparseVector:
        found: SparseVector | None = self._kept("sparse", encoder, query)
        if found is None:
            found = encode_sparse_query(encoder, query)
            self._keep("sparse", encoder, query, found)
        return found

    def _kept(self, kind: str, encoder: Any, query: str) -> Any:
        key = kind, identity(encoder), query
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def _keep(self, kind: str, encoder: Any, query: str, value: Any) -> None:
        with self._lock:
            self._found[kind, identity(encoder), query] = value
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
