"""Stored weights through the kernel: whatever the encoding, the vectors, the segments and the query, the answers are the oracle's."""

import math
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.kernels.invert import WINDOW
from agentir_ray.lexical.asking import bounds, count_before, scores
from agentir_ray.lexical.filters import EVERYTHING, parse_filter
from agentir_ray.lexical.index import Index, Snapshot
from agentir_ray.lexical.query import Priors, Query
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.search import TopK, Visibility, top_k
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.strings import hashes, pack_strings, pack_texts
from agentir_ray.lexical.weight_sidecar import WeightedPostings, weight_scoring, weighted_snapshot
from agentir_ray.lexical.weights import Encoding, SparseVectors, build_weights, pack_vectors, stamp
from agentir_ray.sections import encode_sections
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US, Record
from tests.naive import FOREVER, NaiveIndex, Question, dot
from tests.properties.index_world import document_of, write_segment
from tests.properties.table_world import word
from tests.properties.test_index import NAMES, WHERES, some_record
from tests.properties.test_index_windows import DOCUMENTS, TERMS, Corpus

# The last two terms have one FNV-1a hash.
TERMS_HERE = ["a", "b", "c", "d", "e", "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"]
SCALES = [0.25, 1.0 / 3.0, 1e-6, 2.0**-100, 7e3]
seeds = st.integers(0, 2**32 - 1).map(Random)
encodings = st.sampled_from(["u8", "u16", "f32"])


def write_weights(vectors: SparseVectors, encoding: Encoding, scale: float, segment: Segment, path: Path) -> WeightedPostings:
    path.write_bytes(b"".join(encode_sections(build_weights(vectors, encoding, stamp(segment), scale))))
    return WeightedPostings(path, stamp(segment))


def some_weights(random: Random, encoding: Encoding, scale: float) -> list[float]:
    """Few, so that they tie; or many; or of every magnitude."""
    if encoding == "f32":
        return [float(np.float32(value)) for value in random.choice([[0.5, 1.0, 3.0], [10.0 ** random.uniform(-6, 6) for _ in range(400)], [1e-6, 1.0, 1e6]])]
    most = 255 if encoding == "u8" else 65_535
    return [code * scale for code in random.choice([[1, 2, 3], range(1, most + 1), [1, most]])]


class World:
    """Segments with sidecars, or without; then deletions, updates and supersessions."""

    def __init__(self, random: Random, encoding: Encoding, folder: Path) -> None:
        self.index, self.oracle = Index([], 0), NaiveIndex()
        self.weights: dict[int, dict[str, float]] = {}
        self.sidecars: dict[Segment, WeightedPostings] = {}
        scale = random.choice(SCALES)
        pool = some_weights(random, encoding, scale)
        share = random.choice([0.1, 0.5, 1.0])
        for i in range(random.randrange(1, 4)):
            for _ in range(random.choice([1, 5, 80])):
                self.write(random)
            buffer = self.index.freeze()
            segment = write_segment(draft_buffer(buffer, "n", "f"), folder / f"{i}.segment")
            self.index.install([buffer], segment)
            if segment is None or random.random() < 0.1:
                continue  # no sidecar
            seqs = segment.array("seq").tolist()
            for seq in seqs:
                self.weights[seq] = {term: random.choice(pool) for term in random.sample(TERMS_HERE, len(TERMS_HERE)) if random.random() < share}
            if i == 0 and not any(self.weights.values()):
                self.weights[seqs[0]] = {"a": pool[0]}
            self.sidecars[segment] = write_weights(pack_vectors(self.weights[seq] for seq in seqs), encoding, scale, segment, folder / f"{i}.weights")
        for _ in range(random.randrange(10)):
            self.write(random)  # into the buffer, which has no weights
        for _ in range(random.randrange(3)):
            erased = [random.choice(self.oracle.versions).record.id]
            with self.index.lock:
                self.index.seq += 1
                self.index.erase(self.index.seq, self.index.locate(erased))
            self.oracle.erase(erased)

    def write(self, random: Random) -> None:
        seq = self.index.seq + 1
        id = random.choice(NAMES) if random.random() < 0.2 else f"n{seq}"
        if any(version.erased for version in self.oracle.versions if version.record.id == id):
            id = f"n{seq}"
        record = some_record(random, id)
        current = self.oracle.current(id)
        if current is None:
            self.index.add(seq, document_of(record, seq))
            self.oracle.add(seq, record, record.text.split())
        else:
            record = record._replace(created_at_us=max(record.created_at_us, current.record.created_at_us))  # the engine sees to it
            self.index.replace(seq, document_of(record, seq))
            self.oracle.replace(seq, record, record.text.split())
        self.index.seq = seq

    def snapshot(self, question: Question) -> Snapshot:
        snapshot = self.index.snapshot((), parse_filter(question.where) if question.where else EVERYTHING)
        return weighted_snapshot(snapshot, [self.sidecars.get(segment) for segment in snapshot.segments], question.terms)


