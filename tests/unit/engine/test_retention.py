"""`retain`: what goes, what stays, and that a call erases what its dry run showed, whatever was written meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray import ConflictError, InvalidInputError, Memory, NotFoundError
from agentir_ray.clock import ManualClock
from agentir_ray.engine import retention, writing
from agentir_ray.engine.listing import Key
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import Limits
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Record
from tests.naive_retention import naive_retention

PINNED = {"importance": {"gte": 0.9}}
DAY_S = 86_400


@pytest.fixture
def days(memory: Memory, clock: ManualClock) -> Memory:
    """A record a day, named by its day, 1 to 10; the 3rd is pinned by importance. Now is the end of the 10th."""
    for day in range(1, 11):
        memory.add(f"day {day}", id=f"{day:02}", timestamp=clock.now_us(), importance=0.9 if day == 3 else 0.1)
        clock.advance(DAY_S)
    return memory


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """With three records, in a segment and the buffer."""
    with Memory.open(tmp_path_factory.mktemp("plans"), background=False, limits=Limits(seal_at=2)) as memory:
        memory.add_many({"text": "tea", "timestamp": n} for n in range(3))
        with memory._store.namespace(memory.namespace) as loaded:
            yield loaded


def ids(memory: Memory) -> list[str]:
    return sorted(record.id for record in memory.export())


def numbered(*days: int) -> list[str]:
    return [f"{day:02}" for day in days]


def test_keep_last_after_a_dry_run(days: Memory) -> None:
    first = days.retain(keep_last=4, pinned=PINNED)
    assert (first.count, first.pinned, first.kept, first.hidden, first.purged) == (5, 1, 5, False, False)
    assert (first.oldest, first.newest) == (days.get("01").timestamp, days.get("06").timestamp)
    assert ids(days) == numbered(*range(1, 11))
    done = days.retain(keep_last=4, pinned=PINNED, dry_run=False, wait=True)
    assert (done.count, done.pinned, done.kept, done.hidden, done.purged) == (5, 1, 5, True, True)
    assert (done.oldest, done.newest, done.plan) == (first.oldest, first.newest, first.plan)
    assert ids(days) == numbered(3, 7, 8, 9, 10)
    assert [hit.record.id for hit in days.search("day").hits] == numbered(10, 9, 8, 7, 3)
    again = days.retain(keep_last=4, pinned=PINNED, dry_run=False)
    assert (again.count, again.pinned, again.kept, again.oldest, again.newest) == (0, 1, 5, None, None)


def test_max_age(days: Memory, clock: ManualClock) -> None:
    assert days.retain(max_age="30d").count == 0
    assert days.retain(max_age=3.5 * DAY_S).count == 7
    assert days.retain(max_age="3d").count == 7  # the 8th is exactly that old, which is not older
    assert days.retain(max_age="3d", as_of=clock.now_us() - 2 * DAY_S * 10**6).count == 5
    assert days.retain(max_age="3d", pinned=PINNED, dry_run=False).count == 6
    assert ids(days) == numbered(3, 8, 9, 10)


def test_either_rule_suffices_to_go(days: Memory) -> None:
    assert days.retain(keep_last=2, max_age="5d").count == 8
    assert days.retain(keep_last=8, max_age="5d").count == 5
    assert days.retain(keep_last=100, max_age="100y").count == 0


def test_what_is_pinned_counts_among_the_newest(memory: Memory) -> None:
    for n in range(4):
        memory.add("tea", id=str(n), timestamp=n, role="pin" if n == 3 else None)
    assert memory.retain(keep_last=2, pinned={"role": {"eq": "pin"}}, dry_run=False).count == 2
    assert ids(memory) == ["2", "3"]


def test_what_is_expired_or_superseded_counts_and_goes(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="expired", timestamp=1, expires_at=2)
    memory.add("tea", id="old", timestamp=2)
    memory.add("tea", id="new", timestamp=3, supersedes="old")
    assert memory.retain(keep_last=2, dry_run=False).count == 1
    assert ids(memory) == ["new", "old"]


def test_updated_records_are_placed_by_their_present_version(memory: Memory) -> None:
    for n in range(3):
        memory.add("tea", id=str(n), timestamp=n)
    memory.update("0", timestamp=10)
    assert memory.retain(keep_last=1, dry_run=False).count == 2
    assert ids(memory) == ["0"]


def test_a_plan_erases_what_its_dry_run_showed(days: Memory, clock: ManualClock) -> None:
    shown = days.retain(keep_last=5, pinned=PINNED)
    assert (shown.count, shown.pinned) == (4, 1)
    clock.advance(100 * DAY_S)
    days.add("late and newer", id="newer")  # which the rules, but not the plan, would have push out another
    days.add("late and older", id="older", timestamp=1)
    days.update("01", text="changed")
    days.update("02", importance=0.95)
    days.forget(ids=["04"])
    days.forget(ids=["10"])
    assert days.retain(plan=shown.plan, pinned=PINNED).count == 1
    done = days.retain(plan=shown.plan, pinned=PINNED, dry_run=False)
    assert (done.count, done.kept) == (1, 9)
    assert ids(days) == [*numbered(1, 2, 3, 6, 7, 8, 9), "newer", "older"]
    assert days.retain(plan=shown.plan, pinned=PINNED, dry_run=False).count == 0


def test_an_update_a_moment_before_the_commit_keeps_its_record(days: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_of = writing.forget_entry
    raced: list[str] = []

    def race(namespace: Any, named: Any, now_us: int) -> Any:
        made = entry_of(namespace, named, now_us)
        if not raced:
            raced.append("02")
            days.update("02", text="changed meanwhile")
        return made

    monkeypatch.setattr(retention, "forget_entry", race)
    assert days.retain(keep_last=7, dry_run=False).count == 2
    assert ids(days) == numbered(2, *range(4, 11))
    assert days.get("02").text == "changed meanwhile"


def test_many_are_erased_in_commits_of_bounded_size(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FORGET_IDS", 7)
    memory.add_many({"id": f"{n:03}", "text": "tea", "timestamp": n} for n in range(100))
    sizes = []
    entry_of = writing.forget_entry
    monkeypatch.setattr(retention, "forget_entry", lambda namespace, named, now_us: (sizes.append(len(named)), entry_of(namespace, named, now_us))[1])
    assert memory.retain(keep_last=50, dry_run=False).count == 50
    assert sizes == [7] * 7 + [1]
    assert ids(memory) == [f"{n:03}" for n in range(50, 100)]


def test_an_operation_repeats_its_first_plan_and_finishes_it(days: Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FORGET_IDS", 2)
    entry_of = writing.forget_entry
    calls: list[int] = []

    def interrupted(namespace: Any, named: Any, now_us: int) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return entry_of(namespace, named, now_us)

    monkeypatch.setattr(retention, "forget_entry", interrupted)
    with pytest.raises(KeyboardInterrupt):
        days.retain(max_age="5d", dry_run=False, operation_id="nightly")
    assert ids(days) == numbered(*range(3, 11))
    clock.advance(3 * DAY_S)
    finished = days.retain(max_age="5d", dry_run=False, operation_id="nightly")
    assert finished.count == 3
    assert ids(days) == numbered(*range(6, 11))
    assert days.retain(max_age="5d", dry_run=False, operation_id="nightly").count == 0
    assert days.retain(max_age="5d", dry_run=False, operation_id="next").count == 3
    with pytest.raises(InvalidInputError, match="another pinned"):
        days.retain(max_age="5d", pinned=PINNED, dry_run=False, operation_id="next")
    with pytest.raises(ConflictError, match="belongs to another retain"):
        days.forget(ids=["10"], operation_id="next")


def test_what_is_refused(days: Memory) -> None:
    for refused, message in (
        ({}, "say what to keep"),
        ({"pinned": PINNED}, "say what to keep"),
        ({"keep_last": 0}, "keep_last is 0"),
        ({"keep_last": True}, "keep_last is True"),
        ({"keep_last": "5"}, "keep_last is"),
        ({"max_age": "5"}, "max_age is"),
        ({"max_age": -1}, "max_age is"),
        ({"max_age": "1d", "as_of": "soon"}, "as_of is"),
        ({"keep_last": 5, "as_of": "soon"}, "as_of is"),
        ({"keep_last": 5, "as_of": 10**30}, "as_of lies"),
        ({"keep_last": 5, "pinned": {}}, "an empty filter would pin everything"),
        ({"keep_last": 5, "pinned": {"importnace": {"gte": 1}}}, "importnace"),
        ({"plan": "x"}, "plan is"),
        ({"plan": 5}, "plan is"),
        ({"plan": "1.2.3.4"}, "plan is"),
        ({"keep_last": 5, "dry_run": False, "operation_id": ""}, "operation_id"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            days.retain(**refused)  # type: ignore[arg-type]
    shown = days.retain(keep_last=5)
    with pytest.raises(InvalidInputError, match="pinned is not that of the dry run"):
        days.retain(plan=shown.plan, pinned=PINNED, dry_run=False)
    with pytest.raises(InvalidInputError, match="either a plan or"):
        days.retain(plan=shown.plan, keep_last=5)
    with pytest.raises(NotFoundError):
        days.use("nobody").retain(keep_last=5)
    assert len(ids(days)) == 10


def copies(memory: Memory) -> list[dict[str, Any]]:
    return [{"id": record.id, "text": record.text, "timestamp": record.timestamp_us} for record in memory.export()]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_plan_holds_for_its_own_namespace_alone(days: Memory, dry_run: bool) -> None:
    plan = days.retain(keep_last=5).plan
    other = days.use("other")
    other.add_many(copies(days))
    assert days.use(days.namespace).retain(plan=plan).count == 5, "another handle of the same namespace"
    records = copies(days)
    days.drop()
    days.add_many(records)
    for memory in (other, days):
        with pytest.raises(InvalidInputError, match=f"another namespace than this '{memory.namespace}'.*make a dry run"):
            memory.retain(plan=plan, dry_run=dry_run, operation_id="nightly")
        assert len(ids(memory)) == 10
        assert memory.retain(keep_last=9, dry_run=False, operation_id="nightly").count == 1, "what was refused is no operation"


def test_a_namespace_that_is_dropped_between_the_look_and_the_erasure_keeps_what_came_after(days: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Memory._read
    records = copies(days)

    def race(memory: Memory, work: Any) -> Any:
        choice = read(memory, work)
        days.drop()
        days.add_many(records)
        return choice

    for operation_id in (None, "nightly"):
        with monkeypatch.context() as patched:
            patched.setattr(Memory, "_read", race)
            with pytest.raises(InvalidInputError, match="created anew"):
                days.retain(keep_last=1, dry_run=False, operation_id=operation_id)
        assert len(ids(days)) == 10


NUMBERS = st.integers() | st.sampled_from([0, 1, 2**63 - 1, 2**63, -(2**63), 10**30, MIN_TIME_US, MIN_TIME_US - 1, MAX_TIME_US, MAX_TIME_US + 1])
TEXTS = st.text() | st.builds(
    lambda *parts: ".".join(map(str, parts)), *[NUMBERS | st.text("+-_ 0123456789\u0661", max_size=5)] * 4, st.just(retention.pins_of(None)) | st.text(max_size=3)
)


@given(TEXTS | st.none() | st.integers() | st.binary())
def test_any_text_is_a_plan_or_is_refused(namespace: Namespace, text: Any) -> None:
    """And what is a plan can be carried out."""
    try:
        plan = retention.parse_plan(text, None)
    except InvalidInputError as error:
        assert len(str(error)) < 500
    else:
        assert str(plan) == text
        assert retention.describe(namespace, plan._replace(number=namespace.number), None).records in range(4)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("bad", ["", "x", "1.5", "+1", " 1", "1_0", "01", "-0", "\u0661", "1" * 5_000, str(10**30), str(-(10**30)), str(2**63), "nan"])
def test_a_plan_with_a_bad_number_is_refused(days: Memory, place: int, bad: str) -> None:
    parts = days.retain(keep_last=5).plan.split(".")
    parts[place] = bad
    with pytest.raises(InvalidInputError, match="plan is"):
        days.retain(plan=".".join(parts), dry_run=False)


def test_an_empty_namespace_has_nothing_to_lose(memory: Memory) -> None:
    memory.add_many([])
    receipt = memory.retain(keep_last=1, max_age="1s", dry_run=False)
    assert (receipt.count, receipt.kept, receipt.oldest, receipt.newest, receipt.pinned) == (0, 0, None, None, 0)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=30).flatmap(lambda rows: st.permutations(list(enumerate(rows, 1)))),
    st.none() | st.integers(1, 32),
    st.integers(-4, 4),
)
def test_the_cut_equals_the_naive_choice(rows: list[tuple[int, tuple[int, bool]]], keep_last: int | None, cutoff_us: int) -> None:
    timestamp, seq = (np.array(column, np.int64) for column in ([at for _, (at, _) in rows], [number for number, _ in rows]))
    before = retention.cut(timestamp, seq, keep_last, cutoff_us)
    records = [Record(f"{number}", "", at, 0, seq=number) for number, (at, _) in rows]
    assert sorted(record.id for record in records if Key(record.timestamp_us, record.seq) < before) == naive_retention(records, keep_last, cutoff_us, lambda record: False)


ROWS = st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.sampled_from(["add", "add", "add", "update", "forget"])), min_size=1, max_size=25)


@given(ROWS, st.none() | st.integers(1, 12), st.none() | st.integers(0, 9), st.sampled_from([3, 1_000]))
def test_any_history_equals_the_naive_choice(tmp_path_factory: pytest.TempPathFactory, rows: Any, keep_last: int | None, age: int | None, seal_at: int) -> None:
    """Over segments and the buffer, with old versions and erased records between."""
    if keep_last is None and age is None:
        return
    clock = ManualClock()
    path: Path = tmp_path_factory.mktemp("retention")
    with Memory.open(path, clock=clock, background=False, limits=Limits(seal_at=seal_at)) as memory:
        known: list[str] = []
        for n, (day, pin, what) in enumerate(rows):
            at, importance = clock.now_us() - day * DAY_S * 10**6, 0.9 if pin else 0.1
            if what == "add" or not known:
                known.append(memory.add("tea", id=str(n), timestamp=at, importance=importance).id)
            elif what == "update":
                memory.update(known[day % len(known)], timestamp=at, importance=importance)
            else:
                memory.forget(ids=[known.pop(day % len(known))])
        records = list(memory.export())
        cutoff_us = None if age is None else clock.now_us() - (age * DAY_S + 1) * 10**6
        going = naive_retention(records, keep_last, cutoff_us, lambda record: record.importance >= 0.9)
        rules: dict[str, Any] = {"keep_last": keep_last, "max_age": None if age is None else age * DAY_S + 1, "pinned": PINNED}
        shown = memory.retain(**rules)
        done = memory.retain(**rules, dry_run=False)
        assert (shown.count, shown.kept) == (done.count, done.kept) == (len(going), len(records) - len(going))
        assert ids(memory) == sorted({record.id for record in records} - set(going))
    with Memory.open(path, clock=clock, background=False) as memory:
        assert len(ids(memory)) == shown.kept


def test_what_happened_at_the_beginning_of_time(memory: Memory) -> None:
    memory.add("tea", id="first", timestamp=MIN_TIME_US)
    assert memory.retain(max_age="9999y").count == 0
    memory.add("tea", id="second", timestamp=MIN_TIME_US)
    assert memory.retain(keep_last=1, dry_run=False).count == 1
    assert ids(memory) == ["second"]
