"""Experiment 1 of `benchmarks.temporal`: what a search costs as a life grows from 4,052 records to 5,000,000, and whether a life's length costs answers.

In one run, in turn, a round of all questions each: reading everything (`temporal_scan`), a complete search, `coverage=0.95` and `auto`; each of these as a whole call of
`Memory.search`, which parses the question and reads ten texts; as the search in it, from the terms to the ten best documents (`engine.covering.rank`: snapshot, statistics, plan,
top ten); and as the kernel in that, on a snapshot that was taken before. The bars are judged by
the whole call. Beside it stands the kernel's ratio to reading everything, which does the same work: both are given the terms with their weights, and read no text.

A cost is CPU of the searching thread in the quietest of five rounds; wall time, and the CPU that the rest of the process took meanwhile, stand beside it. Questions are those whose
best answer is the record that they were drawn from (their share is told; only then do answers have the ages of the law). Rounds repeat their questions, so that terms and texts are
known; what a question costs that was never asked before is told, too. Every size is a store of its own, opened with a budget of 2 GiB, whose prior learnt from other questions, by
feedback.
"""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray import Memory
from agentir_ray.engine.by_words import ByWords
from agentir_ray.engine.covering import rank
from agentir_ray.engine.request import make_request
from agentir_ray.lexical.query import Bm25, parse_query, scoring
from agentir_ray.lexical.search import Visibility, top_k
from agentir_ray.types import Coverage
from benchmarks.bars import Outcome, Report
from benchmarks.plots import COLOURS, figure, label_ends
from benchmarks.temporal_life import LAMBDA, NOW_US, WIDTH_US, Law, Life, Question, eighty_twenty, flat, geometric
from benchmarks.temporal_scan import scan
from benchmarks.temporal_stores import GIB, answered_by_their_own, life_in_use, teach

Array = npt.NDArray[Any]
SMALLEST, LARGEST = 4_052, 5_000_000  # x1,234
SIZES = (SMALLEST, 11_000, 31_000, 86_000, 237_000, 655_000, 1_800_000, LARGEST)
QUICK_SIZES = (SMALLEST, 31_000, 237_000)
FLAT_RECORDS = 1_000_000
QUESTIONS = 1_000
SCANNED = 20  # questions answered by reading everything: each takes as long as a thousand others
ROUNDS = 5
SEED, FRESH_SEED = 1, 20_000_000
FRESH_QUESTIONS = 300
K = 10
TOLD = 0.95  # the probability asked for
PAPER_RATIO = 1_769.0
PAPER_DOCUMENTS_PER_S = 25e6  # what the baseline has to read at least
CALLS: dict[str, str | float] = {"exact": "exact", "0.95": TOLD, "auto": "auto"}
LAWS: dict[str, Law] = {f"lambda {LAMBDA}": geometric(LAMBDA), "80/20": eighty_twenty}


class Cost(NamedTuple):
    """Microseconds of CPU, the last ones of wall time; `others_us` is the CPU of other threads for each call."""

    p50: float
    p95: float
    p99: float
    mean: float
    wall_p50: float
    wall_p99: float
    others_us: float


class Timed(NamedTuple):
    """Work on one question: what `prepare` makes of it is handed to `run`, which alone is timed."""

    run: Callable[[Any], object]
    prepare: Callable[[Question], Any] = lambda question: question


@dataclass
class Measured:
    """One life under one law."""

    records: int
    costs: dict[str, Cost]
    recall: dict[str, float]  # the share of questions whose record is among the ten
    same: dict[str, float]  # the share of questions whose ten are those of the complete search
    facts: dict[str, Any] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        return {"records": self.records, "us": {name: cost._asdict() for name, cost in self.costs.items()}, "recall@10": self.recall, "same ten": self.same, **self.facts}


def rounds(work: dict[str, Timed], questions: dict[str, Sequence[Question]], count: int = ROUNDS) -> dict[str, Cost]:
    """Each piece of work in turn answers all its questions, `count` times after a first time that is not told."""
    quietest: dict[str, Cost] = {}
    gc.collect()
    gc.freeze()
    for number in range(count + 1):
        for name, one in work.items():
            cost = _round(one, questions[name])
            if number and (name not in quietest or cost.p50 < quietest[name].p50):
                quietest[name] = cost
    return quietest


