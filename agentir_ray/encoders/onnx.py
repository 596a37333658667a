"""Transformers as ONNX graphs, run by onnxruntime: no torch, which takes seconds and hundreds of megabytes to load.

The graph gives a state for each token (`last_hidden_state`); pooling is done here, as `1_Pooling/config.json` says or by the mean. Each text is read alone by default: that is the
fastest on one thread, and a graph that quantises as it runs takes one scale for all activations of a batch, so that a vector would depend on the texts read along with it.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.normal import normalized
from agentir_ray.encoders.onnx_integers import counts_signed, integer_products
from agentir_ray.encoders.protocol import Floats, LateVectors
from agentir_ray.encoders.revision import revision
from agentir_ray.encoders.tokens import Tokenized, Tokens, blank, by_length
from agentir_ray.errors import EncodingError

INSTALL = "pip install 'agentir-ray[onnx]'"

Pooling = Literal["mean", "cls"]


class OnnxEncoder:
    """`dim` and `window` are the model's; `providers` are onnxruntime's, by default the CPU's."""

    def __init__(
        self,
        name: str,
        graph: Path,
        tokenizer: Path,
        *,
        dim: int,
        window: int,
        pooling: Pooling = "mean",
        query_prompt: str = "",
        document_prompt: str = "",
        threads: int = 1,
        batch: int = 1,
        providers: Sequence[str] = ("CPUExecutionProvider",),
    ) -> None:
        self.name = name
        self.dim = dim
        self._graph = graph
        self._tokenizer = tokenizer
        self._pooling = pooling
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._threads = threads
        self._batch = batch
        self._providers = list(providers)
        self._tokens = Tokens(tokenizer, window, INSTALL)
        self._session = Lazy(self._load, graph)

    @cached_property
    def revision(self) -> str:
        prompts = [self._query_prompt, self._document_prompt]
        return revision([self._graph, self._tokenizer], kind="onnx, integer products", window=self._tokens.window, pooling=self._pooling, prompts=prompts, batch=self._batch)

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
        pooled = np.zeros((len(texts), self.dim), np.float32)
        read = [self._tokens.tokenize(text, prompt) for text in texts]
        worth = [row for row, text in enumerate(texts) if not blank(text) and read[row].first < read[row].last]
        for batch in by_length([len(read[row].ids) for row in worth], self._batch):
            rows = [worth[at] for at in batch]
            states = self._run([read[row] for row in rows])
            for state, row in zip(states, rows, strict=True):
                pooled[row] = state[0] if self._pooling == "cls" else state[: len(read[row].ids)].mean(axis=0)
                if late is not None:
                    late[row] = normalized(state[read[row].first : read[row].last])
        return normalized(pooled)

    def _run(self, read: Sequence[Tokenized]) -> Floats:
        session, inputs, output = self._session.get()
        longest = max(len(text.ids) for text in read)
        ids = np.zeros((len(read), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(read):
            ids[row, : len(text.ids)] = text.ids
            mask[row, : len(text.ids)] = 1
        values: dict[str, npt.NDArray[np.int64]] = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states: Floats = session.run([output], {name: values[name] for name in inputs})[0].astype(np.float32, copy=False)
        if states.shape != (len(read), longest, self.dim):
            expected = (len(read), longest, self.dim)
            raise EncodingError(f"{self._graph} gave an array of shape {states.shape} where {expected} was expected. Name a graph of a transformer of that width.")
        return states

    def _load(self) -> tuple[Any, list[str], str]:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        exchanged = integer_products(self._graph.read_bytes(), counts_signed())
        session = onnxruntime.InferenceSession(str(self._graph) if exchanged is None else exchanged, options, providers=self._providers)
        inputs = [each.name for each in session.get_inputs()]
        outputs = [each.name for each in session.get_outputs() if len(each.shape) == 3]
        unknown = set(inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or not outputs:
            raise EncodingError(f"{self._graph} is not a text encoder that gives a state for each token: it asks for {inputs} and gives {outputs}. Export the transformer alone.")
        return session, inputs, outputs[0]
