"""Stored fields: the bytes of each document, packed into zstd blocks and found by document number.

A document is (block, start, length), so that a merge can copy whole blocks however it reorders documents. Blocks aim at 8 KiB: small enough to decompress for one hit (some 10
us), large enough to compress. A document larger than that has a block to itself. Decompressed blocks are kept in the `SegmentCache` that all segments of a store share.
"""

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zstandard

from agentir_ray.errors import DamagedError

Array = npt.NDArray[Any]
BLOCK_BYTES = 8_192
MAX_BLOCK_BYTES = 2**28  # far above the largest record: a damaged frame must not make us allocate more
_local = threading.local()


class StoredFields(NamedTuple):
    """data uint8; block_start uint64 (blocks + 1); block, start, length uint32 per document."""

    data: Array
    block_start: Array
    block: Array
    start: Array
    length: Array


def pack_stored(bodies: Iterable[bytes]) -> StoredFields:
    """Pack the documents' bytes in the given order."""
    compressor = zstandard.ZstdCompressor(level=3)
    frames: list[bytes] = []
    places: list[tuple[int, int, int]] = []
    pending = bytearray()
    for body in bodies:
        if pending and len(pending) + len(body) > BLOCK_BYTES:
            frames.append(compressor.compress(bytes(pending)))
            pending = bytearray()
        places.append((len(frames), len(pending), len(body)))
        pending += body
    if pending or places:
        frames.append(compressor.compress(bytes(pending)))
    place = np.array(places, np.uint32).reshape(-1, 3)
    sizes = np.array([0, *map(len, frames)], np.uint64)
    return StoredFields(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes, dtype=np.uint64), place[:, 0], place[:, 1], place[:, 2])


def unpack_block(data: Array, block_start: Array, block: int, file: str) -> bytes:
    """The decompressed block. Raises DamagedError, naming `file`."""
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    try:
        content: bytes = decompressor.decompress(data[int(block_start[block]) : int(block_start[block + 1])].data, max_output_size=MAX_BLOCK_BYTES)
        return content
    except zstandard.ZstdError as error:
        raise DamagedError(f"{file}: stored block {block} cannot be decompressed ({error}); run `agentir verify`") from error
