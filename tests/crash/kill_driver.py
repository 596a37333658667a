"""A process that forks writers of one store, kills them with SIGKILL wherever they are, and opens the store again.

    python -m tests.crash.kill_driver FOLDER moments ROUNDS SEED
    python -m tests.crash.kill_driver FOLDER calls

It has imported and compiled everything and runs no thread, so that a fork costs milliseconds and is safe. Writer and parent know the same plan, made before the fork; the writer
acknowledges each verb with a byte in a pipe, which outlives it. So of each thread's plan a beginning is certain, one verb is open, and the rest never began.
"""

import itertools
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from agentir_ray.client.memory import Memory
from agentir_ray.clock import SystemClock
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.store import Store
from agentir_ray.lexical.query import Bm25
from agentir_ray.storage.files import FileOps
from tests.crash.invariants import Op, World, after, check, plan

NAMESPACES = ("acme/alice", "acme/bob", "acme")
FIRST_WORLD = 10  # exit status of a checker: this plus the number of the world it found


def open_store(folder: Path, rng: random.Random) -> Memory:
    seal_at = rng.choice((5, 16, 40))
    return Memory.open(
        folder,
        limits=Limits(seal_at, 2 * seal_at, checkpoint_pages=rng.choice((4, 64))),
        background=rng.random() < 0.8,
        durability=rng.choice(("full", "process", "process")),
        analyzer=rng.choice((None, None, "english", "multilingual")),
    )


def forked(work: Callable[[], int]) -> int:
    """The pid of a child that does `work` and ends with its answer as status."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def write(folder: Path, seed: int, plans: list[list[Op]], pipe: int) -> int:
    memory = open_store(folder, random.Random(seed))
    failures: list[BaseException] = []

    def follow(number: int) -> None:
        try:
            for op in plans[number]:
                op.run(memory)
                os.write(pipe, bytes([number]))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(1, len(plans))]
    for thread in threads:
        thread.start()
    follow(0)
    for thread in threads:
        thread.join()
    if seed % 2:
        memory.close()
    return 1 if failures else 0


def acknowledgements(pipe: int, count: int, seconds: float) -> bytes:
    """What comes through the pipe until there are `count` of it, the time is over or the writer has ended."""
    got = b""
    end = time.monotonic() + seconds
    while len(got) < count and select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        more = os.read(pipe, count - len(got))
        if not more:
            break
        got += more
    return got


def ended(pid: int) -> int:
    """The exit status of a child, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_round(folder: Path, seed: int, world: World) -> tuple[World, int]:
    """Write, kill, open again, check. Returns the world that the store is now in, and how many verbs were acknowledged."""
    rng = random.Random(seed)
    threads = rng.choice((1, 1, 2, 3))
    plans = [list(plan(rng, world, NAMESPACES, f"t{number}", rng.randint(1, 24), drops=threads == 1)) for number in range(threads)]
    total = sum(map(len, plans))
    reading, writing = os.pipe()
    writer = forked(lambda: write(folder, seed, plans, writing))
    os.close(writing)
    if rng.random() < 0.3:
        got = acknowledgements(reading, total + 1, rng.uniform(0, 0.06))
    else:
        got = acknowledgements(reading, rng.randint(0, total), 30)
        time.sleep(rng.uniform(0, 0.004))
    os.kill(writer, signal.SIGKILL)
    status = ended(writer)
    assert status in (0, -signal.SIGKILL), f"the writer ended with {status}"
    got += acknowledgements(reading, total + 1, 0)
    os.close(reading)

    if rng.random() < 0.2:  # recovery is killed as well
        healer = forked(lambda: _heal(folder, seed))
        time.sleep(rng.uniform(0, 0.02))
        os.kill(healer, signal.SIGKILL)
        ended(healer)

    certain = [op for number, ops in enumerate(plans) for op in ops[: got.count(number)]]
    undecided = [ops[got.count(number)] for number, ops in enumerate(plans) if got.count(number) < len(ops)]
    world = after(world, certain)
    worlds = [after(world, [op for op, done in zip(undecided, outcomes, strict=True) if done]) for outcomes in itertools.product((False, True), repeat=len(undecided))]
    status = ended(forked(lambda: _check(folder, seed, worlds)))
    assert status >= FIRST_WORLD, f"the store did not survive: the checker ended with {status}"
    return worlds[status - FIRST_WORLD], len(got)


