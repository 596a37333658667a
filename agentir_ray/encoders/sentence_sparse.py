"""Learned sparse vectors by sentence-transformers' SparseEncoder: SPLADE models, plain masked language models (which it pools as SPLADE does), and inference-free ones.

An inference-free model (arXiv:2411.04403) weighs a query's tokens from a table, and runs the transformer over documents only. Its table is read here, so that queries need no
torch.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray.encoders import folders
from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.protocol import Floats, SparseVector
from agentir_ray.encoders.tokens import Tokens, blank, by_length
from agentir_ray.encoders.torch_guest import quiet, torch_threads

INSTALL = "pip install 'agentir-ray[dense]'"
NOTHING = SparseVector((), np.empty(0, np.float32))


class SentenceSparseEncoder:
    """`device` and `dtype` are torch's names; `threads` of a CPU; `batch` texts of like length are read at once."""

    def __init__(self, name: str, folder: Path, *, device: str = "cpu", dtype: str = "float32", threads: int = 1, batch: int = 8) -> None:
        self.name = name
        self._folder = folder
        self._device = device
        self._dtype = dtype
        self._threads = threads
        self._batch = batch
        self._query_table = _query_table(folder)
        home = next((path for path in (folder, *sorted(folder.glob("document_0_*"))) if (path / "tokenizer.json").is_file()), folder)
        self._tokens = Tokens(home / "tokenizer.json", folders.window(home), INSTALL)
        self._vocabulary = Lazy(self._tokens.vocabulary, folder)
        self._table = Lazy(self._load_table, folder)
        self._model = Lazy(self._load, folder)

    @cached_property
    def revision(self) -> str:
        return folders.folder_revision(self._folder, kind="sentence-sparse", window=self._tokens.window, dtype=self._dtype)

    def passages(self, text: str) -> list[str]:
        return self._tokens.passages(text)

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        if self._query_table is None:
            return self._encode(texts, "query")
        return [self._looked_up(text) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> list[SparseVector]:
        return self._encode(texts, "document")

    def _looked_up(self, text: str) -> SparseVector:
        read = self._tokens.tokenize(text)
        ids = np.unique(np.array(read.ids[read.first : read.last], np.int64))
        return self._vector(ids, self._table.get()[ids]) if len(ids) else NOTHING

    def _vector(self, ids: Any, weights: Floats) -> SparseVector:
        vocabulary = self._vocabulary.get()
        kept = weights > 0
        return SparseVector(tuple(vocabulary[word] for word in ids[kept]), weights[kept].astype(np.float32))

    def _encode(self, texts: Sequence[str], task: str) -> list[SparseVector]:
        vectors = [NOTHING] * len(texts)
        read = [self._tokens.tokenize(text) for text in texts]
        worth = [row for row, text in enumerate(texts) if not blank(text) and read[row].first < read[row].last]
        if not worth:
            return vectors
        model = self._model.get()
        import torch

        encode = model.encode_query if task == "query" else model.encode_document
        with torch.inference_mode(), torch_threads(self._threads):
            for batch in by_length([len(read[row].ids) for row in worth], self._batch):
                rows = [worth[at] for at in batch]
                dense = encode([texts[row] for row in rows], convert_to_sparse_tensor=False, show_progress_bar=False).float().cpu().numpy()
                for row, weights in zip(rows, dense, strict=True):
                    ids = np.flatnonzero(weights)
                    vectors[row] = self._vector(ids, weights[ids])
        return vectors

    def _load(self) -> Any:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            from sentence_transformers import SparseEncoder
        with quiet():
            return SparseEncoder(str(self._folder), device=self._device, local_files_only=True, model_kwargs={"dtype": self._dtype, "use_safetensors": True}).eval()

    def _load_table(self) -> Floats:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            from safetensors import numpy as safetensors
        assert self._query_table is not None
        weights: Floats = safetensors.load_file(self._query_table)["weight"].astype(np.float32)
        return weights


def _query_table(folder: Path) -> Path | None:
    """Of an inference-free model the file with the weights of a query's tokens."""
    return next(iter(sorted(folder.glob("query_0_SparseStaticEmbedding/model.safetensors"))), None)
