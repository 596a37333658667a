"""What the ledger keeps of a text for each channel: vectors as bytes and back, little-endian.

Dense vectors and weights come back bit for bit. Tokens' are kept in a byte a number, of which MaxSim's order takes little notice: they are most of what is kept, and to read those
of fifty texts is a good part of a second look.
"""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from agentir_ray.encoders.protocol import Floats, SparseVector
from agentir_ray.engine.channel import DENSE, SPARSE, TOKENS

_SHAPE = struct.Struct("<II")


def pack_dense(vectors: Floats) -> bytes:
    """float32 (rows, dim)."""
    return _SHAPE.pack(*vectors.shape) + vectors.astype("<f4", copy=False).tobytes()


def unpack_dense(data: bytes) -> Floats:
    rows, dim = _SHAPE.unpack_from(data)
    return np.frombuffer(data, "<f4", rows * dim, _SHAPE.size).reshape(rows, dim)


def pack_tokens(vectors: Floats) -> bytes:
    """float32 (tokens, dim), finite: a scale a token, and its numbers as that many times -127 to 127."""
    scale = np.abs(vectors).max(axis=1, initial=0.0).astype("<f4") / np.float32(127.0)
    codes = np.rint(vectors / np.where(scale > 0.0, scale, np.float32(1.0))[:, None]).astype(np.int8)
    packed: bytes = _SHAPE.pack(*vectors.shape) + scale.astype("<f4").tobytes() + codes.tobytes()
    return packed


def unpack_tokens(data: bytes) -> Floats:
    """float32 (tokens, dim); no number is off by more than half a scale."""
    rows, dim = _SHAPE.unpack_from(data)
    scale = np.frombuffer(data, "<f4", rows, _SHAPE.size)
    return np.frombuffer(data, np.int8, rows * dim, _SHAPE.size + 4 * rows).reshape(rows, dim) * scale[:, None]  # type: ignore[no-any-return]


def pack_sparse(vector: SparseVector) -> bytes:
    """The number of terms, their weights as float32, the lengths of the terms in bytes, the terms."""
    terms = [term.encode(errors="surrogatepass") for term in vector.terms]
    lengths = np.fromiter(map(len, terms), "<u4", len(terms))
    return struct.pack("<I", len(terms)) + vector.weights.astype("<f4", copy=False).tobytes() + lengths.tobytes() + b"".join(terms)


def unpack_sparse(data: bytes) -> SparseVector:
    (count,) = struct.unpack_from("<I", data)
    weights = np.frombuffer(data, "<f4", count, 4)
    ends = np.cumsum(np.frombuffer(data, "<u4", count, 4 + 4 * count), dtype=np.int64).tolist()
    text = data[4 + 8 * count :]
    return SparseVector(tuple(text[start:end].decode(errors="surrogatepass") for start, end in zip([0, *ends], ends, strict=False)), weights)


PACK: dict[str, Callable[[Any], bytes]] = {DENSE: pack_dense, SPARSE: pack_sparse, TOKENS: pack_tokens}
