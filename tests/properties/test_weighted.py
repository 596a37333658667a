"""Search by weights over sidecars and young records is the oracle's, whatever is cold, filtered, deleted, old, or in both; views of the young stay as they are."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.errors import EncodingError
from agentir_ray.lexical.query import Priors
from agentir_ray.lexical.weight_sidecar import WeightedPostings
from agentir_ray.lexical.weighted import sidecars_of, weighted_scores, weighted_top_k
from agentir_ray.lexical.weights import build_weights, pack_vectors, stamp
from agentir_ray.lexical.young_weights import YoungWeights, YoungWeightsView
from agentir_ray.sections import encode_sections
from tests.naive import FOREVER, Question
from tests.naive_weights import NaiveWeights
from tests.properties.channel_world import ChannelWorld, expression_of, some_question, visibility_of
from tests.properties.test_visible import some_world

TERMS = ["a", "b", "c", "d", "ä", "f", "g"]
seeds = st.integers(0, 2**32 - 1).map(Random)


def some_vector(random: Random, pool: list[float]) -> dict[str, float]:
    """Maybe an empty one."""
    return {term: random.choice(pool) for term in random.sample(TERMS, random.randrange(len(TERMS)))}


def some_pool(random: Random) -> list[float]:
    """Few weights, so that they tie, or many."""
    return random.choice([[0.5, 1.0], [float(np.float32(random.random())) for _ in range(500)]])


def give_sidecars(random: Random, world: ChannelWorld, pool: list[float]) -> dict[int, dict[str, float]]:
    """To some of the segments, of some of their documents; returns what they have by sequence number."""
    kept = {}
    for segment in world.index.segments:
        if random.random() < 0.25:
            continue
        seqs = segment.array("seq").tolist()
        share = random.choice([0.0, 0.5, 1.0])
        held = {seq: some_vector(random, pool) for seq in seqs if random.random() < share}
        encoded = np.array([seq in held for seq in seqs])
        path = world.path("sparse")
        path.write_bytes(b"".join(encode_sections(build_weights(pack_vectors(held.get(seq, {}) for seq in seqs), "f32", stamp(segment), encoder="e@1", encoded=encoded))))
        sidecar = WeightedPostings(path, stamp(segment))
        assert sidecar.encoder == "e@1" and sidecar.has(np.arange(len(seqs))).tolist() == encoded.tolist()
        segment.sidecars = {"sparse": sidecar}
        kept.update(held)
    return kept


def some_young(random: Random, world: ChannelWorld, pool: list[float]) -> dict[int, dict[str, float]]:
    """Of any version, whether a sidecar has it or not, and of some that the index does not know."""
    share = random.choice([0.1, 0.5, 1.0])
    return {seq: some_vector(random, pool) for seq in [*(version.seq for version in world.oracle.versions), 10**9] if random.random() < share}


def young_of(vectors: Mapping[int, Mapping[str, float]]) -> YoungWeights:
    young = YoungWeights()
    for seq, vector in vectors.items():
        young.add(seq, tuple(vector), np.array(list(vector.values()), np.float32))
    return young


def asked(random: Random, seen: list[float]) -> Question:
    terms = random.sample([*TERMS, "unknown"], random.randrange(1, 8))
    return some_question(random, terms)._replace(
        weights=[random.choice([1.0, 0.1, 2.0, 0.0, random.random()]) for _ in terms],
        k=random.choice([1, 2, 3, random.randrange(1, 60), 1_000]),
        recency_weight=random.choice([0.0, 0.0, 0.3]),
        tau_us=random.choice([1.0, 7.0]),
        importance_weight=random.choice([0.0, 0.0, 0.5]),
        min_score=random.choice([-FOREVER, -FOREVER, 0.2, random.choice([*seen, 0.0])]),
    )


@settings(max_examples=60)
@given(seeds)
def test_answers_are_the_oracles(random: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world, pool = some_world(random, Path(folder)), some_pool(random)
        kept, young = give_sidecars(random, world, pool), some_young(random, world, pool)
        naive, view = NaiveWeights(kept, young), young_of(young).view() if random.random() < 0.9 else None
        if view is None:
            naive = NaiveWeights(kept, {})
        seen: list[float] = []
        for _ in range(10):
            warm = [segment for segment in world.index.segments if not segment.cold]
            if warm and random.random() < 0.1:
                world.chill(random.choice(warm))  # and the sidecar stays
            question = asked(random, seen)
            visibility, expression = visibility_of(question), expression_of(question)
            snapshot = world.index.snapshot((), expression)
            terms, weights = tuple(question.terms), np.array(question.weights)
            priors = Priors(question.recency_weight, question.tau_us, question.importance_weight)
            found = weighted_top_k(snapshot, sidecars_of(snapshot), view, terms, weights, question.k, visibility, expression, priors, question.min_score)
            assert [(hit.seq, hit.score) for hit in found.found] == naive.search(world.oracle, question)
            assert not found.left.any()
            seen = found.score.tolist() or seen

            late = weighted_top_k(snapshot, sidecars_of(snapshot), view, terms, weights, question.k, visibility, expression, priors, question.min_score, lambda: True)
            assert all(segment.sidecars for segment, left in zip(snapshot.segments, late.left, strict=True) if left)
            assert [(hit.seq, hit.score) for hit in late.found] == NaiveWeights({seq: {} for seq in kept}, {} if view is None else young).search(world.oracle, question)

            columns = [segment.array("seq").tolist() for segment in snapshot.segments] + [buffer.seq[: buffer.documents].tolist() for buffer in snapshot.buffers]
            places = [(part << 32 | doc, seq) for part, own in enumerate(columns) for doc, seq in enumerate(own)]
            random.shuffle(places)
            places = places[: random.choice([0, 1, 50, 10_000])]
            scores = weighted_scores(snapshot, sidecars_of(snapshot), view, terms, weights, np.array([ref for ref, _ in places], np.int64))
            np.testing.assert_array_equal(scores, naive.scores(question, [seq for _, seq in places]))


def contents(view: YoungWeightsView) -> dict[int, dict[str, float]]:
    name = {number: term for term, number in view.number.items() if number < view.terms}
    assert len(set(view.seq.tolist())) == len(view.seq)
    return {
        seq: {name[t]: weight for t, weight in zip(view.term[start:end].tolist(), view.weight[start:end].tolist(), strict=True)}
        for seq, start, end in zip(view.seq.tolist(), view.start[:-1].tolist(), view.start[1:].tolist(), strict=True)
    }


@given(seeds)
def test_views_stay_as_they_are(random: Random) -> None:
    young, model = YoungWeights(), dict[int, dict[str, float]]()
    taken = []
    for _ in range(random.choice([10, 300])):
        seq = random.randrange(random.choice([5, 200]))
        if random.random() < 0.9:
            model[seq] = {f"t{random.randrange(1_000)}": random.choice([0.5, 1.0]) for _ in range(random.randrange(9))}
            young.add(seq, tuple(model[seq]), np.array(list(model[seq].values()), np.float32))
        else:
            gone = random.choices(range(200), k=random.choice([1, 60]))
            young.remove(gone)
            model = {seq: vector for seq, vector in model.items() if seq not in gone}
        if random.random() < 0.2:
            taken.append((young.view(), dict(model)))
    for view, then in [*taken, (young.view(), model)]:
        assert contents(view) == then
        terms = tuple({term for vector in then.values() for term in vector} | {"unknown"})
        gain = np.array([random.random() for _ in terms])
        wanted = NaiveWeights({}, then).scores(Question(list(terms), gain.tolist()), view.seq.tolist())
        assert view.scores(np.arange(len(view.seq)), terms, gain).tolist() == wanted
    assert len(young) == len(model) and young.memory_bytes() > 0


def test_entries_of_weight_zero_are_none() -> None:
    assert contents(young_of({1: {"a": 0.0, "b": 1.0}, 2: {"a": 0.0}}).view()) == {1: {"b": 1.0}, 2: {}}


@pytest.mark.parametrize(("terms", "weights"), [(("a",), [float("nan")]), (("a",), [float("inf")]), (("a",), [-1.0]), (("a", "a"), [1.0, 1.0]), (("a",), [1.0, 1.0])])
def test_vectors_that_cannot_be_kept(terms: tuple[str, ...], weights: list[float]) -> None:
    young = YoungWeights()
    with pytest.raises(EncodingError):
        young.add(1, terms, np.array(weights, np.float32))
    assert len(young) == 0
