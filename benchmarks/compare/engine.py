"""What an engine is to the comparison: it builds an index of a collection in a folder, opens it, and answers queries while its CPU is counted.

CPU is that of all threads of the process (`process_time_ns`) where an engine runs in this one, and what the engine's own process says of its searching thread where it does not.
Turning an engine's answer into numbers for the checks is not part of a query, and not timed.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.compare.corpora import Collection
from benchmarks.compare.oracle import Formula

Array = npt.NDArray[Any]
Hits = list[tuple[Array, Array]]  # for each query the documents (int64) and scores (float64), best first


class Unavailable(Exception):
    """The peer is not installed here; the message says how to get it."""


@dataclass
class Round:
    """What answering all queries once cost."""

    cpu_us: float  # of all queries together, as measured
    wall_s: float
    each_us: Array | None = None  # CPU a query, where the engine answers singly
    overhead_us: float = 0.0  # the binding's part of `cpu_us`, as estimated by the engine
    hits: Hits = field(default_factory=list)  # only if asked for


class Engine(Protocol):
    name: str  # also the folder of its index: unique, and changed when what it builds changes
    version: str
    parameters: dict[str, Any]  # k1, b, idf and rounding as they really are
    formula: Formula

    def build(self, collection: Collection, folder: Path) -> None:
        """Write the index; runs in a process of its own, so that its memory can be told."""
        ...

    def open(self, collection: Collection, folder: Path) -> None: ...

    def run(self, queries: Sequence[Array], k: int, want_hits: bool = False) -> Round: ...

    def close(self) -> None: ...


def singly(search: Callable[[Any, int], Any], queries: Sequence[Any], k: int, to_hits: Callable[[Any], tuple[Array, Array]] | None) -> Round:
    """Call `search` for one query after the other. `to_hits` None: the answers are thrown away."""
    each = np.empty(len(queries), np.float64)
    hits: Hits = []
    clock = time.process_time_ns
    began = time.perf_counter()
    for i, query in enumerate(queries):
        start = clock()
        answer = search(query, k)
        each[i] = clock() - start
        if to_hits is not None:
            hits.append(to_hits(answer))
    each /= 1_000
    return Round(float(each.sum()), time.perf_counter() - began, each, hits=hits)


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