def _heal(folder: Path, seed: int) -> int:
    memory = open_store(folder, random.Random(seed))
    for name in memory.namespaces():
        memory.use(name).search("common")
    memory.close()
    return 0


def _check(folder: Path, seed: int, worlds: list[World]) -> int:
    with Memory.open(folder, background=False, durability="process") as memory:
        return FIRST_WORLD + check(memory, worlds, random.Random(seed))


class FatalFiles(FileOps):
    """Ends the process with SIGKILL in the place of its n-th call."""

    def __init__(self, count: int) -> None:
        self._count = count

    def _strike(self) -> None:
        self._count -= 1
        if self._count == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def create(self, path: str, mode: int = 0o666) -> int:
        self._strike()
        return super().create(path, mode)

    def fsync(self, descriptor: int) -> None:
        self._strike()
        super().fsync(descriptor)

    def make_dir(self, path: str, mode: int = 0o777) -> None:
        self._strike()
        super().make_dir(path, mode)

    def rename(self, source: str, target: str) -> None:
        self._strike()
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._strike()
        super().unlink(path)

    def fsync_dir(self, path: str) -> None:
        self._strike()
        super().fsync_dir(path)


def kill_at_each_call(folder: Path) -> int:
    """The same verbs again and again, each time killed one call further into what seals, merges and purges; returns how many calls there are."""
    ops = list(plan(random.Random(5), {}, NAMESPACES, "c", 45, drops=True))
    for count in itertools.count(1):
        store = folder / str(count)
        reading, writing = os.pipe()
        status = ended(forked(lambda: _write_fatally(store, count, ops, writing)))  # noqa: B023 - runs at once
        os.close(writing)
        acknowledged = len(acknowledgements(reading, len(ops) + 1, 0))
        os.close(reading)
        assert status in (0, -signal.SIGKILL), f"call {count}: the writer ended with {status}"
        worlds = [after({}, ops[:acknowledged]), after({}, ops[: acknowledged + 1])]
        if (store / "log.sqlite3").exists():
            checked = ended(forked(lambda: _check(store, count, worlds)))  # noqa: B023
            assert checked >= FIRST_WORLD, f"killed at call {count}: the checker ended with {checked}"
        shutil.rmtree(store, ignore_errors=True)
        if status == 0:
            return count - 1
    raise AssertionError("unreachable")


def _write_fatally(folder: Path, count: int, ops: list[Op], pipe: int) -> int:
    store = Store(folder, clock=SystemClock(), durability="process", background=False, limits=Limits(6, 12), files=FatalFiles(count))
    memory = Memory(store, "default", None, Bm25(), owns_store=True)
    for op in ops:
        op.run(memory)
        os.write(pipe, b"!")
    memory.close()
    return 0


def warm_up() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world: World = {}
        rng = random.Random(0)
        ops = list(plan(rng, world, NAMESPACES, "w", 60))
        with Memory.open(Path(folder) / "store", limits=Limits(4, 8), background=False, durability="process") as memory:
            for op in ops:
                op.run(memory)
            check(memory, [after(world, ops)], rng)


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    warm_up()
    if what == "calls":
        print(f"killed at each of {kill_at_each_call(folder)} calls")
        return
    rounds, first_seed = int(sys.argv[3]), int(sys.argv[4])
    world: World = {}
    acknowledged = 0
    for seed in range(first_seed, first_seed + rounds):
        try:
            world, got = kill_round(folder, seed, world)
        except BaseException:
            print(f"the round with seed {seed} of those from {first_seed} on failed", file=sys.stderr)
            raise
        acknowledged += got
    print(f"{rounds} kills, {acknowledged} verbs acknowledged, {sum(len(model.live) for model in world.values())} records live")


if __name__ == "__main__":
    main()
