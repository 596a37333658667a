"""The record log of a store on one machine: one SQLite database, one connection that writes.

A commit is one transaction and, in the normal case, one sync. Checkpoints are never part of it: whoever maintains the store watches `wal_pages` and calls `checkpoint`. It
keeps no lock on the store's folder (`storage.lock` does) and starts no thread.

A COMMIT that fails with an I/O error leaves frames in the WAL which a later recovery might or might not accept. So nothing else is written before the outcome is settled: a
small transaction of our own, once synced, overwrites the start of those frames and with it their checksum chain. Then the failed commit is certainly void (StorageFullError);
else it stays UnknownOutcomeError, and every later write settles it first.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import apsw

from agentir_ray.clock import Clock, SystemClock
from agentir_ray.errors import ConflictError, FencedError, StoreError, UnknownOutcomeError
from agentir_ray.storage.files import SYSTEM_FILES, FileOps
from agentir_ray.storage.protocol import Batch, CommitResult, NamespaceState, RecordLog
from agentir_ray.storage.sqlite_append import append, drop
from agentir_ray.storage.sqlite_backup import backup
from agentir_ray.storage.sqlite_bulk import append_new
from agentir_ray.storage.sqlite_errors import REFUSED_WRITES, translate, translated
from agentir_ray.storage.sqlite_purge import purge, truncate_wal
from agentir_ray.storage.sqlite_reader import STATE_COLUMNS, SqliteReader, to_state
from agentir_ray.storage.sqlite_schema import FORMAT_VERSION, MAX_NAMESPACE, Durability, fetch, open_writer

T = TypeVar("T")

CREATE_OR_TAKE_OVER = f"""
    INSERT INTO namespaces (name, owner, epoch, next_seq, generation) VALUES (?, ?, 1, 1, 0)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = epoch + 1
    RETURNING {STATE_COLUMNS}
