"""Learning from use which partitions hold the answers: a few searches of everything, and what callers say was useful.

Of all searches a seeded few per cent are looked at. One that searched everything tells the age of its best hit, if that stands out. Another one is asked again, of everything, in
the background: were only its own answers counted, the prior would see what it chose to see (DESIGN 5). What a search asked is remembered for a while, for the feedback that may
come.

Feedback is saved at once. What searches tell is saved with it, by maintenance, and when the store is closed: a search causes no statement. What a killed process loses is learnt
again.
"""

import logging
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from agentir_ray.clock import Clock
from agentir_ray.engine.by_words import ByWords
from agentir_ray.engine.covering import Asked, Ranked, has_range, rank
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.recency import Observation
from agentir_ray.engine.request import Request
from agentir_ray.errors import AgentIRError, InvalidInputError, NotFoundError
from agentir_ray.lexical.filters import EVERYTHING
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Bm25, Query
from agentir_ray.lexical.search import Found
from agentir_ray.lexical.segment import Segment

STANDS_OUT = 0.9  # the second best scores no more than this of the best: else which of them was meant is a guess, and guesses have any age
AUDITED = 0.03  # of the searches: `temporal.prior` says how much is missed before a change is noticed
KEPT_QUERIES = 16_384  # for which feedback may still come; half a kilobyte each
BUSY = 0.01  # of the time may go into asking again: where everything means to load what was spilled, that takes seconds
WAITING = 8  # searches to be asked again; more are left out, as they would delay the searches that callers wait for
logger = logging.getLogger("agentir_ray")


class _Audit(NamedTuple):
    """A search to be learnt from: its observation, or what to ask again."""

    namespace: Namespace
    width_us: int
    observation: Observation | None
    query: Query
    request: Request
    bm25: Bm25


