"""Whatever happens to an index, its answers are the oracle's: same records, same scores to the last bit, same order."""

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentir_ray.lexical.builder import Draft
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.cut import cut
from agentir_ray.lexical.index import Index, Located
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import Record
from tests.conftest import LONG
from tests.naive import FOREVER, NaiveIndex, Question
from tests.properties.index_world import check_answer, check_records, document_of, fates, id_of, through_json, write_segment

# Few words, times and names, so that scores tie and everything meets everything. The last two words have one FNV-1a hash.
WORDS = ["a", "b", "c", "d", "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"]
NAMES = [f"r{i}" for i in range(8)]
LONG_TEXTS = ["a " * 254, "a " * 255 + "b", "b " * 256, "c " * 1_000, "a b " * 300]
WHERES: list[dict[str, Any]] = [
    {"session": {"eq": "s1"}},
    {"metadata.topic": {"contains": "x"}},
    {"or": [{"importance": {"gt": 0.2}}, {"expires_at": {"exists": True}}]},
    {"not": {"role": {"eq": "user"}}},
    {"id": {"in": NAMES[:4]}},
    {"created_at": {"gte": 3, "lt": 9}},
]
seeds = st.integers(0, 2**32 - 1).map(Random)


def some_record(random: Random, id: str) -> Record:
    return Record(
        id,
        random.choice(LONG_TEXTS) if random.random() < 0.1 else " ".join(random.choices(WORDS, k=random.randrange(7))),
        random.randrange(13),
        random.randrange(13),
        random.choice([0.0, 0.0, 0.25, 1.0]),
        random.choice([None, "s1", "s2"]),
        random.choice([None, "user"]),
        random.choice([None, None, random.randrange(13)]),
        random.choice([None, None, random.choice(NAMES)]),
        random.choice([{}, {"topic": "x"}, {"topic": ["x", "y"], "n": 2}]),
    )


def some_question(random: Random) -> Question:
    terms = random.sample([*WORDS, "unknown"], k=random.randrange(1, 7))
    return Question(
        terms,
        [random.choice([1.0, 2.0, 0.5]) for _ in terms],
        k=random.choice([1, 2, 3, random.randrange(1, 51)]),
        now_us=random.randrange(15),
        as_of_us=random.choice([None, None, random.randrange(13)]),
        since_us=random.choice([-FOREVER, -FOREVER, random.randrange(13)]),
        until_us=random.choice([FOREVER, FOREVER, random.randrange(13)]),
        where=random.choice([{}, {}, random.choice(WHERES)]),
        recency_weight=random.choice([0.0, 0.0, 0.3, 5.0]),
        tau_us=random.choice([1.0, 7.0]),
        importance_weight=random.choice([0.0, 0.0, 0.1, 3.0]),
        min_score=random.choice([-FOREVER, -FOREVER, 0.2, 1.0, 3.0]),
        k1=random.choice([0.9, 0.9, 1.2, 0.0]),
        b=random.choice([0.4, 0.4, 0.0, 1.0]),
    )


