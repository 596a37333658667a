"""What every record log must do, whatever is underneath (`agentir_ray.storage.protocol`).

An implementation inherits `RecordLogContract` in a test module of its own and says how to open one: nothing else. `LogModel` is the same promise as a stateful model: random
verbs against the log and against a dictionary, which must agree after each.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentir_ray.clock import ManualClock
from agentir_ray.errors import ConflictError, FencedError, InvalidInputError, StoreClosedError
from agentir_ray.storage.protocol import Appended, Batch, CommitResult, EntryKind, NamespaceState, NewEntry, RecordLog, Status

DAY_S = 24 * 3600


def digest_of(content: str) -> bytes:
    return blake2b(content.encode(), digest_size=16).digest()


def add(id: str, content: str = "") -> NewEntry:
    return NewEntry(EntryKind.ADD, id, 0, 10, 20, digest_of(content), content.encode())


def update(id: str, version: int, content: str) -> NewEntry:
    return NewEntry(EntryKind.UPDATE, id, version, 11, 21, digest_of(content), content.encode())


def forget(*ids: str) -> NewEntry:
    body = json.dumps(ids).encode()
    return NewEntry(EntryKind.FORGET, None, 0, 12, 12, digest_of(body.decode()), body, ids)


def append(log: RecordLog, state: NamespaceState, *entries: NewEntry, operation: str | None = None, result: bytes = b"") -> CommitResult:
    [outcome] = log.commit([Batch(state.number, state.epoch, entries, operation, result)])
    return outcome


def statuses(result: CommitResult) -> list[tuple[str, int]]:
    assert result.error is None
    return [(one.status.name, one.seq) for one in result.appended]


def bodies(log: RecordLog, state: NamespaceState) -> list[bytes | None]:
    return [entry.body for entry in log.read(state.number)]


class RecordLogContract:
    """Inherit and define `open_log`, which opens (or makes) the log of a folder; two calls with one folder must see one log."""

    def open_log(self, folder: Path, owner: str, clock: ManualClock) -> RecordLog:
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def log(self, tmp_path: Path, clock: ManualClock) -> Iterator[RecordLog]:
        log = self.open_log(tmp_path, "one", clock)
        yield log
        log.close()

    @pytest.fixture
    def state(self, log: RecordLog) -> NamespaceState:
        return log.claim("acme/alice")

    # ---- namespaces

    def test_a_claim_creates_and_is_idempotent_for_its_owner(self, log: RecordLog) -> None:
        assert log.state("acme/alice") is None
        state = log.claim("acme/alice")
        assert (state.name, state.owner, state.epoch, state.next_seq, state.generation, state.manifest) == ("acme/alice", "one", 1, 1, 0, b"")
        assert log.claim("acme/alice") == state == log.state("acme/alice")

    def test_f02_namespaces_compare_by_segment_and_literally(self, log: RecordLog) -> None:
        names = ["acme", "acme-corp", "acme/alice", "acme/alice/x", "acme/alicia", "acme/%", "acme/_", "acm_", "acme0", "acme.", "ACME", "äcme/ü", "%", "_"]
        for name in names:
            log.claim(name)
        assert log.namespaces() == sorted(names)
        assert log.namespaces("acme") == ["acme", "acme/%", "acme/_", "acme/alice", "acme/alice/x", "acme/alicia"]
        assert log.namespaces("acme/alice") == ["acme/alice", "acme/alice/x"]
        assert log.namespaces("acm_") == ["acm_"]
        assert log.namespaces("%") == ["%"]
        assert log.namespaces("äcme") == ["äcme/ü"]
        assert log.namespaces("acme/ali") == log.namespaces("acm") == log.namespaces("nobody") == []

    @pytest.mark.parametrize("text", ["'; DROP TABLE entries; --", "a\x00b", "%_\\", "", "日本語/🙂", "?1", ":id", "x" * 5_000])
    def test_text_is_data(self, log: RecordLog, text: str) -> None:
        state = log.claim(text or "empty")
        assert statuses(append(log, state, add(text, text), operation=text or "operation")) == [("APPENDED", 1)]
        found = log.find(state.number, text)
        assert found is not None and (found.id, found.body) == (text, text.encode())
        assert [entry.id for entry in log.read(state.number)] == [text]

    def test_a_dropped_namespace_is_gone_and_its_successor_starts_anew(self, log: RecordLog, state: NamespaceState) -> None:
        other = log.claim("acme/bob")
        append(log, state, add("a", "x"), operation="o")
        append(log, other, add("a", "kept"))
        assert log.drop("acme/alice")
        assert not log.drop("acme/alice")
        assert log.state("acme/alice") is None and log.namespaces() == ["acme/bob"]
        assert isinstance(append(log, state, add("b", "y")).error, FencedError)
        again = log.claim("acme/alice")
        assert again.number != state.number and again.next_seq == 1
        assert statuses(append(log, again, add("a", "z"), operation="o")) == [("APPENDED", 1)]
        assert bodies(log, other) == [b"kept"] and bodies(log, again) == [b"z"] and bodies(log, state) == []

    # ---- appending

    def test_sequence_numbers_start_at_one_and_have_no_gaps(self, log: RecordLog, state: NamespaceState) -> None:
        other = log.claim("acme/bob")
        results = log.commit([Batch(s.number, s.epoch, [add(f"{i}-{j}") for j in range(i)]) for i, s in enumerate([state, other, state, other, state])])
        assert [[one.seq for one in result.appended] for result in results] == [[], [1], [1, 2], [2, 3, 4], [3, 4, 5, 6]]
        assert [entry.seq for entry in log.read(state.number)] == [1, 2, 3, 4, 5, 6]
        for name, next_seq in (("acme/alice", 7), ("acme/bob", 5)):
            now = log.state(name)
            assert now is not None and now.next_seq == next_seq

    def test_an_entry_is_read_as_it_was_written(self, log: RecordLog, state: NamespaceState) -> None:
        append(log, state, add("a", "old"), update("a", 1, "new"), forget("b"))
        first, second, third = log.read(state.number)
        assert (first.seq, first.kind, first.id, first.version, first.epoch, first.created_at_us, first.timestamp_us) == (1, EntryKind.ADD, "a", 0, 1, 10, 20)
        assert (first.digest, first.body) == (digest_of("old"), b"old")
        assert (second.kind, second.id, second.version, second.body, second.timestamp_us) == (EntryKind.UPDATE, "a", 1, b"new", 21)
        assert (third.kind, third.id, third.body) == (EntryKind.FORGET, None, b'["b"]')
        assert log.find(state.number, "a") == second
        assert log.find(state.number, "nobody") is None and log.find(state.number + 1, "a") is None

    def test_f09_a_retry_is_answered_with_the_first_entry(self, log: RecordLog, state: NamespaceState) -> None:
        assert statuses(append(log, state, add("a", "x"))) == [("APPENDED", 1)]
        assert statuses(append(log, state, add("a", "x"))) == [("DUPLICATE", 1)]
        assert statuses(append(log, state, update("a", 1, "y"))) == [("APPENDED", 2)]
        assert statuses(append(log, state, update("a", 1, "y"))) == [("DUPLICATE", 2)]
        assert statuses(append(log, state, add("a", "x"))) == [("DUPLICATE", 1)]
        assert statuses(append(log, state, add("b", "x"), add("b", "x"))) == [("APPENDED", 3), ("DUPLICATE", 3)]
        assert statuses(append(log, log.claim("acme/bob"), add("a", "x"))) == [("APPENDED", 1)]
        assert bodies(log, state) == [b"x", b"y", b"x"]

    def test_f04_failures_are_per_record(self, log: RecordLog, state: NamespaceState) -> None:
        append(log, state, add("a", "x"), add("gone", "x"), forget("gone"))
        result = append(log, state, add("b", "y"), add("a", "other"), add("gone", "x"), add("a", "x"), update("nobody", 1, "z"), add("c", "z"))
        assert statuses(result) == [("APPENDED", 4), ("CONFLICT", 1), ("ERASED", 2), ("DUPLICATE", 1), ("MISSING", 0), ("APPENDED", 5)]
        assert bodies(log, state) == [b"x", None, b'["gone"]', b"y", b"z"]
        assert statuses(append(log, state, add("d"))) == [("APPENDED", 6)]

    def test_an_update_follows_the_newest_version(self, log: RecordLog, state: NamespaceState) -> None:
        append(log, state, add("a", "0"), update("a", 1, "1"))
        assert statuses(append(log, state, update("a", 3, "3"))) == [("CONFLICT", 2)]
        assert statuses(append(log, state, update("a", 1, "other"))) == [("CONFLICT", 2)]
        assert statuses(append(log, state, update("a", 2, "2"))) == [("APPENDED", 3)]
        assert statuses(append(log, state, update("b", 1, "2"))) == [("MISSING", 0)]

    def test_a_malformed_batch_is_refused_alone(self, log: RecordLog, state: NamespaceState) -> None:
        bad = NewEntry(EntryKind.ADD, None, 0, 0, 0, digest_of(""), b"")
        refused, kept = log.commit([Batch(state.number, state.epoch, [add("a"), bad]), Batch(state.number, state.epoch, [add("b")])])
        assert isinstance(refused.error, InvalidInputError) and not refused.appended
        assert statuses(kept) == [("APPENDED", 1)]

    def test_many_entries_in_one_batch(self, log: RecordLog, state: NamespaceState) -> None:
        ids = [f"id-{i}" for i in range(1_000)]
        assert [one.seq for one in append(log, state, *map(add, ids)).appended] == list(range(1, 1_001))
        retried = append(log, state, *map(add, [*ids, "new"]))
        assert [one.seq for one in retried.appended] == list(range(1, 1_002)) and retried.appended[-1].status is Status.APPENDED
        assert [entry.id for entry in log.read(state.number)] == [*ids, "new"]

    # ---- reading

    def test_reading_starts_after_and_stops_at(self, log: RecordLog, state: NamespaceState) -> None:
        append(log, state, *(add(str(i)) for i in range(1, 601)))

        def read(after_seq: int = 0, limit: int | None = None) -> list[int]:
            return [entry.seq for entry in log.read(state.number, after_seq, limit)]

        assert read() == list(range(1, 601))
        assert read(598) == [599, 600] and read(600) == read(10_000) == read(0, 0) == []
        assert read(0, 3) == [1, 2, 3] and read(597, 2) == [598, 599] and read(0, 599) == list(range(1, 600)) and read(0, 512) == list(range(1, 513))

    def test_a_half_read_log_holds_nothing_up(self, log: RecordLog, state: NamespaceState) -> None:
        append(log, state, *(add(str(i), "secret") for i in range(600)))
        reading = log.read(state.number)
        next(reading)
        append(log, state, forget(*map(str, range(600))))
        assert log.purge()
        assert len(list(reading)) == 600  # the rest and the FORGET

    # ---- ownership

    def test_another_owner_fences_the_first(self, tmp_path: Path, log: RecordLog, state: NamespaceState, clock: ManualClock) -> None:
        append(log, state, add("a"))
        other = self.open_log(tmp_path, "two", clock)
        taken = other.claim("acme/alice")
        assert (taken.number, taken.owner, taken.epoch, taken.next_seq) == (state.number, "two", 2, 2)
        bob = log.claim("acme/bob")
        fenced, kept = log.commit([Batch(state.number, state.epoch, [add("b")]), Batch(bob.number, bob.epoch, [add("b")])])
        assert isinstance(fenced.error, FencedError) and statuses(kept) == [("APPENDED", 1)]
        assert isinstance(append(log, taken, add("b")).error, FencedError), "the epoch alone does not make an owner"
        with pytest.raises(FencedError):
            log.swap_manifest(state.number, state.epoch, 0, b"m")
        assert statuses(append(other, taken, add("b"))) == [("APPENDED", 2)]
        assert [entry.epoch for entry in other.read(state.number)] == [1, 2]
        back = log.claim("acme/alice")
        assert back.epoch == 3 and statuses(append(log, back, add("c"))) == [("APPENDED", 3)]
        other.close()

    def test_an_old_epoch_of_the_same_owner_is_fenced(self, log: RecordLog, state: NamespaceState) -> None:
        results = log.commit([Batch(state.number, 1, [add("a")]), Batch(state.number, 0, [add("b")]), Batch(state.number, 1, [add("c")])])
        assert isinstance(results[1].error, FencedError)
        assert statuses(results[0]) == [("APPENDED", 1)] and statuses(results[2]) == [("APPENDED", 2)]

    def test_a_manifest_is_replaced_by_compare_and_swap(self, log: RecordLog, state: NamespaceState) -> None:
        assert log.swap_manifest(state.number, 1, 0, b"first") == 1
        assert log.swap_manifest(state.number, 1, 1, b"second\x00") == 2
        with pytest.raises(ConflictError):
            log.swap_manifest(state.number, 1, 1, b"late")
        with pytest.raises(FencedError):
            log.swap_manifest(state.number, 2, 2, b"foreign")
        with pytest.raises(FencedError):
            log.swap_manifest(state.number + 1, 1, 2, b"nobody's")
        now = log.state("acme/alice")
        assert now is not None and (now.generation, now.manifest) == (2, b"second\x00")

    def test_what_was_learnt_is_replaced_by_the_owner_and_goes_with_the_namespace(self, tmp_path: Path, log: RecordLog, state: NamespaceState, clock: ManualClock) -> None:
        other = log.claim("acme/bob")
        assert log.prior(state.number) == log.prior(other.number + 1) == b""
        log.save_prior(state.number, 1, b"first")
        log.save_prior(other.number, 1, b"bob's")
        log.save_prior(state.number, 1, b"second\x00")
        with pytest.raises(FencedError):
            log.save_prior(state.number, 2, b"foreign")
        with pytest.raises(FencedError):
            log.save_prior(other.number + 1, 1, b"nobody's")
        assert (log.prior(state.number), log.prior(other.number)) == (b"second\x00", b"bob's")
        now = log.state("acme/alice")
        assert now is not None and now.generation == state.generation, "nobody need load the namespace anew"
        log.close()
        again = self.open_log(tmp_path, "one", clock)
        assert again.prior(state.number) == b"second\x00"
        assert again.drop("acme/alice")
        assert (again.prior(state.number), again.prior(other.number)) == (b"", b"bob's")
        again.close()

    # ---- operations

    def test_f09_an_operation_is_applied_once_in_seven_days(self, log: RecordLog, state: NamespaceState, clock: ManualClock) -> None:
        other = log.claim("acme/bob")
        append(log, state, add("a", "x"))
        first = append(log, state, forget("a"), operation="o1", result=b"1 erased")
        assert statuses(first) == [("APPENDED", 2)] and first.operation_result is None
        clock.advance(7 * DAY_S - 1)
        again = append(log, state, forget("a"), operation="o1", result=b"0 erased")
        assert again.operation_result == b"1 erased" and not again.appended and again.error is None
        assert statuses(append(log, other, forget("a"), operation="o1", result=b"bob's")) == [("APPENDED", 1)]
        clock.advance(1)
        assert statuses(append(log, state, forget("a"), operation="o1", result=b"later")) == [("APPENDED", 3)]
        now = log.state("acme/alice")
        assert now is not None and now.next_seq == 4

    def test_an_operation_that_failed_is_not_remembered(self, log: RecordLog, state: NamespaceState) -> None:
        assert statuses(append(log, state, update("a", 1, "x"), operation="o", result=b"done")) == [("MISSING", 0)]
        append(log, state, add("a", "w"))
        assert statuses(append(log, state, update("a", 1, "x"), operation="o", result=b"done")) == [("APPENDED", 2)]

    # ---- erasure

    def test_what_is_erased_cannot_be_read_and_never_comes_back(self, tmp_path: Path, log: RecordLog, state: NamespaceState) -> None:
        secret = "the secret of alice" + "!" * 6_000
        other = log.claim("acme/bob")
        append(log, other, add("a", "bob's"))
        append(log, state, add("a", secret), update("a", 1, secret + "?"), add("b", "kept"), forget("a", "nobody"))
        assert bodies(log, state) == [None, None, b"kept", b'["a", "nobody"]'] and bodies(log, other) == [b"bob's"]
        assert [entry.digest for entry in log.read(state.number)][:2] == [None, None]
        found = log.find(state.number, "a")
        assert found is not None and (found.version, found.body) == (1, None)
        for entry in (add("a", secret), add("a", "anew"), update("a", 1, secret + "?"), update("a", 2, "anew")):
            assert statuses(append(log, state, entry))[0][0] == "ERASED"
        assert log.verify() == []
        assert log.purge()
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or b"the secret of alice" not in file.read_bytes()

    def test_an_erasure_reaches_what_the_same_commit_added(self, log: RecordLog, state: NamespaceState) -> None:
        batches = [Batch(state.number, state.epoch, entries) for entries in ([add("a", "x")], [forget("a")], [add("a", "x")])]
        assert [statuses(result) for result in log.commit(batches)] == [[("APPENDED", 1)], [("APPENDED", 2)], [("ERASED", 1)]]
        assert bodies(log, state) == [None, b'["a"]']

    def test_an_erasure_up_to_a_sequence_number_spares_all_where_one_has_changed_since(self, log: RecordLog, state: NamespaceState) -> None:
        append(log, state, add("a", "x"), add("b", "y"))
        append(log, state, update("b", 1, "z"))
        asked = forget("a", "b")
        assert statuses(append(log, state, asked._replace(up_to_seq=2))) == [("CONFLICT", 3)]
        assert bodies(log, state) == [b"x", b"y", b"z"]
        assert statuses(append(log, state, asked._replace(up_to_seq=3))) == [("APPENDED", 4)]
        assert bodies(log, state) == [None, None, None, b'["a", "b"]']

    # ---- the whole

    def test_what_was_acknowledged_is_there_after_reopening(self, tmp_path: Path, log: RecordLog, state: NamespaceState, clock: ManualClock) -> None:
        append(log, state, add("a", "x"), operation="o", result=b"r")
        log.swap_manifest(state.number, 1, 0, b"m")
        before = list(log.read(state.number))
        log.close()
        again = self.open_log(tmp_path, "one", clock)
        now = again.claim("acme/alice")
        assert (now.epoch, now.next_seq, now.generation, now.manifest) == (1, 2, 1, b"m")
        assert list(again.read(now.number)) == before
        assert append(again, now, add("b"), operation="o").operation_result == b"r"
        again.close()

    def test_a_backup_is_complete_and_replaces_nothing(self, tmp_path: Path, log: RecordLog, state: NamespaceState, clock: ManualClock) -> None:
        append(log, state, *(add(str(i), "x" * 500) for i in range(300)))
        target = tmp_path / "copy"
        target.mkdir()
        log.backup(str(target / "log.db"))
        append(log, state, add("later"))
        with pytest.raises(InvalidInputError):
            log.backup(str(target / "log.db"))
        assert [file.name for file in target.iterdir()] == ["log.db"]
        copy = self.open_log(target, "one", clock)
        assert copy.verify() == []
        assert list(copy.read(state.number)) == list(log.read(state.number, 0, 300))
        copy.close()

    def test_a_closed_log_says_so(self, log: RecordLog, state: NamespaceState) -> None:
        log.close()
        log.close()
        verbs: list[Callable[[], Any]] = [log.namespaces, lambda: list(log.read(1)), lambda: log.claim("x"), lambda: append(log, state, add("a")), log.purge]
        for verb in verbs:
            with pytest.raises(StoreClosedError):
                verb()


# ---- the same as a model ---------------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    kind: EntryKind
    id: str | None
    version: int
    digest: bytes | None
    body: bytes | None


class Oracle:
    """A namespace's log as a list."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def versions(self, id: str) -> dict[int, int]:
        return {row.version: seq for seq, row in enumerate(self.rows, 1) if row.id == id}

    def append(self, entry: NewEntry) -> Appended:
        if entry.id is not None:
            versions = self.versions(entry.id)
            newest = max(versions, default=-1)
            if newest >= 0 and self.rows[versions[newest] - 1].digest is None:
                at = versions.get(entry.version, versions[newest]) if entry.kind is EntryKind.ADD else versions[newest]
                return Appended(Status.ERASED, at)
            if entry.version in versions:
                seq = versions[entry.version]
                return Appended(Status.DUPLICATE if self.rows[seq - 1].digest == entry.digest else Status.CONFLICT, seq)
            if entry.kind is EntryKind.UPDATE and newest < 0:
                return Appended(Status.MISSING, 0)
            if entry.version != newest + 1:
                return Appended(Status.CONFLICT, versions[newest])
        self.rows.append(Row(entry.kind, entry.id, entry.version, entry.digest, entry.body))
        for row in self.rows:
            if row.id is not None and row.id in entry.erase_ids:
                row.digest = row.body = None
        return Appended(Status.APPENDED, len(self.rows))


