"""Stored fields: the bytes of each document, packed into zstd blocks and found by document number.

A document is (block, start, length), so that a merge can copy whole blocks however it reorders documents. Blocks aim at 2 KiB: small enough to decompress for one hit (6 us),
large enough to compress. A document larger than that has a block to itself. Decompressed blocks are kept in the `SegmentCache` that all segments of a store share.

Each block has a checksum of its own, tested when it is unpacked: to read one text, a search need not check those of a whole segment first, some ten milliseconds.
"""

import threading
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zstandard

from agentir_ray.errors import DamagedError
from agentir_ray.lexical.strings import Strings, join_strings

Array = npt.NDArray[Any]
BLOCK_BYTES = 2_048  # a hit of a search unpacks one: 6 us, and 12-14 us at four times the size, which would make texts a fifth smaller
LEVEL = 1  # as small as level 3 within 1% on blocks of this size, and a quarter faster
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
    bodies = list(bodies)
    sizes = np.fromiter(map(len, bodies), np.uint32, len(bodies))
    firsts: list[int] = []
    filled = 0
    for doc, size in enumerate(sizes.tolist()):
        if not firsts or (filled and filled + size > BLOCK_BYTES):
            firsts.append(doc)
            filled = 0
        filled += size
    bounds = np.array([*firsts, len(bodies)], np.int64)
    frames = _compressed([b"".join(bodies[first:end]) for first, end in pairwise(bounds.tolist())])
    begin = np.zeros(len(bodies) + 1, np.uint64)
    np.cumsum(sizes, out=begin[1:])
    block = np.repeat(np.arange(len(frames), dtype=np.uint32), np.diff(bounds))
    start = (begin[:-1] - begin[bounds[:-1]][block]).astype(np.uint32)
    block_start = np.zeros(len(frames) + 1, np.uint64)
    np.cumsum(np.fromiter(map(len, frames), np.uint64, len(frames)), out=block_start[1:])
    return StoredFields(np.frombuffer(b"".join(frames), np.uint8), block_start, block, start, sizes)


def _compressed(blocks: list[bytes]) -> list[bytes]:
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    if len(blocks) < 2 or not hasattr(compressor, "multi_compress_to_buffer"):  # the C extension's alone
        return [compressor.compress(block) for block in blocks]
    # One call gives the GIL away once. Each call a block would wait to have it back, behind threads that do other work on the batch after this.
    frames = compressor.multi_compress_to_buffer([*blocks])
    return [frames[i].tobytes() for i in range(len(frames))]


def join_stored(parts: Sequence[StoredFields], order: Array) -> StoredFields:
    """All parts' documents in this order, which counts them from the first part on; blocks are copied as they are."""
    blocks = np.cumsum([0, *(len(part.block_start) - 1 for part in parts)])
    packed = join_strings([Strings(part.data, part.block_start.astype(np.int64)) for part in parts])
    block = np.concatenate([part.block + np.uint32(blocks[i]) for i, part in enumerate(parts)])
    start, length = np.concatenate([part.start for part in parts]), np.concatenate([part.length for part in parts])
    return StoredFields(packed.data, packed.start.astype(np.uint64), block[order], start[order], length[order])


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
