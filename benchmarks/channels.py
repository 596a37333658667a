"""What encoders find, what they find together, and what they cost: `python -m benchmarks.channels [--json] [--only ROW ...] [--cache FOLDER]`.

A row for each of the issue's bars. What was encoded is kept in the cache folder (`--cache`, or the variable AGENTIR_BENCH_CACHE; some 2 GB), without one in a temporary folder;
encoding it takes about an hour. Everything runs on one thread.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache as memoised
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}  # before anything loads OpenMP

from benchmarks.bars import Outcome, Report
from benchmarks.datasets import shared
from benchmarks.temporal_stores import cache_folder

if TYPE_CHECKING:
    from benchmarks.channels_recipe import Collections

ODD_TESTS = ("tests/unit/encoders/test_every_encoder.py", "tests/unit/encoders/test_records.py", "tests/unit/engine/test_encoding.py")
KILL_TESTS = ("tests/crash/test_vectors.py", "tests/properties/test_vectors.py")


def main(arguments: list[str] | None = None) -> int:
    def data() -> Path:
        folder = shared()
        if folder is None:
            raise FileNotFoundError("no data folder; set AGENTIR_SHARED")
        return folder

    @memoised
    def collections() -> "Collections":
        made: Collections = import_module("benchmarks.channels_recipe").Collections(data(), cache, report)
        return made

    rows: dict[str, tuple[str, str, Callable[[], Outcome]]] = {
        "encoders": ("each encoder reproduces its figure above", "within .01", lambda: import_module("benchmarks.channels_encoders").reproduced(data(), cache, report)),
        "recipe": (
            "best recipe within 10 ms CPU a query once records are encoded, weights by cross-validation over chats",
            "LoCoMo nDCG@10 >= .56, R@10 >= .69; BEAM-100K nDCG@10 >= .50; one weight vector for both reported",
            lambda: import_module("benchmarks.channels_recipe").best_recipe(collections(), report),
        ),
        "maxsim": ("the same with MaxSim (15 ms)", "LoCoMo >= .58", lambda: import_module("benchmarks.channels_recipe").with_maxsim(collections(), report)),
        "flat": (
            "exact flat search, 1 M x 384 from `tools` resampled encoder vectors (noise of norm .4, seeded), k = 100, one thread",
            "order = float64 dot of the stored float32, ties by key, for k = 10, 100, 1000; <= 0.15 of the time of the float32 product + argpartition",
            lambda: import_module("benchmarks.channels_flat").flat_search(data(), cache, report),
        ),
        "query": (
            "query encoding at p50, one thread",
            "static <= 0.1 ms, int8 <= 5 ms, SPLADE-tiny <= 6 ms",
            lambda: import_module("benchmarks.channels_encoders").query_costs(data(), report),
        ),
        "odd": ("odd input: empty text, 100 KB text, 50 languages, emoji", "vectors or a clear error; never NaN in the index", lambda: tests(ODD_TESTS)),
        "absent": ("no model, no network", 'BM25 serves; `mode="dense"` says what is missing and how to get it', lambda: import_module("benchmarks.channels_absent").row()),
        "kill": ("kill during write-behind, merge, reembed", "no vector lost that was paid for, none on the wrong record", lambda: tests(KILL_TESTS)),
    }
    options = _parse(arguments, list(rows))
    report = Report("Channels: encoders, their combination, and what they cost")
    with cache_folder(options.cache) as cache:
        for part, (name, bar, work) in rows.items():
            if options.only is None or part in options.only:
                report.measure(name, bar, work)
        return report.end(options.json)


def tests(paths: Sequence[str]) -> Outcome:
    """What pytest says of test modules; one that is skipped has not been measured."""
    root = Path(__file__).parents[1]
    missing = [path for path in paths if not (root / path).exists()]
    if missing or not paths:
        raise FileNotFoundError(f"the tests of this row are missing: {missing}")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths], cwd=root, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"exit code {done.returncode}"
    return last, done.returncode == 0 and "skipped" not in last


def _parse(arguments: list[str] | None, parts: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.channels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="+", choices=parts, help="these rows alone; the rows left out are not reported")
    parser.add_argument("--cache", metavar="FOLDER", help="where encoded collections are kept; default: AGENTIR_BENCH_CACHE, else a temporary folder")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
