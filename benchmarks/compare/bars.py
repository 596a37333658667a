"""The table of bars of the lexical engine: one entry a row of the issue, named by the row's first cell."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.bars import Outcome, Report
from benchmarks.compare import builds, namespaces, pyserini_style, threads
from benchmarks.compare.corpora import open_collection
from benchmarks.compare.engine import Unavailable
from benchmarks.compare.ours import Ours, index_bytes
from benchmarks.compare.rounds import Comparison

PISA_BARS = {10: 0.5, 100: 0.5, 1000: 0.6}
Measured = Mapping[str, Comparison]


class NotMeasured(Exception):
    """This run's options leave the row out."""


def add_all(report: Report, measured: Measured, options: argparse.Namespace, cache: Path) -> None:
    report.measure("vs the best PISA algorithm, 1 M synthetic", "<= 0.5 at k = 10, <= 0.5 at k = 100, <= 0.6 at k = 1000", lambda: _pisa(measured, "synthetic", PISA_BARS))
    report.measure("the same on the real-text passages", "<= 0.6", lambda: _pisa(measured, "passages", dict.fromkeys(PISA_BARS, 0.6)))
    report.measure("vs Lucene core", "<= 0.25 at 1 M; <= 0.1 per Python call against Pyserini-style calls on the real collections", lambda: _lucene(measured, options, cache))
    report.measure("vs tantivy, vs bm25s", "<= 0.1, <= 0.1", lambda: _others(measured))
    report.measure("p99", "<= 0.6 of Lucene's p99", lambda: _p99(measured))
    report.measure("8.8 M documents, k = 10", "<= 5x the CPU of 1 M; index <= 8 bytes a posting without columns and stored fields; built within 10 GB", lambda: _large(measured))
    report.measure("1,000 queries on 2 threads", "within 10% of what two independent processes reach in the same run", lambda: _threads(measured, options))
    report.measure("build rate, 56-token passages, 2 cores", ">= 2x Lucene's IndexWriter with 2 threads, and >= 100,000 documents/s", lambda: _build_rate(measured, options, cache))
    report.measure("10,000 namespaces of 500 records, a random one queried", "<= 60 us CPU at p50, Python call included", lambda: _namespaces(measured, options, cache))


def _of(measured: Measured, label: str) -> Comparison:
    if label not in measured:
        raise NotMeasured(f"this run measured {', '.join(measured)}")
    return measured[label]


def _is_full(comparison: Comparison) -> bool:
    """A bar holds at its size or not at all: 1 M synthetic documents or 100,000 passages, 1,000 queries."""
    least = 1_000_000 if comparison.collection.name == "synthetic" else 100_000
    return comparison.collection.documents >= least and len(comparison.collection.queries) >= 1_000


def _ratios(comparison: Comparison, family: str) -> dict[str, float]:
    return {f"k={k}": round(comparison.ratio(k, family), 3) for k in comparison.costs}


def _pisa(measured: Measured, label: str, bars: Mapping[int, float]) -> Outcome:
    comparison = _of(measured, label)
    best = {k: comparison.best(k, "pisa") for k in bars}
    ratios = {k: comparison.ratio(k, "pisa") for k in bars}
    gross = {k: comparison.costs[k]["ours"].cpu_us / comparison.costs[k][name].cpu_us for k, name in best.items() if name is not None}
    ok = all(ratios[k] <= bar for k, bar in bars.items()) and _is_full(comparison)
    return {f"k={k}": f"{ratios[k]:.3f} of {best[k]} ({gross[k]:.3f} with its binding)" for k in bars}, ok


def _lucene(measured: Measured, options: argparse.Namespace, cache: Path) -> Outcome:
    core = _ratios(_of(measured, "synthetic"), "lucene")
    calls: dict[str, Any] = {}
    for name in () if options.quick else pyserini_style.COLLECTIONS:
        try:
            calls[name] = pyserini_style.measure(open_collection(name, cache, documents=0, bursty=False, queries=options.queries))
        except Unavailable as error:
            return {"core": core, "Pyserini-style": f"not measured: {error}"}, False
    value = {"core": core, "Pyserini-style": calls or "not measured: --quick"}
    return value, bool(calls) and _is_full(_of(measured, "synthetic")) and all(ratio <= 0.25 for ratio in core.values()) and all(call["ratio"] <= 0.1 for call in calls.values())


def _others(measured: Measured) -> Outcome:
    comparison = _of(measured, "synthetic")
    ratios = {family: _ratios(comparison, family) for family in ("tantivy", "bm25s")}
    return ratios, _is_full(comparison) and all(value <= 0.1 for family in ratios.values() for value in family.values())


def _p99(measured: Measured) -> Outcome:
    comparison = _of(measured, "synthetic")
    ratios = {k: costs["ours"].spread["p99"] / costs["lucene"].spread["p99"] for k, costs in comparison.costs.items()}
    return {f"k={k}": round(ratio, 3) for k, ratio in ratios.items()}, _is_full(comparison) and all(ratio <= 0.6 for ratio in ratios.values())


def _large(measured: Measured) -> Outcome:
    if "million" not in measured:
        raise NotMeasured("it takes --docs 8800000")
    large, million = measured["synthetic"], measured["million"]
    build = large.builds["ours"]
    ratio = large.costs[10]["ours"].cpu_us / million.costs[10]["ours"].cpu_us
    a_posting = index_bytes(large.collection.folder / "indexes" / Ours().index_name) / large.collection.meta["postings"]
    value = {"CPU over that of 1 M": ratio, "bytes a posting": a_posting, "peak memory GB": build["peak_memory_bytes"] / 1e9, "built in s": build["wall_s"]}
    return value, ratio <= 5 and a_posting <= 8 and build["peak_memory_bytes"] <= 10e9 and large.collection.documents >= 8_800_000


def _threads(measured: Measured, options: argparse.Namespace) -> Outcome:
    comparison = _unless_quick(measured, options, "synthetic")
    value = threads.measure(comparison.collection)
    return value, value["threads / processes"] >= 0.9 and len(comparison.collection.queries) >= 1_000


def _build_rate(measured: Measured, options: argparse.Namespace, cache: Path) -> Outcome:
    value = builds.measure(_unless_quick(measured, options, "passages").collection, cache)
    return value, value["ours"] >= 100_000 and value["ours"] >= 2 * value["Lucene english"]


def _namespaces(measured: Measured, options: argparse.Namespace, cache: Path) -> Outcome:
    value = namespaces.measure(_unless_quick(measured, options, "synthetic").collection, cache)
    return value, value["p50 us"] <= 60


def _unless_quick(measured: Measured, options: argparse.Namespace, label: str) -> Comparison:
    if options.quick:
        raise NotMeasured("--quick")
    return _of(measured, label)
