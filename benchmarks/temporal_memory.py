"""Experiment 5 of `benchmarks.temporal`: what a process takes while a life is loaded under a memory budget, and what hot searches cost while cold partitions spill and load.

A child process, under a memory limit of 1.5 times the budget where control groups can be made, loads the life through the API; its anonymous and its pinned memory are read from
outside, twenty times a second. Then it learns a prior, asks recent questions, and asks them again while another of its threads asks for old partitions, one after the other.

    python -m benchmarks.temporal_memory STORE CACHE RECORDS BUDGET_BYTES SPILL     # the child; SPILL may be "-"
"""

import gc
import inspect
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray import Memory
from benchmarks.bars import Outcome, Report
from benchmarks.cgroup import Group, Unwritable, limited
from benchmarks.plots import COLOURS, figure
from benchmarks.temporal_life import LAMBDA, WIDTH_US, Life, Question, flat, geometric, open_life
from benchmarks.temporal_stores import GIB, answered_by_their_own, fill, open_memory, teach
from benchmarks.workload import folder

RECORDS, QUICK_RECORDS = 5_000_000, 200_000
BUDGET_BYTES, LEAST_BUDGET_BYTES = 2 * GIB, GIB // 4
LIMIT = 1.5  # times the budget
OVER = 1.1  # what may be taken of the budget
EVERY_S = 0.05
HOT_QUESTIONS = 1_000
OLD_QUESTIONS = 200
SEED, OLD_SEED = 11, 12


def memory_row(report: Report, cache: Path, plots: Path, quick: bool, records: int | None, budget_bytes: int | None) -> Outcome:
    records = records or (QUICK_RECORDS if quick else RECORDS)
    budget = budget_bytes or max(LEAST_BUDGET_BYTES, BUDGET_BYTES * records // RECORDS)
    open_life(cache, records)  # made beforehand, so that making it is not counted
    try:
        with limited(int(LIMIT * budget)) as group:
            run = _Run(cache, records, budget, group)
            under: Any = {"limit MiB": int(LIMIT * budget) / 2**20, "kills": group.kills(), "peak with page cache MiB": (group.peak_bytes() or 0) / 2**20}
    except Unwritable as error:
        run, under = _Run(cache, records, budget, None), f"skipped: {error}"
    for phase in run.phases:
        report.figure(f"memory: {phase['phase']}", phase)
    report.figure("plot", run.draw(plots, budget))
    value = {
        "records": records, "budget MiB": budget / 2**20, "peak MiB anonymous + pinned": run.peak_bytes / 2**20, "of the budget": run.peak_bytes / budget,
        "through the load alone": run.load_peak_bytes / budget, "ended": run.ended, "control group": under,
    }  # fmt: skip
    killed = run.ended != "well" or (isinstance(under, dict) and under["kills"] > 0)
    return value, run.peak_bytes <= OVER * budget and not killed and records >= RECORDS and budget <= BUDGET_BYTES


class _Run:
    """The child from start to end, and what was seen of it: samples of (seconds, anonymous bytes, pinned bytes, bytes of mapped files), and the phases that it told of."""

    def __init__(self, cache: Path, records: int, budget: int, group: Group | None) -> None:
        self.samples: list[tuple[float, int, int, int]] = []
        self.phases: list[dict[str, Any]] = []
        with folder() as temporary:
            spill = str(temporary / "spilled") if "spill" in inspect.signature(Memory.open).parameters else "-"
            command = [sys.executable, "-m", "benchmarks.temporal_memory", str(temporary / "store"), str(cache), str(records), str(budget), spill]
            self._began = time.perf_counter()
            errors = temporary / "errors"
            with errors.open("w") as output:
                child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True, preexec_fn=None if group is None else group.join)
                watching = threading.Thread(target=self._watch, args=(child,))
                watching.start()
                assert child.stdout is not None
                for line in child.stdout:
                    self.phases.append(json.loads(line) | {"at_s": time.perf_counter() - self._began})
                    print(f"     {self.phases[-1]['phase']} after {self.phases[-1]['at_s']:.0f} s", file=sys.stderr, flush=True)
                code = child.wait()
                watching.join()
            self.ended = "well" if code == 0 else f"killed by signal {-code}" if code < 0 else f"exit code {code}: {errors.read_text().strip()[-300:]}"

    def _watch(self, child: subprocess.Popen[str]) -> None:
        while child.poll() is None:
            try:
                lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
            except OSError:
                break
            of = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if name in ("RssAnon", "VmLck", "RssFile")}
            if len(of) == 3:
                self.samples.append((time.perf_counter() - self._began, of["RssAnon"], of["VmLck"], of["RssFile"]))
            time.sleep(EVERY_S)

    @property
    def peak_bytes(self) -> int:
        return max(anonymous + pinned for _, anonymous, pinned, _ in self.samples)

    @property
    def load_peak_bytes(self) -> int:
        loaded_s = next((phase["at_s"] for phase in self.phases if phase["phase"] == "loaded"), float("inf"))
        return max(anonymous + pinned for at_s, anonymous, pinned, _ in self.samples if at_s <= loaded_s)

    def draw(self, plots: Path, budget: int) -> str:
        at_s, anonymous, pinned, mapped = np.array(self.samples, float).T
        with figure(plots, "memory", "Memory of a process that loads a life under a budget, then searches while cold partitions load") as axes:
            axes.plot(at_s, (anonymous + pinned) / 2**20, color=COLOURS[0], label="anonymous + pinned")
            axes.plot(at_s, mapped / 2**20, color="#bbbbbb", linewidth=0.8, label="mapped files (the kernel's to take back)")
            axes.axhline(budget / 2**20, color=COLOURS[1], linestyle="--", label="budget")
            for colour, phase in zip(COLOURS[2:], self.phases, strict=False):
                axes.axvline(phase["at_s"], color=colour, linewidth=1, label=f"{phase['phase']} ({phase['at_s']:.0f} s)")
            axes.set_xlabel("seconds")
            axes.set_ylabel("MiB")
            axes.set_ylim(bottom=0)
            axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.01, 0.86))
        return str(plots / "memory.png")