class IndexMachine(RuleBasedStateMachine):
    """The engine's part, without its log and locks: `log` holds what was committed, `manifest` what a crash would leave of the segments."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="index-"))
        self.files = 0
        self.cache = SegmentCache(20_000)
        self.index = Index([], 0)
        self.oracle = NaiveIndex()
        self.log: list[tuple[str, int, Any]] = []
        self.erased: set[str] = set()
        self.manifest: tuple[int, list[tuple[Path, Any]]] = (0, [])
        self.seal_built: list[Segment] | None = None
        self.sealing_seq = 0
        self.merging: list[Segment] | None = None
        self.merge_built: list[Segment] = []
        self.located: Located | None = None

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.check_rebuilt()
            shutil.rmtree(self.folder)

    # Writing.

    def commit(self, kind: str, content: Any) -> None:
        seq = self.index.seq + 1
        with self.index.lock:
            self.apply(self.index, kind, seq, content)
            self.apply_to_oracle(kind, seq, content)
            self.index.seq = seq
        self.log.append((kind, seq, content))

    def update(self, record: Record) -> None:
        """A new version is no older than the one it replaces: the engine sees to it."""
        current = self.oracle.current(record.id)
        assert current is not None
        self.commit("replace", record._replace(created_at_us=max(record.created_at_us, current.record.created_at_us)))

    def apply(self, index: Index, kind: str, seq: int, content: Any) -> None:
        if kind == "erase":
            located = self.located if index is self.index and self.located is not None and content == list(self.located.ids) else index.locate(content)
            index.erase(seq, located)
        else:
            (index.add if kind == "add" else index.replace)(seq, document_of(content, seq))

    def apply_to_oracle(self, kind: str, seq: int, content: Any) -> None:
        if kind == "erase":
            self.erased.update(content)
            self.oracle.erase(content)
        else:
            (self.oracle.add if kind == "add" else self.oracle.replace)(seq, content, content.text.split())

    @rule(id=st.sampled_from(NAMES), random=seeds)
    def write(self, id: str, random: Random) -> None:
        """The log gives an id once: what is there already is updated, what was erased never comes back."""
        if id not in self.erased:
            if self.oracle.current(id) is None:
                self.commit("add", some_record(random, id))
            else:
                self.update(some_record(random, id))

    @rule(random=seeds)
    def add_fresh(self, random: Random) -> None:
        for _ in range(random.randrange(1, 30)):
            self.commit("add", some_record(random, f"n{self.index.seq}"))

    @rule(random=seeds)
    def replace_some(self, random: Random) -> None:
        alive = [version.record.id for version in self.oracle.versions if not version.deleted]
        for id in random.sample(alive, k=min(len(alive), 3)):
            self.update(some_record(random, id))

    @rule(random=seeds)
    def reconsider(self, random: Random) -> None:
        """Records come to supersede others, go on to, or no longer do; few of them, so that they supersede the same."""
        for id in random.choices(NAMES[4:], k=3):
            if id not in self.erased:
                current = self.oracle.current(id)
                wanted = random.choice([None, *NAMES[:2]])
                if current is None:
                    self.commit("add", some_record(random, id)._replace(supersedes=wanted))
                else:
                    self.update(current.record._replace(supersedes=wanted, created_at_us=random.randrange(13)))

    @rule(ids=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    def erase(self, ids: list[str]) -> None:
        self.commit("erase", ids)

    @rule(position=st.integers(0, 1_000))
    def locate(self, position: int) -> None:
        """Some records to be erased later, whatever is sealed, merged and written meanwhile."""
        ids = [NAMES[position % len(NAMES)], *([self.oracle.versions[position % len(self.oracle.versions)].record.id] if self.oracle.versions else [])]
        self.located = self.index.locate(ids)

    @precondition(lambda self: self.located is not None)
    @rule()
    def erase_located(self) -> None:
        assert self.located is not None
        with self.index.lock:
            assert self.index.known(self.located) == [id for id in self.located.ids if self.oracle.find(id)]
        self.commit("erase", list(self.located.ids))
        self.located = None

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
    @rule(end=st.none() | st.integers(1, 8))
    def build_seal(self, end: int | None) -> None:
        assert self.index.sealing is not None
        self.seal_built = self.write_files(draft_buffer(self.index.sealing, "tenant/space", "print"), end)

    @precondition(lambda self: self.seal_built is not None)
    @rule(crash=st.sampled_from([False, False, False, True]))
    def install_seal(self, crash: bool) -> None:
        assert self.seal_built is not None and self.index.sealing is not None
        self.swap([self.index.sealing], self.seal_built, self.sealing_seq, crash)

    @rule()
    def seal(self) -> None:
        if self.index.sealing is None and self.index.buffer.documents:
            self.freeze()
        if self.index.sealing is not None:
            if self.seal_built is None:
                self.build_seal(None)
            self.install_seal(False)

    @precondition(lambda self: self.index.segments and self.merging is None)
    @rule(chosen=st.sets(st.integers(0, 5), min_size=1), end=st.none() | st.integers(1, 8))
    def build_merge(self, chosen: set[int], end: int | None) -> None:
        segments = self.index.segments
        self.merging = [segments[i] for i in sorted({i % len(segments) for i in chosen})]
        self.merge_built = self.write_files(draft_segments(self.merging, "tenant/space", "print"), end)

    @precondition(lambda self: self.merging is not None)
    @rule(crash=st.sampled_from([False, False, False, True]))
    def install_merge(self, crash: bool) -> None:
        assert self.merging is not None
        self.swap(self.merging, self.merge_built, self.manifest[0], crash)

    def write_files(self, draft: Draft, end: int | None) -> list[Segment]:
        """The draft as one file, or cut in two behind its first `end` documents."""
        documents = len(draft.id_hash)
        written = []
        for piece in cut(draft, [documents] if end is None or end >= documents else [end, documents - end]):
            self.files += 1
            written.append(write_segment(piece, self.folder / f"{self.files}.segment", self.cache))
        return [segment for segment in written if segment is not None]

    def swap(self, replaced: Any, segments: list[Segment], applied_seq: int, crash: bool) -> None:
        with self.index.lock:
            self.index.carry_over(replaced, *segments)
            kept = [part for part in self.index.segments if part not in replaced] + segments
            self.manifest = applied_seq, [(part.path, through_json(part.overlay.since_written())) for part in kept]
        if crash:
            self.reopen()
            return
        self.index.install(replaced, *segments)
        if replaced is self.merging:
            self.merging, self.merge_built = None, []
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
        self.seal_built = self.merging = None
        self.merge_built = []

    def replay(self, index: Index) -> None:
        for kind, seq, content in self.log:
            if seq > index.seq:
                if kind == "erase" or content.id not in self.erased:
                    self.apply(index, kind, seq, content)
                index.seq = seq

    def check_rebuilt(self) -> None:
        rebuilt = Index([], 0)
        self.replay(rebuilt)
        assert fates(self.index) == fates(rebuilt)
        random = Random(self.index.seq)
        for _ in range(5):
            question = some_question(random)
            check_answer(rebuilt, self.oracle, question)
            check_answer(self.index, self.oracle, question)

    # Reading.

    @rule(random=seeds)
    def search(self, random: Random) -> None:
        for _ in range(10):
            check_answer(self.index, self.oracle, some_question(random))

    @rule()
    def look_up(self) -> None:
        check_records(self.index, self.oracle, [*NAMES, *{version.record.id for version in self.oracle.versions}])

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "index"):
            assert self.index.live_documents == self.oracle.statistics([])[0]


IndexMachine.TestCase.settings = settings(max_examples=300 if LONG else 30, stateful_step_count=50)
TestIndex = IndexMachine.TestCase


@pytest.mark.parametrize("seed", range(300 if LONG else 12))
def test_long_lives(seed: int) -> None:
    """The same machine driven at random, without shrinking: many more steps, and maintenance is often caught half way."""
    random = Random(seed)
    machine = IndexMachine()
    machine.start()
    for _ in range(150):
        action = random.randrange(24)
        if action < 3:
            machine.write(random.choice(NAMES), random)
        elif action < 5:
            machine.add_fresh(random)
        elif action == 5:
            machine.replace_some(random)
        elif action == 6:
            machine.erase([random.choice(NAMES)])
        elif action == 7:
            machine.erase_any(random.randrange(1_000))
        elif action < 11:
            machine.search(random)
        elif action < 14:
            if machine.index.sealing is None:
                if machine.index.buffer.documents:
                    machine.freeze()
            elif machine.seal_built is None:
                machine.build_seal(random.choice([None, 1, 3]))
            else:
                machine.install_seal(random.random() < 0.2)
        elif action < 18:
            if machine.merging is not None:
                machine.install_merge(random.random() < 0.2)
            elif machine.index.segments:
                machine.build_merge({random.randrange(6) for _ in range(random.randrange(1, 4))}, random.choice([None, 2, 20]))
        elif action == 18:
            machine.look_up()
        elif action == 19:
            machine.locate(random.randrange(1_000))
        elif action == 20:
            if machine.located is not None:
                machine.erase_located()
        elif action < 23:
            machine.reconsider(random)
        elif random.random() < 0.3:
            machine.reopen()
        machine.counts()
    machine.teardown()
