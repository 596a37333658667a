"""Encoders without a model: words are hashed. Deterministic, the same on every machine; for tests, and as the floor where nothing is installed.

Texts that share words are close, and nothing more is known: the dense one is a random projection of the bag of words (each word a vector of +1 and -1), the sparse one the bag
itself.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from agentir_ray.encoders.normal import normalized
from agentir_ray.encoders.passages import cut
from agentir_ray.encoders.protocol import Floats, LateVectors, SparseVector

WINDOW = 128  # words
OVERLAP = 16
WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return [found.group().casefold() for found in WORD.finditer(text)][:WINDOW]


def _passages(text: str) -> list[str]:
    return cut(text, [found.span() for found in WORD.finditer(text)], WINDOW, OVERLAP)


@lru_cache(maxsize=1 << 14)
def _signs(word: str, dim: int) -> Floats:
    """float32 (dim) of +1 and -1, read-only."""
    drawn = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest((dim + 7) // 8)
    signs = np.unpackbits(np.frombuffer(drawn, np.uint8))[:dim].astype(np.float32) * 2 - 1
    signs.flags.writeable = False
    return signs


class HashingEncoder:
    """Also a TokenEncoder: a word's vector is the same wherever it stands."""

    name = "hashing"

    def __init__(self, dim: int = 64) -> None:
        self.dim = dim

    @property
    def revision(self) -> str:
        return f"1-{self.dim}"

    def passages(self, text: str) -> list[str]:
        return _passages(text)

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._late(texts).vectors

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        return self._late(texts).vectors

    def encode_queries_late(self, texts: Sequence[str]) -> LateVectors:
        return self._late(texts)

    def encode_documents_late(self, texts: Sequence[str]) -> LateVectors:
        return self._late(texts)

    def _late(self, texts: Sequence[str]) -> LateVectors:
        tokens = [normalized(np.array([_signs(word, self.dim) for word in _words(text)], np.float32).reshape(-1, self.dim)) for text in texts]
        vectors = np.array([each.sum(axis=0) for each in tokens], np.float32).reshape(-1, self.dim)
        return LateVectors(normalized(vectors), tokens)


class HashingSparseEncoder:
    """The words themselves, each weighing log(1 + its frequency), in the order in which they come first."""

    name = "hashing"
    revision = "1"

    def passages(self, text: str) -> list[str]:
        return _passages(text)

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._encode(text) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> SparseVector:
        counted = Counter(_words(text))
        return SparseVector(tuple(counted), np.array([math.log1p(count) for count in counted.values()], np.float32))
