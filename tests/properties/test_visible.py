"""What a channel sees of a snapshot is what the oracle's rule says, and what a search by words finds; cold segments are told of as any other."""

import tempfile
from pathlib import Path
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.kernels.bitmap import members
from agentir_ray.lexical.query import Bm25, Query, scoring
from agentir_ray.lexical.search import Visibility, top_k
from agentir_ray.lexical.visible import documents_seen, refs_of, refs_seen
from agentir_ray.types import Record
from tests.naive_filters import matches
from tests.properties.channel_world import ChannelWorld, expression_of, some_question, visibility_of

seeds = st.integers(0, 2**32 - 1).map(Random)


def some_world(random: Random, folder: Path) -> ChannelWorld:
    world = ChannelWorld(folder)
    for _ in range(random.randrange(1, 7)):
        for _ in range(random.choice([1, 5, 80])):
            world.write(random)
        if random.random() < 0.5:
            world.erase(random)
        if random.random() < 0.7:
            segment = world.seal()
            if random.random() < 0.3:
                world.write(random)  # beside a buffer being sealed
            world.install(None, segment)
        if random.random() < 0.3:
            world.erase(random)
        segments = [segment for segment in world.index.segments if not segment.cold]
        if len(segments) > 1 and random.random() < 0.2:
            chosen = random.sample(segments, 2)
            world.install(chosen, world.merge(chosen))  # type: ignore[arg-type]
        elif segments and random.random() < 0.3:
            world.chill(random.choice(segments))
    if random.random() < 0.3:
        world.seal()  # and it is never installed: two buffers
        world.write(random)
    return world


@settings(max_examples=150)
@given(seeds)
def test_a_channel_sees_what_words_see(random: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = some_world(random, Path(folder))
        for _ in range(10):
            question = some_question(random, random.choice([["a"], ["b"]]))
            visibility, expression = visibility_of(question), expression_of(question)
            snapshot = world.index.snapshot(tuple(question.terms), expression)
            versions = {version.seq: version for version in world.oracle.versions}
            seen_seqs = {
                seq
                for seq, version in versions.items()
                if world.oracle.visible(version, question) and question.since_us <= version.record.timestamp_us <= question.until_us and matches(question.where, version.record)
            }

            seqs = [segment.array("seq").tolist() for segment in snapshot.segments] + [view.seq[: view.documents].tolist() for view in snapshot.buffers]
            for part, segment in enumerate(snapshot.segments):
                first, end, words = documents_seen(snapshot, part, visibility, expression)
                assert (first, end) == (sum(t < question.since_us for t in segment.array("timestamp")), max(first, sum(t <= question.until_us for t in segment.array("timestamp"))))
                docs = range(first, end) if len(words) == 0 else members(words).tolist()
                assert [seqs[part][doc] for doc in docs] == [seq for seq in seqs[part] if seq in seen_seqs]

            listed = [(part << 32 | doc, seq) for part, own in enumerate(seqs) for doc, seq in enumerate(own)]
            random.shuffle(listed)
            listed.append((-1, 0))
            refs = np.array([ref for ref, _ in listed], np.int64)
            assert refs_seen(snapshot, refs, visibility, expression).tolist() == [seq in seen_seqs for _, seq in listed]
            place = {seq: ref for ref, seq in listed}
            wanted = random.choices([0, 10**9, *versions], k=random.choice([1, 40]))
            assert refs_of(snapshot, np.array(wanted, np.int64)).tolist() == [place.get(seq, -1) for seq in wanted]
            assert {seq for seq in seen_seqs if seq not in place} == set()

            scores = scoring(Query(tuple(question.terms), tuple(question.weights)), snapshot.statistics, Bm25())
            found = top_k(snapshot, scores, 1_000, visibility, expression)
            cold = {seq for segment, own in zip(snapshot.segments, seqs, strict=False) if segment.cold for seq in own}
            assert set(found.seq.tolist()) == {seq for seq in seen_seqs - cold if question.terms[0] in versions[seq].tokens}


def test_where_nothing_is_hidden_there_is_no_bitmap(tmp_path: Path) -> None:
    """And where something is, there is one, though it hides nothing from this query."""
    for expires_at_us, bitmap in ((None, False), (100, True)):
        world = ChannelWorld(tmp_path)
        for i in range(70):
            world.add(Record(f"r{i}", "a", i, i, expires_at_us=expires_at_us))
        world.install(None, world.seal())
        first, end, words = documents_seen(world.index.snapshot(()), 0, Visibility(50, since_us=3, until_us=66))
        assert (first, end) == (3, 67)
        assert members(words).tolist() == (list(range(3, 67)) if bitmap else [])
        assert len(words) == (2 if bitmap else 0)
