"""Ten thousand namespaces of 500 records, all open, and a random one asked each time: the CPU of the whole Python call, from the text of the question to the hits."""

import time
from pathlib import Path

import numpy as np

from agentir_ray.analysis import get_analyzer
from agentir_ray.lexical.query import Bm25, parse_query, scoring
from agentir_ray.lexical.search import Visibility, top_k
from agentir_ray.types import NEVER_US
from benchmarks.compare.corpora import Collection, Counted
from benchmarks.compare.ours import format_hash, open_index, write_segment

NAMESPACES = 10_000
RECORDS = 500
CALLS = 5_000


def measure(collection: Collection, cache: Path, k: int = 10) -> dict[str, float]:
    """CPU of a call in us. The namespaces are slices of the collection, the same one again where it has too few documents; questions are words of one of their own records."""
    slices = min(NAMESPACES, collection.documents // RECORDS)
    paths = _segments(collection, cache / f"namespaces-{collection.folder.name}-{format_hash()}", slices)
    indexes = [open_index([paths[number % slices]]) for number in range(NAMESPACES)]
    for index in indexes:
        index.segments[0].touch()
    rng = np.random.default_rng(3)
    analyzer = get_analyzer("english")
    offset = np.concatenate([[0], np.cumsum(collection.length)])
    costs = []
    for _ in range(CALLS):
        chosen = int(rng.integers(NAMESPACES))
        record = chosen % slices * RECORDS + int(rng.integers(RECORDS))
        tokens = np.unique(collection.tokens[offset[record] : offset[record + 1]])
        text = " ".join(f"t{term}" for term in rng.choice(tokens, min(len(tokens), int(rng.integers(3, 9))), replace=False))
        index = indexes[chosen]
        start = time.process_time_ns()
        query = parse_query(analyzer, text)
        snapshot = index.snapshot(query.terms)
        found = top_k(snapshot, scoring(query, snapshot.statistics, Bm25()), k, Visibility(NEVER_US - 1))
        costs.append((time.process_time_ns() - start) / 1_000)
        assert found.found
    p50, p95, p99 = np.percentile(costs[CALLS // 10 :], [50, 95, 99]).tolist()
    return {"p50 us": p50, "p95 us": p95, "p99 us": p99, "mean us": float(np.mean(costs[CALLS // 10 :]))}


def _segments(collection: Collection, folder: Path, slices: int) -> list[Path]:
    """Each slice's segment file; every namespace opens (and maps) a segment of its own, though some share a file."""
    paths = [folder / str(number) for number in range(slices)]
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        counted = collection.counted
        for number, path in enumerate(paths):
            first, end = number * RECORDS, (number + 1) * RECORDS
            low, high = int(counted.doc_start[first]), int(counted.doc_start[end])
            terms, term = np.unique(counted.term[low:high], return_inverse=True)
            part = Counted(counted.doc_start[first : end + 1] - low, term.astype(np.int32), counted.tf[low:high])
            write_segment(path, part, np.asarray(collection.length[first:end]), [b"t%d" % number for number in terms.tolist()])
        (folder / "done").touch()
    return paths
