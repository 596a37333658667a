"""Whatever happens to an index, its answers are the oracle's: same records, same scores to the last bit, same order."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.stored import BlockCache
from agentir_ray.types import Record
from tests.conftest import LONG
from tests.naive import FOREVER, NaiveIndex, Question
from tests.properties.index_world import check_answer, check_records, document_of, id_of, through_json, write_segment

# Few words, times and names, so that scores tie and everything meets everything. The last two words have one FNV-1a hash.
WORDS = ["a", "b", "c", "d", "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"]
NAMES = [f"r{i}" for i in range(8)]
TIMES = st.integers(0, 12)

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | st.sampled_from(["a " * 254, "a " * 255 + "b", "b " * 256, "c " * 1_000, "a b " * 300])
fields = st.fixed_dictionaries(
    {
        "text": texts,
        "timestamp_us": TIMES,
        "created_at_us": TIMES,
        "importance": st.sampled_from([0.0, 0.0, 0.25, 1.0]),
        "session": st.sampled_from([None, "s1", "s2"]),
        "role": st.sampled_from([None, "user"]),
        "expires_at_us": st.none() | TIMES,
        "supersedes": st.none() | st.sampled_from(NAMES),
        "metadata": st.sampled_from([{}, {"topic": "x"}, {"topic": ["x", "y"], "n": 2}]),
    }
)
wheres = st.sampled_from(
    [
        {},
        {"session": {"eq": "s1"}},
        {"metadata.topic": {"contains": "x"}},
        {"or": [{"importance": {"gt": 0.2}}, {"expires_at": {"exists": True}}]},
        {"not": {"role": {"eq": "user"}}},
        {"id": {"in": NAMES[:4]}},
        {"created_at": {"gte": 3, "lt": 9}},
    ]
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    terms = draw(st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6, unique=True))
    return Question(
        terms,
        [draw(st.sampled_from([1.0, 2.0, 0.5])) for _ in terms],
        k=draw(st.integers(1, 50)),
        now_us=draw(st.integers(0, 14)),
        as_of_us=draw(st.none() | st.none() | TIMES),
        since_us=draw(st.just(-FOREVER) | TIMES),
        until_us=draw(st.just(FOREVER) | TIMES),
        where=draw(st.just({}) | wheres),
        recency_weight=draw(st.sampled_from([0.0, 0.0, 0.3, 5.0])),
        tau_us=draw(st.sampled_from([1.0, 7.0])),
        importance_weight=draw(st.sampled_from([0.0, 0.0, 0.1, 3.0])),
        min_score=draw(st.sampled_from([-FOREVER, -FOREVER, 0.2, 1.0, 3.0])),
        k1=draw(st.sampled_from([0.9, 0.9, 1.2, 0.0])),
        b=draw(st.sampled_from([0.4, 0.4, 0.0, 1.0])),
    )


class IndexMachine(RuleBasedStateMachine):
    """The engine's part, without its log and locks: `log` holds what was committed, `manifest` what a crash would leave of the segments."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="index-"))
        self.files = 0
        self.cache = BlockCache(20_000)
        self.index = Index([], 0)
        self.oracle = NaiveIndex()
        self.log: list[tuple[str, int, Any]] = []
        self.erased: set[str] = set()
        self.manifest: tuple[int, list[tuple[Path, Any]]] = (0, [])
        self.seal_built: tuple[Segment | None] | None = None
        self.sealing_seq = 0
        self.merging: list[Segment] | None = None
        self.merge_built: Segment | None = None

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.check_rebuilt()
            shutil.rmtree(self.folder)

    # Writing.

    def commit(self, kind: str, content: Any) -> None:
        seq = self.index.seq + 1
        with self.index.lock:
            assert self.apply(self.index, kind, seq, content) == self.apply_to_oracle(kind, seq, content)
            self.index.seq = seq
        self.log.append((kind, seq, content))

    def apply(self, index: Index, kind: str, seq: int, content: Any) -> int | None:
        if kind == "erase":
            return index.erase(seq, content)
        (index.add if kind == "add" else index.replace)(seq, document_of(content, seq))
        return None

    def apply_to_oracle(self, kind: str, seq: int, content: Any) -> int | None:
        if kind == "erase":
            self.erased.update(content)
            return self.oracle.erase(content)
        (self.oracle.add if kind == "add" else self.oracle.replace)(seq, content, content.text.split())
        return None

    @rule(id=st.sampled_from(NAMES), record=fields)
    def write(self, id: str, record: dict[str, Any]) -> None:
        """The log gives an id once: what is there already is updated, what was erased never comes back."""
        if id not in self.erased:
            self.commit("add" if self.oracle.current(id) is None else "replace", Record(id, **record))

    @rule(records=st.lists(fields, min_size=1, max_size=8))
    def add_fresh(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            self.commit("add", Record(f"n{self.index.seq}", **record))

    @rule(ids=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    def erase(self, ids: list[str]) -> None:
        self.commit("erase", ids)

    @rule(position=st.integers(0, 1_000))
    def erase_any(self, position: int) -> None:
        if self.oracle.versions:
            self.commit("erase", [self.oracle.versions[position % len(self.oracle.versions)].record.id])

    # Sealing and merging, in steps between which everything else may happen.

    @precondition(lambda self: self.index.sealing is None and self.index.buffer.documents)
    @rule()
    def freeze(self) -> None:
        self.index.freeze()
        self.sealing_seq = self.index.seq

    @precondition(lambda self: self.index.sealing is not None and self.seal_built is None)
    @rule()
    def build_seal(self) -> None:
        assert self.index.sealing is not None
        self.seal_built = (self.write_file(draft_buffer(self.index.sealing, "tenant/space", "print")),)

    @precondition(lambda self: self.seal_built is not None)
    @rule(crash=st.sampled_from([False, False, False, True]))
    def install_seal(self, crash: bool) -> None:
        assert self.seal_built is not None and self.index.sealing is not None
        self.swap([self.index.sealing], self.seal_built[0], self.sealing_seq, crash)

    @precondition(lambda self: self.index.segments and self.merging is None)
    @rule(chosen=st.sets(st.integers(0, 5), min_size=1))
    def build_merge(self, chosen: set[int]) -> None:
        segments = self.index.segments
        self.merging = [segments[i] for i in sorted({i % len(segments) for i in chosen})]
        self.merge_built = self.write_file(draft_segments(self.merging, "tenant/space", "print"))

    @precondition(lambda self: self.merging is not None)
    @rule(crash=st.sampled_from([False, False, False, True]))
    def install_merge(self, crash: bool) -> None:
        assert self.merging is not None
        self.swap(self.merging, self.merge_built, self.manifest[0], crash)

    def write_file(self, draft: Any) -> Segment | None:
        self.files += 1
        return write_segment(draft, self.folder / f"{self.files}.segment", self.cache)

    def swap(self, replaced: Any, segment: Segment | None, applied_seq: int, crash: bool) -> None:
        with self.index.lock:
            if segment is not None:
                self.index.carry_over(replaced, segment)
            kept = [part for part in self.index.segments if part not in replaced] + ([segment] if segment is not None else [])
            self.manifest = applied_seq, [(part.path, through_json(part.overlay.since_written())) for part in kept]
        if crash:
            self.reopen()
            return
        self.index.install(replaced, segment)
        if replaced is self.merging:
            self.merging = self.merge_built = None
        else:
            self.seal_built = None

    @rule()
    def reopen(self) -> None:
        """After a crash: the manifest's segments, then the log from there on; erased bodies are gone from it."""
        applied_seq, entries = self.manifest
        segments = []
        for path, changes in entries:
            segment = Segment(path, self.cache, id_of)
            segment.replay(changes)
            segments.append(segment)
        self.index = Index(segments, applied_seq)
        self.replay(self.index)
        self.seal_built = self.merging = self.merge_built = None

    def replay(self, index: Index) -> None:
        for kind, seq, content in self.log:
            if seq > index.seq:
                if kind == "erase" or content.id not in self.erased:
                    self.apply(index, kind, seq, content)
                index.seq = seq

    def check_rebuilt(self) -> None:
        rebuilt = Index([], 0)
        self.replay(rebuilt)
        for where in ({}, {"session": {"eq": "s1"}}):
            check_answer(rebuilt, self.oracle, Question(WORDS, [1.0] * len(WORDS), k=50, now_us=5, where=where))
            check_answer(self.index, self.oracle, Question(WORDS, [1.0] * len(WORDS), k=50, now_us=5, where=where))

    # Reading.

    @rule(asked=st.lists(questions(), min_size=1, max_size=4))
    def search(self, asked: list[Question]) -> None:
        for question in asked:
            check_answer(self.index, self.oracle, question)

    @rule()
    def look_up(self) -> None:
        check_records(self.index, self.oracle, [*NAMES, *{version.record.id for version in self.oracle.versions}])

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "index"):
            assert self.index.live_documents == self.oracle.statistics([])[0]


IndexMachine.TestCase.settings = settings(max_examples=300 if LONG else 50, stateful_step_count=50)
TestIndex = IndexMachine.TestCase
