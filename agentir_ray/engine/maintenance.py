"""Sealing, merging, purging, checkpoints and changes of temperature, beside the callers: one thread a store, started when there is first something to do.

It decides nothing: `policy` says what is due, `compaction` does it. A failure (a full disk) is logged. Where something erased still lies in a file, the namespace is owed: it is
tried again for itself, ever more rarely, and holds up no other. Else it is tried with the next request; writers go on until `max_unsealed` entries, where they seal by themselves
and meet the error. A namespace found damaged is loaded anew, and thereby rebuilt.

Invariant: what was erased before a purge was requested is in no file once its namespace is clean, the log was purged for that request, and all replaced files are gone.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import NamedTuple

from agentir_ray.engine.compaction import Compactor, has_damaged_segment, has_erased
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.temperature import Thermostat
from agentir_ray.engine.vectors import Vectors
from agentir_ray.errors import AgentIRError, DamagedError, NotFoundError
from agentir_ray.storage.sqlite_log import SqliteLog

RETRY_S = 1.0  # a reader pins the WAL for as long as its transaction lasts; a full disk lasts longer
MAX_RETRY_S = 300.0  # within the 15 minutes in which what was erased is to leave the files
logger = logging.getLogger("agentir_ray")


class _Debt(NamedTuple):
    """When a namespace is to be tried again, and how long to wait after the failure that may follow."""

    at_s: float = 0.0
    delay_s: float = 0.0

    def failed(self) -> "_Debt":
        delay_s = min(self.delay_s or RETRY_S, MAX_RETRY_S)
        return _Debt(monotonic() + delay_s, 2 * delay_s)


class Maintenance:
    def __init__(
        self,
        log: SqliteLog,
        vectors: Vectors,
        compactor: Compactor,
        acquire: Callable[[str], Namespace],
        release: Callable[[Namespace], None],
        files_are_gone: Callable[[], bool],
        background: bool,
        limits: Limits,
        thermostat: Thermostat,
    ) -> None:
        """`release` is called once for every request, when the namespace is not needed any more. `files_are_gone` tells whether all replaced files
        were unlinked. `background=False`: `request` does the work in the caller's thread."""
        self._log = log
        self._vectors = vectors
        self._compactor = compactor
        self._acquire = acquire
        self._release = release
        self._files_are_gone = files_are_gone
        self._background = background
        self._limits = limits
        self._thermostat = thermostat
        self._condition = threading.Condition()
        self._due: deque[Namespace] = deque()
        self._owed: dict[str, _Debt] = {}  # namespaces that may hold something erased: asked for and not yet done, failed, or left by a crash
        self._working: list[str | None] = []  # the namespaces that threads are looking after; None: the log alone
        self._clean_until: dict[int, int] = {}  # by namespace: the entries up to which its segments hold nothing erased
        self._purges_asked = 0
        self._purges_done = 0  # the log was purged for as many of them
        self._log_at_s = 0.0  # when the log is to be tried again
        self._is_tempering = False  # segments may have another temperature than they are to have
        self._stopping = False
        self._thread: threading.Thread | None = None

    def request(self, namespace: Namespace | None, *, purge: bool = False) -> None:
        """Look after a namespace soon; with `purge`, until no file of it or of the log holds anything erased. No namespace: what is owed, and the log."""
        with self._condition:
            if namespace is not None:
                self._due.append(namespace)
                if purge:
                    self._owed.setdefault(namespace.name, _Debt())
            self._purges_asked += purge
            self._is_tempering = True
            if self._is_purging:
                self._log_at_s = 0.0
                self._thermostat.hurry()
            if self._background and self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="agentir-maintenance", daemon=True)
                self._thread.start()
            self._condition.notify_all()
        if not self._background:
            self._work_at_due()
            if namespace is None and purge:
                self._work_at_owed(list(self._owed))
            self._temper()

    def owe(self, names: Iterable[str]) -> None:
        """Namespaces to be looked after that are perhaps not even loaded: they were forgotten in, and whoever purged them did not finish."""
        self._owed.update((name, _Debt()) for name in names)

    def owes(self, name: str) -> bool:
        return name in self._owed

    def dropped(self, name: str) -> None:
        """The namespace is gone, and its files with it."""
        with self._condition:
            self._owed.pop(name, None)

    def wait_purged(self, timeout_s: float, name: str | None = None) -> bool:
        """Wait until no file holds what was erased, in the namespace or in all, before this call; False when it took longer, or cannot be done now."""
        if not self._background:
            self._work_at_owed([owed for owed in list(self._owed) if name in (None, owed)])
            if self._is_purging:
                self._attempt(self._tidy_log)
        with self._condition:
            purge = self._purges_asked
            return self._condition.wait_for(
                lambda: self._is_clean(name) and self._purges_done >= purge and self._files_are_gone(),
                timeout_s if self._background else 0,
            )

    @property
    def _is_purging(self) -> bool:
        return self._purges_done < self._purges_asked

    def _is_clean(self, name: str | None) -> bool:
        if name is None:
            return not (self._due or self._working or self._owed)
        return not (name in self._owed or name in self._working or any(namespace.name == name for namespace in self._due))

    def stop(self) -> None:
        """Finish the step at hand, then what was erased, and end the thread."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._is_purging:
            self._attempt(self._tidy_log)

    def _run(self) -> None:
        failed = False
        while True:
            with self._condition:
                if failed:
                    self._condition.wait_for(lambda: self._stopping, RETRY_S)
                while not self._stopping and (idle_s := self._idle_s()) != 0:
                    self._condition.wait(idle_s)
                if self._stopping and (failed or not self._due):
                    return
            owed = [] if self._due else self._owed_now()[:1]
            failed = not (self._work_at_owed(owed) if owed else self._work_at_due())
            self._temper()

    def _idle_s(self) -> float | None:
        """For how long there is nothing to do; None: until somebody asks."""
        if self._due or self._is_tempering:
            return 0
        times = [debt.at_s for debt in self._owed.values()]
        if self._is_purging or self._log.wal_pages >= self._limits.checkpoint_pages:
            times.append(self._log_at_s)
        times += self._thermostat.retries_s
        return max(0.0, min(times) - monotonic()) if times else None

    def _owed_now(self) -> list[str]:
        with self._condition:
            now_s = monotonic()
            return [name for name, debt in self._owed.items() if debt.at_s <= now_s]

    def _temper(self) -> None:
        """Nobody waits for this; what somebody waits for comes before each step of it."""
        self._is_tempering = False
        if not self._stopping:
            self._attempt(partial(self._thermostat.temper, lambda: bool(self._due) or self._stopping))
            self._attempt(self._thermostat.sweep)

    def _work_at_due(self) -> bool:
        """Look after the next namespace that is due, if any, and the log; False when that failed and is not owed. Several threads may do so at once."""
        with self._condition:
            namespace = self._due.popleft() if self._due else None
            if namespace is not None:
                namespace.due = False  # what is asked from now on is asked again
            name = None if namespace is None else namespace.name
            self._working.append(name)
        return self._work(name, namespace)

    def _work_at_owed(self, names: Iterable[str]) -> bool:
        """Load namespaces and look after them. The caller uses none of them: a damaged one is loaded when it is let go."""
        done = True
        for name in names:
            with self._condition:
                self._working.append(name)
            done &= self._work(name, None)
        return done

    def _work(self, name: str | None, namespace: Namespace | None) -> bool:
        """Look after a namespace that was set down in `_working`, and which is loaded unless given; then after the log."""
        try:
            looked_after = name is None or self._look_after(name, namespace)
            return self._attempt(self._tidy_log) and (looked_after or name in self._owed)
        finally:
            with self._condition:
                self._working.remove(name)
                self._condition.notify_all()

    def _look_after(self, name: str, namespace: Namespace | None) -> bool:
        namespace = namespace or self._load(name)
        if namespace is None:
            damaged = unclean = False
            looked_after = not self.owes(name)
        else:
            looked_after = self._attempt(partial(self._rewrite, namespace), namespace)
            damaged, unclean = namespace.damaged, has_erased(namespace)
        with self._condition:
            debt = self._owed.get(name, _Debt())
            if looked_after:
                self._owed.pop(name, None)
            elif damaged and not debt.delay_s:
                self._owed[name] = _Debt(0.0, RETRY_S)  # to be loaded anew
            elif damaged or unclean or name in self._owed:
                self._owed[name] = debt.failed()
        if namespace is not None:
            self._release(namespace)
        return looked_after

    def _load(self, name: str) -> Namespace | None:
        try:
            return self._acquire(name)
        except NotFoundError:
            self.dropped(name)
        except AgentIRError as error:
            logger.warning("maintenance: %s", error)
        except Exception:
            logger.exception("maintenance could not load namespace %s", name)
        return None

    @staticmethod
    def _attempt(work: Callable[[], None], namespace: Namespace | None = None) -> bool:
        try:
            work()
            return True
        except AgentIRError as error:
            if namespace is not None and isinstance(error, DamagedError) and not namespace.damaged:
                namespace.damaged = has_damaged_segment(namespace)
            logger.warning("maintenance: %s", error)
        except Exception:
            logger.exception("maintenance failed")
        return False

    def _rewrite(self, namespace: Namespace) -> None:
        """Raises DamagedError for a namespace that is marked damaged, whose files stay as they are until it was loaded anew."""
        if namespace.unsealed >= self._limits.seal_at and not self._stopping:
            self._compactor.seal(namespace)
        while not self._stopping and self._compactor.merge(namespace):
            pass
        seq = namespace.index.seq
        erased = has_erased(namespace)
        if erased:
            self._compactor.purge(namespace)
        if erased or self.owes(namespace.name):
            self._vectors.erase(namespace.number, partial(self._log.erased, namespace.number))
        if namespace.recency.unsaved:
            self._log.save_prior(namespace.number, namespace.epoch, namespace.recency.encode())
        if namespace.damaged:
            raise DamagedError(f"the index of namespace {namespace.name} is damaged or out of date; it is loaded anew")
        self._clean_until[namespace.number] = seq

    def _tidy_log(self) -> None:
        with self._condition:
            # Taken before the work: what is erased while it runs asks for another one.
            asked, purging = self._purges_asked, self._is_purging
            self._log_at_s = monotonic() + RETRY_S
        if purging:
            self._thermostat.sweep()
        if purging and self._files_are_gone():
            self._purge_log(asked)
        elif self._log.wal_pages >= self._limits.checkpoint_pages:
            self._log.checkpoint()
        with self._condition:
            if not self._is_purging and self._log.wal_pages < self._limits.checkpoint_pages:
                self._log_at_s = 0.0  # nothing is left that is to be tried again

    def _purge_log(self, asked: int) -> None:
        clean, self._clean_until = self._clean_until, {}
        done = False
        try:
            done = self._vectors.purge() and self._log.purge()
        finally:
            with self._condition:
                if done:
                    self._purges_done = max(self._purges_done, asked)
                else:
                    self._clean_until = clean | self._clean_until
        for number, seq in clean.items() if done else ():
            self._log.purged(number, seq)
