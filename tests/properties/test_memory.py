"""Whatever callers do to a `Memory`, it answers like the oracle: same records, same order, same scores to the last bit, same refusals.

The oracle looks at every record (`tests.naive`); how a text becomes terms is the analyzer's, which has tests of its own. Limits are small, so that a few records go through
sealing, merging, purging and rebuilding.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentir_ray import AgentIRError, ConflictError, ErasedError, InvalidInputError, Memory, NotFoundError, Record, SearchResult
from agentir_ray.analysis import get_analyzer
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits
from agentir_ray.lexical.query import Bm25
from tests.conftest import LONG
from tests.naive import FOREVER, NaiveIndex, Question
from tests.naive_filters import matches
from tests.naive_retention import naive_retention

ANALYZER = get_analyzer("multilingual")
WORDS = ["Lisbon", "moved", "moving", "dogs", "the", "東京", "café"]  # two with one stem, a stop word, one that becomes several terms
NAMES = [f"r{i}" for i in range(6)]
TIMES = st.integers(0, 30)
START_US = 10
SEAL_AT = 4

texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join) | st.sampled_from(["dogs " * 300, "Lisbon moved " * 150, ""])
fields = st.fixed_dictionaries(
    {"text": texts},
    optional={
        "timestamp": TIMES,
        "importance": st.sampled_from([0.0, 0.25, 1]),
        "session": st.sampled_from(["s1", "s2"]),
        "role": st.just("user"),
        "expires_at": st.none() | TIMES,
        "supersedes": st.none() | st.none() | st.sampled_from([*NAMES, "nobody"]),
        "metadata": st.sampled_from([{}, {"topic": "x"}, {"topic": ["x", "y"], "n": 2}]),
    },
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "timestamp": TIMES,
        "importance": st.sampled_from([0.0, 0.5]),
        "session": st.sampled_from([None, "s2"]),
        "expires_at": st.none() | TIMES,
        "supersedes": st.none() | st.sampled_from([*NAMES, "nobody"]),
        "metadata": st.sampled_from([None, {"topic": "y"}]),
    },
)
wheres = st.sampled_from(
    [
        {"session": {"eq": "s1"}},
        {"metadata.topic": {"contains": "x"}},
        {"or": [{"importance": {"gt": 0.2}}, {"expires_at": {"exists": True}}]},
        {"not": {"role": {"eq": "user"}}},
        {"id": {"in": NAMES[:3]}},
        {"created_at": {"gte": START_US + 1, "lt": START_US + 9}},
        {"timestamp": {"lte": 5}, "metadata.n": {"exists": False}},
    ]
)
searches = st.fixed_dictionaries(
    {"query": st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join)},
    optional={
        "k": st.integers(1, 40),
        "offset": st.integers(0, 5),
        "since": TIMES,
        "until": TIMES,
        "as_of": TIMES,
        "where": wheres,
        "session": st.sampled_from(["s1", "s2"]),
        "role": st.just("user"),
        "recency": st.sampled_from([(0.3, timedelta(microseconds=7)), (5, 1e-6), (0, "1d")]),
        "importance": st.sampled_from([0.0, 0.1, 3]),
        "min_score": st.sampled_from([-1.0, 0.2, 1.0]),
        "max_tokens": st.integers(1, 60),
        "coverage": st.sampled_from(["auto", "exact", 0.9]),
    },
)


class Ticking(ManualClock):
    """A stopwatch that goes on by `tick_ns` whenever it is read."""

    tick_ns = 0
    read_ns = 0

    def monotonic_ns(self) -> int:
        self.read_ns += self.tick_ns
        return self.read_ns


class MemoryMachine(RuleBasedStateMachine):
    @initialize(bm25=st.sampled_from([Bm25(), Bm25(1.2, 0.75), Bm25(0.0, 1.0)]))
    def start(self, bm25: Bm25) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memory-"))
        self.clock = Ticking(START_US)
        self.bm25 = bm25
        self.open()
        self.memory.use("a/b-other").add("Lisbon dogs", id="r0")  # a neighbour that must not be seen, nor harmed
        self.begin()

    def begin(self) -> None:
        self.oracle = NaiveIndex()
        self.given: dict[str, dict[str, Any]] = {}  # what the first add of an id was given
        self.erased: set[str] = set()
        self.seq = 0
        self.exists = False

    def open(self) -> None:
        limits = Limits(SEAL_AT, SEAL_AT + 2, decent=6, largest=9)
        self.memory = Memory.open(self.folder, "a/b", clock=self.clock, background=False, durability="process", bm25=self.bm25, limits=limits, memory_budget_bytes=60_000)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            assert [record.id for record in self.memory.use("a/b-other").export()] == ["r0"]
            assert self.memory.verify() == []
            self.memory.close()
            shutil.rmtree(self.folder)

    # Writing.

    def expect(self, item: dict[str, Any], batch: Sequence[str] = ()) -> type[AgentIRError] | Record | None:
        """What an add must end with: an error, the record that is there already, or None for a new one. `batch`: ids before it in the same call."""
        id, superseded = item.get("id"), item.get("supersedes")
        if superseded is not None and superseded == id:
            return InvalidInputError
        if superseded is not None and superseded not in self.given and superseded not in batch:
            return NotFoundError
        if id in self.erased:
            return ErasedError
        current = None if id is None else self.oracle.current(id)
        if current is None:
            return None
        present = current.record
        given, whole = as_given(item), as_given(self.fields_of(present))
        same = given == as_given(self.given[present.id]) or given | {"timestamp": item.get("timestamp", self.clock.now_us())} == whole
        return present if same else ConflictError

    @staticmethod
    def fields_of(record: Record) -> dict[str, Any]:
        return {
            "text": record.text, "id": record.id, "timestamp": record.timestamp_us, "importance": record.importance, "session": record.session, "role": record.role,
            "expires_at": record.expires_at_us, "supersedes": record.supersedes, "metadata": record.metadata,
        }  # fmt: skip

    def check_added(self, item: dict[str, Any], expected: Any, outcome: Record | AgentIRError) -> None:
        if isinstance(expected, type):
            assert type(outcome) is expected
        elif expected is not None:
            assert outcome == expected
        else:
            assert isinstance(outcome, Record)
            self.seq += 1
            now_us = self.clock.now_us()
            whole = as_given(item) | {"id": outcome.id, "timestamp": item.get("timestamp", now_us)}
            assert as_given(self.fields_of(outcome)) == whole
            assert (outcome.created_at_us, outcome.seq) == (now_us, self.seq)
            self.given[outcome.id] = dict(item)
            self.oracle.add(outcome.seq, outcome, ANALYZER.tokens(outcome.text))

    @rule(id=st.none() | st.sampled_from(NAMES), item=fields)
    def add(self, id: str | None, item: dict[str, Any]) -> None:
        item = item if id is None else {**item, "id": id}
        expected = self.expect(item)
        try:
            outcome: Record | AgentIRError = self.memory.add(**item)
        except AgentIRError as error:
            outcome = error
        self.exists = True
        self.check_added(item, expected, outcome)

    @rule(items=st.lists(st.tuples(st.none() | st.sampled_from(NAMES), fields), min_size=1, max_size=9))
    def add_many(self, items: list[tuple[str | None, dict[str, Any]]]) -> None:
        given = [item if id is None else {**item, "id": id} for id, item in items]
        outcomes = self.memory.add_many(iter(given))
        self.exists = True
        assert len(outcomes) == len(given)
        batch: list[str] = []
        for item, outcome in zip(given, outcomes, strict=True):
            self.check_added(item, self.expect(item, batch), outcome)
            if not isinstance(outcome, InvalidInputError | NotFoundError):
                batch.append(item.get("id", ""))

    @rule(items=st.lists(fields, min_size=4, max_size=12))
    def add_fresh(self, items: list[dict[str, Any]]) -> None:
        """Many that cannot fail, so that there is something to seal and to merge."""
        self.add_many([(None, {name: value for name, value in item.items() if name not in ("supersedes", "expires_at")}) for item in items])

    @precondition(lambda self: self.given)
    @rule(position=st.integers(0, 1_000), text=texts)
    def supersede(self, position: int, text: str) -> None:
        """A record that replaces one that is there, so that there is something to stand again when it is erased."""
        self.add(None, {"text": text, "supersedes": self.some_id(position)})

    @rule(id=st.sampled_from(NAMES))
    def retry(self, id: str) -> None:
        """A time-out, and the same call again: the record that is there, or word that it was erased."""
        if id in self.given:
            self.add(None, self.given[id])

    @rule(id=st.sampled_from(NAMES), changed=changes)
    def update(self, id: str, changed: dict[str, Any]) -> None:
        current = self.oracle.current(id)
        expected: type[AgentIRError] | None = None
        if current is None:
            expected = ErasedError if id in self.erased else NotFoundError
        elif changed.get("supersedes") == id:
            expected = InvalidInputError
        elif changed.get("supersedes", id) is not None and changed.get("supersedes", id) not in self.given:
            expected = NotFoundError
        try:
            record = self.memory.update(id, **changed)
        except AgentIRError as error:
            assert type(error) is expected
            return
        assert expected is None and current is not None
        whole = self.fields_of(current.record) | changed
        self.seq += 1
        assert as_given(self.fields_of(record)) == as_given(whole)
        assert (record.created_at_us, record.seq) == (self.clock.now_us(), self.seq)
        self.oracle.replace(record.seq, record, ANALYZER.tokens(record.text))

    @precondition(lambda self: self.given)
    @rule(position=st.integers(0, 1_000), changed=changes)
    def update_any(self, position: int, changed: dict[str, Any]) -> None:
        self.update(self.some_id(position), changed)

    def some_id(self, position: int) -> str:
        return list(self.given)[position % len(self.given)]

    @precondition(lambda self: self.exists)
    @rule(where=wheres, dry_run=st.sampled_from([False, False, True]))
    def forget_where(self, where: dict[str, Any], dry_run: bool) -> None:
        expected = [version.record.id for version in self.oracle.versions if not version.deleted and matches(where, version.record)]
        self.check_forgotten(self.memory.forget(where, dry_run=dry_run).ids, expected, dry_run)

    @precondition(lambda self: self.given)
    @rule(positions=st.lists(st.integers(0, 1_000), max_size=3))
    def forget_ids(self, positions: list[int]) -> None:
        ids = [self.some_id(position) for position in positions] + ["nobody"]
        expected = [id for id in dict.fromkeys(ids) if self.oracle.find(id)]
        self.check_forgotten(self.memory.forget(ids=ids, wait=True).ids, expected, False)

    @precondition(lambda self: self.exists)
    @rule(keep_last=st.none() | st.integers(1, 30), age_us=st.none() | st.integers(1, 40), pinned=st.none() | wheres, shown_first=st.booleans())
    def retain(self, keep_last: int | None, age_us: int | None, pinned: dict[str, Any] | None, shown_first: bool) -> None:
        if keep_last is None and age_us is None:
            return
        present = [version.record for version in self.oracle.versions if not version.deleted]
        cutoff_us = None if age_us is None else self.clock.now_us() - age_us
        expected = naive_retention(present, keep_last, cutoff_us, lambda record: pinned is not None and matches(pinned, record))
        rules: dict[str, Any] = {"keep_last": keep_last, "max_age": None if age_us is None else timedelta(microseconds=age_us)}
        if shown_first:
            shown = self.memory.retain(**rules, pinned=pinned)
            assert (shown.count, shown.kept) == (len(expected), len(present) - len(expected))
            rules = {"plan": shown.plan}
        receipt = self.memory.retain(**rules, pinned=pinned, dry_run=False)
        assert (receipt.count, receipt.kept) == (len(expected), len(present) - len(expected))
        self.check_forgotten(expected, expected, False)

    def check_forgotten(self, ids: Sequence[str], expected: Sequence[str], dry_run: bool) -> None:
        assert list(ids) == expected
        if expected and not dry_run:
            self.oracle.erase(expected)
            self.erased.update(expected)
            self.seq += 1

    @rule()
    def drop(self) -> None:
        if self.seq > 80:  # seldom, and only when there was something to lose
            assert self.memory.drop() is True
            assert self.memory.drop() is False
            self.begin()

    # Time, and what goes on behind the scenes.

    @rule(us=st.integers(1, 3))
    def wait(self, us: int) -> None:
        self.clock.advance(us / 1e6)

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.open()

    @precondition(lambda self: self.exists)
    @rule()
    def evict(self) -> None:
        """Other namespaces are used until this one, idle, is let go."""
        neighbour = self.memory.use("a")
        neighbour.add("dogs " * 20, id="big", timestamp=0)

    # Reading.

    def question(self, asked: dict[str, Any], k: int) -> Question:
        counted = Counter(ANALYZER.tokens(asked["query"]))
        weight, tau = asked.get("recency", (0.0, 1e-6))
        tau_us = 86_400e6 if tau == "1d" else (tau.total_seconds() if isinstance(tau, timedelta) else tau) * 1e6
        where = [{name: {"eq": asked[name]}} for name in ("session", "role") if name in asked] + [asked[name] for name in ("where",) if name in asked]
        return Question(
            list(counted), [float(n) for n in counted.values()], k, self.clock.now_us(), asked.get("as_of"), asked.get("since", -FOREVER), asked.get("until", FOREVER),
            {"and": where} if where else {}, weight, tau_us, asked.get("importance", 0.0), asked.get("min_score", -FOREVER), self.bm25.k1, self.bm25.b,
        )  # fmt: skip

    def check_result(self, memory: Memory, asked: dict[str, Any]) -> None:
        if not self.exists:
            return
        k, offset = asked.get("k", 10), asked.get("offset", 0)
        question = self.question(asked, k + offset)
        expected = self.oracle.search(question)[offset:]
        records = {version.seq: version.record for version in self.oracle.versions}
        if "max_tokens" in asked:
            left, fitting = asked["max_tokens"], []
            for seq, score in expected:
                tokens = -(-len(records[seq].text.encode()) // 4)
                if tokens <= left:
                    left -= tokens
                    fitting.append((seq, score))
            expected = fitting
        result = memory.search(**asked, explain=True)
        assert [(hit.record.seq, hit.score) for hit in result] == expected
        assert all(hit.record == records[hit.record.seq] for hit in result)
        assert result.coverage.exact and result.coverage.not_searched == 0 and result.coverage.mass == 1.0
        assert result.coverage.mode == str(asked.get("coverage", "auto"))
        self.check_explained(result, question)

    def check_explained(self, result: SearchResult, question: Question) -> None:
        documents, length, df = self.oracle.statistics(question.terms)
        tokens = {version.seq: Counter(version.tokens) for version in self.oracle.versions}
        for hit in result:
            why = hit.explanation
            assert why is not None
            total = 0.0
            for term in why.terms:
                total += term.score
            assert total == why.bm25
            assert (total + why.recency) + why.importance == why.score == hit.score
            tf = tokens[hit.record.seq]
            wanted = [(term, weight, tf[term], n) for term, weight, n in zip(question.terms, question.weights, df, strict=True) if tf[term]]
            assert [(term.term, term.weight, term.tf, term.df) for term in why.terms] == wanted
            assert (why.length, why.documents) == (tf.total(), documents)
            assert why.average_length == (length / documents if length else 1.0)

    @rule(asked=st.lists(searches, min_size=1, max_size=4))
    def search(self, asked: list[dict[str, Any]]) -> None:
        for each in asked:
            self.check_result(self.memory, each)

    @precondition(lambda self: self.exists)
    @rule(asked=searches)
    def search_as_a_follower(self, asked: dict[str, Any]) -> None:
        with Memory.open(self.folder, "a/b", clock=self.clock, read_only=True, bm25=self.bm25) as reader:
            self.check_result(reader, asked)

    @precondition(lambda self: self.exists)
    @rule(asked=searches, tick_ns=st.sampled_from([100, 1_000, 5_000]))
    def search_under_a_deadline(self, asked: dict[str, Any], tick_ns: int) -> None:
        """What is left out is counted, and what is found is true."""
        asked = {**asked, "k": 40, "offset": 0}
        asked.pop("max_tokens", None)
        self.clock.tick_ns = tick_ns
        try:
            result = self.memory.search(**asked, deadline_ms=0.003)
        finally:
            self.clock.tick_ns = 0
        full = self.oracle.search(self.question(asked, 1_000))
        coverage = result.coverage
        found = [(hit.record.seq, hit.score) for hit in result]
        if coverage.exact:
            assert found == full[:40] and coverage.not_searched == 0
        else:
            assert coverage.not_searched > 0 and coverage.mass is None and "deadline" in coverage.reason
            assert found == [hit for hit in full if hit in found]

    @precondition(lambda self: self.exists)
    @rule(ids=st.lists(st.sampled_from([*NAMES, "nobody"]), min_size=1))
    def get(self, ids: list[str]) -> None:
        for id in ids:
            current = self.oracle.current(id)
            if current is not None:
                assert self.memory.get(id) == current.record
            else:
                with pytest.raises(NotFoundError):
                    self.memory.get(id)

    @precondition(lambda self: self.exists)
    @rule(limit=st.integers(1, 7), asked=searches)
    def recent(self, limit: int, asked: dict[str, Any]) -> None:
        asked = {name: asked[name] for name in ("since", "until", "as_of", "where", "session", "role") if name in asked}
        question = self.question({"query": "", **asked}, 0)
        expected = sorted(
            (
                version.record
                for version in self.oracle.versions
                if self.oracle.visible(version, question) and question.since_us <= version.record.timestamp_us <= question.until_us and matches(question.where, version.record)
            ),
            key=lambda record: (-record.timestamp_us, -record.seq),
        )
        found: list[Record] = []
        cursor = None
        while True:
            page = self.memory.recent(limit, cursor=cursor, **asked)
            found += page.records
            cursor = page.cursor
            if cursor is None:
                break
            assert len(page.records) == limit
        assert found == expected

    @precondition(lambda self: self.exists)
    @rule(asked=st.lists(searches, min_size=1, max_size=3))
    def export(self, asked: list[dict[str, Any]]) -> None:
        """Everything that is not deleted, and it makes the same memory elsewhere, whatever was superseded, updated or forgotten before."""
        exported = list(self.memory.export())
        assert exported == [version.record for version in self.oracle.versions if not version.deleted]
        copy = self.memory.use("copy")
        report = copy.import_({name: value for name, value in record._asdict().items() if name in IMPORTED} | times_of(record) for record in exported)
        assert (report.added, report.duplicates, report.failed) == (len(exported), 0, [])
        for each in asked:
            each = {name: value for name, value in each.items() if name != "as_of"}  # an export holds the present
            assert answers(copy, each) == answers(self.memory, each)
        assert copy.drop()

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "folder") and self.exists:
            stats = self.memory.stats()["namespace"]
            documents, length, _ = self.oracle.statistics([])
            assert (stats["records"], stats["tokens"], stats["last_seq"]) == (documents, length, self.seq)
            assert stats["unsealed_entries"] < SEAL_AT


def as_given(fields: dict[str, Any]) -> dict[str, Any]:
    """Every field, with the defaults of `add`."""
    defaults = {"id": None, "timestamp": None, "importance": 0.0, "session": None, "role": None, "expires_at": None, "supersedes": None, "metadata": {}}
    return defaults | {name: value for name, value in fields.items() if value is not None}


IMPORTED = {"id", "text", "importance", "session", "role", "supersedes", "metadata"}


def times_of(record: Record) -> dict[str, Any]:
    return {"timestamp": record.timestamp_us, "created_at": record.created_at_us, "expires_at": record.expires_at_us}


def answers(memory: Memory, asked: dict[str, Any]) -> list[tuple[Record, float]]:
    """Without the sequence numbers, which every log gives anew."""
    return [(hit.record._replace(seq=0), hit.score) for hit in memory.search(**asked)]


MemoryMachine.TestCase.settings = settings(max_examples=2_000 if LONG else 120, stateful_step_count=40)
TestMemory = MemoryMachine.TestCase
