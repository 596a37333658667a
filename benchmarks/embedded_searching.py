"""Rows of `benchmarks.embedded`: what searching costs, with filters and beside a writer."""

import math
import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agentir_ray import Memory
from agentir_ray.analysis import get_analyzer
from benchmarks.bars import Outcome, Report
from benchmarks.workload import ROUNDS, SESSIONS, START_US, STEP_US, Item, cpu_us, folder, items, percentile, questions, settle

FILTERED = "filtered search, 100,000 records: a session (1%), a time range, a two-clause `where`"
MERGING = "p99 of a search while sealing and merging"


def search_ten_thousand(report: Report) -> Outcome:
    count = 10_000
    asked = questions(count, 1_000)
    with folder() as path, Memory.open(path, "bench/search") as memory:
        memory.add_many(items(count))
        settle(memory)
        rounds = [[cpu_us(lambda query=query: [hit.record.text for hit in memory.search(query, k=10).hits]) for query in asked] for _ in range(ROUNDS + 1)][1:]
    quietest = min(rounds, key=statistics.median)
    report.figure("search of 10,000 records, CPU us, p50 of the rounds", [statistics.median(each) for each in rounds])
    report.figure("search of 10,000 records, CPU us", {"p50": statistics.median(quietest), "p95": percentile(quietest, 0.95), "p99": percentile(quietest, 0.99)})
    p50 = statistics.median(quietest)
    return p50, p50 <= 150


class Oracle:
    """BM25 over plain dictionaries, for filters: every record that passes is scored."""

    def __init__(self, records: list[Item], analyzer_name: str) -> None:
        analyzer = get_analyzer(analyzer_name)
        self.analyzer = analyzer
        self.records = records
        self.postings: dict[str, dict[int, int]] = {}
        self.length = []
        for i, item in enumerate(records):
            tokens = analyzer.tokens(item["text"])
            self.length.append(len(tokens))
            for token in tokens:
                of_term = self.postings.setdefault(token, {})
                of_term[i] = of_term.get(i, 0) + 1
        self.average = sum(self.length) / len(records)

    def search(self, query: str, passes: Callable[[Item], bool], k: int) -> list[tuple[str, float]]:
        counted: dict[str, int] = {}
        for token in self.analyzer.tokens(query):
            counted[token] = counted.get(token, 0) + 1
        scores: dict[int, float] = {}
        for token, weight in counted.items():
            postings = self.postings.get(token, {})
            gain = float(weight) * math.log(1.0 + (len(self.records) - len(postings) + 0.5) / (len(postings) + 0.5)) * 1.9
            for i, tf in postings.items():
                if passes(self.records[i]):
                    scores[i] = scores.get(i, 0.0) + gain * (tf / (tf + (0.9 * (1.0 - 0.4) + 0.9 * 0.4 / self.average * self.length[i])))
        return [(self.records[i]["id"], score) for i, score in sorted(scores.items(), key=lambda pair: (-pair[1], -pair[0]))[:k]]


def filtered(report: Report, memory: Memory, records: list[Item], asked: list[str]) -> Outcome:
    count = len(records)
    low, high = START_US + count // 2 * STEP_US, START_US + (count // 2 + count // 10) * STEP_US
    filters: dict[str, tuple[dict[str, Any], Callable[[Item], bool]]] = {
        "a session (1%)": ({"session": "s7"}, lambda item: item["session"] == "s7"),
        "a time range (10%)": ({"since": low, "until": high}, lambda item: low <= item["timestamp"] <= high),
        "a two-clause where": (
            {"where": {"metadata.topic": {"eq": "topic 3"}, "role": {"eq": "user"}}},
            lambda item: item["metadata"]["topic"] == "topic 3" and item["role"] == "user",
        ),
    }
    medians: dict[str, list[float]] = {name: [] for name in filters}
    for _ in range(ROUNDS + 1):
        costs: dict[str, list[float]] = {name: [] for name in filters}
        for query in asked:
            for name, (options, _) in filters.items():
                costs[name].append(cpu_us(lambda query=query, options=options: memory.search(query, k=10, **options)))
        for name, cost in costs.items():
            medians[name].append(statistics.median(cost))
    p50 = {name: min(rounds[1:]) for name, rounds in medians.items()}
    report.figure("filtered search, CPU us, p50 of the rounds", {name: rounds[1:] for name, rounds in medians.items()})
    first = [cpu_us(lambda i=i: memory.search(asked[i], k=10, session=f"s{i}", role="user")) for i in range(SESSIONS)]
    report.figure("the first search under a filter, CPU us", statistics.median(first))
    oracle = Oracle(records, memory.stats()["namespace"]["analyzer"])
    equal = all(
        [(hit.record.id, hit.score) for hit in memory.search(query, k=10, **options)] == oracle.search(query, passes, 10)
        for query in asked[:100]
        for options, passes in filters.values()
    )
    return p50 | {"equal to the oracle": equal}, equal and max(p50.values()) <= 300


def while_merging(report: Report, memory: Memory, asked: list[str]) -> Outcome:
    """Searches in one thread while another adds 40,000 records, with seals and merges in the background; CPU of the searching thread."""

    def costs(until: Callable[[], bool], least: int) -> list[float]:
        found = []
        while len(found) < least or not until():
            found.append(cpu_us(lambda: memory.search(asked[len(found) % len(asked)], k=10)))
        return found

    costs(lambda: True, len(asked))
    quiet = costs(lambda: True, 4_000)
    more = [item | {"id": None} for item in items(40_000, seed=1)]
    seals = [memory.stats()["namespace"]["last_seq"]]

    def write() -> None:
        for start in range(0, len(more), 500):
            memory.add_many(more[start : start + 500])

    writer = threading.Thread(target=write)
    writer.start()
    busy = costs(lambda: not writer.is_alive(), 4_000)
    writer.join()
    settle(memory)
    quiet_after = costs(lambda: True, 4_000)
    report.figure("records added while searching", memory.stats()["namespace"]["last_seq"] - seals[0])
    calm = min(percentile(quiet, 0.99), percentile(quiet_after, 0.99))
    value = {"quiet p99 us": calm, "busy p99 us": percentile(busy, 0.99), "quiet p50": percentile(quiet, 0.5), "busy p50": percentile(busy, 0.5), "searches": len(busy)}
    return value, percentile(busy, 0.99) <= 3 * calm


@contextmanager
def hundred_thousand() -> Iterator[tuple[Memory, list[Item], list[str]]]:
    records, asked = items(100_000), questions(100_000, 1_000)
    with folder() as path, Memory.open(path, "bench/filtered") as memory:
        memory.add_many(records)
        settle(memory)
        yield memory, records, asked


def filters_and_maintenance(report: Report) -> None:
    with hundred_thousand() as (memory, records, asked):
        report.figure("segments of 100,000 records", memory.stats()["namespace"]["segments"])
        report.measure(FILTERED, "each <= 300 us CPU at p50, equal to filtering the oracle", lambda: filtered(report, memory, records, asked))
        report.measure(MERGING, "<= 3x quiet", lambda: while_merging(report, memory, asked))