# The child.


def _child(store: Path, cache: Path, records: int, budget: int, spill: str) -> None:
    life = open_life(cache, records)
    options = {} if spill == "-" else {"spill": spill}
    with open_memory(store, budget_bytes=budget, **options) as memory:
        began = time.perf_counter()
        fill(memory, life)
        _say("loaded", {"records/s": records / (time.perf_counter() - began), "stats": _stats(memory), "spilled MiB": _spilled_mib(spill)})
        _say("taught", teach(memory, life, geometric(LAMBDA)))
        hot, _ = answered_by_their_own(memory, life, geometric(LAMBDA), HOT_QUESTIONS, SEED)
        _hot(memory, hot)
        gc.freeze()
        _say("hot, quiet", _hot(memory, hot))
        with _asking_for_the_old(memory, life) as old:
            beside = _hot(memory, hot, until=lambda: len(old) >= OLD_QUESTIONS or (len(old) > 0 and time.perf_counter() - began > 3_600))
        waits = [wait for wait, _ in old]
        _say("hot, while the cold is loaded", beside | {"old questions": len(old), "old, wall ms": _points(waits), "not exact": sum(not exact for _, exact in old)})
        _say("end", {"stats": _stats(memory), "spilled MiB": _spilled_mib(spill)})


def _hot(memory: Memory, questions: Sequence[Question], until: Callable[[], bool] = lambda: True) -> dict[str, Any]:
    """All questions at least once, in either mode by turns, and on until `until`: CPU of this thread, and wall time, in us; recall of the record that was asked for."""
    modes: dict[str, str | float] = {"0.95": 0.95, "auto": "auto"}
    cpu: dict[str, list[float]] = {mode: [] for mode in modes}
    wall: dict[str, list[float]] = {mode: [] for mode in modes}
    found: dict[str, list[bool]] = {mode: [] for mode in modes}
    asked = 0
    while asked < len(questions) or not until():
        question, mode = questions[asked % len(questions)], tuple(modes)[asked % len(modes)]
        began, start = time.perf_counter_ns(), time.thread_time_ns()
        answer = memory.search(question.text, coverage=modes[mode])
        cpu[mode].append((time.thread_time_ns() - start) / 1e3)
        wall[mode].append((time.perf_counter_ns() - began) / 1e3)
        found[mode].append(any(hit.record.id == question.id for hit in answer))
        asked += 1
    figures = {mode: {"recall": float(np.mean(found[mode])), "CPU us": _points(cpu[mode]), "wall us": _points(wall[mode])} for mode in modes}
    return {"searches": asked, **figures}


@contextmanager
def _asking_for_the_old(memory: Memory, life: Life) -> Iterator[list[tuple[float, bool]]]:
    """Another thread asks for one old partition after the other, until the block ends; yields the growing list of (wall ms, whether the answer was exact)."""
    done: list[tuple[float, bool]] = []
    over = threading.Event()
    questions = life.questions(flat, OLD_QUESTIONS, OLD_SEED)

    def ask() -> None:
        while not over.is_set():
            question = questions[len(done) % len(questions)]
            since = life.timestamp(question.gold) // WIDTH_US * WIDTH_US
            began = time.perf_counter()
            answer = memory.search(question.text, coverage="exact", since=since, until=since + WIDTH_US - 1)
            done.append((1e3 * (time.perf_counter() - began), answer.coverage.exact))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield done
    finally:
        over.set()
        asking.join()


def _points(values: Sequence[float]) -> dict[str, float]:
    return {} if not values else dict(zip(("p50", "p95", "p99", "largest"), np.percentile(values, [50, 95, 99, 100]).tolist(), strict=True))


def _stats(memory: Memory) -> dict[str, Any]:
    return {name: value for part in memory.stats().values() if isinstance(part, dict) for name, value in part.items()}


def _spilled_mib(spill: str) -> float | None:
    return None if spill == "-" else sum(path.stat().st_size for path in Path(spill).rglob("*") if path.is_file()) / 2**20


def _say(phase: str, facts: dict[str, Any]) -> None:
    print(json.dumps({"phase": phase} | facts, default=str), flush=True)


if __name__ == "__main__":
    _store, _cache, _records, _budget, _spill = sys.argv[1:]
    _child(Path(_store), Path(_cache), int(_records), int(_budget), _spill)
