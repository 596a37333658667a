"""What the ledger keeps of a text for each channel: vectors as bytes and back, little-endian.

Dense vectors and weights come back bit for bit. Tokens' are kept as float16, of which MaxSim's order does not take notice: their size is what costs.
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
    """float32 (tokens, dim)."""
    return _SHAPE.pack(*vectors.shape) + vectors.astype("<f2").tobytes()


def unpack_tokens(data: bytes) -> Floats:
    """float32 (tokens, dim)."""
    rows, dim = _SHAPE.unpack_from(data)
    return np.frombuffer(data, "<f2", rows * dim, _SHAPE.size).astype(np.float32).reshape(rows, dim)


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
