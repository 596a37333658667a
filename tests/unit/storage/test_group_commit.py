"""Group commit: many callers, few commits, one order. Threads meet at locks and barriers; nobody sleeps."""

import gc
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from agentir_ray.errors import FencedError, StorageFullError, UnknownOutcomeError
from agentir_ray.storage import group_commit
from agentir_ray.storage.group_commit import GroupCommitter
from agentir_ray.storage.protocol import Appended, Batch, CommitResult, EntryKind, NewEntry, Status
from agentir_ray.storage.sqlite_log import SqliteLog


def batch(name: str, entries: int = 1, size: int = 1, number: int = 1) -> Batch:
    return Batch(number, 1, [NewEntry(EntryKind.ADD, f"{name}-{i}", 0, 0, 0, bytes(16), b"x" * size) for i in range(entries)])


def names(batches: Sequence[Batch]) -> list[str]:
    return [str(one.entries[0].id) for one in batches]


class FakeLog:
    """Commits in memory. `hold` keeps commits waiting, so that a test decides who queues behind which commit."""

    def __init__(self) -> None:
        self.groups: list[list[Batch]] = []
        self.next_seq = 1
        self.entered = threading.Semaphore(0)
        self.gate: threading.Semaphore | None = None
        self.failure: Callable[[], BaseException] | None = None
        self.answer: Callable[[Batch], CommitResult | None] = lambda batch: None

    def hold(self) -> threading.Semaphore:
        self.gate = threading.Semaphore(0)
        return self.gate

    def commit(self, batches: Sequence[Batch]) -> list[CommitResult]:
        self.groups.append(list(batches))
        self.entered.release()
        if self.gate is not None:
            assert self.gate.acquire(timeout=30)
        if self.failure is not None:
            raise self.failure()
        results = []
        for one in batches:
            answer = self.answer(one)
            if answer is None:
                answer = CommitResult([Appended(Status.APPENDED, self.next_seq + i) for i in range(len(one.entries))])
                self.next_seq += len(one.entries)
            results.append(answer)
        return results


class Group:
    """One caller inside a held commit, and others queued behind it in a known order."""

    def __init__(self, log: FakeLog, committer: GroupCommitter, pool: ThreadPoolExecutor) -> None:
        self.log, self.committer, self.pool = log, committer, pool
        self.gate = log.hold()
        self.first = pool.submit(committer.submit, batch("first"))
        assert log.entered.acquire(timeout=30)

    def queue(self, *batches: Batch) -> list[Future[CommitResult]]:
        futures = []
        for one in batches:
            waiting = len(self.committer._queue)
            futures.append(self.pool.submit(self.committer.submit, one))
            while len(self.committer._queue) == waiting:
                pass
        return futures

    def release(self, commits: int = 1_000) -> None:
        self.gate.release(commits)


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
def applied() -> list[str]:
    return []


@pytest.fixture
def missed() -> list[Batch]:
    return []


@pytest.fixture
def committer(log: FakeLog, applied: list[str], missed: list[Batch]) -> GroupCommitter:
    return GroupCommitter(log, lambda batch, result: applied.append(str(batch.entries[0].id)), missed.append)  # type: ignore[arg-type]


@pytest.fixture
def pool():  # type: ignore[no-untyped-def]
    with ThreadPoolExecutor(40) as pool:
        yield pool


def test_a_lone_caller_commits_and_applies_at_once(committer: GroupCommitter, applied: list[str]) -> None:
    for i in range(3):
        assert [one.seq for one in committer.submit(batch(f"b{i}")).appended] == [i + 1]
        assert applied[-1] == f"b{i}-0"


def test_all_who_wait_go_together_and_in_order(log: FakeLog, committer: GroupCommitter, applied: list[str], pool: ThreadPoolExecutor) -> None:
    group = Group(log, committer, pool)
    futures = group.queue(*(batch(f"w{i}") for i in range(20)))
    group.release()
    assert [future.result(30).appended[0].seq for future in futures] == list(range(2, 22))
    assert [names(one) for one in log.groups] == [["first-0"], [f"w{i}-0" for i in range(20)]]
    assert applied == ["first-0", *(f"w{i}-0" for i in range(20))]


def test_groups_are_bounded_by_entries_and_by_bytes(log: FakeLog, committer: GroupCommitter, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "MAX_GROUP_ENTRIES", 4)
    monkeypatch.setattr(group_commit, "MAX_GROUP_BYTES", 100)
    group = Group(log, committer, pool)
    futures = group.queue(batch("a", 2), batch("b", 2), batch("c", 9), batch("d", 1, 60), batch("e", 1, 40), batch("f", 1, 500), batch("g"))
    group.release()
    for future in futures:
        future.result(30)
    assert [names(one) for one in log.groups[1:]] == [["a-0", "b-0"], ["c-0"], ["d-0", "e-0"], ["f-0"], ["g-0"]]


def test_a_failed_commit_reaches_everybody_in_it_and_nobody_else(log: FakeLog, committer: GroupCommitter, applied: list[str], pool: ThreadPoolExecutor) -> None:
    group = Group(log, committer, pool)
    futures = group.queue(*(batch(f"w{i}") for i in range(5)))
    group.release(1)
    group.first.result(30)
    log.failure = lambda: StorageFullError("full")
    group.release(1)
    errors = [future.exception(30) for future in futures]
    assert all(isinstance(error, StorageFullError) and str(error) == "full" for error in errors)
    assert len({id(error) for error in errors}) == 5, "one object for each: raising writes into it"
    log.failure = None
    group.release()
    assert committer.submit(batch("later")).appended
    assert applied == ["first-0", "later-0"]