IDS = st.sampled_from(["a", "b", "c", "d'", "ü"])
CONTENTS = st.sampled_from(["", "x", "y"])
ENTRIES = st.one_of(
    st.builds(add, IDS, CONTENTS),
    st.builds(add, st.uuids().map(str), CONTENTS),
    st.builds(update, IDS, st.integers(1, 4), CONTENTS),
    st.lists(IDS, min_size=1, max_size=3, unique=True).map(lambda ids: forget(*ids)),
)
NAMES = ["t/a", "t/b"]


class LogModel(RuleBasedStateMachine):
    """Subclass, set `reopen` (close what there is and open it again), and hand the `TestCase` to pytest."""

    log: RecordLog
    fresh: ClassVar[Callable[["LogModel"], RecordLog]]
    reopen: ClassVar[Callable[["LogModel"], RecordLog]]

    @initialize()
    def start(self) -> None:
        self.log = type(self).fresh(self)
        self.oracles = {name: Oracle() for name in NAMES}
        self.states = {name: self.log.claim(name) for name in NAMES}
        self.generation = dict.fromkeys(NAMES, 0)

    @rule(work=st.lists(st.tuples(st.sampled_from(NAMES), st.lists(ENTRIES, max_size=4), st.booleans()), min_size=1, max_size=4))
    def commit(self, work: Sequence[tuple[str, list[NewEntry], bool]]) -> None:
        batches = [Batch(self.states[name].number, self.states[name].epoch + stale, entries) for name, entries, stale in work]
        for (name, entries, stale), result in zip(work, self.log.commit(batches), strict=True):
            if stale:
                assert isinstance(result.error, FencedError)
            else:
                assert result.error is None
                assert list(result.appended) == [self.oracles[name].append(entry) for entry in entries]

    @rule(name=st.sampled_from(NAMES))
    def swap(self, name: str) -> None:
        state = self.states[name]
        self.generation[name] = self.log.swap_manifest(state.number, state.epoch, self.generation[name], b"%d" % self.generation[name])

    @rule(name=st.sampled_from(NAMES))
    def drop_and_claim(self, name: str) -> None:
        assert self.log.drop(name)
        self.oracles[name] = Oracle()
        self.generation[name] = 0
        number = self.states[name].number
        self.states[name] = self.log.claim(name)
        assert self.states[name].number != number

    @rule()
    def close_and_open(self) -> None:
        self.log = type(self).reopen(self)

    @rule()
    def purge(self) -> None:
        assert self.log.purge()

    @precondition(lambda self: hasattr(self, "log"))
    @invariant()
    def agrees(self) -> None:
        assert self.log.namespaces() == NAMES
        for name, oracle in self.oracles.items():
            number = self.states[name].number
            read = [(entry.seq, entry.kind, entry.id, entry.version, entry.digest, entry.body) for entry in self.log.read(number)]
            assert read == [(seq, row.kind, row.id, row.version, row.digest, row.body) for seq, row in enumerate(oracle.rows, 1)]
            state = self.log.state(name)
            assert state is not None and state.next_seq == len(oracle.rows) + 1 and state.generation == self.generation[name]

    def teardown(self) -> None:
        if hasattr(self, "log"):
            assert self.log.verify() == []
            self.log.close()
