"""Whatever the temperature of its segments, an index answers as the oracle: cold ones in all that needs no postings, and in searches once they are loaded."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from agentir_ray.lexical.asking import bounds, count_before, scores
from agentir_ray.lexical.filters import parse_filter
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.query import Bm25, Query, scoring
from agentir_ray.lexical.search import Visibility
from agentir_ray.lexical.segment import ColdSegmentError, Segment
from agentir_ray.lexical.spilled import remainder_sections, restored, spilled_sections
from agentir_ray.sections import SectionFile, encode_sections
from tests.conftest import LONG
from tests.properties.index_world import id_of
from tests.properties.test_index import WHERES, IndexMachine, seeds, some_question

positions = st.integers(0, 1_000)


class TemperatureMachine(IndexMachine):
    """`objects` is the spill target."""

    @initialize()
    def start(self) -> None:
        super().start()
        self.objects: dict[str, Path] = {}
        self.remainders: dict[Path, str] = {}  # the name of the object that has the rest

    def write_bytes(self, chunks: Any) -> Path:
        self.files += 1
        path = self.folder / f"{self.files}.segment"
        path.write_bytes(b"".join(map(bytes, chunks)))
        return path

    def exchange(self, old: Segment, new: Segment) -> None:
        new.touch()
        with self.index.lock:
            assert self.index.exchange(old, new)

    def one(self, position: int) -> Segment | None:
        """A segment that nobody merges just now, as the engine sees to it."""
        free = [segment for segment in self.index.segments if self.merging is None or segment not in self.merging]
        return free[position % len(free)] if free else None

    @rule(position=positions)
    def chill(self, position: int) -> None:
        segment = self.one(position)
        if segment is None or segment.cold:
            return
        if segment.spilled:
            self.exchange(segment, segment.over())
            return
        spilled = self.write_bytes(encode_sections(spilled_sections(segment)))
        remainder = self.write_bytes(encode_sections(remainder_sections(segment)))
        self.objects[spilled.name] = spilled
        self.exchange(segment, segment.over(SectionFile(remainder), spilled=spilled.name))
        self.manifest = self.manifest[0], [(remainder if path == segment.path else path, changes) for path, changes in self.manifest[1]]
        self.remainders[remainder] = spilled.name

    @rule(position=positions)
    def load(self, position: int) -> None:
        segment = self.one(position)
        if segment is not None and segment.cold:
            self.load_segment(segment)

    def load_segment(self, segment: Segment) -> None:
        heavy = self.write_bytes(restored(SectionFile(self.objects[segment.spilled]), segment))
        self.exchange(segment, segment.over(heavy=SectionFile(heavy)))
        heavy.unlink()

    @rule(position=positions)
    def heat(self, position: int) -> None:
        segment = self.one(position)
        if segment is not None and not segment.spilled:
            self.exchange(segment, segment.over(SectionFile(segment.path, copied=not segment.hot)))

    def load_all(self) -> None:
        for segment in self.index.segments:
            if segment.cold:
                self.load_segment(segment)

    def check_rebuilt(self) -> None:
        self.load_all()
        super().check_rebuilt()

    @rule(random=seeds)
    def search(self, random: Random) -> None:
        self.load_all()
        super().search(random)

    @rule(random=seeds)
    def cold_or_loaded(self, random: Random) -> None:
        """What a cold segment tells is what it tells when it is loaded."""
        question = some_question(random)
        expressions = [parse_filter(where) for where in WHERES]
        before = self.told(question, expressions)
        cold = [segment for segment in self.index.segments if segment.cold]
        for segment in cold:
            with pytest.raises(ColdSegmentError):
                segment.tf(0, 0)
            with pytest.raises(ColdSegmentError):
                segment.array("posting_doc")
        self.load_all()
        assert not any(segment.cold for segment in self.index.segments)
        for one, other in zip(before, self.told(question, expressions), strict=True):
            assert np.array_equal(one, other)

    def told(self, question: Any, expressions: Any) -> list[Any]:
        snapshot = self.index.snapshot(tuple(question.terms))
        query = scoring(Query(tuple(question.terms), tuple(question.weights)), snapshot.statistics, Bm25(question.k1, question.b))
        reach = bounds(snapshot, query, Visibility(question.now_us))
        words = [segment.passing(expression) for segment in snapshot.segments for expression in expressions]
        ids = [segment.id(doc) for segment in snapshot.segments for doc in range(segment.documents)]
        return [np.array(tuple(snapshot.statistics)[:2]), np.array(snapshot.statistics.df), reach, snapshot.ordinals, *words, np.array(ids)]

    @precondition(lambda self: self.index.segments and self.merging is None)
    @rule(chosen=st.sets(st.integers(0, 5), min_size=1), end=st.none() | st.integers(1, 8))
    def build_merge(self, chosen: set[int], end: int | None) -> None:
        self.load_all()
        super().build_merge(chosen, end)

    @rule()
    def reopen(self) -> None:
        applied_seq, entries = self.manifest
        segments = []
        for path, changes in entries:
            segment = Segment(path, self.cache, id_of, self.remainders.get(path, ""))
            segment.replay(changes)
            segments.append(segment)
        self.index = Index(segments, applied_seq)
        self.replay(self.index)
        self.seal_built = self.merging = None
        self.merge_built = []


TemperatureMachine.TestCase.settings = settings(max_examples=300 if LONG else 30, stateful_step_count=50)
TestTemperature = TemperatureMachine.TestCase


def test_what_needs_postings_says_which_segment_to_load(tmp_path: Path) -> None:
    machine = TemperatureMachine()
    machine.start()
    machine.add_fresh(Random(3))
    machine.seal()
    machine.chill(0)
    (segment,) = machine.index.segments
    snapshot = machine.index.snapshot(("a",))
    query = scoring(Query(("a",), (1.0,)), snapshot.statistics, Bm25())
    for ask in (lambda: scores(snapshot, query, np.array([0]), Visibility(15)), lambda: count_before(snapshot, query, 0.0, 0, Visibility(15)), lambda: segment.stored(0)):
        with pytest.raises(ColdSegmentError) as raised:
            ask()
        assert raised.value.segments == (segment,)
    machine.teardown()
