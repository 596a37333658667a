"""Sealing, merging, purging and checkpoints, beside the callers: one thread a store, started when there is first something to do.

It decides nothing: `policy` says what is due, `compaction` does it. A failure (a full disk) is logged and tried again with the next request; writers go on until MAX_UNSEALED, where they
seal by themselves and meet the error.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

from agentir_ray.engine.compaction import Compactor, has_erased
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import SEAL_AT
from agentir_ray.errors import AgentIRError
from agentir_ray.storage.sqlite_log import SqliteLog

CHECKPOINT_PAGES = 4_096  # 16 MiB of WAL
PURGE_RETRY_S = 1.0  # a reader pins the WAL for as long as its transaction lasts
logger = logging.getLogger("agentir_ray")


class Maintenance:
    def __init__(self, log: SqliteLog, compactor: Compactor, done: Callable[[Namespace], None], background: bool) -> None:
        """`done` is called once for every request, when the namespace is not needed any more. `background=False`: `request` does the work in the caller's thread."""
        self._log = log
        self._compactor = compactor
        self._done = done
        self._background = background
        self._condition = threading.Condition()
        self._due: deque[Namespace] = deque()
        self._purging = False
        self._stopping = False
        self._working = False
        self._thread: threading.Thread | None = None

    def request(self, namespace: Namespace, *, purge: bool = False) -> None:
        """Look after a namespace soon; with `purge`, until the log's files hold nothing erased either."""
        if not self._background:
            try:
                self._look_after(namespace)
                self._purging |= purge
                self._tidy_log()
            finally:
                self._done(namespace)
            return
        with self._condition:
            self._due.append(namespace)
            self._purging |= purge
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="agentir-maintenance", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until everything that was requested is done; False when it took longer."""
        with self._condition:
            return self._condition.wait_for(lambda: not (self._due or self._working or self._purging), timeout_s) if self._thread else not self._purging

    def stop(self) -> None:
        """Finish the step at hand and end the thread."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._working = False
                self._condition.notify_all()
                self._condition.wait_for(lambda: self._due or self._stopping, PURGE_RETRY_S if self._purging else None)
                if self._stopping:
                    return
                namespace = self._due.popleft() if self._due else None
                self._working = True
            try:
                if namespace is not None:
                    self._look_after(namespace)
                self._tidy_log()
            except AgentIRError as error:
                logger.warning("maintenance%s: %s", "" if namespace is None else f" of {namespace.name}", error)
            except Exception:
                logger.exception("maintenance%s failed", "" if namespace is None else f" of {namespace.name}")
            finally:
                if namespace is not None:
                    self._done(namespace)

    def _look_after(self, namespace: Namespace) -> None:
        if namespace.unsealed >= SEAL_AT:
            self._compactor.seal(namespace)
        while not self._stopping and self._compactor.merge(namespace):
            pass
        if has_erased(namespace):
            self._compactor.purge(namespace)

    def _tidy_log(self) -> None:
        if self._purging:
            self._purging = not self._log.purge()
        elif self._log.wal_pages >= CHECKPOINT_PAGES:
            self._log.checkpoint()
