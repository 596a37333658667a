"""Search by learned sparse weights as it is defined: plain dictionaries, no postings."""

import math
from collections.abc import Mapping, Sequence

from tests.naive import NaiveIndex, Question, dot

Vectors = Mapping[int, Mapping[str, float]]  # by sequence number


class NaiveWeights:
    """`kept` are the vectors that sidecars have, `young` the others; what a sidecar has counts."""

    def __init__(self, kept: Vectors, young: Vectors) -> None:
        self.vectors = {**young, **kept}

    def search(self, oracle: NaiveIndex, question: Question) -> list[tuple[int, float]]:
        """(sequence number, score) of the best, best first."""
        return oracle.search_weights(question, self.vectors)

    def scores(self, question: Question, seqs: Sequence[int]) -> list[float]:
        """NaN of a version that has no vector."""
        return [dot(question, self.vectors[seq]) if seq in self.vectors else math.nan for seq in seqs]