def _round(work: Timed, questions: Sequence[Question]) -> Cost:
    cpu, wall = np.empty(len(questions)), np.empty(len(questions))
    others = 0
    for i, question in enumerate(questions):
        given = work.prepare(question)
        process, began, start = time.process_time_ns(), time.perf_counter_ns(), time.thread_time_ns()
        work.run(given)
        cpu[i] = time.thread_time_ns() - start
        wall[i] = time.perf_counter_ns() - began
        others += time.process_time_ns() - process - int(cpu[i])
    cpu /= 1e3
    wall /= 1e3
    p50, p95, p99 = np.percentile(cpu, [50, 95, 99]).tolist()
    return Cost(p50, p95, p99, float(cpu.mean()), *np.percentile(wall, [50, 99]).tolist(), max(0.0, others / 1e3 / len(questions)))


def measure(cache: Path, records: int, law: Law, questions: int = QUESTIONS, scanned: int = SCANNED, modes: Sequence[str] = tuple(CALLS)) -> Measured:
    """Build or open the life's store, teach its prior, and ask it the questions."""
    with life_in_use(cache, records, budget_bytes=2 * GIB) as (memory, life):
        prior = teach(memory, life, law)
        asked, own = answered_by_their_own(memory, life, law, questions, SEED)
        recall, same, coverages = _answers(memory, asked, modes)
        work: dict[str, Timed] = {f"call {mode}": Timed(lambda question, mode=mode: memory.search(question.text, k=K, coverage=CALLS[mode])) for mode in modes}
        work |= {f"search {mode}": _search(memory, CALLS[mode]) for mode in modes}
        work["kernel exact"] = _kernel(memory, None)
        work["kernel 0.95"] = _kernel(memory, coverages[str(TOLD)])
        those: dict[str, Sequence[Question]] = dict.fromkeys(work, asked)
        facts: dict[str, Any] = {
            "partitions": life.partitions,
            "segments": memory.stats()["namespace"]["segments"],
            "prior": prior,
            "coverage": coverages,
            "questions best answered by their own record": own,
        }
        if scanned:
            facts["best score equal to the scan's"] = _add_scan(memory, life, asked[:scanned], work, those)
        costs = rounds(work, those)
        facts["coverage 0.95 after the rounds"] = _told(memory.search(asked[0].text, coverage=TOLD).coverage)
        facts["asked for the first time, CPU us"] = {mode: _fresh(memory, life, law, mode, number) for number, mode in enumerate(modes)}
        if scanned:
            facts |= _scan_rate(life, costs["sequential"])
    return Measured(records, costs, recall, same, facts)


def _fresh(memory: Memory, life: Life, law: Law, mode: str, number: int) -> dict[str, float]:
    """The cost of questions that were never asked before."""
    questions = life.questions(law, FRESH_QUESTIONS, FRESH_SEED + number)
    cost = _round(Timed(lambda question: memory.search(question.text, k=K, coverage=CALLS[mode])), questions)
    return {"p50": cost.p50, "p95": cost.p95, "p99": cost.p99}


def _answers(memory: Memory, asked: Sequence[Question], modes: Sequence[str]) -> tuple[dict[str, float], dict[str, float], dict[str, Any]]:
    """Recall, how often the ten are the complete search's, and the coverage of the last answer, by mode."""
    found, same, coverages = dict.fromkeys(modes, 0), dict.fromkeys(modes, 0), {}
    for question in asked:
        ids = {}
        for mode in modes:
            answer = memory.search(question.text, k=K, coverage=CALLS[mode])
            ids[mode] = [hit.record.id for hit in answer]
            found[mode] += question.id in ids[mode]
            same[mode] += ids[mode] == ids["exact"]
            coverages[mode] = _told(answer.coverage)
    return {mode: found[mode] / len(asked) for mode in modes}, {mode: same[mode] / len(asked) for mode in modes}, coverages