class Observer:
    """One a store that is open for writing. `pin` and `release` keep a namespace loaded, `save` writes its prior, `load` brings back spilled segments, or says why not."""

    def __init__(
        self,
        random: np.random.Generator,
        clock: Clock,
        pin: Callable[[Namespace], None],
        release: Callable[[Namespace], None],
        save: Callable[[Namespace], None],
        load: Callable[[Namespace, Sequence[Segment], int | None], str],
        background: bool,
    ) -> None:
        self._random = random
        self._clock = clock
        self._rests_until_ns = 0
        self._pin = pin
        self._release = release
        self._save = save
        self._load = load
        self._background = background
        self._until_audit = self._gap()
        self._asked: OrderedDict[str, tuple[int, Asked]] = OrderedDict()
        self._lock = threading.Lock()
        self._queue: queue.Queue[_Audit | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._stopping = False

    def _gap(self) -> int:
        return int(self._random.geometric(AUDITED))

    def searched(self, namespace: Namespace, query_id: str, query: Query, request: Request, bm25: Bm25, ranked: Ranked) -> None:
        """A search by words was answered. The caller has acquired the namespace."""
        self.remember(namespace, query_id, ranked)
        if has_range(request.visibility) or request.expression is not EVERYTHING or request.min_score > -np.inf:
            return  # a session, say, is a range of time in disguise: what is asked of a part says nothing of what else is asked for
        self._until_audit -= 1
        if self._until_audit <= 0:
            self._until_audit = self._gap()
            if self._clock.monotonic_ns() < self._rests_until_ns:
                return  # before anything is known of the answer: to leave out those that are dear to learn from would leave out the old
            observation = None
            if ranked.complete and request.wanted > 1:
                observation = _observation(ranked)
                if observation is None:
                    return
            self._take(_Audit(namespace, ranked.partitions.width_us, observation, query, request, bm25))

    def remember(self, namespace: Namespace, query_id: str, ranked: Ranked) -> None:
        """What feedback on a search will need to know of it, whatever its mode."""
        self._asked[query_id] = namespace.number, ranked.asked
        if len(self._asked) > KEPT_QUERIES:
            with self._lock:
                while len(self._asked) > KEPT_QUERIES:
                    self._asked.popitem(last=False)

    def _take(self, audit: _Audit) -> None:
        if audit.observation is None and not audit.query.terms:
            return
        if not self._background:
            self._learn(audit)
            return
        with self._lock:
            if self._stopping:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="agentir-observer", daemon=True)
                self._thread.start()
        self._pin(audit.namespace)
        try:
            self._queue.put_nowait(audit)
        except queue.Full:
            self._release(audit.namespace)

    def _run(self) -> None:
        while (audit := self._queue.get()) is not None:
            try:
                if not self._stopping:
                    self._learn(audit)
            except AgentIRError as error:
                logger.warning("a search was not learnt from: %s", error)
            except Exception:
                logger.exception("a search was not learnt from")
            finally:
                self._release(audit.namespace)

    def _learn(self, audit: _Audit) -> None:
        observation = audit.observation
        if observation is None:
            began_ns = self._clock.monotonic_ns()
            observation = self._ask_again(audit)
            now_ns = self._clock.monotonic_ns()
            self._rests_until_ns = now_ns + round((now_ns - began_ns) / BUSY)
        if observation is not None:
            audit.namespace.recency.observe([observation], audit.width_us)

    def _ask_again(self, audit: _Audit) -> Observation | None:
        request = audit.request._replace(coverage="exact", k=2, offset=0)
        ranked = rank(audit.namespace, ByWords(audit.query, audit.bm25, request), request, None)
        if ranked.missing and not self._load(audit.namespace, ranked.missing, None):
            ranked = rank(audit.namespace, ByWords(audit.query, audit.bm25, request), request, None)
        return _observation(ranked) if ranked.complete else None

    def feedback(self, namespace: Namespace, record_ids: Sequence[str], query_id: str) -> None:
        """These records were what a search was after. Saved when this returns. Raises NotFoundError for a search that is not remembered, and for records that are not there."""
        number, asked = self._asked.get(query_id, (None, None))
        if asked is None or number != namespace.number:
            raise NotFoundError(f"no search {query_id!r} of namespace {namespace.name!r} is remembered; feedback takes one of the last {KEPT_QUERIES:,} of this process")
        if not record_ids:
            raise InvalidInputError("record_ids is empty; name the records that were useful")
        observations = []
        for timestamp_us in _timestamps(namespace, record_ids):
            age = asked.partitions.age(timestamp_us) if asked.horizon else None
            if age is not None:
                # What lies beyond the partitions that were searched was found by other means: that, too, says that it would have been missed.
                beyond = age >= asked.horizon
                observations.append(Observation(age, asked.partitions.total if beyond else asked.horizon, beyond or asked.complete))
        if observations:
            namespace.recency.observe(observations, asked.partitions.width_us)
            self._save(namespace)

    def stop(self) -> None:
        """End the thread; what waits is left out."""
        with self._lock:
            self._stopping = True
            thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join()


def _observation(ranked: Ranked) -> Observation | None:
    """The age of the best hit of a complete search; None where none stands out, or it lies after the query's now."""
    found = ranked.best.found[:2]
    if len(found) == 2 and found[1].score > STANDS_OUT * found[0].score:
        return None
    age = ranked.partitions.age(_timestamp(ranked.snapshot, found[0])) if found else None
    return None if age is None else Observation(age, ranked.partitions.total, True)


def _timestamp(snapshot: Snapshot, found: Found) -> int:
    segments = len(snapshot.segments)
    column = snapshot.segments[found.part].array("timestamp") if found.part < segments else snapshot.buffers[found.part - segments].timestamp
    return int(column[found.doc])


def _timestamps(namespace: Namespace, record_ids: Sequence[str]) -> list[int]:
    timestamps = []
    with namespace.index.lock:
        for id in record_ids:
            place = namespace.index.current(id)
            if place is None:
                raise NotFoundError(f"there is no record {id!r} in namespace {namespace.name!r}")
            timestamps.append(int(place.part.column("timestamp")[place.doc]))
    return timestamps
