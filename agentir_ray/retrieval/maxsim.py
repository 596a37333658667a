"""Late interaction: each token of the query looks for the token of the text that is closest to it (MaxSim of ColBERT, arXiv:2004.12832).

m[t, d] is the largest dot product of query token t with a token of text d. A query token that is as close to all texts tells nothing; so it weighs g[t], the largest of its m over
the candidates less their mean, and score(d) = sum of g[t] * m[t, d] / sum of g[t]. On LoCoMo that is as good as weights by document frequency, and needs no table of these
(benchmarks/LOG.md).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from agentir_ray.retrieval.reranker import Candidate

Floats = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
BATCH = 4  # texts whose tokens are encoded between two looks at the clock


class _Late(Protocol):
    @property
    def tokens(self) -> list[Floats]: ...


class EncodesTokens(Protocol):
    def encode_documents_late(self, texts: Sequence[str]) -> _Late: ...


class MaxSim:
    """A `Reranker`. `query_tokens` float32 (tokens, dim) are by the encoder that made those of the candidates; what has none kept is encoded, as far as there is time."""

    lowest = -1.0

    def __init__(self, encoder: EncodesTokens, query_tokens: Floats) -> None:
        self._encoder = encoder
        self._query = query_tokens

    def rerank(self, query: str, candidates: Sequence[Candidate], deadline_ns: int | None, now_ns: Callable[[], int]) -> Float64s:
        tokens = [candidate.tokens for candidate in candidates]
        missing = [i for i, kept in enumerate(tokens) if kept is None]
        for first in range(0, len(missing), BATCH):
            if deadline_ns is not None and now_ns() > deadline_ns:
                break
            chosen = missing[first : first + BATCH]
            for i, found in zip(chosen, self._encoder.encode_documents_late([candidates[i].text for i in chosen]).tokens, strict=True):
                tokens[i] = found
        return maxsim(self._query, tokens)


def maxsim(query: Floats, texts: Sequence[Floats | None]) -> Float64s:
    """float64: the score of each text by its tokens, float32 (tokens, dim); NaN where these are None, -1 where there are none. Vectors have length 1."""
    scores = np.full(len(texts), np.nan)
    known = [i for i, tokens in enumerate(texts) if tokens is not None]
    there = [(i, tokens) for i in known if (tokens := texts[i]) is not None and len(tokens)]
    scores[known] = -1.0
    if there and len(query):
        starts = np.cumsum([0, *(len(tokens) for _, tokens in there[:-1])])
        closest = np.maximum.reduceat(query @ np.concatenate([tokens for _, tokens in there]).T, starts, axis=1).astype(np.float64)
        telling = closest.max(axis=1) - closest.mean(axis=1)
        weight = telling / telling.sum() if telling.sum() > 0.0 else np.full(len(query), 1.0 / len(query))
        scores[[i for i, _ in there]] = weight @ closest
    return scores
