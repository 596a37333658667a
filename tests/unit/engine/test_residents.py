"""The cache of loaded namespaces, with a load that makes empty ones. Threads meet at events; nobody sleeps."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentir_ray.analysis import get_analyzer
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.residents import MAX_FILES, Residents, default_max_files
from agentir_ray.errors import NotFoundError
from agentir_ray.lexical.index import Index

BYTES = 1_000


class Sized(Namespace):
    bytes_each = BYTES

    def memory_bytes(self) -> int:
        return self.bytes_each


class World:
    """What `Residents` is given: loads that can be held, and followers that can be stale."""

    def __init__(self) -> None:
        self.loads: list[str] = []
        self.files = 0
        self.due = False
        self.fresh = True
        self.refreshed = 0
        self.failure: BaseException | None = None
        self.entered = threading.Semaphore(0)
        self.gates: dict[str, threading.Event] = {}

    def load(self, name: str, create: bool, analyzer: str | None, before: Namespace | None) -> Namespace:
        self.loads.append(name)
        self._pass_gate(name)
        if self.failure is not None:
            raise self.failure
        index = Index([], 0)
        index.segments = (SimpleNamespace(sidecars={}),) * self.files  # type: ignore[assignment]
        return Sized(name, 1, 1, 0, Path("nowhere"), get_analyzer(analyzer or "multilingual"), index, 0)

    def is_due(self, namespace: Namespace) -> bool:
        return self.due

    def refresh(self, namespace: Namespace) -> bool:
        self.refreshed += 1
        self._pass_gate(namespace.name)
        return self.fresh

    def _pass_gate(self, name: str) -> None:
        self.entered.release()
        if name in self.gates:
            assert self.gates[name].wait(30)

    def residents(self, budget_bytes: int = 100 * BYTES, max_files: int = 100) -> Residents:
        return Residents(self.load, self.is_due, self.refresh, budget_bytes, max_files)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def use(residents: Residents, name: str) -> Namespace:
    namespace = residents.acquire(name)
    residents.release(namespace)
    return namespace


def until_waiting(residents: Residents, waiters: int = 1) -> None:
    while len(residents._changed._waiters) < waiters:  # type: ignore[attr-defined]
        pass


def test_a_namespace_is_loaded_once_and_kept(world: World) -> None:
    residents = world.residents()
    first = use(residents, "a")
    assert use(residents, "a") is first and world.loads == ["a"] and len(residents) == 1
    assert first.pins == 0 and residents.memory_bytes == BYTES


@pytest.mark.parametrize("bound", ["bytes", "files"])
def test_the_least_recently_used_goes_when_the_rest_does_not_fit_and_what_is_pinned_stays(world: World, bound: str) -> None:
    world.files = 10
    residents = world.residents(budget_bytes=3 * BYTES) if bound == "bytes" else world.residents(max_files=30)
    pinned = residents.acquire("pinned")
    for name in ("a", "b"):
        use(residents, name)
    use(residents, "a")
    use(residents, "c")  # "b" goes
    world.loads.clear()
    for name in ("pinned", "a", "c"):
        use(residents, name)
    assert world.loads == [] and len(residents) == 3
    residents.release(pinned)
    for i in range(10):
        use(residents, f"more{i}")
    assert len(residents) == 3 and residents.memory_bytes == 3 * BYTES and residents.files == 30
    residents.clear()
    assert (len(residents), residents.memory_bytes, residents.files) == (0, 0, 0)


def test_growth_is_counted_where_it_is_told_and_now_and_then_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    residents = world.residents()
    namespace = use(residents, "a")
    monkeypatch.setattr(Sized, "bytes_each", 5 * BYTES)
    residents.recount(namespace)
    assert residents.memory_bytes == 5 * BYTES
    monkeypatch.setattr(Sized, "bytes_each", 7 * BYTES)
    for _ in range(100):
        use(residents, "a")
    assert residents.memory_bytes == 7 * BYTES


def test_what_was_taken_out_is_not_counted_any_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    residents = world.residents()
    gone = use(residents, "a")
    with residents.without("a"):
        pass
    residents.recount(gone)
    assert residents.memory_bytes == 0
    use(residents, "a")
    monkeypatch.setattr(Sized, "bytes_each", 9 * BYTES)
    residents.recount(gone)
    assert residents.memory_bytes == BYTES


def test_who_wants_what_is_being_loaded_waits_and_nobody_else(world: World, pool: ThreadPoolExecutor) -> None:
    residents = world.residents()
    world.gates["slow"] = threading.Event()
    both: list[Future[Namespace]] = [pool.submit(residents.acquire, "slow") for _ in range(2)]
    assert world.entered.acquire(timeout=30)
    until_waiting(residents)
    use(residents, "other")
    world.gates["slow"].set()
    assert both[0].result(30) is both[1].result(30) and both[0].result().pins == 2
    assert world.loads == ["slow", "other"]


def test_a_follower_is_brought_up_to_date_while_others_are_searched(world: World, pool: ThreadPoolExecutor) -> None:
    residents = world.residents()
    before = use(residents, "slow")
    other = residents.acquire("other")
    world.due, world.gates["slow"] = True, threading.Event()
    world.entered = threading.Semaphore(0)
    refreshed = pool.submit(residents.acquire, "slow")
    assert world.entered.acquire(timeout=30)
    world.due = False
    assert use(residents, "other") is other
    world.gates["slow"].set()
    assert refreshed.result(30) is before and world.loads == ["slow", "other"] and world.refreshed == 1


def test_one_that_is_being_refreshed_is_not_evicted(world: World, pool: ThreadPoolExecutor) -> None:
    residents = world.residents(budget_bytes=BYTES)
    before = use(residents, "slow")
    world.due, world.gates["slow"] = True, threading.Event()
    world.entered = threading.Semaphore(0)
    refreshed = pool.submit(residents.acquire, "slow")
    assert world.entered.acquire(timeout=30)
    use(residents, "other")
    world.gates["slow"].set()
    assert refreshed.result(30) is before and residents.memory_bytes == BYTES


def damage(world: World, namespace: Namespace) -> str | None:
    namespace.damaged = True
    return None


def stale(world: World, namespace: Namespace) -> str | None:
    world.due, world.fresh = True, False
    return None


@pytest.mark.parametrize("spoil", [damage, stale, lambda world, namespace: "english"])
def test_what_does_not_serve_any_more_is_replaced_when_nobody_uses_it(world: World, pool: ThreadPoolExecutor, spoil: Callable[[World, Namespace], str | None]) -> None:
    residents = world.residents()
    old = residents.acquire("a")
    analyzer = spoil(world, old)
    waiting = pool.submit(residents.acquire, "a", False, analyzer)
    until_waiting(residents)
    assert not waiting.done()
    world.due = False
    residents.release(old)
    new = waiting.result(30)
    assert new is not old and world.loads == ["a", "a"] and residents.memory_bytes == BYTES and new.pins == 1


def test_nobody_gets_what_is_being_dropped(world: World, pool: ThreadPoolExecutor) -> None:
    residents = world.residents()
    old = residents.acquire("a")
    inside, leave = threading.Event(), threading.Event()

    def drop() -> None:
        with residents.without("a"):
            inside.set()
            assert leave.wait(30)

    dropping = pool.submit(drop)
    until_waiting(residents)
    assert not inside.is_set()
    residents.release(old)
    assert inside.wait(30)
    later = pool.submit(residents.acquire, "a")
    until_waiting(residents)
    leave.set()
    dropping.result(30)
    assert later.result(30) is not old


@pytest.mark.parametrize("failure", [NotFoundError("none"), KeyboardInterrupt()])
def test_a_load_that_fails_leaves_the_name_free(world: World, pool: ThreadPoolExecutor, failure: BaseException) -> None:
    residents = world.residents()
    world.failure, world.gates["a"] = failure, threading.Event()
    failing = pool.submit(residents.acquire, "a")
    assert world.entered.acquire(timeout=30)
    waiting = pool.submit(use, residents, "a")
    until_waiting(residents)
    world.gates["a"].set()
    assert failing.exception(30) is failure and waiting.exception(30) is failure
    world.failure = None
    assert use(residents, "a").pins == 0


def test_a_block_that_fails_leaves_the_name_free(world: World) -> None:
    residents = world.residents()
    with pytest.raises(KeyboardInterrupt), residents.without("a"):
        raise KeyboardInterrupt
    assert use(residents, "a").name == "a"


def test_files_are_bounded_by_a_share_of_what_the_process_may_open(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, files in ((256, 64), (1_024, 256), (10**9, MAX_FILES), (-1, MAX_FILES)):
        monkeypatch.setattr("resource.getrlimit", lambda which, soft=soft: (soft, soft))
        assert default_max_files() == files
