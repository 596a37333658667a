"""MaxSim as a reranker: kept tokens cost no encoding, the others are encoded in batches as far as the time goes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agentir_ray.retrieval.maxsim import BATCH, Floats, MaxSim, maxsim
from agentir_ray.retrieval.reranker import Candidate, Reranker

QUERY = np.eye(3, dtype=np.float32)[:2]


class Late(NamedTuple):
    tokens: list[Floats]


class Letters:
    """One token a letter of "xyz", each on an axis of its own; a tick of the clock a text."""

    def __init__(self) -> None:
        self.encoded: list[list[str]] = []
        self.time_ns = 0

    def encode_documents_late(self, texts: Sequence[str]) -> Late:
        self.encoded.append(list(texts))
        self.time_ns += len(texts)
        return Late([tokens_of(text) for text in texts])

    def now_ns(self) -> int:
        return self.time_ns


def tokens_of(text: str) -> Floats:
    return np.eye(3, dtype=np.float32)[["xyz".index(letter) for letter in text]]


def test_kept_tokens_are_not_encoded_again() -> None:
    letters = Letters()
    reranker: Reranker = MaxSim(letters, QUERY)
    candidates = [Candidate("kept", tokens_of("xy")), Candidate("z"), Candidate("xz")]
    scores = reranker.rerank("", candidates, None, letters.now_ns)
    assert letters.encoded == [["z", "xz"]]
    assert scores.tolist() == maxsim(QUERY, [tokens_of("xy"), tokens_of("z"), tokens_of("xz")]).tolist() and scores.argsort().tolist() == [1, 2, 0]


def test_at_the_deadline_it_stops_between_batches() -> None:
    for deadline_ns, batches in ((-1, 0), (0, 1), (BATCH - 1, 1), (BATCH, 2), (None, 3)):
        letters = Letters()
        candidates = [Candidate("kept", tokens_of("x")), *[Candidate("y")] * (2 * BATCH + 1)]
        scores = MaxSim(letters, QUERY).rerank("", candidates, deadline_ns, letters.now_ns)
        reached = min(batches * BATCH, 2 * BATCH + 1)
        assert len(letters.encoded) == batches and np.isnan(scores).tolist() == [False] * (1 + reached) + [True] * (2 * BATCH + 1 - reached)


def test_a_token_close_to_all_texts_tells_nothing() -> None:
    plain, telling = QUERY
    texts = [tokens_of("x"), tokens_of("xy"), tokens_of("xz")]
    assert maxsim(np.array([plain, telling]), texts).tolist() == maxsim(telling[np.newaxis], texts).tolist() == [0.0, 1.0, 0.0]


def test_where_no_token_tells_the_mean_is_the_score() -> None:
    assert maxsim(QUERY, [tokens_of("x")]).tolist() == [0.5]
    assert maxsim(QUERY, [tokens_of("x")] * 3).tolist() == [0.5] * 3


def test_texts_and_queries_without_tokens() -> None:
    nothing = np.empty((0, 3), np.float32)
    assert maxsim(QUERY, [nothing, tokens_of("xy")]).tolist() == [-1.0, 1.0]
    assert maxsim(nothing, [nothing, tokens_of("xy")]).tolist() == [-1.0, -1.0]
    assert len(maxsim(QUERY, [])) == 0
    assert np.isnan(maxsim(QUERY, [None])).tolist() == [True]
