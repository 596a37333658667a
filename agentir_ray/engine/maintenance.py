"""Sealing, merging, purging and checkpoints, beside the callers: one thread a store, started when there is first something to do.

It decides nothing: `policy` says what is due, `compaction` does it. A failure (a full disk) is logged and tried again: soon where something erased still lies in a file, else with
the next request; writers go on until `max_unsealed` entries, where they seal by themselves and meet the error. A namespace found damaged is loaded anew, and thereby rebuilt.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable

from agentir_ray.engine.compaction import Compactor, has_damaged_segment, has_erased
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import AgentIRError, DamagedError, NotFoundError
from agentir_ray.storage.sqlite_log import SqliteLog

RETRY_S = 1.0  # a reader pins the WAL for as long as its transaction lasts; a full disk lasts longer
logger = logging.getLogger("agentir_ray")


class Maintenance:
    def __init__(
        self,
        log: SqliteLog,
        compactor: Compactor,
        acquire: Callable[[str], Namespace],
        release: Callable[[Namespace], None],
        files_are_gone: Callable[[], bool],
        background: bool,
        limits: Limits,
    ) -> None:
        """`release` is called once for every request, when the namespace is not needed any more. `files_are_gone` tells whether all replaced files
        were unlinked. `background=False`: `request` does the work in the caller's thread."""
        self._log = log
        self._compactor = compactor
        self._acquire = acquire
        self._release = release
        self._files_are_gone = files_are_gone
        self._background = background
        self._limits = limits
        self._condition = threading.Condition()
        self._due: deque[Namespace] = deque()
        self._owed: set[str] = set()  # names of namespaces that are still to be looked after, after a failure or a crash
        self._clean_until: dict[int, int] = {}  # by namespace: the entries up to which its segments hold nothing erased
        self._purging = False
        self._stopping = False
        self._working = 0
        self._thread: threading.Thread | None = None

    def request(self, namespace: Namespace | None, *, purge: bool = False) -> None:
        """Look after a namespace soon; with `purge`, until the log's files hold nothing erased either. No namespace: what is owed, and the log."""
        with self._condition:
            if namespace is not None:
                self._due.append(namespace)
            self._purging |= purge
            if self._background and self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="agentir-maintenance", daemon=True)
                self._thread.start()
            self._condition.notify_all()
        if not self._background:
            while self._step() and namespace is None and self._owed:
                pass

    def owe(self, names: Iterable[str]) -> None:
        """Namespaces to be looked after that are perhaps not even loaded: they were forgotten in, and whoever purged them did not finish."""
        self._owed.update(names)

    def owes(self, name: str) -> bool:
        return name in self._owed

    def dropped(self, name: str) -> None:
        """The namespace is gone, and its files with it."""
        self._owed.discard(name)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until everything that was requested is done; False when it took longer, or cannot be done now."""
        with self._condition:
            return self._condition.wait_for(self._is_idle, timeout_s if self._thread else 0)

    def _is_idle(self) -> bool:
        return not (self._due or self._working or self._purging or self._owed)

    def stop(self) -> None:
        """Finish the step at hand, then what was erased, and end the thread."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        failed = False
        while True:
            with self._condition:
                if failed:
                    self._condition.wait_for(lambda: self._stopping, RETRY_S)
                else:
                    self._condition.wait_for(lambda: self._stopping or self._due or self._owed, RETRY_S if self._purging else None)
                if self._stopping and (failed or not self._due):
                    return
            failed = not self._step()

    def _step(self) -> bool:
        """Look after the next namespace, if any, then the log; False when that failed. Several threads may do so at once."""
        with self._condition:
            namespace = self._due.popleft() if self._due else None
            if namespace is not None:
                namespace.due = False  # what is asked from now on is asked again
            owed = None if namespace is not None or self._stopping else next(iter(self._owed), None)
            self._working += 1
        try:
            looked_after = True
            if owed is not None:
                namespace = self._load(owed)
                looked_after = namespace is not None or owed not in self._owed
            if namespace is not None:
                looked_after = self._attempt(lambda: self._look_after(namespace), namespace)
                self._let_go(namespace, looked_after)
            return self._attempt(self._tidy_log) and looked_after
        finally:
            with self._condition:
                self._working -= 1
                self._condition.notify_all()

    def _load(self, name: str) -> Namespace | None:
        try:
            return self._acquire(name)
        except NotFoundError:
            self.dropped(name)
        except AgentIRError as error:
            logger.warning("maintenance: %s", error)
        return None

    @staticmethod
    def _attempt(work: Callable[[], None], namespace: Namespace | None = None) -> bool:
        try:
            work()
            return True
        except AgentIRError as error:
            if namespace is not None and isinstance(error, DamagedError) and has_damaged_segment(namespace):
                namespace.damaged = True
            logger.warning("maintenance: %s", error)
        except Exception:
            logger.exception("maintenance failed")
        return False

    def _let_go(self, namespace: Namespace, looked_after: bool) -> None:
        """Release a namespace; what it still owes is remembered."""
        if not looked_after and (has_erased(namespace) or namespace.damaged):
            self._owed.add(namespace.name)
        self._release(namespace)

    def _look_after(self, namespace: Namespace) -> None:
        if namespace.unsealed >= self._limits.seal_at and not self._stopping:
            self._compactor.seal(namespace)
        while not self._stopping and self._compactor.merge(namespace):
            pass
        seq = namespace.index.seq
        if has_erased(namespace):
            self._compactor.purge(namespace)
        self._owed.discard(namespace.name)
        self._clean_until[namespace.number] = seq

    def _tidy_log(self) -> None:
        with self._condition:
            # Taken before the work: what is erased while it runs asks for another one.
            purging, self._purging = self._purging, False
        if not purging:
            if self._log.wal_pages >= self._limits.checkpoint_pages:
                self._log.checkpoint()
            return
        done = False
        clean, self._clean_until = self._clean_until, {}
        try:
            done = self._log.purge() and self._files_are_gone()
        finally:
            if not done:
                with self._condition:
                    self._purging = True
                    self._clean_until = clean | self._clean_until
        for number, seq in clean.items() if done else ():
            self._log.purged(number, seq)
