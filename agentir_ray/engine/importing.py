"""Records that were exported, here or elsewhere, stored again and counted."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from agentir_ray.engine.store import Store
from agentir_ray.engine.writing import add_records
from agentir_ray.errors import AgentIRError


class ImportReport(NamedTuple):
    """How many records an import stored and how many were there already; `failed` pairs the id (or "#n" for the n-th item) with the reason."""

    added: int
    duplicates: int
    failed: list[tuple[str, str]]


def import_records(store: Store, name: str, items: Iterable[Mapping[str, Any]], analyzer: str | None, progress: Callable[[int], None] | None) -> ImportReport:
    """Store records whose order means nothing: one may supersede another that comes later, or that was forgotten and is no longer exported."""
    added = duplicates = 0
    failed: list[tuple[str, str]] = []
    for n, outcome in enumerate(add_records(store, name, items, analyzer=analyzer, check_superseded=False), 1):
        if isinstance(outcome.result, AgentIRError):
            id = outcome.item.get("id") if isinstance(outcome.item, Mapping) else None
            failed.append((id if isinstance(id, str) and id else f"#{n}", str(outcome.result)))
        elif outcome.added:
            added += 1
        else:
            duplicates += 1
        if progress is not None:
            progress(n)
    return ImportReport(added, duplicates, failed)
