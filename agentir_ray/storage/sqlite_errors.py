"""Translation of SQLite's errors into the package's own: the only place that knows both.

It decides nothing about transactions: whether a failed COMMIT took effect is `sqlite_log`'s to settle.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from agentir_ray.errors import AgentIRError, DamagedError, NotFoundError, ReadOnlyError, StorageFullError, StoreError, StoreLockedError

# What a full disk and a failing one look like; after either, everything that was acknowledged is still there.
REFUSED_WRITES = (apsw.FullError, apsw.IOError)

WAYS_OUT = "run `agentir verify` to see what is affected and `agentir export --salvage` to save the rest"


def translate(error: apsw.Error, path: str) -> AgentIRError:
    """The package's error for one of SQLite's, met while using the database at `path`."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError():
            return DamagedError(f"{path} is damaged ({error}); {WAYS_OUT}")
        case apsw.FullError() | apsw.IOError():
            return StorageFullError(f"the disk refused a write or read of {path} ({error}); nothing that was acknowledged is lost: make room and call again")
        case apsw.BusyError() | apsw.LockedError():
            return StoreLockedError(f"another process is writing {path}; stop it, or open the store with read_only=True")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return ReadOnlyError(f"{path} cannot be written ({error}); give this user write permission, or open the store with read_only=True")
        case apsw.CantOpenError():
            return NotFoundError(f"{path} cannot be opened ({error}); check that the folder exists and that this user may read it")
        case _:
            return StoreError(f"{path}: {type(error).__name__}: {error}")


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Run a block so that what leaves it is never an error of SQLite."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from error
