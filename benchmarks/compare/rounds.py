"""One collection, every engine: each is checked against its own formula, then all answer the same queries in turn, round after round.

Rounds alternate between the engines, and each round begins with another one, so that what else the machine does hits all of them alike. The first round warms up and is not
counted. Of one peer's many algorithms (PISA's), those that need more than FAR times the CPU of its best in that round are left there: their figures are those of the first
round.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.compare import oracle
from benchmarks.compare.building import built
from benchmarks.compare.corpora import Collection
from benchmarks.compare.engine import Hits, Round

SAMPLE = 50  # queries that are checked, at every k
FAR = 1.3


@dataclass
class Cost:
    """CPU in microseconds a query: of the whole, net of the binding's overhead, and how it spreads where the engine answers singly."""

    cpu_us: float
    net_us: float
    wall_us: float
    rounds: int
    spread: dict[str, float] = field(default_factory=dict)


@dataclass
class Comparison:
    collection: Collection
    costs: dict[int, dict[str, Cost]]  # by k, then by engine; only engines that passed their check
    faults: dict[str, list[str]]
    builds: dict[str, dict[str, Any]]
    overlap: dict[str, float]  # of the first 10 with ours

    def best(self, k: int, family: str) -> str | None:
        """The cheapest engine of a family, by its net CPU."""
        found = {name: cost.net_us for name, cost in self.costs[k].items() if name == family or name.startswith(f"{family} ")}
        return min(found, key=lambda name: found[name], default=None)

    def ratio(self, k: int, family: str) -> float:
        """Our CPU over that of the family's best. Raises KeyError where either was not measured."""
        best = self.best(k, family)
        if best is None:
            raise KeyError(f"{family} was not measured")
        return self.costs[k]["ours"].net_us / self.costs[k][best].net_us


def compare(collection: Collection, engines: Sequence[Any], ks: Sequence[int], rounds: int) -> Comparison:
    result = Comparison(collection, {k: {} for k in ks}, {}, {}, {})
    sound, answers = [], {}
    expected = oracle.Oracle(collection, collection.queries[:SAMPLE])
    for engine in engines:
        try:
            folder, result.builds[engine.name] = built(engine, collection)
            engine.open(collection, folder)
            hits = {k: engine.run(expected.queries, k, want_hits=True).hits for k in ks}
            faults = [f"k = {k}: {fault}" for k in ks for fault in expected.faults(hits[k], k, engine.formula)]
        except Exception as error:  # one engine that fails must not hide the others
            faults = [f"{type(error).__name__}: {error}"]
        if faults:
            result.faults[engine.name] = faults
            print(f"     {engine.name} fails its check on {collection.name}: {faults[0]}", file=sys.stderr, flush=True)
        else:
            sound.append(engine)
            answers[engine.name] = hits[ks[0]]
    result.overlap = _overlaps(answers)
    for k in ks:
        print(f"     {collection.name}: k = {k}", file=sys.stderr, flush=True)
        result.costs[k] = _measure(sound, collection, k, rounds)
    for engine in engines:
        engine.close()
    return result


def _measure(engines: Sequence[Any], collection: Collection, k: int, rounds: int) -> dict[str, Cost]:
    queries = collection.queries
    first = {engine.name: engine.run(queries, k) for engine in engines}
    chosen = [engine for engine in engines if _is_near(engine.name, first)]
    taken: dict[str, list[Round]] = {engine.name: [] for engine in chosen}
    for number in range(rounds):
        for engine in [*chosen[number % len(chosen) :], *chosen[: number % len(chosen)]]:
            taken[engine.name].append(engine.run(queries, k))
    return {name: _cost(taken.get(name) or [first[name]], len(queries), len(taken.get(name, ()))) for name in first}


def _is_near(name: str, first: dict[str, Round]) -> bool:
    family = name.split()[0]
    return first[name].cpu_us <= FAR * min(round.cpu_us for other, round in first.items() if other.split()[0] == family)


def _cost(taken: Sequence[Round], queries: int, rounds: int) -> Cost:
    """Medians over the rounds, so that one disturbed round does not count."""
    cpu, net, wall = (float(np.median(values)) / queries for values in zip(*((one.cpu_us, one.cpu_us - one.overhead_us, one.wall_s * 1e6) for one in taken), strict=True))
    each = [one.each_us for one in taken if one.each_us is not None]
    spread = {}
    if each:
        typical = np.median(np.stack(each), axis=0)
        p50, p95, p99 = np.percentile(typical, [50, 95, 99]).tolist()
        spread = {"geomean": float(np.exp(np.log(np.maximum(typical, 1e-3)).mean())), "p50": p50, "p95": p95, "p99": p99}
    return Cost(cpu, net, wall, rounds, spread)


def _overlaps(answers: dict[str, Hits]) -> dict[str, float]:
    ours = answers.get("ours")
    return {} if ours is None else {name: round(oracle.overlap(ours, hits), 3) for name, hits in answers.items() if name != "ours"}
