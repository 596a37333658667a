"""What was made from immutable segments and can be made again: decompressed blocks of stored fields, and bitmaps of filters.

One cache serves all segments of a store, within one budget; an agent asks several questions under the same filter, and neighbouring records come up together.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sized

DEFAULT_BUDGET_BYTES = 32 * 2**20
ENTRY_BYTES = 300  # a key, the numbers in it, its place in the dictionary, and the head of a value


class SegmentCache:
    """The values used last, up to `budget_bytes`, by (serial number of the segment, what of it). Shared by threads; nobody changes a value."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self.held_bytes = 0
        self._values: OrderedDict[tuple[int, Hashable], tuple[Sized, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, serial: int, what: Hashable) -> Sized | None:
        key = serial, what
        found = self._values.get(key)
        if found is None:
            return None
        try:  # noqa: SIM105 - without the lock and without a context manager: either would cost as much as the rest
            self._values.move_to_end(key)
        except KeyError:
            pass  # dropped by another thread just now
        return found[0]

    def put(self, serial: int, what: Hashable, value: Sized, size_bytes: int) -> None:
        """What does not fit is let go one by one, the least lately used first: to let many go at once would hold up one search by milliseconds."""
        key = serial, what
        size_bytes += ENTRY_BYTES
        with self._lock:
            if key in self._values or size_bytes > self.budget_bytes:
                return
            self._values[key] = value, size_bytes
            self.held_bytes += size_bytes
            while self.held_bytes > self.budget_bytes:
                self.held_bytes -= self._values.popitem(last=False)[1][1]

    def drop(self, serial: int) -> None:
        """Forget what is held of a segment that is gone."""
        with self._lock:
            for key in [key for key in self._values if key[0] == serial]:
                self.held_bytes -= self._values.pop(key)[1]
