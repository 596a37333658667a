"""A table with a vector a token: a text is the mean of its tokens' vectors. No model runs, so that a query costs the tokenizer and little else.

The format is model2vec's (github.com/MinishLab/model2vec: `model.safetensors` with `embeddings`, and optionally `weights` and `mapping` a token, and `tokenizer.json`), or
WordLlama's (one table, `embedding.weight`). The mean is over all tokens that the table knows; the unknown token counts only where the model's own library counts it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.normal import normalized
from agentir_ray.encoders.protocol import Floats
from agentir_ray.encoders.revision import revision
from agentir_ray.encoders.tokens import Tokens, blank
from agentir_ray.errors import EncodingError

INSTALL = "pip install 'agentir-ray[static]'"
WINDOW = 512  # tokens: a mean has no window of its own, but that of many pages says nothing


class _Table(NamedTuple):
    vectors: npt.NDArray[np.floating[Any]]
    row: npt.NDArray[np.int64] | None
    weight: Floats | None


class StaticEncoder:
    """`unknown` is the id of a token that is left out."""

    def __init__(self, name: str, weights: Path, tokenizer: Path, window: int = WINDOW, unknown: int | None = None) -> None:
        self.name = name
        self._weights = weights
        self._tokenizer = tokenizer
        self._unknown = unknown
        self._tokens = Tokens(tokenizer, window, INSTALL)
        self._table = Lazy(self._load, weights)

    @cached_property
    def revision(self) -> str:
        return revision([self._weights, self._tokenizer], kind="static", window=self._tokens.window, unknown=self._unknown)

    @property
    def dim(self) -> int:
        return int(self._table.get().vectors.shape[1])

    def passages(self, text: str) -> list[str]:
        return self._tokens.passages(text)

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> Floats:
        table = self._table.get()
        means = np.zeros((len(texts), table.vectors.shape[1]), np.float32)
        for mean, text in zip(means, texts, strict=True):
            ids = [] if blank(text) else self._tokens.plain(text)[: self._tokens.window]
            if self._unknown is not None:
                ids = [token for token in ids if token != self._unknown]
            if ids:
                rows = table.vectors[ids if table.row is None else table.row[ids]]
                if table.weight is None:
                    rows.mean(axis=0, dtype=np.float32, out=mean)
                else:
                    (rows * table.weight[ids, None]).mean(axis=0, dtype=np.float32, out=mean)
        return normalized(means)

    def _load(self) -> _Table:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            from safetensors import numpy as safetensors
        tensors: Mapping[str, npt.NDArray[Any]] = safetensors.load_file(self._weights)
        vectors = tensors.get("embeddings", tensors.get("embedding.weight"))
        if vectors is None or vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise EncodingError(f"{self._weights} has no table of float vectors named 'embeddings' or 'embedding.weight'. Name a folder in model2vec's format.")
        row = tensors.get("mapping")
        weight = tensors.get("weights")
        return _Table(vectors, None if row is None else row.astype(np.int64), None if weight is None else weight.astype(np.float32))
