"""What was made from immutable segments and can be made again: decompressed blocks of stored fields, and bitmaps of filters.

One cache serves all segments of a store, within one budget; an agent asks several questions under the same filter, and neighbouring records come up together.

Values lie in two generations. New ones, and old ones that are used again, go to the young; when these fill half of the budget they are the old, and what was old and not used since
is gone. That keeps what was used lately as well as an exact order would, and a hit among the young is one look into a dictionary, with no lock and nothing to move.
"""

import threading
from collections.abc import Hashable, Sized

DEFAULT_BUDGET_BYTES = 32 * 2**20
ENTRY_BYTES = 300  # a key, the numbers in it, its places in two dictionaries, and the head of a value
_Key = tuple[int, Hashable]


class SegmentCache:
    """Values used lately, up to `budget_bytes`, by (serial number of the segment, what of it). Shared by threads; nobody changes a value."""

    def __init__(self, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self._young: dict[_Key, Sized] = {}
        self._old: dict[_Key, Sized] = {}
        self._bytes: dict[_Key, int] = {}
        self._young_bytes = self._old_bytes = 0
        self._lock = threading.Lock()  # guards all changes

    @property
    def held_bytes(self) -> int:
        return self._young_bytes + self._old_bytes

    def get(self, serial: int, what: Hashable) -> Sized | None:
        key = serial, what
        value = self._young.get(key)
        if value is None and key in self._old:
            with self._lock:
                value = self._old.pop(key, None)
                if value is None:
                    return self._young.get(key)
                self._old_bytes -= self._bytes[key]
                self._add(key, value)
        return value

    def put(self, serial: int, what: Hashable, value: Sized, size_bytes: int) -> None:
        """A value that takes more than half of the budget is not kept."""
        key = serial, what
        with self._lock:
            if key in self._bytes or 2 * (size_bytes + ENTRY_BYTES) > self.budget_bytes:
                return
            self._bytes[key] = size_bytes + ENTRY_BYTES
            self._add(key, value)

    def _add(self, key: _Key, value: Sized) -> None:
        size_bytes = self._bytes[key]
        if 2 * (self._young_bytes + size_bytes) > self.budget_bytes:
            for gone in self._old:
                del self._bytes[gone]
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
        self._young[key] = value
        self._young_bytes += size_bytes

    def drop(self, serial: int) -> None:
        """Forget what is held of a segment that is gone."""
        with self._lock:
            for key in [key for key in self._bytes if key[0] == serial]:
                size_bytes = self._bytes.pop(key)
                if self._young.pop(key, None) is not None:
                    self._young_bytes -= size_bytes
                else:
                    del self._old[key]
                    self._old_bytes -= size_bytes