def _told(coverage: Coverage) -> dict[str, Any]:
    return {name: getattr(coverage, name) for name in ("searched", "skipped_by_bound", "not_searched", "mass", "exact", "reason")}


def _search(memory: Memory, coverage: str | float) -> Timed:
    """From the question's terms to its ten best documents."""
    with memory._store.namespace(memory.namespace) as namespace:
        pass
    asked: dict[str, Any] = dict.fromkeys(("since", "until", "where", "session", "role", "as_of", "recency", "importance", "min_score", "deadline_ms", "max_tokens"))
    request = make_request("", memory._store.clock.now_us(), k=K, offset=0, mode="auto", coverage=coverage, explain=False, **asked)
    return Timed(lambda query: rank(namespace, ByWords(query, Bm25(), request), request, None), lambda question: parse_query(namespace.analyzer, question.text))


def _kernel(memory: Memory, coverage: dict[str, Any] | None) -> Timed:
    """`top_k` on a snapshot: of everything, or of the newest partitions that an answer said it searched."""
    with memory._store.namespace(memory.namespace) as namespace:
        index, analyzer = namespace.index, namespace.analyzer
    visibility = Visibility(NOW_US)
    if coverage is not None and not coverage["exact"]:
        newest = coverage["searched"] + coverage["skipped_by_bound"]
        visibility = Visibility(NOW_US, since_us=(NOW_US // WIDTH_US - newest + 1) * WIDTH_US)

    def prepare(question: Question) -> Any:
        query = parse_query(analyzer, question.text)
        snapshot = index.snapshot(query.terms)
        return snapshot, scoring(query, snapshot.statistics, Bm25())

    return Timed(lambda given: top_k(*given, K, visibility), prepare)


def _add_scan(memory: Memory, life: Life, asked: Sequence[Question], work: dict[str, Timed], those: dict[str, Sequence[Question]]) -> bool:
    """Add the baseline to the work; whether it finds the best score of the complete search, to the last bit."""
    terms, start = np.array(life.terms), life.start
    prepare = _kernel(memory, None).prepare
    work["sequential"] = Timed(lambda given: scan(terms, start, given[0].terms, given[1], K), lambda question: (question, prepare(question)[1]))
    those["sequential"] = asked
    return all(float(scan(terms, start, question.terms, prepare(question)[1], K)[0]) == memory.search(question.text, k=K, coverage="exact").hits[0].score for question in asked)


def _scan_rate(life: Life, cost: Cost) -> dict[str, float]:
    return {"documents/s of the scan": len(life) / cost.mean * 1e6, "GB/s of the scan": life.terms.nbytes / cost.mean / 1e3}


class Scaling:
    """What the rows of `benchmarks.temporal` share: each size under each law is measured once."""

    def __init__(self, report: Report, cache: Path, plots: Path, quick: bool) -> None:
        self.report, self.cache, self.plots, self.quick = report, cache, plots, quick
        self.sizes = QUICK_SIZES if quick else SIZES
        self.questions = 200 if quick else QUESTIONS
        self._measured: dict[tuple[int, str], Measured] = {}

    def at(self, records: int, law: str) -> Measured:
        key = records, law
        if key not in self._measured:
            self._measured[key] = measured = measure(self.cache, records, LAWS[law], self.questions)
            self.report.figure(f"scaling: {records:,} records, {law}", measured.told())
        return self._measured[key]

    @cached_property
    def all(self) -> dict[str, list[Measured]]:
        found = {law: [self.at(records, law) for records in self.sizes] for law in LAWS}
        self.report.figure("plots", [draw(self.plots, law, measured) for law, measured in found.items()])
        return found

    def at_largest(self) -> Outcome:
        """The row of `coverage=0.95` at the largest size."""
        law = next(iter(LAWS))
        one = self.at(self.sizes[-1], law)
        call, search, exact_call, kernel, exact_kernel = (one.costs[name] for name in ("call 0.95", "search 0.95", "call exact", "kernel 0.95", "kernel exact"))
        scan_us = one.costs["sequential"].mean
        value = {
            "records": one.records, "p50 us of a call that reads ten texts": call.p50, "of the search in it": search.p50, "of the kernel in that": kernel.p50,
            "exact / 0.95, kernels": exact_kernel.p50 / kernel.p50, "calls": exact_call.p50 / call.p50,
            "sequential ms": scan_us / 1e3, "sequential M documents/s": one.facts["documents/s of the scan"] / 1e6,
            "sequential / call (paper 1,769)": scan_us / call.p50, "sequential / kernel": scan_us / kernel.p50,
            "a scan of 25 M documents/s / call": one.records / PAPER_DOCUMENTS_PER_S * 1e6 / call.p50,
            "p50 us of a call never asked before": one.facts["asked for the first time, CPU us"]["0.95"]["p50"],
            "recall exact": one.recall["exact"], "recall 0.95": one.recall["0.95"],
        }  # fmt: skip
        honest = one.facts["documents/s of the scan"] >= PAPER_DOCUMENTS_PER_S and one.facts["best score equal to the scan's"]
        ok = call.p50 <= 90 and exact_kernel.p50 / kernel.p50 >= 5 and scan_us / call.p50 >= PAPER_RATIO and honest
        return value, ok and not self.quick

    def growth(self) -> Outcome:
        first, *_, last = self.all[f"lambda {LAMBDA}"]
        growth = {name: last.costs[name].p50 / first.costs[name].p50 for name in ("call 0.95", "search 0.95", "kernel 0.95", "call auto", "call exact")}
        return {"records": f"{first.records:,} to {last.records:,}"} | growth, growth["call 0.95"] <= 2 and not self.quick

    def flat(self) -> Outcome:
        """`auto` beside exact where recency tells nothing."""
        records = QUICK_SIZES[-1] if self.quick else FLAT_RECORDS
        one = measure(self.cache, records, flat, self.questions, scanned=0)
        self.report.figure(f"flat: {records:,} records", one.told())
        dearer = one.costs["call auto"].mean / one.costs["call exact"].mean
        value = {
            "records": records, "recall auto": one.recall["auto"], "recall exact": one.recall["exact"], "the same ten": one.same["auto"], "auto / exact, mean": dearer,
            "p50": one.costs["call auto"].p50 / one.costs["call exact"].p50,
        }  # fmt: skip
        return value, one.recall["auto"] == one.recall["exact"] and dearer <= 1.1 and not self.quick


def draw(folder: Path, law: str, measured: Sequence[Measured]) -> str:
    """CPU at p50 (p99 as a band) against the size, both axes logarithmic."""
    sizes = [one.records for one in measured]
    name = f"scaling-{law.replace(' ', '-').replace('/', '-')}"
    series = {
        "sequential": "read every document", "call exact": "exact, whole call", "kernel exact": "exact, kernel alone", "call auto": "auto, whole call",
        "call 0.95": "coverage 0.95, whole call", "kernel 0.95": "coverage 0.95, kernel alone",
    }  # fmt: skip
    colours = ("#555555", COLOURS[1], COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[0])
    with figure(folder, name, f"A search as a life grows: questions of {law}, 14,400 records a day") as axes:
        for colour, (key, label) in zip(colours, series.items(), strict=True):
            p50 = [one.costs[key].p50 for one in measured]
            axes.loglog(sizes, p50, marker="o", markersize=4, color=colour, linestyle="--" if key.startswith("kernel") else "-", label=label)
            if key.startswith("call"):
                axes.fill_between(sizes, p50, [one.costs[key].p99 for one in measured], color=colour, alpha=0.10, linewidth=0)
        last = measured[-1].costs
        label_ends(axes, sizes[-1], [(last[key].p50, f"{last[key].p50:,.0f} us", colour) for colour, key in zip(colours, series, strict=True)])
        axes.set_xlabel("records")
        axes.set_ylabel("CPU of a search, us (line: median, band: up to p99)")
        axes.set_xlim(sizes[0] * 0.8, sizes[-1] * 2.2)
        axes.legend(frameon=False, fontsize=8)
    return str(folder / f"{name}.png")
