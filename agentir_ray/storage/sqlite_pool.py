"""The connections that read one of a store's databases, any number at once, beside the one that writes it.

Reads never touch a writing connection: they borrow a read-only one from a pool, so that they neither wait for a commit nor hold one up.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import apsw

from agentir_ray.errors import NotFoundError, ReadOnlyError, StoreClosedError
from agentir_ray.storage.fork import ForkGuard
from agentir_ray.storage.sqlite_errors import translated
from agentir_ray.storage.sqlite_schema import Tables, check_format, open_reader


def folder_writable(path: str) -> bool:
    return os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


class ConnectionPool:
    """Reads the database at `path`, which holds `tables`; it sees each commit of the writer as soon as it is made. Any number of threads may use it.

    Works without write permission, unless a writer crashed and left a WAL that somebody must recover first: that is a ReadOnlyError.
    """

    tables: ClassVar[Tables]

    def __init__(self, path: str | os.PathLike[str], *, vfs: str | None = None) -> None:
        self.path = os.fspath(path)
        self._vfs = vfs
        self._guard = ForkGuard()
        self._closed = False
        self._pool: list[apsw.Connection] = []
        self._pool_lock = threading.Lock()
        self._immutable = False
        self._prepare()

    def _prepare(self) -> None:
        if not os.path.exists(self.path):
            raise NotFoundError(f"there is no store at {self.path}")
        if not folder_writable(self.path):
            # Without write permission SQLite cannot make the shared memory that a WAL needs; with no WAL, and nobody able to make one, there is nothing to coordinate.
            wal = self.path + "-wal"
            self._immutable = not os.path.exists(self.path + "-shm") and not (os.path.exists(wal) and os.path.getsize(wal))
        try:
            with translated(self.path), self._reading() as connection:
                if not check_format(connection, self.path, self.tables):
                    raise NotFoundError(f"{self.path} holds no store yet; open it for writing first")
        except NotFoundError as error:
            if isinstance(error.__cause__, apsw.CantOpenError) and not folder_writable(self.path):
                raise ReadOnlyError(
                    f"{self.path} was not closed properly and its folder cannot be written, so that its WAL cannot be recovered; give write permission, or copy the folder"
                ) from error
            raise

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """Borrow a read-only connection. Its statements must be finished before it goes back."""
        self._check_usable()
        try:
            connection = self._pool.pop()
        except IndexError:
            connection = open_reader(self.path, self._vfs, self._immutable)
        try:
            yield connection
        finally:
            with self._pool_lock:
                if self._closed:
                    connection.close()
                else:
                    self._pool.append(connection)

    def _check_usable(self) -> None:
        self._guard.check()
        if self._closed:
            raise StoreClosedError(f"the store at {self.path} was closed; open it again")

    def close(self) -> None:
        """Idempotent. Reads that are under way in other threads finish."""
        if self._guard.forked:
            return  # the connections are the parent's; closing them here would act on its files
        with self._pool_lock:
            self._closed = True
            for connection in self._pool:
                connection.close()
            self._pool.clear()
