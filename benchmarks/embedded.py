"""What the embedded engine costs: durable adds, searches, filters, maintenance, opening and recovery.

    python -m benchmarks.embedded [--json] [--only WORD]

Whatever is compared is interleaved in one run; the medians of all rounds are among the figures. Records are those of `benchmarks.synthetic` (log-normal lengths around 40 terms)
unless a row says short.
"""

import argparse
import sys
from collections.abc import Callable

from benchmarks.bars import Outcome, Report
from benchmarks.embedded_opening import files, first_search, import_time, many_namespaces, reopen
from benchmarks.embedded_searching import filters_and_maintenance, search_ten_thousand
from benchmarks.embedded_writing import add_many, add_one

ROWS: dict[str, tuple[str, str, Callable[[Report], Outcome]]] = {
    "add": (
        "add of one record, durable and searchable on return",
        "one sync per add (counted); <= 200 us CPU above a bare SQLite insert; 32 callers together >= 8x the rate of one",
        add_one,
    ),
    "many": ("`add_many` of 100,000 short records, durable", ">= 10,000/s", add_many),
    "search": ("search, 10,000 records, k = 10, reading the ten texts", "<= 150 us CPU at p50, the Python call included", search_ten_thousand),
    "namespaces": ("opening a store with 10,000 namespaces, against 10", "<= 3x; anonymous memory under the budget", many_namespaces),
    "reopen": ("reopen after a kill, 100,000 records, 4,096 unsealed", "<= 1 s with a warm Numba cache", reopen),
    "files": ("files per small namespace", "<= 3", files),
    "import": ("`import agentir_ray`", "< 0.5 s; no torch, ray, sentence-transformers", import_time),
    "first": ("first search in a fresh process, warm Numba cache", "< 1.5 s; `agentir doctor` warms the cache and says where it lies", first_search),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=[*ROWS, "filtered"], help="one part alone; the rows left out are not reported")
    options = parser.parse_args()
    report = Report("The embedded engine")
    for part, (name, bar, work) in ROWS.items():
        if options.only in (None, part):
            report.measure(name, bar, lambda work=work: work(report))
    if options.only in (None, "filtered"):
        filters_and_maintenance(report)
    return report.end(options.json)


if __name__ == "__main__":
    sys.exit(main())