def test_a_refused_batch_and_a_failing_apply_harm_only_their_caller(log: FakeLog, missed: list[Batch], pool: ThreadPoolExecutor) -> None:
    applied = []

    def apply(batch: Batch, result: CommitResult) -> None:
        name = str(batch.entries[0].id)
        if name == "bad-0":
            raise ZeroDivisionError(name)
        applied.append(name)

    known = CommitResult(operation_result=b"known")
    answers = {"fenced-0": CommitResult(error=FencedError("gone")), "known-0": known}
    log.answer = lambda batch: answers.get(str(batch.entries[0].id))
    committer = GroupCommitter(log, apply, missed.append)  # type: ignore[arg-type]
    group = Group(log, committer, pool)
    fenced, bad, again, good = group.queue(batch("fenced"), batch("bad"), batch("known"), batch("good"))
    group.release()
    assert isinstance(fenced.exception(30), FencedError)
    assert isinstance(bad.exception(30), ZeroDivisionError)
    assert again.result(30) is known
    assert good.result(30).appended
    assert applied == ["first-0", "good-0"]


def test_an_interrupted_leader_leaves_nobody_waiting_and_says_what_it_missed(log: FakeLog, committer: GroupCommitter, missed: list[Batch], pool: ThreadPoolExecutor) -> None:
    group = Group(log, committer, pool)
    leader, *others = group.queue(*(batch(f"w{i}") for i in range(4)))
    group.release(1)
    group.first.result(30)
    log.failure = KeyboardInterrupt
    assert log.entered.acquire(timeout=30)
    late = group.queue(batch("late"))
    group.gate.release()
    assert isinstance(leader.exception(30), KeyboardInterrupt)
    log.failure = None
    group.release()
    assert all(isinstance(future.exception(30), UnknownOutcomeError) for future in others)
    assert names(missed) == ["w0-0", "w1-0", "w2-0", "w3-0"]
    late[0].exception(30)
    assert committer.submit(batch("after")).appended


class _Interrupted:
    """A gate whose waiter is interrupted instead of woken."""

    def __init__(self, before: Callable[[], None]) -> None:
        self.before = before

    def acquire(self) -> bool:
        self.before()
        raise KeyboardInterrupt

    def locked(self) -> bool:
        return False


@pytest.mark.parametrize("given_the_lead", [False, True])
def test_an_interrupted_follower_gives_up_its_place_and_its_lead(
    log: FakeLog, committer: GroupCommitter, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, given_the_lead: bool
) -> None:
    group = Group(log, committer, pool)
    behind: list[Future[CommitResult]] = []

    def meanwhile() -> None:
        behind.extend(group.queue(batch("behind")))
        if given_the_lead:
            group.release()
            group.first.result(30)

    waiter = group_commit._Waiter

    def interrupted(one: Batch, size: int) -> object:
        return waiter(one, size, gate=_Interrupted(meanwhile)) if names([one]) == ["me-0"] else waiter(one, size)  # type: ignore[arg-type]

    monkeypatch.setattr(group_commit, "_Waiter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        committer.submit(batch("me"))
    group.release()
    assert behind[0].result(30).appended
    assert committer.submit(batch("after")).appended
    assert "me-0" not in [name for one in log.groups for name in names(one)]


def test_many_threads_over_many_namespaces_keep_every_order(tmp_path: Path) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        log = SqliteLog(tmp_path / "log.db", durability="process")
        states = [log.claim(f"t/{i}") for i in range(5)]
        applied: dict[int, list[int]] = {state.number: [] for state in states}
        committer = GroupCommitter(log, lambda batch, result: applied[batch.number].extend(one.seq for one in result.appended), lambda batch: None)
        own: list[list[tuple[int, int]]] = [[] for _ in range(16)]

        def work(thread: int) -> None:
            for i in range(40):
                state = states[(thread + i) % 5]
                result = committer.submit(batch(f"{thread}-{i}", entries=i % 3 + 1, number=state.number))
                seqs = [one.seq for one in result.appended]
                assert applied[state.number][seqs[0] - 1] == seqs[0], "searchable before it is acknowledged"
                own[thread] += [(state.number, seq) for seq in seqs]

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        for state in states:
            seqs = [entry.seq for entry in log.read(state.number)]
            assert seqs == applied[state.number] == list(range(1, len(seqs) + 1))
        for mine in own:
            for state in states:
                assert all(a < b for a, b in pairwise(seq for number, seq in mine if number == state.number))
        assert log.verify() == []
        log.close()
    finally:
        sys.setswitchinterval(interval)


def test_nothing_is_kept_of_a_batch_that_is_done(log: FakeLog, pool: ThreadPoolExecutor) -> None:
    """Not until the next garbage collection either: a batch holds its namespace, and that its files."""
    committer = GroupCommitter(log, lambda batch, result: None, lambda batch: None)  # type: ignore[arg-type]
    group = Group(log, committer, pool)
    pending = group.queue(*(batch(f"w{i}") for i in range(4)))
    group.release()
    gc.collect()
    gc.disable()
    try:
        for future in (group.first, *pending):
            future.result(30)
        pool.shutdown()
        committer.submit(batch("alone"))
        assert [one for one in gc.get_objects() if isinstance(one, group_commit._Waiter)] == []
    finally:
        gc.enable()