"""
NEXT_GENERATION = "UPDATE namespaces SET generation = generation + 1 WHERE number = ? AND owner = ? AND epoch = ? AND generation = ? RETURNING generation"


class SqliteLog(SqliteReader, RecordLog):
    """The writable log at `path`, created if there is none.

    `owner` names this writer in the namespaces that it claims. `durability="process"` leaves out the sync: an acknowledged append then survives a crash of the
    process, not a power cut. `vfs` names a registered SQLite VFS and `files` does the rest of the file work; both are there for tests that cut the power.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        owner: str = "local",
        clock: Clock | None = None,
        durability: Durability = "power",
        vfs: str | None = None,
        files: FileOps = SYSTEM_FILES,
    ) -> None:
        self._owner = owner.encode()
        self._clock = clock or SystemClock()
        self._durability = durability
        self._files = files
        self._write_lock = threading.Lock()
        self._unsettled = False
        self.wal_pages = 0  # pages in the WAL after the last commit
        super().__init__(path, vfs=vfs)

    def _prepare(self) -> None:
        """Called by the base: here the file is made rather than looked for. SQLite syncs the folder with its first journal, so that the file stays."""
        with translated(self.path):
            self._writer = open_writer(self.path, self._durability, self._vfs)
            self._writer.set_wal_hook(self._after_commit)  # also takes the place of SQLite's own checkpoint after 1,000 pages

    def _after_commit(self, connection: apsw.Connection, database: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def claim(self, name: str) -> NamespaceState:
        state = self.state(name)
        if state is not None and state.owner.encode() == self._owner:
            return state
        return self._transact(lambda: self._claim(name))

    def _claim(self, name: str) -> NamespaceState:
        state = to_state(fetch(self._writer, CREATE_OR_TAKE_OVER, (name.encode(), self._owner))[0])
        if state.number > MAX_NAMESPACE:
            raise StoreError(f"{self.path} has had {MAX_NAMESPACE} namespaces, which is all that it can number; export into a new store")
        return state

    def commit(self, batches: Sequence[Batch]) -> list[CommitResult]:
        now_us = self._clock.now_us()
        return self._transact(lambda: self._append(batches, now_us))

    def _append(self, batches: Sequence[Batch], now_us: int) -> list[CommitResult]:
        results = append_new(self._writer, self._owner, batches)
        if results is None:
            self._writer.execute("ROLLBACK")
            self._writer.execute("BEGIN IMMEDIATE")
            results = [append(self._writer, self._owner, batch, now_us) for batch in batches]
        return results

    def swap_manifest(self, number: int, epoch: int, generation: int, manifest: bytes) -> int:
        return self._transact(lambda: self._swap(number, epoch, generation, manifest))

    def _swap(self, number: int, epoch: int, generation: int, manifest: bytes) -> int:
        swapped = fetch(self._writer, NEXT_GENERATION, (number, self._owner, epoch, generation))
        if swapped:
            self._writer.execute("INSERT INTO manifests (namespace, manifest) VALUES (?, ?) ON CONFLICT (namespace) DO UPDATE SET manifest = excluded.manifest", (number, manifest))
            return int(swapped[0][0])
        self._check_owner(number, epoch)
        raise ConflictError(f"the manifest of namespace {number} is no longer at generation {generation}; read it again")

    def save_prior(self, number: int, epoch: int, prior: bytes) -> None:
        self._transact(lambda: self._save_prior(number, epoch, prior))

    def _save_prior(self, number: int, epoch: int, prior: bytes) -> None:
        self._check_owner(number, epoch)
        self._writer.execute("INSERT INTO priors (namespace, statistics) VALUES (?, ?) ON CONFLICT (namespace) DO UPDATE SET statistics = excluded.statistics", (number, prior))

    def _check_owner(self, number: int, epoch: int) -> None:
        if not fetch(self._writer, "SELECT 1 FROM namespaces WHERE number = ? AND owner = ? AND epoch = ?", (number, self._owner, epoch)):
            raise FencedError(f"namespace {number} is no longer owned by {self._owner.decode()} at epoch {epoch}; reload it before writing")

    def drop(self, name: str) -> bool:
        return self._transact(lambda: drop(self._writer, name.encode()))

    def _transact(self, work: Callable[[], T]) -> T:
        """Run `work` in one transaction. What it raises rolls everything back."""
        with self._write_lock:
            self._check_usable()
            writer = self._writer
            try:
                self._roll_back()  # an interrupt may have struck between the work and its COMMIT
                if self._unsettled:
                    self._settle()
                writer.execute("BEGIN IMMEDIATE")
                try:
                    result = work()
                except BaseException:
                    self._roll_back()
                    raise
            except apsw.Error as error:
                raise translate(error, self.path) from error
            try:
                writer.execute("COMMIT")
            except apsw.Error as error:
                raise self._failed_commit(error) from error
            return result

    def _roll_back(self) -> None:
        if self._writer.in_transaction:  # SQLite has rolled back by itself after some errors
            self._writer.execute("ROLLBACK")

    def _failed_commit(self, error: apsw.Error) -> Exception:
        """Void a commit that failed and say so, or say that nobody knows."""
        try:
            self._roll_back()
            if not isinstance(error, REFUSED_WRITES):
                return translate(error, self.path)
            self._unsettled = True
            self._settle()
        except apsw.Error as second:
            return UnknownOutcomeError(f"{self.path}: the commit failed ({error}) and the disk did not answer when asked for its outcome ({second}); call again with the same ids")
        return translate(error, self.path)

    def _settle(self) -> None:
        """Commit a page of our own over the frames of the failed commit. Setting the version to itself writes page 1, which no other statement without effect does."""
        self._writer.pragma("user_version", FORMAT_VERSION)
        self._unsettled = False

    def unpurged(self) -> list[str]:
        """Names of the namespaces in which something was erased that `purged` has not confirmed."""
        with translated(self.path), self._reading() as connection:
            rows = fetch(connection, "SELECT name FROM unpurged JOIN namespaces ON number = namespace ORDER BY number")
        return [name.decode() for (name,) in rows]

    def purged(self, number: int, seq: int) -> None:
        """No file holds what a namespace's entries up to `seq` erased."""
        with translated(self.path), self._reading() as connection:
            noted = fetch(connection, "SELECT 1 FROM unpurged WHERE namespace = ? AND seq <= ?", (number, seq))
        if noted:
            self._transact(lambda: self._writer.execute("DELETE FROM unpurged WHERE namespace = ? AND seq <= ?", (number, seq)))

    def checkpoint(self) -> bool:
        """Copy what the WAL holds into the database, as far as readers allow; True when all of it was.

        Commits wait meanwhile: call it from maintenance, before the WAL is large.
        """
        with self._write_lock, translated(self.path):
            self._check_usable()
            pages, done = self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self.wal_pages = pages - done
            return pages == done

    def purge(self) -> bool:
        """As the protocol says. Reads the whole database once, while commits go on; then they wait for the pages to be written that need it."""
        with translated(self.path):
            return purge(self._writer, self._write_lock, self._truncate_wal, self.path, self._vfs)

    def _truncate_wal(self) -> bool:
        """Empty the WAL; False when a reader pins it. The caller holds the write lock."""
        self._check_usable()
        if not truncate_wal(self._writer):
            return False
        self.wal_pages = 0
        return True

    def backup(self, path: str) -> None:
        """Raises InvalidInputError when `path` exists: a backup replaces nothing."""
        backup(self.path, path, self._vfs, self._files)

    def close(self) -> None:
        """Idempotent. Checkpoints, so that the store is one file afterwards; what the disk refuses stays in the WAL, for the next who opens it."""
        super().close()
        if not self._guard.forked:
            with self._write_lock, translated(self.path), contextlib.suppress(*REFUSED_WRITES):
                self._writer.close()
