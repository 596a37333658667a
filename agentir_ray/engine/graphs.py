"""Graphs over a namespace's vectors, for searches that may be approximate (`dense.approximate`): built when asked for, by who asks, in memory alone.

Nobody else is held up: a graph is built beside its sidecar and hung on it when it is complete. What replaces a sidecar brings no graph, so that the vectors of what was erased go
with the old one, and a search is exact there until the next call.
"""

from agentir_ray.dense.approximate import HnswGraph, graph_bytes
from agentir_ray.dense.sidecar import DenseSidecar
from agentir_ray.engine.channel import DENSE
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.store import Store
from agentir_ray.errors import InvalidInputError

LEAST_ROWS = 50_000  # with 60,000 of 128 numbers a graph takes 0.35 ms for the best 10, and the exact search 0.5
MAX_THREADS = 256


def build_graphs(store: Store, namespace: Namespace, least_rows: int, threads: int) -> int:
    """The graphs that segments of `least_rows` vectors or more lack; returns how many vectors lie in graphs now. The caller has acquired the namespace.

    Raises EncoderMissingError, InvalidInputError where they do not fit into the memory budget, StoreClosedError when the store is closed meanwhile.
    """
    wanted = [sidecar for sidecar in _sidecars(namespace) if sidecar.graph is None and sidecar.rows >= least_rows]
    needed = sum(map(graph_bytes, wanted))
    if needed and namespace.memory_bytes() + needed > store.namespaces_budget_bytes:
        raise InvalidInputError(
            f"the graphs would take {needed:,} bytes, more than memory_budget_bytes={store.memory_budget_bytes:,} leaves to a namespace: open the store with a larger budget, "
            "or search exactly"
        )
    for sidecar in wanted:
        sidecar.graph = HnswGraph(sidecar, threads=threads, check=store.check)
    store.recount(namespace)
    return graphed(namespace)


def graphed(namespace: Namespace) -> int:
    """How many vectors lie in graphs."""
    return sum(sidecar.rows for sidecar in _sidecars(namespace) if sidecar.graph is not None)


def _sidecars(namespace: Namespace) -> list[DenseSidecar]:
    return [sidecar for segment in namespace.index.segments if (sidecar := segment.sidecars.get(DENSE)) is not None]
