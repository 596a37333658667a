"""Learned sparse vectors from a small BERT with its masked-language-model head (SPLADE, arXiv:2109.10086): the weight of a word is max(log(1 + relu(logit))) over the tokens.

Numpy alone runs it: with two layers of 128 a query costs one or two milliseconds. Larger models are `sentence_sparse`'s.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from agentir_ray.encoders import folders
from agentir_ray.encoders.bert import MaskedBert
from agentir_ray.encoders.blas_threads import blas_threads
from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.protocol import SparseVector
from agentir_ray.encoders.revision import revision
from agentir_ray.encoders.tokens import Tokens, blank

INSTALL = "pip install 'agentir-ray[static]'"
WINDOW = 256  # tokens: a longer passage has words about too many things
LARGEST = 2 * 256**2  # layers times width squared, up to which numpy keeps up with torch on one thread


class MaskedLMEncoder:
    """`folder` has `config.json`, `tokenizer.json` and `model.safetensors` of a BertForMaskedLM."""

    def __init__(self, name: str, folder: Path, *, threads: int = 1) -> None:
        self.name = name
        self._threads = threads
        self._folder = folder
        self._tokens = Tokens(folder / "tokenizer.json", min(WINDOW, folders.window(folder)), INSTALL)
        self._vocabulary = Lazy(self._tokens.vocabulary, folder)
        self._model = Lazy(self._load, folder)

    @staticmethod
    def fits(folder: Path) -> bool:
        """Whether the folder is a BERT that is small enough for numpy."""
        config = folders.settings(folder, "config.json")
        plain = config.get("architectures") == ["BertForMaskedLM"] and config.get("hidden_act") == "gelu" and not folders.modules(folder)
        return plain and (folder / "model.safetensors").is_file() and config["num_hidden_layers"] * config["hidden_size"] ** 2 <= LARGEST

    @cached_property
    def revision(self) -> str:
        return revision([self._folder / name for name in ("model.safetensors", "tokenizer.json", "config.json")], kind="masked-lm", window=self._tokens.window)

    def passages(self, text: str) -> list[str]:
        return self._tokens.passages(text)

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._encode(text) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> SparseVector:
        read = self._tokens.tokenize(text)
        if blank(text) or read.first == read.last:
            return SparseVector((), np.empty(0, np.float32))
        model = self._model.get()
        with blas_threads(self._threads):
            logits = model.greatest_logits(read.ids)
        words = np.flatnonzero(logits > 0)
        vocabulary = self._vocabulary.get()
        return SparseVector(tuple(vocabulary[word] for word in words), np.log1p(logits[words]))

    def _load(self) -> MaskedBert:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            from safetensors import numpy as safetensors
        return MaskedBert(safetensors.load_file(self._folder / "model.safetensors"), json.loads((self._folder / "config.json").read_text(encoding="utf-8")))
