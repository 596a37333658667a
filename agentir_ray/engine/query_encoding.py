"""Questions as vectors, each encoded once: an agent asks the same again, and one pass of an encoder may serve two channels.

Who is in a hurry waits so long and no longer. The encoder, which nobody can interrupt, goes on in a thread of its own, and what it makes is kept for whoever asks next.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agentir_ray.encoders.protocol import Floats, LateVectors, SparseVector, identity
from agentir_ray.encoders.records import encode_late_query, encode_query, encode_sparse_query

KEPT = 256  # questions
AT_ONCE = 8  # questions that are being encoded for somebody in a hurry; while an encoder hangs, no more threads wait for it

Key = tuple[str, str, str]


class TooLateError(Exception):
    """The encoder did not come to an end in time."""


class _Work:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None


class QueryEncodings:
    """`patience_s` is for how long the caller waits, None: to the end.

    Raises TooLateError, and what `encoders.records` does for an encoder that fails or gives what cannot be searched by.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[Key, Any] = OrderedDict()
        self._under_way: dict[Key, _Work] = {}
        self._lock = threading.Lock()

    def dense(self, encoder: Any, query: str, late: bool, patience_s: float | None = None) -> Floats:
        """float32 (dim), of length 1, or zero. `late`: the vectors of its tokens will be asked for, too."""
        if late or self._kept(("late", identity(encoder), query)) is not None:
            return self.late(encoder, query, patience_s).vectors[0]  # type: ignore[no-any-return]
        return self._made("dense", encoder, query, encode_query, patience_s)  # type: ignore[no-any-return]

    def late(self, encoder: Any, query: str, patience_s: float | None = None) -> LateVectors:
        return self._made("late", encoder, query, encode_late_query, patience_s)  # type: ignore[no-any-return]

    def sparse(self, encoder: Any, query: str, patience_s: float | None = None) -> SparseVector:
        return self._made("sparse", encoder, query, encode_sparse_query, patience_s)  # type: ignore[no-any-return]

    def _made(self, kind: str, encoder: Any, query: str, make: Callable[[Any, str], Any], patience_s: float | None) -> Any:
        key = kind, identity(encoder), query
        found = self._kept(key)
        if found is not None:
            return found
        if patience_s is None:
            value = make(encoder, query)
            self._keep(key, value)
            return value
        with self._lock:
            work = self._under_way.get(key)
            if work is None:
                if len(self._under_way) >= AT_ONCE:
                    raise TooLateError
                work = self._under_way[key] = _Work()
                threading.Thread(target=self._run, args=(key, work, make, encoder), name="agentir-query", daemon=True).start()
        if not work.done.wait(patience_s):
            raise TooLateError
        if work.error is not None:
            raise work.error
        return work.value

    def _run(self, key: Key, work: _Work, make: Callable[[Any, str], Any], encoder: Any) -> None:
        try:
            work.value = make(encoder, key[2])
            self._keep(key, work.value)
        except BaseException as error:
            work.error = error
        finally:
            with self._lock:
                del self._under_way[key]
            work.done.set()

    def _kept(self, key: Key) -> Any:
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def _keep(self, key: Key, value: Any) -> None:
        with self._lock:
            self._found[key] = value
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
