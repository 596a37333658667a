"""Immutable files, written so that a power cut leaves a complete one or none.

Order is everything: the bytes go to a temporary name, are synced, get their final name by a rename, and the folder is synced. After `write_file` returns the file survives a
power cut; until then nothing has the final name. It knows nothing of what the bytes mean. All calls to the operating system go through a `FileOps`, which tests replace to cut
the power anywhere.

Temporary names end in `.tmp`; whoever owns a folder calls `clean_temporary` when it opens it.
"""

import contextlib
import fcntl
import itertools
import os
import sys
from collections.abc import Iterable

from agentir_ray.errors import StorageFullError

TEMPORARY_SUFFIX = ".tmp"
_serial = itertools.count()

Chunk = bytes | bytearray | memoryview


class FileOps:
    """The operating system's calls that make something durable. Errors are OSError, as the system gave them."""

    def create(self, path: str, mode: int = 0o666) -> int:
        """A descriptor of an empty file, made new or emptied."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)

    def write(self, descriptor: int, data: Chunk) -> None:
        """Append all of `data`."""
        view = memoryview(data).cast("B")
        while len(view):
            view = view[os.write(descriptor, view) :]

    def fsync(self, descriptor: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # plain fsync stops at the drive's cache there
        else:
            os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def make_dir(self, path: str, mode: int = 0o777) -> None:
        os.mkdir(path, mode)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def fsync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


SYSTEM_FILES = FileOps()


def folder_of(path: str) -> str:
    return os.path.dirname(path) or "."


def temporary_name(path: str) -> str:
    """A name beside `path` that no other writer of this process uses."""
    return f"{path}.{next(_serial)}{TEMPORARY_SUFFIX}"


def make_folder(path: str, files: FileOps = SYSTEM_FILES, mode: int = 0o777) -> None:
    """Make the folder at `path`, and those above it that are missing, durably; a file synced into it then survives a power cut. Raises StorageFullError.

    What is made has `mode`, less the umask; what is there stays as it is.
    """
    if os.path.isdir(path):
        return
    make_folder(folder_of(os.path.abspath(path)), files, mode)
    try:
        with contextlib.suppress(FileExistsError):
            files.make_dir(path, mode)
        files.fsync_dir(folder_of(os.path.abspath(path)))
    except OSError as error:
        raise refused(path, error) from error


def write_file(path: str, chunks: Iterable[Chunk], files: FileOps = SYSTEM_FILES, mode: int = 0o666) -> int:
    """Write `chunks` to `path`, durably and all at once; returns the number of bytes. The file has `mode`, less the umask.

    Replaces a file of that name. Raises StorageFullError when the disk refuses; then there is neither the file nor its temporary.
    """
    temporary = temporary_name(path)
    size = 0
    try:
        descriptor = files.create(temporary, mode)
        try:
            for chunk in chunks:
                files.write(descriptor, chunk)
                size += memoryview(chunk).nbytes
            files.fsync(descriptor)
        finally:
            files.close(descriptor)
        publish(temporary, path, files)
    except BaseException as error:
        with contextlib.suppress(OSError):
            files.unlink(temporary)
        if isinstance(error, OSError):
            raise refused(path, error) from error
        raise
    return size


def publish(temporary: str, path: str, files: FileOps = SYSTEM_FILES) -> None:
    """Give a synced file its final name, durably."""
    files.rename(temporary, path)
    files.fsync_dir(folder_of(path))


def remove(path: str, files: FileOps = SYSTEM_FILES) -> bool:
    """Unlink `path`; False if it was gone. Not synced: a file that comes back after a power cut is garbage that the next open removes again."""
    try:
        files.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refused(path, error) from error
    return True


def clean_temporary(folder: str, files: FileOps = SYSTEM_FILES) -> list[str]:
    """Remove what an interrupted `write_file` left in `folder`; returns the names. Only the folder's owner may call this, before it writes."""
    left = sorted(name for name in os.listdir(folder) if name.endswith(TEMPORARY_SUFFIX))
    for name in left:
        remove(os.path.join(folder, name), files)
    return left


def refused(path: str, error: OSError) -> StorageFullError:
    return StorageFullError(f"the disk refused to write {path} ({error.strerror or error}); nothing that was acknowledged is lost: make room and call again")
