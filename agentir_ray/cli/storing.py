"""Storing what an importer yields: each item in its namespace, in chunks, with every outcome counted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby, islice

from agentir_ray.client.memory import Memory
from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import Item, Skipped

CHUNK = 1_000  # large enough to share a sync between many records, small enough that progress is seen


@dataclass(slots=True)
class Totals:
    """`troubles` are (where, what): parts that could not be read, and records that the store refused."""

    added: int = 0
    duplicates: int = 0
    namespaces: set[str] = field(default_factory=set)
    troubles: list[tuple[str, str]] = field(default_factory=list)


def store_items(memory: Memory, namespace: str, outcomes: Iterable[Item | Skipped], advance: Callable[[int], None] = lambda count: None) -> Totals:
    """Store every item in `namespace` or the one below it that it names; `advance` is told of every chunk, once it is durable, how many of it are stored or were there."""
    totals = Totals()
    for place, group in groupby(outcomes, key=lambda outcome: None if isinstance(outcome, Skipped) else outcome.namespace):
        name = f"{namespace}/{place}" if place else namespace
        while chunk := list(islice(group, CHUNK)):
            totals.troubles += [(part.where, part.what) for part in chunk if isinstance(part, Skipped)]
            items = [part for part in chunk if isinstance(part, Item)]
            if items:
                try:
                    report = memory.use(name).import_(item.record for item in items)
                except InvalidInputError as error:  # the file's own name for a chat is none for a namespace
                    totals.troubles += [(item.where, str(error)) for item in items]
                    continue
                totals.added += report.added
                totals.duplicates += report.duplicates
                totals.troubles += report.failed
                advance(report.added + report.duplicates)
                totals.namespaces.add(name)
    return totals
