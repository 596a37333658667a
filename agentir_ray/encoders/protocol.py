"""What an encoder is: texts in, vectors out. It knows no record, no store and no index.

An encoder reads at most a window of tokens of each text; `passages` cuts a longer text into overlapping ones that it reads whole. Its `name` and `revision` tell vectors that
may be compared from those that may not: whatever changes a vector (weights, prompts, pooling, quantisation) changes the revision. Both are known without loading a model.
Vectors are finite; dense ones have length 1, so that their dot product is the cosine. A text in which there is nothing to read (blank, or only signs that the model does not
know) has the zero vector, and no terms. Encoders may be called from several threads; what they need is loaded at the first use.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class SparseVector(NamedTuple):
    """Distinct terms, each with its weight > 0 (float32)."""

    terms: tuple[str, ...]
    weights: Floats


class LateVectors(NamedTuple):
    """Of one forward pass: `vectors` float32 (texts, dim), as the encoder gives them for search; of each text its tokens' vectors, float32 (tokens, dim), of length 1."""

    vectors: Floats
    tokens: list[Floats]


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    def passages(self, text: str) -> list[str]:
        """The text as pieces that fit the window, each overlapping the one before; at least one, the text itself where it fits."""
        ...


@runtime_checkable
class Encoder(_Named, Protocol):
    """Texts as points of a space in which what means the same lies close."""

    @property
    def dim(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        """float32 (texts, dim). A text longer than the window is cut off."""
        ...

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """float32 (texts, dim), of passages."""
        ...


@runtime_checkable
class TokenEncoder(Encoder, Protocol):
    """An encoder that also gives the vector of each token, for late interaction (ColBERT, arXiv:2004.12832)."""

    def encode_queries_late(self, texts: Sequence[str]) -> LateVectors: ...

    def encode_documents_late(self, texts: Sequence[str]) -> LateVectors: ...


@runtime_checkable
class SparseEncoder(_Named, Protocol):
    """Texts as weights of terms, also of terms that they do not contain (SPLADE, arXiv:2109.10086)."""

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]: ...

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]: ...


def identity(encoder: Any) -> str:
    """What vectors are kept by."""
    return f"{encoder.name}@{encoder.revision}"
