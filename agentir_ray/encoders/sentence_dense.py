"""Dense vectors by sentence-transformers (github.com/huggingface/sentence-transformers): any model in a folder. torch is loaded at the first text."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray.encoders import folders
from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.normal import normalized
from agentir_ray.encoders.protocol import Floats, LateVectors
from agentir_ray.encoders.tokens import Tokens, blank, by_length
from agentir_ray.encoders.torch_guest import quiet, torch_threads

INSTALL = "pip install 'agentir-ray[dense]'"


class SentenceEncoder:
    """`device` and `dtype` are torch's names. Prompts are the model's own unless given. `threads` of a CPU; `batch` texts of like length are read at once."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        threads: int = 1,
        batch: int = 8,
    ) -> None:
        self.name = name
        self._folder = folder
        own = folders.prompts(folder)
        self._query_prompt = own[0] if query_prompt is None else query_prompt
        self._document_prompt = own[1] if document_prompt is None else document_prompt
        self._device = device
        self._dtype = dtype
        self._threads = threads
        self._batch = batch
        self._tokens = Tokens(folder / "tokenizer.json", folders.window(folder), INSTALL)
        self._model = Lazy(self._load, folder)
        self.dim = folders.dim(folder)

    @cached_property
    def revision(self) -> str:
        prompts = [self._query_prompt, self._document_prompt]
        return folders.folder_revision(self._folder, kind="sentence", prompts=prompts, window=self._tokens.window, dtype=self._dtype)

    def passages(self, text: str) -> list[str]:
        return self._tokens.passages(text, self._document_prompt)

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts, self._query_prompt, None)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts, self._document_prompt, None)

    def encode_queries_late(self, texts: Sequence[str]) -> LateVectors:
        return self._late(texts, self._query_prompt)

    def encode_documents_late(self, texts: Sequence[str]) -> LateVectors:
        return self._late(texts, self._document_prompt)

    def _late(self, texts: Sequence[str], prompt: str) -> LateVectors:
        tokens = [np.empty((0, self.dim), np.float32)] * len(texts)
        return LateVectors(self._encode(texts, prompt, tokens), tokens)

    def _encode(self, texts: Sequence[str], prompt: str, late: list[Floats] | None) -> Floats:
        vectors = np.zeros((len(texts), self.dim), np.float32)
        read = [self._tokens.tokenize(text, prompt) for text in texts]
        worth = [row for row, text in enumerate(texts) if not blank(text) and read[row].first < read[row].last]
        if not worth:
            return vectors
        model = self._model.get()
        import torch

        with torch.inference_mode(), torch_threads(self._threads):
            for batch in by_length([len(read[row].ids) for row in worth], self._batch):
                rows = [worth[at] for at in batch]
                features = model.preprocess([prompt + texts[row] for row in rows])
                given = model({key: value.to(model.device) if hasattr(value, "to") else value for key, value in features.items()})
                vectors[rows] = given["sentence_embedding"].float().cpu().numpy()
                if late is not None:
                    for states, mask, row in zip(given["token_embeddings"], given["attention_mask"], rows, strict=True):
                        kept = states[mask.bool()].float().cpu().numpy()
                        late[row] = normalized(kept[read[row].first : read[row].last])
        return normalized(vectors)

    def _load(self) -> Any:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            from sentence_transformers import SentenceTransformer
        with quiet():
            model = SentenceTransformer(str(self._folder), device=self._device, local_files_only=True, model_kwargs={"dtype": self._dtype, "use_safetensors": True})
        model.max_seq_length = self._tokens.window
        return model.eval()
