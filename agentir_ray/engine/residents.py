"""The namespaces that are loaded: a cache of the log, bounded by bytes and by open files, with the least recently used gone first.

A namespace is loaded by one caller while the others wait for it, not for one another: loading, and bringing a follower up to date, run outside the lock that all namespaces share.
Whoever acquires pins it and must release it; what is pinned is never evicted, nor replaced by another object of that name. It knows no log and no files: what loads, and what says
that a namespace is still fresh, is given.

Invariants: at most one object a name is in use at a time; whatever interrupts a caller (KeyboardInterrupt), no name stays reserved and no pin is left.
"""

import resource
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from agentir_ray.engine.namespace import Namespace

MAX_FILES = 16_384  # each segment is a mapping, of which a process has 65,530 on Linux
RECOUNT_EVERY = 32  # uses; a search adds little at a time, a writer asks by itself


def default_max_files() -> int:
    """A quarter of the files that this process may open: the rest is for its caller, for other stores and for SQLite."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_FILES if soft == resource.RLIM_INFINITY else min(soft // 4, MAX_FILES)


class Load(Protocol):
    def __call__(self, name: str, create: bool, analyzer: str | None, before: Namespace | None) -> Namespace:
        """The namespace; `before` is what was loaded until now and does not serve any more."""
        ...


class Residents:
    """`load` makes a namespace; `is_due` tells, at once, whether one is to be asked with `refresh`, which may take its time, whether it can go on serving (False: load it anew)."""

    def __init__(self, load: Load, is_due: Callable[[Namespace], bool], refresh: Callable[[Namespace], bool], budget_bytes: int, max_files: int) -> None:
        self._load = load
        self._is_due = is_due
        self._refresh = refresh
        self._budget_bytes = budget_bytes
        self._max_files = max_files
        # Waited on through the condition but entered as a plain lock, which an interrupt cannot leave locked: a Condition's own `with` is Python code.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._loaded: OrderedDict[str, Namespace] = OrderedDict()
        self._reserved: dict[str, object] = {}  # names that somebody loads, refreshes or drops, and who
        self.memory_bytes = 0
        self.files = 0

    def __len__(self) -> int:
        return len(self._loaded)

    def acquire(self, name: str, create: bool = False, analyzer: str | None = None) -> Namespace:
        """The namespace, pinned."""
        pinned = me = None
        try:
            with self._lock:
                while name in self._reserved:
                    self._changed.wait()
                namespace = self._loaded.get(name)
                usable = namespace is not None and not namespace.damaged and (analyzer is None or analyzer == namespace.analyzer.name)
                if usable and not self._is_due(namespace):  # type: ignore[arg-type]
                    self._loaded.move_to_end(name)
                    namespace.pins, pinned = namespace.pins + 1, namespace  # type: ignore[union-attr]  # in one step, so that an interrupt finds both or none
                    return namespace  # type: ignore[return-value]
                self._reserved[name] = me = object()
            if not (usable and self._refresh(namespace)):  # type: ignore[arg-type]
                self._take_out(name)
                namespace = self._load(name, create, analyzer, namespace)
            assert namespace is not None
            with self._lock:
                self._loaded[name] = namespace
                self._loaded.move_to_end(name)
                namespace.pins, pinned = namespace.pins + 1, namespace
                self._count(namespace)
                self._free(name, me)
                self._evict()
            return namespace
        except BaseException:
            if pinned is not None:
                self.release(pinned)
            with self._lock:
                self._free(name, me)
            raise

    def release(self, namespace: Namespace) -> None:
        with self._lock:
            namespace.pins -= 1
            namespace.uses += 1
            if namespace.uses % RECOUNT_EVERY == 0:
                self._count(namespace)
                self._evict()
            if not namespace.pins and self._reserved:
                self._changed.notify_all()

    def pin(self, namespace: Namespace) -> None:
        """Keep a namespace that the caller has acquired for somebody else, who releases it."""
        with self._lock:
            namespace.pins += 1

    @contextmanager
    def all(self, wanted: Callable[[Namespace], bool] = lambda _: True) -> Iterator[list[Namespace]]:
        """Of what is loaded now and nobody has reserved, all that is wanted, pinned while the block runs; who was used last stays as it was."""
        with self._lock:
            loaded = list(self._loaded.values())
        found = [namespace for namespace in loaded if wanted(namespace)]  # without the lock: there may be thousands
        pinned: list[Namespace] = []
        try:
            with self._lock:
                for namespace in found:
                    if self._loaded.get(namespace.name) is namespace and namespace.name not in self._reserved:
                        namespace.pins, pinned = namespace.pins + 1, [*pinned, namespace]  # in one step, so that an interrupt finds both or none
            yield pinned
        finally:
            with self._lock:
                for namespace in pinned:
                    namespace.pins -= 1
                    self._count(namespace)
                self._evict()
                self._changed.notify_all()

    def recount(self, namespace: Namespace) -> None:
        """The namespace has grown."""
        with self._lock:
            self._count(namespace)
            self._evict()

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Nobody has the namespace, nor gets it, while the block runs."""
        me = object()
        try:
            with self._lock:
                while name in self._reserved:
                    self._changed.wait()
                self._reserved[name] = me
            self._take_out(name)
            yield
            with self._lock:
                self._free(name, me)
        except BaseException:  # and not `finally`, which an interrupt can cut short
            with self._lock:
                self._free(name, me)
            raise

    def clear(self) -> None:
        """Let go of all namespaces; their files are closed as soon as nobody reads them."""
        with self._lock:
            for name in list(self._loaded):
                self._let_go(name)

    def _take_out(self, name: str) -> None:
        """Let go of a namespace whose name the caller has reserved, when nobody uses it any more."""
        with self._lock:
            namespace = self._loaded.get(name)
            while namespace is not None and namespace.pins:
                self._changed.wait()
            self._let_go(name)

    def _free(self, name: str, me: object) -> None:
        """End a reservation if it is this one; the caller holds the lock, as for all that follows."""
        if me is not None and self._reserved.get(name) is me:
            del self._reserved[name]
            self._changed.notify_all()

    def _count(self, namespace: Namespace) -> None:
        if self._loaded.get(namespace.name) is not namespace:
            return
        self.memory_bytes -= namespace.accounted_bytes
        self.files -= namespace.accounted_files
        namespace.accounted_bytes, namespace.accounted_files = namespace.memory_bytes(), namespace.files
        self.memory_bytes += namespace.accounted_bytes
        self.files += namespace.accounted_files

    def _let_go(self, name: str) -> None:
        namespace = self._loaded.pop(name, None)
        if namespace is not None:
            self.memory_bytes -= namespace.accounted_bytes
            self.files -= namespace.accounted_files
            namespace.accounted_bytes = namespace.accounted_files = 0

    def _evict(self) -> None:
        """Let idle namespaces go until the rest fits."""
        if self.memory_bytes <= self._budget_bytes and self.files <= self._max_files:
            return
        for name, namespace in list(self._loaded.items()):
            if not namespace.pins and name not in self._reserved:
                self._let_go(name)
                if self.memory_bytes <= self._budget_bytes and self.files <= self._max_files:
                    return
