"""When the assumption of the recency prior fails, and whether its interval covers: `python -m benchmarks.temporal_prior [--json] [--plots FOLDER]`.

**Lives.** 5,000 steps over 50 partitions. Each asks for an answer whose age is drawn from the true law, and searches as many partitions as `decide(..., eps=.05)` says. While the
prior is supported the answer is found if it lies there, and observed as truncated there; else it is missed. 3% of the steps are audited by a complete search in the background,
which tells the prior and not the asker. While it is not supported everything is searched, and a share of the steps is observed as complete: 3%, as an engine without feedback has
it, or all, as where every exact search gets feedback. That is the harder life: its prior is supported, and can be wrong, from the 59th step on. The decision is taken anew after
each complete observation.

**The naive prior** beside it fits a geometric law to every answer that it found, as if nothing had kept them from being older, and searches k* partitions by that: exact for the
first 59 steps, then on its own. No audits, no tests, no limits.

**Coverage of the interval.** 1,000 samples of geometric ages for each of some lambdas and sizes, half of every sample truncated at four partitions; and 1,000 whose lambda and size
are drawn (log-uniformly, .05 to 2.5 and 59 to 1,000). The bar is for each of these rows.

Nothing was chosen by these seeds: the constants of `agentir_ray.temporal` come from other seeds and other shifts.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.temporal.likelihood import fit
from agentir_ray.temporal.prior import decide, observations_needed
from agentir_ray.temporal.statistics import AgeStatistics
from benchmarks import plots
from benchmarks.bars import Outcome, Report

Floats = npt.NDArray[np.float64]

SEED = 20_261_201
STEPS, PARTITIONS, EPS, AUDITED = 5_000, 50, 0.05, 0.03
LIVES = 20
LATE = 1_000  # the last steps, reported on their own
AGES = np.arange(PARTITIONS)
SAMPLES, TRUNCATED_AT = 1_000, 4
LAMBDAS, SIZES = (0.1, 0.3, 0.8, 1.7), (59, 300, 1_000)
COVERS = (0.93, 0.97)


def law(weights: Floats) -> Floats:
    return weights / weights.sum()


def geometric(lambda_: float) -> Floats:
    return law(np.exp(-lambda_ * AGES))


FLAT = law(np.ones(PARTITIONS))
POWER = law((AGES + 1.0) ** -1.5)
MIXED = 0.85 * geometric(1.7) + 0.15 * law((AGES >= PARTITIONS // 2).astype(np.float64))
HUMPS = law(np.exp(-0.5 * (AGES / 2) ** 2) + np.exp(-0.5 * ((AGES - 30) / 3) ** 2))
LAWS: dict[str, tuple[Floats, Floats]] = {  # of the first half of a life, and of the second
    "geometric, lambda 1.7": (geometric(1.7), geometric(1.7)),
    "geometric, lambda 0.2": (geometric(0.2), geometric(0.2)),
    "power law": (POWER, POWER),
    "85% recent, 15% old": (MIXED, MIXED),
    "two humps": (HUMPS, HUMPS),
    "flat": (FLAT, FLAT),
    "shift: lambda 1.7 to 0.2": (geometric(1.7), geometric(0.2)),
    "shift: lambda 1.7 to flat": (geometric(1.7), FLAT),
}


class Life(NamedTuple):
    """A row a step."""

    missed: npt.NDArray[np.bool_]
    supported: npt.NDArray[np.bool_]
    searched: npt.NDArray[np.int64]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.temporal_prior", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plots", type=Path, default=plots.FOLDER, metavar="FOLDER", help="where the plot goes (default benchmarks/plots)")
    options = parser.parse_args()
    report = Report("The recency prior")
    report.measure(
        "share of answers missed by a supported prior at eps = .05 after 5,000 self-fed steps: geometric, power law, mixed, flat, shift",
        "<= .05 each, or the prior is not supported and exact answers",
        lambda: assumption_fails(report, options.plots),
    )
    report.measure("interval of lambda on 1,000 simulated geometric samples", "covers in 93.0-97.0%", lambda: interval(report))
    return report.end(options.json)


def assumption_fails(report: Report, folder: Path = plots.FOLDER) -> Outcome:
    """By law, of the kind of guarded life that missed more: the share of all answers that was missed, which the bar is for, and that of the worst life."""
    missed: dict[str, list[float]] = {}
    curves: dict[str, dict[str, Floats]] = {"naive": {}, "guarded": {}, "guarded, feedback": {}}
    for number, (name, laws) in enumerate(LAWS.items()):
        lives = {
            "guarded": [guarded(laws, generator, AUDITED) for generator in generators(number)],
            "guarded, feedback": [guarded(laws, generator, 1.0) for generator in generators(number)],
            "naive": [naive(laws, generator) for generator in generators(number)],
        }
        for kind, several in lives.items():
            report.figure(f"{name}, {kind}", summary(several))
            curves[kind][name] = np.mean([np.cumsum(life.missed) for life in several], axis=0) / np.arange(1, STEPS + 1)
        missed[name] = max([float(np.mean(shares)), max(shares)] for shares in ([float(life.missed.mean()) for life in lives[kind]] for kind in ("guarded", "guarded, feedback")))
    draw(curves, folder)
    return missed, all(mean <= EPS for mean, _ in missed.values())


def interval(report: Report) -> Outcome:
    """The least and the greatest share of samples whose interval holds the true lambda, over all rows."""
    rng = np.random.default_rng([SEED, 1])
    rows = {f"lambda {lambda_}, {size} ages": covered(rng, np.full(SAMPLES, lambda_), np.full(SAMPLES, size)) for lambda_ in LAMBDAS for size in SIZES}
    drawn = np.exp(rng.uniform(np.log(0.05), np.log(2.5), SAMPLES)), np.exp(rng.uniform(np.log(59), np.log(1_000), SAMPLES)).astype(np.int64)
    rows["lambda and size drawn"] = covered(rng, *drawn)
    report.figure("interval of lambda covers", rows)
    return [min(rows.values()), max(rows.values())], all(COVERS[0] <= share <= COVERS[1] for share in rows.values())


def covered(rng: np.random.Generator, lambdas: Floats, sizes: npt.NDArray[np.int64]) -> float:
    inside = 0
    for lambda_, size in zip(lambdas.tolist(), sizes.tolist(), strict=True):
        statistics = AgeStatistics()
        pi = geometric(lambda_)
        for age in rng.choice(PARTITIONS, size - size // 2, p=pi).tolist():
            statistics.observe(age, PARTITIONS, complete=True)
        for age in rng.choice(TRUNCATED_AT, size // 2, p=law(pi[:TRUNCATED_AT])).tolist():
            statistics.observe(age, TRUNCATED_AT, complete=False)
        fitted = fit(statistics)
        inside += fitted.lower <= lambda_ <= fitted.upper
    return inside / len(lambdas)


def generators(number: int) -> Iterator[np.random.Generator]:
    return (np.random.default_rng([SEED, 0, number, life]) for life in range(LIVES))


def ages_of_life(laws: tuple[Floats, Floats], rng: np.random.Generator) -> list[int]:
    return [age for half in laws for age in rng.choice(PARTITIONS, STEPS // 2, p=half).tolist()]


def guarded(laws: tuple[Floats, Floats], rng: np.random.Generator, observed_if_exact: float) -> Life:
    """`observed_if_exact`: the share of exact searches whose answer becomes known."""
    life = Life(np.zeros(STEPS, np.bool_), np.zeros(STEPS, np.bool_), np.zeros(STEPS, np.int64))
    statistics = AgeStatistics()
    decision = decide(statistics, PARTITIONS, EPS)
    for step, (age, chance) in enumerate(zip(ages_of_life(laws, rng), rng.random(STEPS).tolist(), strict=True)):
        life.missed[step], life.supported[step], life.searched[step] = age >= decision.partitions, decision.supported, decision.partitions
        if chance < (AUDITED if decision.supported else observed_if_exact):
            statistics.observe(age, PARTITIONS, complete=True)
            decision = decide(statistics, PARTITIONS, EPS)
        elif decision.supported and age < decision.partitions:
            statistics.observe(age, decision.partitions, complete=False)
    return life


def naive(laws: tuple[Floats, Floats], rng: np.random.Generator) -> Life:
    life = Life(np.zeros(STEPS, np.bool_), np.ones(STEPS, np.bool_), np.zeros(STEPS, np.int64))
    found = total = 0
    k = PARTITIONS
    for step, age in enumerate(ages_of_life(laws, rng)):
        life.missed[step], life.searched[step] = age >= k, k
        if age < k:
            found, total = found + 1, total + age
        if found >= observations_needed(EPS):
            k = min(PARTITIONS, int(np.ceil(np.log(1 / EPS) / np.log1p(found / total)))) if total else 1
    life.supported[: observations_needed(EPS)] = False
    return life


def summary(lives: list[Life]) -> dict[str, float]:
    missed = np.array([life.missed for life in lives])
    return {
        "missed": float(missed.mean()),
        "in the worst life": float(missed.mean(axis=1).max()),
        f"in the last {LATE:,} steps": float(missed[:, -LATE:].mean()),
        "supported": float(np.mean([life.supported for life in lives])),
        "partitions searched": float(np.mean([life.searched for life in lives])),
    }


def draw(curves: dict[str, dict[str, Floats]], folder: Path) -> None:
    titles = {
        "naive": "fitted to whatever it found: no audits, no tests",
        "guarded": "with audits, truncation and the tests; 3% of exact searches observed",
        "guarded, feedback": "the same; every exact search observed",
    }
    steps = np.arange(1, STEPS + 1)
    colours: dict[str, Any] = dict(zip(LAWS, (*plots.COLOURS, "#000000"), strict=True))
    with plots.figure(
        folder, "prior_when_the_assumption_fails", f"Share of all answers missed so far, eps = {EPS:.0%}, mean of {LIVES} lives over {PARTITIONS} partitions", 3
    ) as panels:
        for axes, (kind, shares) in zip(panels, curves.items(), strict=True):
            for name, share in shares.items():
                axes.plot(steps, 100 * share, color=colours[name], label=name, linewidth=1.4, linestyle="--" if name.startswith("shift") else "-")
            axes.axhline(100 * EPS, color="black", linewidth=1, linestyle=":")
            axes.annotate("eps", (STEPS, 100 * EPS), xytext=(4, -3), textcoords="offset points", fontsize=9)
            axes.set_xlim(0, STEPS)
            axes.set_ylim(0, None if kind == "naive" else 6)
            none = [name for name, share in shares.items() if not share.any()]
            axes.text(0.01, 0.97, f"{titles[kind]}\n(none missed, all searched: {'; '.join(none)})", transform=axes.transAxes, va="top", fontsize=9, linespacing=1.4)
            axes.set_ylabel("missed, %")
        panels[-1].set_xlabel("steps; shifts are at 2,500")
        panels[0].figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)


if __name__ == "__main__":
    sys.exit(main())