def some_question(random: Random, seen: Sequence[float]) -> Question:
    terms = random.sample([*TERMS_HERE, "unknown"], k=random.randrange(1, 8))
    magnitude = max([*seen, 1e-30])
    return Question(
        terms,
        [random.choice([1.0, 0.1, 2.0, 1e-6, 0.0, random.random()]) for _ in terms],
        k=random.choice([1, 2, 3, random.randrange(1, 60), 1_000]),
        now_us=random.randrange(15),
        as_of_us=random.choice([None, None, random.randrange(13)]),
        since_us=random.choice([-FOREVER, -FOREVER, random.randrange(13)]),
        until_us=random.choice([FOREVER, FOREVER, random.randrange(13)]),
        where=random.choice([{}, {}, random.choice(WHERES)]),
        recency_weight=random.choice([0.0, 0.0, 0.3 * magnitude, 5.0]),
        tau_us=random.choice([1.0, 7.0]),
        importance_weight=random.choice([0.0, 0.0, 0.1, magnitude]),
        min_score=random.choice([-FOREVER, -FOREVER, 0.2, random.choice([*seen, 0.0])]),
    )


def visibility_of(question: Question) -> Visibility:
    return Visibility(
        question.now_us if question.as_of_us is None else question.as_of_us,
        NEVER_US - 1 if question.as_of_us is None else question.as_of_us,
        MIN_TIME_US if question.since_us == -FOREVER else int(question.since_us),
        MAX_TIME_US if question.until_us == FOREVER else int(question.until_us),
    )


def ask(snapshot: Snapshot, question: Question) -> TopK:
    scoring, expression = weight_scoring(Query(tuple(question.terms), tuple(question.weights))), parse_filter(question.where) if question.where else EVERYTHING
    return top_k(
        snapshot, scoring, question.k, visibility_of(question), expression, Priors(question.recency_weight, question.tau_us, question.importance_weight), question.min_score
    )


