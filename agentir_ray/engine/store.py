"""A store: one folder, one database, one writing process, many namespaces.

    <store>/LOCK            flock of the writer, naming pid and host
    <store>/log.sqlite3     the record log, with its -wal and -shm
    <store>/segments/<n>/   the segment files of namespace number n
    <store>/SPILL           what the store calls itself on its spill target, and loaded/ what is on its way from there (`spilling`)

It opens and closes these, takes writes, and knows which files nobody needs any more; `residents` keeps the namespaces that are loaded. Opening reads no namespace at all, so it
costs the same with ten of them as with ten thousand (F12, F20).
"""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import numpy as np

from agentir_ray.analysis import DEFAULT_ANALYZER
from agentir_ray.clock import Clock
from agentir_ray.engine.compaction import Compactor, has_damaged_segment, has_erased
from agentir_ray.engine.encoders_in_use import EncodersInUse
from agentir_ray.engine.encoding import WriteBehind
from agentir_ray.engine.learned import Learned, read_prior
from agentir_ray.engine.maintenance import Maintenance
from agentir_ray.engine.manifest import Manifest, manifest_of
from agentir_ray.engine.namespace import Namespace, WriteBatch, load
from agentir_ray.engine.observing import Observer
from agentir_ray.engine.policy import DEFAULT_LIMITS, Limits
from agentir_ray.engine.query_encoding import QueryEncodings
from agentir_ray.engine.residents import Residents, default_max_files
from agentir_ray.engine.sidecars import remove_damaged
from agentir_ray.engine.spilling import Spiller
from agentir_ray.engine.temperature import Thermostat
from agentir_ray.engine.vectors import Vectors
from agentir_ray.errors import AgentIRError, ConflictError, DamagedError, InvalidInputError, NotFoundError, ReadOnlyError, StorageFullError, StoreClosedError
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.files import SYSTEM_FILES, FileOps, make_folder, remove
from agentir_ray.storage.filesystem import check_local, check_writable
from agentir_ray.storage.fork import ForkGuard
from agentir_ray.storage.group_commit import GroupCommitter
from agentir_ray.storage.lock import StoreLock
from agentir_ray.storage.protocol import Batch, CommitResult, EntryKind, NamespaceState, ReadableLog
from agentir_ray.storage.spill import SpillTarget, open_target
from agentir_ray.storage.sqlite_log import SqliteLog
from agentir_ray.storage.sqlite_reader import SqliteReader
from agentir_ray.storage.unreadable import UnreadableLog

DATABASE = "log.sqlite3"
SEGMENTS = "segments"
MEMORY_BUDGET_BYTES = 256 * 2**20
CACHE_SHARE = 4  # a fourth of the budget is for unpacked texts and for bitmaps of filters: to read its hits is half of a search of what was not asked before
FOLLOW_EVERY_NS = 250_000_000  # a reader in another process lags at most this long behind the log, plus what catching up takes
MAX_UNENCODED = 100_000  # records of a namespace; an encoder does some hundred a second
RELOADS = 5  # a follower reads the manifest again this often when the files it names were merged away meanwhile

Durability = Literal["full", "process"]
RECOUNT_EVERY = 16  # single records; what they add to the memory is counted this often

logger = logging.getLogger("agentir_ray")


