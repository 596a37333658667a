"""What a search by vectors must answer: every record scored by a loop, sorted. Records are (seq, ref, vectors, prior); the score of one without vectors is None."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

LANES = 16


class NaiveRecord(NamedTuple):
    seq: int
    ref: int
    vectors: Any  # float32 (n, dim)
    prior: float = 0.0


def dot(vector: Any, query: Any) -> float:
    """Lane j adds the products of dimensions j, j + 16, ...; then the lanes are added in halves."""
    product = vector.astype(np.float64) * query.astype(np.float64)
    lane = np.zeros(LANES)
    for i in range(0, len(product), LANES):
        lane[: len(product) - i] += product[i : i + LANES]
    width = LANES // 2
    while width:
        lane = lane[:width] + lane[width : 2 * width]
        width //= 2
    return float(lane[0])


def score_of(record: NaiveRecord, query: Any) -> float | None:
    return max(dot(vector, query) for vector in record.vectors) + record.prior if len(record.vectors) else None


def ranked(records: Sequence[NaiveRecord], query: Any) -> list[tuple[float, int, int]]:
    """(score, seq, ref) of all records that have a vector, best first, equal scores newer first."""
    scored = [(score_of(record, query), record.seq, record.ref) for record in records]
    return sorted(((score, seq, ref) for score, seq, ref in scored if score is not None), key=lambda one: (-one[0], -one[1]))


def count_before(ranking: Sequence[tuple[float, int, int]], score: float, seq: int) -> int:
    return sum((-other, -number) < (-score, -seq) for other, number, _ in ranking)
