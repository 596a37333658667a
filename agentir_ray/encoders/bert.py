"""BERT (arXiv:1810.04805) in numpy, for models so small that a framework's overhead is most of their cost. It knows no tokenizer and reads one text at a time.

`heads` of a masked language model are read a block of the vocabulary at a time: what is wanted is the greatest logit of each word over the tokens, not all of them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentir_ray.encoders.protocol import Floats

BLOCK = 512  # words: their part of the decoder and their logits stay in the cache


class MaskedBert:
    """`tensors` as transformers names them, `config` its `config.json`."""

    def __init__(self, tensors: Mapping[str, Floats], config: Mapping[str, Any]) -> None:
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])
        self._tensors = {name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): value for name, value in tensors.items()}
        self._layers = int(config["num_hidden_layers"])
        self._words = self._tensors["bert.embeddings.word_embeddings.weight"]
        self._places = self._tensors["bert.embeddings.position_embeddings.weight"] + self._tensors["bert.embeddings.token_type_embeddings.weight"][0]
        decoder = self._tensors.get("cls.predictions.decoder.weight", self._words)
        self._decoder = [np.ascontiguousarray(decoder[begin : begin + BLOCK].T) for begin in range(0, len(decoder), BLOCK)]
        self._bias = self._tensors["cls.predictions.bias"]

    def greatest_logits(self, ids: Sequence[int]) -> Floats:
        """float32 (vocabulary): of each word the greatest logit over the tokens."""
        states = self._normal(_gelu(self._linear(self._states(ids), "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
        greatest: Floats = np.concatenate([(states @ block).max(axis=0) for block in self._decoder])
        greatest += self._bias
        return greatest

    def _states(self, ids: Sequence[int]) -> Floats:
        states = self._normal(self._words[ids] + self._places[: len(ids)], "bert.embeddings.LayerNorm")
        for number in range(self._layers):
            layer = f"bert.encoder.layer.{number}"
            attended = self._linear(self._attention(states, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
            states = self._normal(states + attended, f"{layer}.attention.output.LayerNorm")
            inner = _gelu(self._linear(states, f"{layer}.intermediate.dense"))
            states = self._normal(states + self._linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        return states

    def _attention(self, states: Floats, name: str) -> Floats:
        query, key, value = (self._linear(states, f"{name}.{part}").reshape(len(states), self._heads, -1).swapaxes(0, 1) for part in ("query", "key", "value"))
        scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended: Floats = (weights @ value).swapaxes(0, 1).reshape(len(states), -1)
        return attended

    def _linear(self, states: Floats, name: str) -> Floats:
        product: Floats = states @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]
        return product

    def _normal(self, states: Floats, name: str) -> Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        centred /= np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(self._epsilon))
        scaled: Floats = centred * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]
        return scaled


def _gelu(x: Floats) -> Floats:
    """x * Phi(x), the normal distribution by Abramowitz and Stegun 7.1.26 (error below 1.5e-7), as numpy has no erf."""
    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = 0.5 * series * np.exp(-z * z)
    given: Floats = x * np.where(x > 0, 1 - tail, tail)
    return given
