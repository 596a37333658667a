"""Asking a namespace, or, where it holds nothing itself, the namespaces below it.

An import of many chats puts each in a namespace of its own (`locomo/conv-26`); asking `locomo` then means all of them. Their answers are merged by score. Each namespace scores
by its own statistics, so across namespaces the order is a good guess, no more; that is said with the answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentir_ray.cli.console import counted
from agentir_ray.client.memory import Memory
from agentir_ray.errors import NotFoundError
from agentir_ray.types import Hit, SearchResult, TimeRange


@dataclass(frozen=True, slots=True)
class Answer:
    """`hits` (namespace, hit), best first, and the result of every namespace that was asked."""

    hits: list[tuple[str, Hit]]
    results: dict[str, SearchResult]

    @property
    def timings_us(self) -> dict[str, float]:
        """Summed over the namespaces, which are asked one after another."""
        total: dict[str, float] = {}
        for result in self.results.values():
            for step, time_us in result.timings_us.items():
                total[step] = total.get(step, 0.0) + time_us
        return total

    @property
    def time_range(self) -> TimeRange | None:
        """What the question says of time: the same for every namespace."""
        return next((result.time_range for result in self.results.values()), None)

    def coverage(self) -> str:
        """One line: what was searched, and whether the answer is exact."""
        covered = [result.coverage for result in self.results.values()]
        searched, skipped, left = (sum(counts) for counts in zip(*((part.searched, part.skipped_by_bound, part.not_searched) for part in covered), strict=True))
        exact = all(part.exact for part in covered)
        parts = [covered[0].mode, "exact" if exact else "not exact", f"{counted(searched, 'partition')} searched", f"{skipped:,} skipped by bound"]
        if left:
            masses = [part.mass for part in covered if part.mass is not None]
            parts.append(f"{left:,} not searched" + (f", at least {min(masses):.1%} of the recency prior covered" if len(masses) == len(covered) else ""))
        if len(covered) > 1:
            parts.append(f"{len(covered)} namespaces, each scored by its own statistics")
        if not (exact and covered[0].mode == "auto"):  # the usual case needs no reason
            parts += dict.fromkeys(part.reason for part in covered if part.reason)
        return "; ".join(parts)


def ask(memory: Memory, namespace: str, query: str, *, k: int, offset: int = 0, **options: Any) -> Answer:
    """The best `k` behind `offset`, of `namespace` or of those below it."""
    names = list(_names(memory, namespace))
    if names == [namespace]:
        result = memory.search(query, k=k, offset=offset, **options)
        return Answer([(namespace, hit) for hit in result.hits], {namespace: result})
    results = {name: memory.use(name).search(query, k=k + offset, **options) for name in names}
    hits = [(name, hit) for name, result in results.items() for hit in result.hits]
    hits.sort(key=lambda found: -found[1].score)  # stable: equal scores stay in the order of the names, then of each answer
    return Answer(hits[offset : offset + k], results)


def _names(memory: Memory, namespace: str) -> Iterator[str]:
    below = [name for name in memory.namespaces(namespace) if name != namespace]
    if not below or _holds_something(memory):
        yield namespace
    else:
        yield from below


def _holds_something(memory: Memory) -> bool:
    try:
        return bool(memory.recent(1).records)
    except NotFoundError:
        return False
