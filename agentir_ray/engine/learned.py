"""What namespaces have learnt of recency, beyond the time that each is loaded: read from the log, kept while nobody uses the namespace, saved when it is asked for or at close.

What cannot be read or saved only costs time to be learnt again.
"""

import logging
import threading
from collections import OrderedDict

from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.recency import Recency
from agentir_ray.errors import AgentIRError
from agentir_ray.storage.protocol import ReadableLog, RecordLog

KEPT = 4_096  # of namespaces that may not be loaded any more; a few kilobytes each at most
logger = logging.getLogger("agentir_ray")


def read_prior(log: ReadableLog, namespace: Namespace) -> None:
    """Take what the log has of a namespace, if that is news."""
    saved = log.prior(namespace.number)
    if saved == namespace.saved_prior:
        return
    namespace.saved_prior = saved
    try:
        namespace.recency = Recency.decode(saved, namespace.partition_width_us)
    except ValueError as error:
        logger.warning("what was learnt of namespace %s cannot be read, and is learnt anew: %s", namespace.name, error)


class Learned:
    """Of the namespaces of one store that is open for writing."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log
        self._kept: OrderedDict[int, tuple[int, Recency]] = OrderedDict()  # by namespace number: its epoch, and what was learnt
        self._lock = threading.Lock()

    def recall(self, namespace: Namespace) -> None:
        """Give a namespace that was just loaded what is known of it."""
        kept = self._kept.get(namespace.number)
        if kept is not None and kept[1].width_us == namespace.partition_width_us:
            namespace.recency = kept[1]
        else:
            read_prior(self._log, namespace)
        self.keep(namespace)

    def keep(self, namespace: Namespace) -> None:
        """From now on it is what the namespace has now."""
        with self._lock:
            self._kept[namespace.number] = namespace.epoch, namespace.recency
            self._kept.move_to_end(namespace.number)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def forget(self, number: int) -> None:
        """The namespace was dropped."""
        with self._lock:
            self._kept.pop(number, None)

    def save(self, namespace: Namespace) -> None:
        self._log.save_prior(namespace.number, namespace.epoch, namespace.recency.encode())

    def save_all(self) -> None:
        """As far as it can be done."""
        for number, (epoch, recency) in self._kept.items():
            try:
                if recency.unsaved:
                    self._log.save_prior(number, epoch, recency.encode())
            except AgentIRError as error:
                logger.warning("what was learnt of namespace number %d could not be saved: %s", number, error)
