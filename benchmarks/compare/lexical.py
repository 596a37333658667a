"""Our lexical engine against its peers, in one run: `python -m benchmarks.compare.lexical --docs 1000000 --json`.

By default the synthetic corpus and the real-text passages are measured; `--corpus` names one (synthetic, passages, or a judged collection). Indexes, and the jar of Lucene,
live in the cache folder (`--cache`, or the variable AGENTIR_BENCH_CACHE), without one in a temporary folder. Peers come with `pip install agentir-ray[bench]`; Lucene needs a
JDK of version 17 or later beside it. `--engines ours pisa` measures these alone, for tuning.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.bars import Report
from benchmarks.compare import bars, peers
from benchmarks.compare.corpora import open_collection
from benchmarks.compare.rounds import Comparison, compare

LARGE = 8_000_000  # from here on only we are measured, beside our own million


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="agentir-bench-") as temporary:
        cache = Path(options.cache or temporary)
        cache.mkdir(parents=True, exist_ok=True)
        os.environ["AGENTIR_BENCH_CACHE"] = str(cache)  # what builds and downloads asks for it there
        report = Report("the lexical engine against its peers")
        measured = _measure(options, cache, report)
        bars.add_all(report, measured, options, cache)
        return report.end(options.json)


def _measure(options: argparse.Namespace, cache: Path, report: Report) -> dict[str, Comparison]:
    """A comparison a collection, by name; `million` is ours alone beside a large one."""
    wanted = [("ours" if options.docs >= LARGE else "", options.corpus or "synthetic", options.docs, options.corpus or "synthetic")]
    if options.corpus is None:
        wanted.append(("", "passages", options.docs, "passages"))
    if options.docs >= LARGE:
        wanted = [wanted[0], ("ours", "synthetic", 1_000_000, "million")]
    measured = {}
    for only, name, documents, label in wanted:
        engines, missing = peers.available([only] if only else options.engines)
        for peer, reason in missing.items():
            report.figure(f"{label}: {peer}", f"skipped: {reason}")
        try:
            collection = open_collection(name, cache, documents=documents, bursty=options.order == "bursty", queries=options.queries)
            measured[label] = compare(collection, engines, options.k, options.rounds)
        except Exception as error:
            if label == wanted[0][3]:
                raise
            report.figure(label, f"not measured: {type(error).__name__}: {error}")
            continue
        _tell(report, label, measured[label], engines)
    return measured


def _tell(report: Report, label: str, comparison: Comparison, engines: list[Any]) -> None:
    report.figure(f"{label}: collection", comparison.collection.meta)
    for engine in engines:
        report.figure(f"{label}: {engine.name}: parameters", {"version": engine.version, **engine.parameters})
        report.figure(f"{label}: {engine.name}: build", comparison.builds[engine.name])
        report.figure(f"{label}: {engine.name}: check", comparison.faults.get(engine.name, ["ok"])[0])
    report.figure(f"{label}: overlap@10 with ours", comparison.overlap)
    for k, costs in comparison.costs.items():
        for name, cost in costs.items():
            report.figure(f"{label}: k = {k}: {name}: us a query", asdict(cost) | {"spread": cost.spread})


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare.lexical", description="Our lexical engine against its peers, in one run.")
    parser.add_argument("--docs", type=int, default=1_000_000, help="documents of the synthetic corpus (default 1,000,000)")
    parser.add_argument("--order", choices=["random", "bursty"], default="random", help="order of the synthetic corpus")
    parser.add_argument("--corpus", help="measure one collection only: synthetic, passages, or a judged one (scifact, npl, ...); default: synthetic and passages")
    parser.add_argument("--cache", default=os.environ.get("AGENTIR_BENCH_CACHE"), help="folder for indexes and the jar, kept; default: AGENTIR_BENCH_CACHE, else a temporary one")
    parser.add_argument("--k", type=int, nargs="+", default=[10, 100, 1000], help="how many hits to ask for (default 10 100 1000)")
    parser.add_argument("--queries", type=int, default=1_000, help="synthetic queries (default 1,000)")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds after the first (default 3)")
    parser.add_argument("--engines", nargs="+", default=["ours", "pisa", "lucene", "tantivy", "bm25s"], help="which engines, by family")
    parser.add_argument("--quick", action="store_true", help="leave out builds, threads, namespaces and Pyserini-style calls")
    parser.add_argument("--json", action="store_true", help="print one JSON object for machines")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
