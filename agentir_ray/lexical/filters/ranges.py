"""Ranges of byte keys, low inclusive and high exclusive, and where they lie in a sorted dictionary.

Keys compare as byte strings do: byte by byte, and a prefix comes before what it begins.
"""

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.key_search import find_range

KeyRange = tuple[bytes, bytes]


def prefix_successor(prefix: bytes) -> bytes:
    """The least key above all keys that start with `prefix`. Raises ValueError if there is none, for b"" and b"\\xff...": neither starts a key, as keys start with UTF-8."""
    kept = prefix.rstrip(b"\xff")
    if not kept:
        raise ValueError(f"no key lies above every key that starts with {prefix!r}")
    return kept[:-1] + bytes([kept[-1] + 1])


def prefix_range(prefix: bytes) -> KeyRange:
    """All keys that start with `prefix`."""
    return prefix, prefix_successor(prefix)


def single(key: bytes) -> KeyRange:
    """`key` alone."""
    return key, successor(key)


def successor(key: bytes) -> bytes:
    """The least key above `key`."""
    return key + b"\0"


def key_range(offsets: npt.NDArray[np.uint64], data: npt.NDArray[np.uint8] | bytes | memoryview, low: bytes, high: bytes) -> tuple[int, int]:
    """(first, last): keys first..last - 1 of a dictionary lie in [low, high).

    `data` holds the keys end to end, ascending, and key i is data[offsets[i]:offsets[i + 1]] (offsets: one more than keys, starting anywhere). Both may be views of a mapped file.
    """
    view = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    first, last = find_range(offsets, view, np.frombuffer(low, np.uint8), np.frombuffer(high, np.uint8))
    return first, last