def check(snapshot: Snapshot, question: Question, weights: Mapping[int, Mapping[str, float]], oracle: NaiveIndex) -> list[float]:
    """Top k, places, scores and bounds; returns the scores of all that the query sees."""
    assert [(hit.seq, hit.score) for hit in ask(snapshot, question).found] == oracle.search_weights(question, weights)
    asked = weight_scoring(Query(tuple(question.terms), tuple(question.weights)))
    visibility, priors = visibility_of(question), Priors(question.recency_weight, question.tau_us, question.importance_weight)
    expression = parse_filter(question.where) if question.where else EVERYTHING

    everybody = oracle.search_weights(question._replace(k=10**9, min_score=-FOREVER), weights)
    for rank in {0, len(everybody) // 2, len(everybody) - 1} if everybody else set():
        seq, score = everybody[rank]
        for since_seq, place in ((seq, rank), (-1, sum(other >= score for _, other in everybody)), (2**62, sum(other > score for _, other in everybody))):
            assert count_before(snapshot, asked, score, since_seq, visibility, expression, priors) == place

    for which, segment in enumerate(snapshot.segments):
        refs = np.arange(segment.documents) | which << 32
        assert scores(snapshot, asked, refs, visibility).tolist() == [dot(question, weights.get(seq, {})) for seq in segment.array("seq").tolist()]
    reach = bounds(snapshot, asked, visibility, priors)
    part = {seq: which for which, segment in enumerate(snapshot.segments) for seq in segment.array("seq").tolist()}
    assert all(score <= reach[part[seq]] for seq, score in everybody)
    return [score for _, score in everybody]


@settings(max_examples=150)
@given(seeds, encodings)
def test_answers_are_the_oracles(random: Random, encoding: Encoding) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(random, encoding, Path(folder))
        seen: list[float] = []
        for _ in range(12):
            question = some_question(random, seen)
            seen = check(world.snapshot(question), question, world.weights, world.oracle) or seen


@given(seeds, encodings)
def test_a_sidecar_holds_what_was_given(random: Random, encoding: Encoding) -> None:
    """Entry by entry, and no weight is above what its class and its block can reach."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(random, encoding, Path(folder))
        for segment, sidecar in world.sidecars.items():
            term_block, block_posting = sidecar.array("term_block"), sidecar.array("block_posting")
            posting_class, class_weight = sidecar.array("posting_class"), sidecar.array("class_weight")
            found: dict[int, dict[str, float]] = {seq: {} for seq in segment.array("seq").tolist()}
            seqs = segment.array("seq")
            for t in range(len(sidecar.terms)):
                first, last = int(block_posting[term_block[t]]), int(block_posting[term_block[t + 1]])
                term = sidecar.terms.get(t)
                assert sidecar.ordinals(pack_strings([term]), hashes(pack_strings([term]))).tolist() == [t] and sidecar.posting_count(t) == last - first > 0
                for p in range(first, last):
                    stored = {"u8": posting_class, "u16": sidecar.array, "f32": sidecar.array}[encoding]
                    weight = sidecar.scale * float(stored[p] if encoding == "u8" else stored(f"posting_{encoding}")[p])
                    found[int(seqs[sidecar.array("posting_doc")[p]])][term.decode()] = weight
                    assert weight <= float(class_weight[posting_class[p]]) <= float(class_weight[sidecar.array("skyline")[term_block[t]]])
            assert found == {seq: world.weights[seq] for seq in found}
            sidecar.verify()


class WeightedCorpus(Corpus):
    """The corpus of three windows, with a table of weights beside that of frequencies; half of the documents of a term have one."""

    def __init__(self, rng: np.random.Generator, encoding: Encoding) -> None:
        super().__init__(rng)
        self.scale = 1.0 if encoding == "f32" else float(rng.choice([0.01, 1.0 / 3.0]))
        if encoding == "f32":
            value = (10.0 ** rng.uniform(-6, 6, self.tf.shape)).astype(np.float32).astype(np.float64)
            value[:, ::3] = np.float32(0.7)  # terms of which all documents tie
        else:
            value = np.minimum(rng.geometric(0.02 if encoding == "u8" else 0.0005, self.tf.shape), 255 if encoding == "u8" else 65_535) * self.scale
        self.weight = np.where(self.tf > 0, value, 0.0)
        self.weight[rng.random(DOCUMENTS) < 0.01] = 0.0

    def vectors(self, lo: int, hi: int) -> SparseVectors:
        doc, term = np.nonzero(self.weight[lo:hi])
        start = np.searchsorted(doc, np.arange(hi - lo + 1)).astype(np.int64)
        return SparseVectors(start, term.astype(np.int32), self.weight[lo:hi][doc, term], pack_texts([word(t) for t in range(TERMS)]))

    def best(self, terms: list[int], weights: list[float], passing: Any, priors: Priors, as_of: int) -> tuple[Any, Any]:
        """(documents, scores) of all that pass, in order."""
        score = np.zeros(DOCUMENTS)
        for term, weight in zip(terms, weights, strict=True):
            score += weight * self.weight[:, term]
        docs = np.flatnonzero((score > 0.0) & passing & ~self.deleted)
        score = score[docs]
        if priors.recency_weight:
            score = score + priors.recency_weight * np.array([math.exp(-age / priors.tau_us) for age in np.maximum(0, as_of - self.timestamp[docs]).tolist()])
        if priors.importance_weight:
            score = score + priors.importance_weight * self.importance[docs]
        order = np.lexsort((-self.seq[docs], -score))
        return docs[order], score[order]


@pytest.mark.parametrize("encoding", ["u8", "u16", "f32"])
def test_windows(encoding: Encoding, tmp_path: Path) -> None:
    """Bitmaps, blocks and classes over several windows; one segment, then several, then nearly everything deleted."""
    rng = np.random.default_rng({"u8": 1, "u16": 2, "f32": 3}[encoding])
    corpus = WeightedCorpus(rng, encoding)
    for cuts in ([0, DOCUMENTS], [0, 1_000, WINDOW + 5_000, DOCUMENTS]):
        segments, sidecars = [], []
        for lo, hi in pairwise(cuts):
            segment = write_segment(corpus.draft(lo, hi), tmp_path / f"{lo}-{hi}.segment")
            assert segment is not None
            segments.append(segment)
            sidecars.append(write_weights(corpus.vectors(lo, hi), encoding, corpus.scale, segment, tmp_path / f"{lo}-{hi}.weights"))
        index = Index(segments, DOCUMENTS)
        check_windows(corpus, index, sidecars, rng, 25)
    alive = rng.random(DOCUMENTS) < 0.02
    for segment, (lo, hi) in zip(segments, pairwise(cuts), strict=True):
        segment.delete(np.flatnonzero(~alive[lo:hi]), DOCUMENTS, 0)
    corpus.deleted = ~alive
    check_windows(corpus, Index(segments, DOCUMENTS), sidecars, rng, 15)  # an index is told of deletions, or begins with them


def check_windows(corpus: WeightedCorpus, index: Index, sidecars: list[WeightedPostings], rng: np.random.Generator, queries: int) -> None:
    for _ in range(queries):
        terms = rng.choice(TERMS, int(rng.integers(1, 12)), replace=False).tolist()
        weights = rng.choice([1.0, 0.3, 2.7, 1e-3], len(terms)).tolist()
        last = int(corpus.timestamp[-1])
        since, until = (MIN_TIME_US, MAX_TIME_US) if rng.random() < 0.6 else sorted(rng.integers(-5, last + 5, 2).tolist())
        passing = (corpus.timestamp >= since) & (corpus.timestamp <= until)
        expression = EVERYTHING
        if rng.random() < 0.3:
            expression = parse_filter({"importance": {"gt": 0.4}})
            passing &= corpus.importance > 0.4
        priors = Priors(float(rng.choice([0.0, 0.5])), 2e4, float(rng.choice([0.0, 2.0]))) if rng.random() < 0.3 else Priors()
        docs, score = corpus.best(terms, weights, passing, priors, last)
        k = int(rng.choice([1, 10, 100, 3_000]))
        min_score = float(rng.choice([-np.inf, *score[: 2 * k : max(1, k // 2)][:5]]))
        visibility = Visibility(as_of_us=last, since_us=since, until_us=until)
        names = [word(t) for t in terms]
        snapshot = weighted_snapshot(index.snapshot((), expression), sidecars, names)
        scoring = weight_scoring(Query(tuple(names), tuple(weights)))
        found = top_k(snapshot, scoring, k, visibility, expression, priors, min_score)
        wanted = int((score >= min_score).sum())
        assert found.score.tolist() == score[: min(k, wanted)].tolist()
        assert found.seq.tolist() == corpus.seq[docs[: min(k, wanted)]].tolist()
        if len(docs):
            rank = int(rng.integers(len(docs)))
            assert count_before(snapshot, scoring, float(score[rank]), int(corpus.seq[docs[rank]]), visibility, expression, priors) == rank


def test_an_empty_sidecar(tmp_path: Path) -> None:
    index = Index([], 0)
    for seq in (1, 2):
        index.add(seq, document_of(Record(f"r{seq}", "a", seq, seq), seq))
        index.seq = seq
    buffer = index.freeze()
    segment = write_segment(draft_buffer(buffer, "n", "f"), tmp_path / "1.segment")
    assert segment is not None
    index.install([buffer], segment)
    sidecar = write_weights(pack_vectors([{}, {"a": 0.0}]), "u16", 0.5, segment, tmp_path / "1.weights")
    assert len(sidecar.terms) == 0
    snapshot = weighted_snapshot(index.snapshot(()), [sidecar], ["a"])
    assert ask(snapshot, Question(["a"], [1.0])).found == []
    assert ask(weighted_snapshot(Index([], 0).snapshot(()), [], ["a"]), Question(["a"], [1.0])).found == []
