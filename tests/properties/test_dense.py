"""Search by vectors over random parts and young rows: whatever the vectors, the filters and the priors, the answers are the oracle's, to the last bit and tie."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.dense import codes, parts
from agentir_ray.dense.parts import DensePart
from agentir_ray.dense.search import Deeper, YoungRows, count_before, count_interval, scores, top_k
from agentir_ray.dense.sidecar import DenseSidecar, build_sidecar
from agentir_ray.dense.vectors import RecordVectors
from agentir_ray.sections import encode_sections
from tests.naive_dense import NaiveRecord, ranked, score_of
from tests.naive_dense import count_before as naive_count_before

seeds = st.integers(0, 2**32 - 1).map(Random)
DIMS = [1, 2, 15, 16, 17, 40, 64, 65, 130, 260]


def some_rows(random: Random, count: int, dim: int) -> Any:
    """Unit vectors of an encoder-like spectrum; or a few that tie; or of every magnitude; or zeros."""
    rng = np.random.default_rng(random.randrange(2**32))
    kind = random.choice(["spectrum", "ties", "equal", "magnitudes", "zeros"])
    spectrum = (1.0 + np.arange(dim)) ** -0.7
    rows = rng.normal(size=(count, dim)) * spectrum + 0.3 * spectrum
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if kind == "ties":
        rows = rng.integers(-1, 2, (count, dim)) * 0.5
    elif kind == "equal":
        rows = np.repeat(rows[:1], count, axis=0)
    elif kind == "magnitudes":
        rows *= 10.0 ** rng.uniform(-12, 12, (count, 1))
    elif kind == "zeros":
        rows[rng.random(count) < 0.5] = 0.0
    return rows.astype(np.float32)


class World:
    """Some parts with sidecars and some young rows, and what the query sees of them."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.random, self.dim = random, random.choice(DIMS)
        self.visible: list[NaiveRecord] = []
        self.everything: list[NaiveRecord] = []
        seqs = list(range(1, 5_000))
        random.shuffle(seqs)
        self.parts = [self._part(folder, number, seqs) for number in range(random.randrange(4))]
        self.young = self._young(len(self.parts), seqs) if random.random() < 0.7 else None

    def _vectors(self, documents: int) -> RecordVectors:
        count = [self.random.choice([1, 1, 1, 0, 3]) if self.random.random() < 0.3 else 1 for _ in range(documents)]
        start = np.cumsum([0, *count]).astype(np.int64)
        return RecordVectors(start, some_rows(self.random, int(start[-1]), self.dim))

    def _prior(self, documents: int) -> Any:
        return np.array([self.random.choice([0.0, 0.01, 5.0]) for _ in range(documents)]) if self.random.random() < 0.4 else np.empty(0)

    def _part(self, folder: Path, number: int, seqs: list[int]) -> DensePart:
        documents = self.random.choice([0, 1, 63, 64, 65, 200])
        vectors = self._vectors(documents)
        stamp = {"namespace": "n", "documents": documents, "seq_crc": number}
        path = folder / f"{number}.vectors"
        path.write_bytes(b"".join(encode_sections(build_sidecar(vectors, "e@1", stamp))))
        seq = np.array([seqs.pop() for _ in range(documents)], np.int64)
        prior = self._prior(documents)
        first, end = sorted(self.random.choices(range(documents + 1), k=2)) if self.random.random() < 0.4 else (0, documents)
        words, mask = np.empty(0, np.uint64), np.ones(documents, bool)
        if self.random.random() < 0.4:
            mask = np.array([self.random.random() < 0.6 for _ in range(documents)], bool)
            bits = np.zeros((documents + 63) // 64 * 64, bool)
            bits[:documents] = mask
            words = np.packbits(bits, bitorder="little").view(np.uint64)
        for d in range(documents):
            rows = vectors.vectors[vectors.start[d] : vectors.start[d + 1]]
            record = NaiveRecord(int(seq[d]), number << 32 | d, rows, float(prior[d]) if len(prior) else 0.0)
            self.everything.append(record)
            if first <= d < end and mask[d]:
                self.visible.append(record)
        return DensePart(DenseSidecar(path, stamp), number, first, end, words, seq, prior)

    def _young(self, number: int, seqs: list[int]) -> YoungRows:
        documents = self.random.choice([0, 1, 20])
        vectors, prior = self._vectors(documents), self._prior(documents)
        seq = np.array([seqs.pop() for _ in range(documents)], np.int64)
        ref = np.array([number << 32 | d for d in self.random.sample(range(1_000), documents)], np.int64)
        records = [
            NaiveRecord(int(seq[d]), int(ref[d]), vectors.vectors[vectors.start[d] : vectors.start[d + 1]], float(prior[d]) if len(prior) else 0.0) for d in range(documents)
        ]
        self.everything += records
        self.visible += records
        return YoungRows(seq, ref, vectors.start, vectors.vectors, prior)

    def query(self) -> Any:
        rows = [vector for record in self.everything for vector in record.vectors]
        if rows and self.random.random() < 0.5:
            return self.random.choice(rows).copy()
        return some_rows(self.random, 1, self.dim)[0]


@given(seeds)
def test_the_answers_are_the_oracle_s(random: Random) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.multiple(codes, LEAST_ROWS=random.choice([1, 1, 1, 64, 4_096]), ROWS_A_DIMENSION=0),
        patch.multiple(parts, FEW=0, SCORED_TO_READ=random.choice([0, 32, 10**9]), LEADERS_OF=random.choice([1, 16, 10**9])),
    ):
        world = World(random, Path(folder))
        query = world.query()
        expected = ranked(world.visible, query)
        k = random.choice([1, 2, 10, 100, 130, 1_000])
        least = random.choice([score for score, _, _ in expected]) if expected and random.random() < 0.3 else -np.inf
        top = top_k(world.parts, world.young, query, k, least)
        assert list(zip(top.score.tolist(), top.seq.tolist(), top.ref.tolist(), strict=True)) == [one for one in expected if one[0] >= least][:k]
        assert not top.left.any() and len(top.left) == len(world.parts)

        deeper, got = Deeper(world.parts, world.young, query), []
        for _ in range(4):
            step = deeper.next(random.choice([1, 7, 150]))
            got += list(zip(step.score.tolist(), step.seq.tolist(), step.ref.tolist(), strict=True))
        assert got == expected[: len(got)]
        assert len(deeper.next(len(expected)).score) == len(expected) - len(got)

        asked = random.choices(world.everything, k=20) if world.everything else []
        told = scores(world.parts, world.young, query, np.array([record.ref for record in asked], np.int64)).tolist()
        assert [None if np.isnan(score) else score for score in told] == [score_of(record, query) for record in asked]

        for score, seq, _ in random.choices(expected, k=5) if expected else []:
            for before_score, before_seq in ((score, seq), (score, seq + random.choice([-1, 1])), (float(np.nextafter(score, random.choice([-np.inf, np.inf]))), seq)):
                exact = naive_count_before(expected, before_score, before_seq)
                assert count_before(world.parts, world.young, query, before_score, before_seq) == exact
                fewest, most = count_interval(world.parts, world.young, query, before_score, before_seq)
                assert fewest <= exact <= most
