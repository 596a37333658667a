"""One sync for everybody who is waiting to write: leader and followers, with no thread of its own.

A caller queues its batch. If nobody leads, it leads: it takes what is queued, commits it as one transaction, applies each batch (the owner's callback, which makes entries
searchable), wakes those callers, and hands the lead to the first one that queued meanwhile. While a leader waits for the disk, callers go on arriving: the slower the disk, the
larger the groups.

Invariants: at most one leader; batches commit and apply in the order in which they queued; `submit` returns only after its batch was applied; whoever waits is woken, whatever
the leader met. It knows nothing of SQLite and of what applying means.

Each caller waits on a lock of its own, which the leader releases: the cheapest wake-up there is, and it wakes nobody else.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from agentir_ray.errors import AgentIRError, UnknownOutcomeError
from agentir_ray.storage.protocol import Batch, CommitResult, RecordLog

# A group is bounded so that its first caller does not wait for an endless transaction; one batch beyond the bounds still goes, alone.
MAX_GROUP_ENTRIES = 4_096
MAX_GROUP_BYTES = 16 << 20
YIELDS = 4  # 32 callers over 2 cores are back after about this many turns; twice as many gain nothing more

_give_way = partial(time.sleep, 0)  # does not sleep: it gives the GIL and the processor to whoever wants them

Apply = Callable[[Batch, CommitResult], None]
Missed = Callable[[Batch], None]


def _new_gate() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate


@dataclass(eq=False, slots=True)
class _Waiter:
    batch: Batch
    size: int
    gate: threading.Lock = field(default_factory=_new_gate)
    leads: bool = False
    others: "list[_Waiter]" = field(default_factory=list)  # whom it leads; not itself, which would keep the batch and its namespace alive until a garbage collection
    result: CommitResult | None = None
    error: BaseException | None = None


class GroupCommitter:
    """Gathers the batches of many threads into few commits of `log`.

    `apply(batch, result)` is called once for each batch that was committed and not refused, in commit order, by the leading caller's thread and never by two threads at once; not
    for a batch that repeats a known operation. What it raises reaches that batch's caller alone.

    `missed(batch)` is called for each batch that an interrupt (KeyboardInterrupt) kept from being applied, wholly or in part, though it may be in the log.
    """

    def __init__(self, log: RecordLog, apply: Apply, missed: Missed) -> None:
        self._log = log
        self._apply = apply
        self._missed = missed
        self._mutex = threading.Lock()  # guards what follows; held for a few instructions only
        self._queue: deque[_Waiter] = deque()  # who waits and is in no group yet; the leader is not in it
        self._led = False  # while False, the queue is empty
        self._last_size = 1

    def submit(self, batch: Batch) -> CommitResult:
        """Commit and apply `batch`; returns when both are done. Raises the batch's own error (FencedError) or the commit's."""
        me = _Waiter(batch, sum(len(entry.body) for entry in batch.entries))
        try:
            with self._mutex:
                if self._led:
                    self._queue.append(me)
                else:
                    me.leads = self._led = True
            if not me.leads:
                me.gate.acquire()
            if me.leads:
                self._lead(me)
        except BaseException:  # KeyboardInterrupt, in the main thread
            self._give_up(me)
            raise
        if me.error is not None:
            raise me.error
        assert me.result is not None
        return me.result

    def _lead(self, me: _Waiter) -> None:
        self._gather()
        self._take_group(me)
        self._commit([me, *me.others])
        self._leave(me)

    def _give_up(self, me: _Waiter) -> None:
        """Leave after an interrupt, wherever it struck: nobody may be left waiting for a leader that is gone."""
        with self._mutex:
            led = me.leads
            self._queue = deque(waiter for waiter in self._queue if waiter is not me and waiter not in me.others)
        for waiter in (me, *me.others) if led else ():
            if waiter.result is None and waiter.error is None:
                waiter.error = UnknownOutcomeError("the commit was interrupted; call again with the same ids")
                self._missed(waiter.batch)
        self._leave(me)

    def _leave(self, me: _Waiter) -> None:
        """Hand over the lead, if it is ours, and wake the group. May be called again when an interrupt cut it short."""
        with self._mutex:
            if me.leads:
                if self._queue:
                    heir = self._queue[0]
                    heir.leads = True
                    _wake(heir)
                    self._queue.popleft()
                else:
                    self._led = False
                me.leads = False
        for waiter in me.others:
            _wake(waiter)

    def _gather(self) -> None:
        """Let the callers of the last group, who were woken just now, queue again: two half-full groups cost two syncs. A lone caller never comes here to wait."""
        for _ in range(YIELDS):
            if len(self._queue) + 1 >= self._last_size:
                return
            _give_way()

    def _take_group(self, me: _Waiter) -> None:
        """Add the longest run from the head of the queue that stays within the bounds."""
        entries, size = len(me.batch.entries), me.size
        with self._mutex:
            while self._queue:
                head = self._queue[0]
                entries += len(head.batch.entries)
                size += head.size
                if entries > MAX_GROUP_ENTRIES or size > MAX_GROUP_BYTES:
                    break
                me.others.append(head)
                self._queue.popleft()
            self._last_size = 1 + len(me.others)

    def _commit(self, group: list[_Waiter]) -> None:
        try:
            results = self._log.commit([waiter.batch for waiter in group])
        except Exception as error:
            for waiter in group:
                waiter.error = _copy(error)
            return
        for waiter, result in zip(group, results, strict=True):
            waiter.error = result.error
            if result.error is None:
                try:
                    if result.operation_result is None:
                        self._apply(waiter.batch, result)
                    waiter.result = result
                except Exception as error:
                    waiter.error = error


def _wake(waiter: _Waiter) -> None:
    if waiter.gate.locked():
        waiter.gate.release()


def _copy(error: Exception) -> Exception:
    """An error of its own for each caller: threads that raise one object would write into each other's traceback."""
    if not isinstance(error, AgentIRError):
        return error
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__ or error
    return copy