class Store:
    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        read_only: bool = False,
        create: bool = True,
        durability: Durability = "full",
        memory_budget_bytes: int = MEMORY_BUDGET_BYTES,
        background: bool = True,
        limits: Limits = DEFAULT_LIMITS,
        max_files: int | None = None,
        seed: int | None = None,
        vfs: str | None = None,
        files: FileOps = SYSTEM_FILES,
        spill: str | os.PathLike[str] | SpillTarget | None = None,
        encoders: EncodersInUse | None = None,
        max_unencoded: int = MAX_UNENCODED,
    ) -> None:
        """A new store's folder is its user's alone (mode 0700): what its files may be read by does not depend on the umask.

        `background=False` leaves sealing and merging to the writers (tests, one-shot commands). `max_files` bounds the segment files that idle namespaces keep open (default: a
        quarter of those that this process may open). `seed` chooses the searches to learn from (default: anew each time). `vfs` and `files` are for tests that cut the power.

        `spill` is a folder or a URL for what does not fit into the memory budget. What is spilled is needed again: the store is to be opened with the same one.
        """
        target = open_target(spill, files) if isinstance(spill, str | os.PathLike) else spill
        self.path = path
        self.clock = clock
        self.read_only = read_only
        self.encoders = encoders or EncodersInUse()
        self.query_encodings = QueryEncodings()
        self.memory_budget_bytes = memory_budget_bytes
        self.cache = SegmentCache(memory_budget_bytes // CACHE_SHARE)
        self.namespaces_budget_bytes = memory_budget_bytes - self.cache.budget_bytes
        self._residents = Residents(self._load, self._is_due, self._refresh, self.namespaces_budget_bytes, default_max_files() if max_files is None else max_files)
        self._limits = limits
        self._background = background
        self._files = files
        self._guard = ForkGuard()
        self._closed = False
        self._lock = threading.Lock()  # guards what follows, and `due` of namespaces
        self._checkpoint_at = limits.checkpoint_pages
        self._keeping_files = 0
        self._discarded: list[Path] = []
        self.observer: Observer | None = None  # a reader has nowhere to keep what it would learn

        if path.exists() and not path.is_dir():
            raise InvalidInputError(f"{path} is a file; a store is a folder")
        if not (path / DATABASE).exists() and (read_only or not create) and not self._has_segments():
            raise NotFoundError(f"there is no store at {path}; add a record to create it, or name another folder")
        check_local(path)  # before anything is made there
        if not read_only:
            new = not path.exists()
            make_folder(str(path), files)
            if new:
                path.chmod(0o700)
        self.log: ReadableLog
        if read_only:
            try:
                self._check_database()
                self.log = SqliteReader(path / DATABASE, vfs=vfs)
            except DamagedError as error:  # what the segments hold can still be saved
                self.log = UnreadableLog(error)
            self.vectors = Vectors(path, read_only=True, wanted=False, vfs=vfs)
            self.spiller = Spiller(path, target, clock, True, set)
            self._thermostat = self._make_thermostat(None)
            self.spiller.on_loaded = self._temper
            return
        check_writable(path)
        self._check_database()
        self._store_lock = StoreLock(path)
        try:
            crashed = self._wal_bytes() > 0
            self._writer = SqliteLog(path / DATABASE, clock=clock, durability="power" if durability == "full" else "process", vfs=vfs, files=files)
            try:
                self.log = self._writer
                self.spiller = Spiller(path, target, clock, False, self._named_objects, files)
                self.vectors = Vectors(path, read_only=False, wanted=bool(self.encoders.names()), durability="power" if durability == "full" else "process", vfs=vfs, files=files)
                crashed |= self.vectors.left_wal
                self.compactor = Compactor(self._writer, self.vectors, self.cache, self._discard, self.spiller.discard, files, limits)
                self._thermostat = self._make_thermostat(self.compactor)
                self._committer = GroupCommitter(self._writer, self._apply, self._missed)
                self.encoding = WriteBehind(self._writer, self.vectors, self.encoders, self.compactor, self.namespace, clock, background, max_unencoded)
                self.maintenance = Maintenance(self._writer, self.vectors, self.compactor, self.acquire, self.release, self._files_are_gone, background, limits, self._thermostat)
                if background:
                    self.spiller.on_loaded = lambda: self.maintenance.request(None)
                self._clean()
                self._learned = Learned(self._writer)
                self.observer = Observer(np.random.default_rng(seed), clock, self._residents.pin, self.release, self._learned.save, self.load_cold, background)
                unpurged = self._writer.unpurged()
                self.maintenance.owe(unpurged)
            except BaseException:
                self._writer.close()
                raise
        except BaseException:
            self._store_lock.release()
            raise
        if background and not self.spiller.clean:
            self.maintenance.request(None)
        if crashed or unpurged:  # a WAL that was left may hold what was erased since
            self.maintenance.request(None, purge=True)

    def _make_thermostat(self, compactor: Compactor | None) -> Thermostat:
        return Thermostat(self.spiller, compactor, self._residents, self.memory_budget_bytes, self._limits, self.clock)

    def _named_objects(self) -> set[str]:
        """What is spilled and some manifest names."""
        states = [self.log.state(name) for name in self.log.namespaces()]
        manifests = [manifest_of(state, DEFAULT_ANALYZER) for state in states if state is not None]
        return {entry.spilled for manifest in manifests for entry in manifest.segments if entry.spilled}

    def _has_segments(self) -> bool:
        return any((self.path / SEGMENTS).glob("*/*"))

    def _wal_bytes(self) -> int:
        wal = self.path / (DATABASE + "-wal")
        return wal.stat().st_size if wal.exists() else 0

    def _check_database(self) -> None:
        """An empty or missing database beside segments is damage, not a new store: to begin anew would remove what the segments can still give."""
        database = self.path / DATABASE
        if not (database.exists() and database.stat().st_size) and not self._wal_bytes() and self._has_segments():
            raise DamagedError(f"{database} is missing or empty though there are segments; restore a backup, or save the segments' records with `agentir export --salvage`")

    def _clean(self) -> None:
        """Remove the folders of namespaces that were dropped just before a crash."""
        segments, known = self.path / SEGMENTS, self._writer.numbers()
        self.vectors.clean(known)
        if segments.is_dir():
            for folder in segments.iterdir():
                if folder.name.isdecimal() and int(folder.name) not in known:
                    self._remove_folder(folder)

    def _remove_folder(self, folder: Path) -> None:
        if folder.is_dir():
            for path in folder.iterdir():
                remove(str(path), self._files)
            folder.rmdir()

    @property
    def writer(self) -> SqliteLog:
        """The log, for writing. Raises ReadOnlyError on a store that was opened to read."""
        if self.read_only:
            raise ReadOnlyError(f"the store at {self.path} was opened read-only; open it with read_only=False to write")
        return self._writer

    def check(self) -> None:
        self._guard.check()
        if self._closed:
            raise StoreClosedError(f"the store at {self.path} was closed; open it again")

    def close(self) -> None:
        """Stop maintenance and let go of all files. Idempotent, and harmless in a forked child."""
        if self._guard.forked:
            return
        self._closed = True
        if self.read_only:
            self._residents.clear()
            self.spiller.close()
            self.vectors.close()
            self.log.close()
        elif self._store_lock.held:
            self.spiller.hasten()
            self.encoding.stop()
            if self.observer is not None:
                self.observer.stop()
                self._learned.save_all()
            self.maintenance.stop()  # when an interrupt ends the wait, its thread may still write: the lock is kept, and whoever calls again finishes
            self._residents.clear()
            self.spiller.close()
            try:
                self.vectors.close()
                self._writer.close()
            finally:
                self._store_lock.release()

    # Namespaces.

    def folder(self, number: int) -> Path:
        return self.path / SEGMENTS / str(number)

    @contextmanager
    def namespace(self, name: str, *, create: bool = False, analyzer: str | None = None) -> Iterator[Namespace]:
        """The loaded namespace, kept loaded while the block runs. Raises NotFoundError if there is none and it is not to be created."""
        namespace = self.acquire(name, create=create, analyzer=analyzer)
        try:
            yield namespace
        except DamagedError as error:
            self.report_damage(namespace, error)
            raise
        finally:
            self.release(namespace)

    def acquire(self, name: str, *, create: bool = False, analyzer: str | None = None) -> Namespace:
        """`namespace` without the block, for the hot path: whoever acquires must release."""
        self.check()
        namespace = self._residents.acquire(name, create, analyzer)
        if not namespace.uses and not self.read_only:
            try:
                # A crash, or a damaged file, may have come between the forgetting and the purge.
                if has_erased(namespace) or self.maintenance.owes(name):
                    self.look_after(namespace, purge=True)
            except BaseException:
                self.release(namespace)
                raise
        return namespace

    def release(self, namespace: Namespace) -> None:
        self._residents.release(namespace)
        if self.read_only and self._thermostat.take_turn():
            if self._background:
                with suppress(RuntimeError):  # there is no room for a thread: what is read is released all the same
                    threading.Thread(target=self._temper, name="agentir-temper", daemon=True).start()
            else:
                self._temper()

    def _temper(self) -> None:
        """Of a store that is only read."""
        try:
            self._thermostat.temper(lambda: True)
        except AgentIRError as error:  # how warm a segment is changes no answer
            logger.warning("segments stay as they are: %s", error)

    def _load(self, name: str, create: bool, analyzer: str | None, before: Namespace | None) -> Namespace:
        if self.read_only:
            return self._follow(name)
        state = self.log.state(name)
        if state is None:
            if not create:
                raise NotFoundError(f"there is no namespace {name!r} in {self.path}; `Memory.namespaces` lists what is there")
            state = self._writer.claim(name)
            if analyzer is not None and analyzer != DEFAULT_ANALYZER:
                generation = self._writer.swap_manifest(state.number, state.epoch, state.generation, Manifest(analyzer).encode())
                state = self._writer.claim(name)
                assert state.generation == generation
        else:
            state = self._writer.claim(name)
        rebuild = before is not None and before.damaged and has_damaged_segment(before)
        namespace = self.compactor.open(state, self.folder(state.number), analyzer, rebuild)
        self._learned.recall(namespace)
        self.encoding.request(name)
        return namespace

    def repartition(self, namespace: Namespace, width_us: int) -> None:
        """Give the namespace partitions of another width; what was learnt of the old ones says nothing of them. The caller has acquired it."""
        if namespace.partition_width_us == width_us:
            return
        if not self.compactor.repartition(namespace, width_us):
            raise ConflictError(f"namespace {namespace.name!r} is being loaded anew; call again")
        self._learned.keep(namespace)
        self._learned.save(namespace)

    def _follow(self, name: str) -> Namespace:
        for attempt in range(RELOADS):
            state = self.log.state(name)
            if state is None:
                raise NotFoundError(f"there is no namespace {name!r} in {self.path}")
            try:
                namespace = load(self.log, state, self.folder(state.number), self.cache, DEFAULT_ANALYZER)
                namespace.checked_ns = self.clock.monotonic_ns()
                self.vectors.restore(namespace)
                read_prior(self.log, namespace)
                return namespace
            except DamagedError:
                # The writer may have merged the files away since we read the manifest; then there is a newer one.
                now = self.log.state(name)
                if now is None or now.generation == state.generation or attempt == RELOADS - 1:
                    raise
        raise AssertionError("unreachable")

    def _is_due(self, namespace: Namespace) -> bool:
        return self.read_only and self.clock.monotonic_ns() - namespace.checked_ns >= FOLLOW_EVERY_NS

    def _refresh(self, namespace: Namespace) -> bool:
        """Bring a follower's namespace up to date; False when it must be loaded anew, because its segments were replaced."""
        namespace.checked_ns = self.clock.monotonic_ns()
        state = self.log.state(namespace.name)
        if state is None or (state.number, state.generation) != (namespace.number, namespace.generation):
            return False
        self.vectors.refresh(namespace)
        namespace.catch_up(self.log)
        read_prior(self.log, namespace)
        return True

    def report_damage(self, namespace: Namespace, error: DamagedError) -> None:
        """Somebody met damage. If it lies in a segment, the next use of the namespace rebuilds it; raises the error where that cannot be."""
        if namespace.damaged:
            return
        if self.read_only:
            raise error
        if remove_damaged(namespace.index.segments, self._discard):
            namespace.damaged = True
            return
        if not has_damaged_segment(namespace):
            raise error
        logger.warning("%s; rebuilding namespace %s from the log", error, namespace.name)
        namespace.damaged = True

    @property
    def learning(self) -> Observer:
        """What learns from searches. Raises ReadOnlyError on a store that was opened to read."""
        self.writer  # noqa: B018
        assert self.observer is not None
        return self.observer

    def load_cold(self, namespace: Namespace, segments: Sequence[Segment], deadline_ns: int | None) -> str:
        """Bring spilled segments back, until the deadline (of the clock's `monotonic_ns`) or for as long as is bearable; why it was not done, empty if it was.

        The caller has acquired the namespace, and takes a new snapshot. Raises DamagedError where what was spilled is damaged or gone for good.
        """
        return self.spiller.load(namespace, segments, deadline_ns)

    def memory_bytes(self) -> int:
        return self._residents.memory_bytes + self.cache.held_bytes

    def recount(self, namespace: Namespace) -> None:
        """The namespace, which the caller has acquired, has grown."""
        self._residents.recount(namespace)

    def loaded_namespaces(self) -> int:
        return len(self._residents)

    # Writing.

    def submit(self, batch: WriteBatch) -> CommitResult:
        """Commit a batch, durably, and make it searchable. The caller has acquired the namespace."""
        namespace = batch.namespace
        assert namespace is not None
        if namespace.unsealed >= self._limits.max_unsealed:
            self._make_room(namespace)
        result = self._committer.submit(batch)
        if namespace.unsealed >= self._limits.seal_at:
            self.look_after(namespace)
        elif self._writer.wal_pages >= self._checkpoint_at:  # many namespaces, each too small to be sealed
            self._checkpoint_at = self._writer.wal_pages + self._limits.checkpoint_pages  # should a reader keep this one from shrinking the WAL
            self.maintenance.request(None)
        elif self._writer.wal_pages < self._limits.checkpoint_pages:
            self._checkpoint_at = self._limits.checkpoint_pages
        self.encoding.request(namespace.name)
        self.encoding.make_room(namespace)
        if len(batch.entries) != 1 or batch.entries[0].kind is not EntryKind.ADD or namespace.index.seq % RECOUNT_EVERY == 0:
            self._residents.recount(namespace)
        return result

    def _make_room(self, namespace: Namespace) -> None:
        """Seal, once for all the writers that found the namespace full."""
        with namespace.crowded:
            with namespace.maintenance:
                pass  # maintenance may be sealing just now
            if namespace.unsealed >= self._limits.max_unsealed:
                self.compactor.seal(namespace)

    def look_after(self, namespace: Namespace, *, purge: bool = False) -> None:
        """Have maintenance look at the namespace, which stays loaded until it has. The caller has acquired it."""
        with self._lock:
            if namespace.due and not purge:
                return  # a busy writer asks at every commit until it is done
            namespace.due = True
        self._residents.pin(namespace)
        self.maintenance.request(namespace, purge=purge)

    def _apply(self, batch: Batch, result: CommitResult) -> None:
        assert isinstance(batch, WriteBatch) and batch.namespace is not None
        namespace = batch.namespace
        try:
            namespace.apply(batch, result.appended)
        except DamagedError as error:  # a segment's; the batch is committed, and the rebuilt index will hold it
            logger.warning("%s; rebuilding namespace %s from the log", error, namespace.name)
            namespace.damaged = True
        except BaseException:
            namespace.damaged = True
            raise

    @staticmethod
    def _missed(batch: Batch) -> None:
        """An interrupt came between the batch and its index: what the log holds of it comes with the next use."""
        assert isinstance(batch, WriteBatch) and batch.namespace is not None
        batch.namespace.damaged = True

    def drop(self, name: str) -> bool:
        """Delete a namespace with all its records and files. False when there was none."""
        writer = self.writer
        with self._residents.without(name):
            state: NamespaceState | None = self.log.state(name)
            if state is None:
                return False
            writer.drop(name)
            self._remove_folder(self.folder(state.number))
            self.spiller.discard(None)
            self.maintenance.dropped(name)
            self.vectors.drop(state.number)
            self._learned.forget(state.number)
        self.maintenance.request(None, purge=True)
        return True

    # Files.

    def _files_are_gone(self) -> bool:
        """Whether no replaced file, and nothing that was spilled and replaced, is left."""
        return not self._discarded and self.spiller.clean

    def wait_purged(self, timeout_s: float, name: str | None = None) -> bool:
        """Wait until no file of ours holds what was erased, in the namespace or in all, before this call; False when it took longer, or cannot be now."""
        return self.maintenance.wait_purged(timeout_s, name)

    def _discard(self, paths: Sequence[Path]) -> None:
        """Unlink replaced segment files; readers that still map them keep their content."""
        with self._lock:
            self._discarded += paths
            if self._keeping_files:
                return
            paths, self._discarded = self._discarded, []
        for n, path in enumerate(paths):
            try:
                remove(str(path), self._files)
            except StorageFullError as error:  # tried again with the next
                logger.warning("%s", error)
                with self._lock:
                    self._discarded += paths[n : n + 1]

    @contextmanager
    def keep_files(self) -> Iterator[None]:
        """Unlink nothing while the block runs, so that a copy of what the manifests name is complete."""
        with self._lock:
            self._keeping_files += 1
        try:
            yield
        finally:
            with self._lock:
                self._keeping_files -= 1
            self._discard([])
            self.maintenance.request(None)  # a purge may have waited for it
