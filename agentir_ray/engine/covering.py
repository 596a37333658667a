"""Which partitions a search reads, and what its answer covers (DESIGN 5).

`exact` and `auto` read everything that is here; a probability reads the newest partitions that hold an answer with it, if the namespace's prior is supported. Fewer hits than were
asked for widen it, an explicit range of time says all there is to say. Spilled segments are left for later: `missing` names those that could still change the answer, and whoever
can load them asks again. It knows no store and loads nothing itself.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from agentir_ray.engine.asker import Answers, Asker, Bools
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.partitions import PartitionTable
from agentir_ray.engine.request import Request
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.search import Expired, TopK, Visibility
from agentir_ray.lexical.segment import Segment
from agentir_ray.temporal.partitions import Partitions
from agentir_ray.temporal.prior import Decision
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Coverage, to_datetime

AUTO_EPS = 0.01  # of the answers, at most, may lie in spilled partitions that `auto` leaves where they are
WIDEN = 2
EVERYTHING_SEARCHED = "everything was searched, or skipped because it could not reach the answer"


class Asked(NamedTuple):
    """What feedback needs to know of a search: the partitions there were, how many of the newest were searched (0: it was about a range of time), and whether that was all."""

    partitions: Partitions
    horizon: int
    complete: bool


class Ranked(NamedTuple):
    """A search's best documents, and what of the namespace they are the best of.

    The `hottest` newest of `partitions` were asked for, all of them if it is their number. `left` (bool, segments): what was not searched though it could have changed the
    answer; the segments of `missing` among them are worth loading. `decision` is the prior's, where one was asked for.
    """

    answers: Answers
    best: TopK
    table: PartitionTable
    partitions: Partitions
    hottest: int
    left: Bools
    missing: tuple[Segment, ...]
    decision: Decision | None
    ranged: bool

    @property
    def snapshot(self) -> Snapshot:
        return self.answers.snapshot

    @property
    def complete(self) -> bool:
        return self.hottest == self.partitions.total and not np.count_nonzero(self.left)

    @property
    def asked(self) -> Asked:
        """What feedback on this search needs to know: of the partitions that were searched without a gap, the newest, how many they are."""
        horizon = 0 if self.ranged else self.hottest
        if horizon and np.count_nonzero(self.left):
            _, gaps = self.table.apart(self.left, self.left, ())
            newest_gap = int(np.searchsorted(self.partitions.buckets, gaps[-1], "right")) if len(gaps) else 0
            horizon = max(0, min(horizon, self.partitions.total - newest_gap))
        return Asked(self.partitions, horizon, self.complete)


def rank(namespace: Namespace, asker: Asker, request: Request, expired: Expired | None) -> Ranked:
    """The best of what is here. What is missing is named newest first, so that it is loaded before a search need be widened."""
    recency = namespace.recency
    answers = asker.look(namespace)
    snapshot = answers.snapshot
    table = namespace.partition_table(snapshot, recency.width_us)
    visibility, wanted = request.visibility, request.wanted
    partitions = table.at(snapshot.buffers, visibility.as_of_us)
    hottest, decision = partitions.total, None
    ranged = has_range(visibility)
    if ranged:
        partitions = partitions.within(visibility.since_us, visibility.until_us)
        hottest = partitions.total
    elif isinstance(request.coverage, float):
        decision = recency.decide(partitions.total, 1.0 - request.coverage)
        hottest = min(hottest, decision.partitions)
    while True:
        narrowed = visibility
        if hottest < partitions.total:
            narrowed = Visibility(visibility.as_of_us, visibility.written_until_us, partitions.since_us(hottest))
        best = answers.top_k(wanted, narrowed, expired)
        left = answers.could_matter(best, narrowed, wanted) if np.count_nonzero(best.left) else best.left
        cold = left & snapshot.cold if np.count_nonzero(left) else left
        if len(best.score) == wanted or hottest == partitions.total or (expired is not None and expired()):
            break  # what was found in time is kept, rather than begun anew
        hottest = min(WIDEN * hottest, partitions.total)
    missing: tuple[Segment, ...] = ()
    if np.count_nonzero(cold):
        enough = len(best.score) == wanted
        if request.coverage == "auto" and not ranged:
            decision = recency.decide(partitions.total, AUTO_EPS)
            if enough and decision.partitions < partitions.total:
                cold &= snapshot.newest >= partitions.since_us(decision.partitions)
        newest_first = np.flatnonzero(cold)
        newest_first = newest_first[np.argsort(-snapshot.newest[newest_first], kind="stable")]
        if not enough:  # one, and then as many as were loaded: the first may do
            newest_first = newest_first[: max(1, sum(bool(segment.spilled) and not segment.cold for segment in snapshot.segments))]
        missing = tuple([snapshot.segments[i] for i in newest_first.tolist()])
    return Ranked(answers, best, table, partitions, hottest, left, missing, decision, ranged)


def has_range(visibility: Visibility) -> bool:
    return visibility.since_us != MIN_TIME_US or visibility.until_us != MAX_TIME_US


def coverage_of(ranked: Ranked, request: Request, why_left: str) -> Coverage:
    """What the answer says of itself; `why_left` tells why spilled segments could not be loaded, empty if nobody tried."""
    covered = _covered(ranked, request, why_left)
    reservation = ranked.answers.reservation
    return replace(covered, exact=False, reason=f"{covered.reason}; {reservation}") if reservation else covered


def _covered(ranked: Ranked, request: Request, why_left: str) -> Coverage:
    best, table, decision, partitions = ranked.best, ranked.table, ranked.decision, ranked.partitions
    mode, older = str(request.coverage), partitions.total - ranked.hottest
    asked_for = partitions.from_on(ranked.hottest)
    count = len(asked_for)
    if not np.count_nonzero(best.skipped) and not np.count_nonzero(best.left):  # nearly always
        if older:
            assert decision is not None
            return Coverage(mode, count, 0, older, decision.mass, False, _newest_alone(ranked))
        if decision is None and not isinstance(request.coverage, float):
            return Coverage(mode, count, reason=EVERYTHING_SEARCHED)
    incomplete = np.count_nonzero(ranked.left)
    passed_over = best.skipped | (best.left & ~ranked.left) if np.count_nonzero(best.left) else best.skipped
    skipped, left = 0, asked_for[:0]
    if count and (incomplete or np.count_nonzero(passed_over)):
        alone, some_left = table.apart(passed_over, ranked.left, ranked.snapshot.buffers)
        left = some_left[(some_left >= asked_for[0]) & (some_left <= asked_for[-1])]
        skipped = int(((alone >= asked_for[0]) & (alone <= asked_for[-1])).sum())
    not_searched, read = older + len(left), count - len(left) - skipped
    if not incomplete and not older:
        reason = EVERYTHING_SEARCHED
        if isinstance(request.coverage, float) and decision is None:
            reason = f"{reason}; the range of time says what is asked for"
        elif decision is not None and not decision.supported:
            reason = f"{reason}; no recency prior is supported: {decision.reason}"
        return Coverage(mode, read, skipped, reason=reason)
    if not incomplete:
        assert decision is not None
        return Coverage(mode, read, skipped, not_searched, decision.mass, False, _newest_alone(ranked))
    cut = bool(np.count_nonzero(ranked.left & ~ranked.snapshot.cold))
    promised = decision is not None and decision.supported and not cut and not ranked.missing
    spilled = f"partitions from {_day(left[0], table)} to {_day(left[-1], table)} are spilled" if len(left) > 1 else f"the partition from {_day(left[0], table)} on is spilled"
    reason = "the deadline cut the search short" if cut else spilled
    if why_left:
        reason = f"{reason} and could not be loaded: {why_left}"
    elif promised:
        reason = f"{reason}, and older than what holds an answer with probability {1.0 - AUTO_EPS}"
    return Coverage(mode, read, skipped, not_searched, decision.mass if promised and decision is not None else None, False, reason)


def _newest_alone(ranked: Ranked) -> str:
    return f"the {ranked.hottest} newest of {ranked.partitions.total} partitions hold an answer with this probability"


def _day(bucket: int, table: PartitionTable) -> str:
    return to_datetime(max(int(bucket) * table.width_us, MIN_TIME_US)).date().isoformat()
