"""One writer a store: an exclusive `flock` on `<store>/LOCK`.

The kernel releases the lock when its holder ends, however it ends; so a lock that is held is held by somebody alive, and no pid is ever probed. The file's content (pid and
host, as JSON) is for the error message only. The file is never unlinked: two processes could then lock two files of one name.

A forked child gets a copy of the descriptor, and with it the lock would outlive the parent. So children close their copy at once. They close it and do not unlock it: unlocking
acts on the parent's lock, closing a copy does not.
"""

import contextlib
import errno
import fcntl
import json
import os
import socket
import weakref

from agentir_ray.errors import NotFoundError, ReadOnlyError, StoreLockedError
from agentir_ray.storage.files import refused
from agentir_ray.storage.fork import ForkGuard

LOCK_NAME = "LOCK"

_held: "weakref.WeakSet[StoreLock]" = weakref.WeakSet()


class StoreLock:
    """The writer's lock on the store in `folder`, held from construction to `release`.

    Raises StoreLockedError at once, naming the owner, when it is taken - by this process too.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = os.path.join(folder, LOCK_NAME)
        self._guard = ForkGuard()
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise ReadOnlyError(f"{self.path} cannot be written ({error.strerror}); give this user write permission, or open the store with read_only=True") from error
            if error.errno == errno.ENOENT:
                raise NotFoundError(f"there is no folder {os.fspath(folder)}; create it first") from error
            raise refused(self.path, error) from error
        self._descriptor: int | None = descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._sign(descriptor)
            _held.add(self)
        except BlockingIOError:
            owner = _owner(descriptor)
            os.close(descriptor)
            raise StoreLockedError(f"the store in {os.fspath(folder)} is being written by {owner}; stop that process, or open the store with read_only=True") from None
        except OSError as error:
            os.close(descriptor)
            raise refused(self.path, error) from error
        except BaseException:  # KeyboardInterrupt
            self._abandon()
            raise

    def _sign(self, descriptor: int) -> None:
        text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def check(self) -> None:
        """Raises ForkedError in a child of the process that took the lock."""
        self._guard.check()

    def release(self) -> None:
        """Idempotent; does nothing in a forked child."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None or self._guard.forked:
            return
        _held.discard(self)
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        # Unlocked before closed: a child that was just forked may not have closed its copy yet.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def _abandon(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _owner(descriptor: int) -> str:
    """Who signed the lock file, in words. Its holder may be between locking and signing."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        owner = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {int(owner['pid'])} on host {owner['host']}"
    return "another process, which is just opening it"


def _close_in_child() -> None:
    for lock in list(_held):
        lock._abandon()
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)
