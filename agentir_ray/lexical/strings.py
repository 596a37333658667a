"""Lists of byte strings as two arrays: the strings end to end, and where each begins."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.hashing import hash_strings

Array = npt.NDArray[Any]


class Strings(NamedTuple):
    """String i is data[start[i]:start[i + 1]]; data uint8, start int64 (n + 1)."""

    data: Array
    start: Array

    def __len__(self) -> int:
        return len(self.start) - 1

    def get(self, i: int) -> bytes:
        return self.data[self.start[i] : self.start[i + 1]].tobytes()


def pack_strings(strings: Sequence[bytes]) -> Strings:
    start = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=start[1:])
    return Strings(np.frombuffer(b"".join(strings), np.uint8), start)


def pack_texts(texts: Sequence[str]) -> Strings:
    """The UTF-8 of each text: encoded all at once, between NULs, where no text holds one itself."""
    data = np.frombuffer("\0".join(texts).encode(errors="surrogatepass"), np.uint8)
    separators = np.flatnonzero(data == 0)
    if len(separators) != len(texts) - 1:
        return pack_strings([text.encode(errors="surrogatepass") for text in texts])
    start = np.zeros(len(texts) + 1, np.int64)
    start[1:-1] = separators - np.arange(len(separators))
    start[-1] = len(data) - len(separators)
    return Strings(data[data != 0], start)


def take_strings(strings: Strings, chosen: Array) -> Strings:
    """The chosen strings, in the order of `chosen`."""
    size = strings.start[1:][chosen] - strings.start[:-1][chosen]
    start = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(size, out=start[1:])
    source = np.repeat(strings.start[:-1][chosen] - start[:-1], size) + np.arange(start[-1])
    return Strings(strings.data[source], start)


def join_strings(parts: Sequence[Strings]) -> Strings:
    """All strings of all parts, one after the other."""
    base = np.cumsum([0, *(len(part.data) for part in parts)])
    starts = [part.start[:-1] + base[i] for i, part in enumerate(parts)]
    return Strings(np.concatenate([part.data for part in parts]), np.concatenate([*starts, base[-1:]]).astype(np.int64))


def hashes(strings: Strings) -> Array:
    """uint64 hash of each string."""
    out = np.empty(len(strings), np.uint64)
    hash_strings(strings.data, strings.start, out)
    return out
