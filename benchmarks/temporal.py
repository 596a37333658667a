"""What time partitions, the recency prior and spilling give and cost: `python -m benchmarks.temporal [--json] [--only WORD] [--quick]`.

A row for each of the issue's bars, and the experiments behind them as figures and plots:

1. scaling from 4,052 to 5,000,000 records (`temporal_scaling`, against `temporal_scan`)
3. priors whose assumption fails, and the interval of lambda (`temporal_prior`)
4. quality on dated data (`temporal_quality`)
5. memory through a load under a budget, and latency while partitions spill and load (`temporal_memory`)

(The second, a session of 800 steps, is `benchmarks.session_sim`.) Lives and stores are kept in the cache folder (`--cache`, or the variable AGENTIR_BENCH_CACHE: some 12 GB in
full), without one in a temporary folder. `--quick` tries everything at small sizes; rows that promise something of large ones are then not ok.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import plots
from benchmarks.bars import Outcome, Report
from benchmarks.temporal_memory import memory_row
from benchmarks.temporal_scaling import Scaling
from benchmarks.temporal_stores import cache_folder

COVERAGE_TESTS = "tests/properties/test_coverage.py"
QUALITY = "quality"  # an experiment without a bar of its own


def main(arguments: list[str] | None = None) -> int:
    rows: dict[str, tuple[str, str, Callable[[], Outcome]]] = {
        "coverage": (
            "`coverage=0.95` at 5 M, lambda 1.7",
            "p50 <= 90 us CPU; >= 5x over our own exact kernel over everything; ratio to sequential >= 1,769x",
            lambda: scaling.at_largest(),
        ),
        "growth": ("latency growth 4 K -> 5 M", "<= 2x (paper 3.6x)", lambda: scaling.growth()),
        "exact": ("exact = oracle over all partitions, with recency and importance terms", "property test", property_test),
        "missed": (
            "share of answers missed by a supported prior at eps = .05 after 5,000 self-fed steps: geometric, power law, mixed, flat, shift",
            "<= .05 each, or the prior is not supported and exact answers",
            lambda: import_module("benchmarks.temporal_prior").assumption_fails(report, options.plots),
        ),
        "flat": ("`auto` on flat data", "recall equal to exact, at most 10% dearer", lambda: scaling.flat()),
        "interval": ("interval of lambda on 1,000 simulated geometric samples", "covers in 93.0-97.0%", lambda: import_module("benchmarks.temporal_prior").interval(report)),
        "memory": (
            "anonymous + pinned memory through a 5 M load",
            "<= budget + 10%; a run under a cgroup limit of 1.5x budget is not killed (skipped where cgroups are not writable)",
            lambda: memory_row(report, cache, options.plots, options.quick, options.records, options.budget),
        ),
    }
    options = _parse(arguments, [*rows, QUALITY])
    report = Report("Temperature: partitions, prior, coverage, spilling")
    report.figure("size", "quick" if options.quick else "full")
    with cache_folder(options.cache) as cache:
        scaling = Scaling(report, cache, options.plots, options.quick)
        for part, (name, bar, work) in rows.items():
            if options.only in (None, part):
                report.measure(name, bar, work)
        if options.only in (None, QUALITY):
            quality(report, options.quick, options.plots)
        return report.end(options.json)


def property_test() -> Outcome:
    root = Path(__file__).parents[1]
    if not (root / COVERAGE_TESTS).exists():
        raise FileNotFoundError(COVERAGE_TESTS)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", COVERAGE_TESTS], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"exit code {done.returncode}", done.returncode == 0


def quality(report: Report, quick: bool, folder: Path) -> None:
    """Figures only; that they cannot be had must not hide the others."""
    try:
        import_module("benchmarks.temporal_quality").quality(report, quick, folder)
    except Exception as error:
        report.figure(QUALITY, f"not measured: {type(error).__name__}: {error}")


def _parse(arguments: list[str] | None, parts: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.temporal", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=parts, help="one part alone; the rows left out are not reported")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether everything runs")
    parser.add_argument("--plots", type=Path, default=plots.FOLDER, metavar="FOLDER", help="where plots go (default benchmarks/plots)")
    parser.add_argument("--cache", metavar="FOLDER", help="where lives and stores are kept; default: AGENTIR_BENCH_CACHE, else a temporary folder")
    parser.add_argument("--records", type=int, help="records of the memory experiment (default 5,000,000; 200,000 if quick)")
    parser.add_argument("--budget", type=int, metavar="BYTES", help="its memory budget (default 2 GiB for 5 M records, less in proportion, at least 256 MiB)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
