"""Where spilled objects lie: a folder, or anything that fsspec has a file system for.

It knows names and bytes, not what they mean. Names are relative paths of plain characters; whoever uses a target gives each store a first part of its own, so that any number
of them share one. Objects are never modified: a name is used once. What is made in a folder is its user's alone, whatever the umask: there are texts in it.

An error is always one of two: SpilledError, the target did not do it (not there, full, no permission, no network), now at least; or MissingObjectError, it answered that it has no
such object. What a target takes its time for is the business of `patience.py`. No message shows what a URL may hold of a secret.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from agentir_ray.errors import InvalidInputError, SpilledError, StorageFullError
from agentir_ray.storage.files import SYSTEM_FILES, Chunk, FileOps, make_folder, remove, write_file

PIECE_BYTES = 2**20
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)")


class MissingObjectError(SpilledError):
    """The target answers, and has no such object."""


class SpillTarget(Protocol):
    """Calls may block, and come from any thread."""

    def prepare(self) -> None:
        """Make the place itself, if it is not there; called once in a store's life. All else raises SpilledError where it is not."""
        ...

    def put(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Store an object. It is complete and durable when this returns; after an error some of it may be there, for `delete`."""
        ...

    def get(self, name: str) -> Iterator[bytes]:
        """An object's bytes, piece by piece. Raises MissingObjectError."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object, if it is there."""
        ...

    def names(self, prefix: str) -> list[str]:
        """The names of all objects, and of what puts that failed have left, below `prefix` (a whole number of parts)."""
        ...


def open_target(place: str | os.PathLike[str], files: FileOps = SYSTEM_FILES) -> SpillTarget:
    """The target at a folder's path or a URL. Nothing is asked of it yet. Raises InvalidInputError."""
    text = os.fspath(place)
    if not text:
        raise InvalidInputError("spill is empty; name a folder or a URL such as s3://bucket/prefix")
    scheme = _URL.match(text)
    if scheme is None:
        return FolderTarget(Path(text), files)
    if scheme[0] in ("file://", "local://"):  # written there as ours are: fsspec would not sync them
        return FolderTarget(Path(text[scheme.end() :]), files)
    return FsspecTarget(text)


def without_secrets(text: str) -> str:
    """A URL, or a message with some, without user names, passwords and queries; with all of the URL hidden where it cannot be told which is what."""
    text = re.sub(r"(?<=//)\S*\?\S*@\S*|\?\S+", "...", text)
    return re.sub(r"(?<=//)\S*@", "", text)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is no name of a spilled object")
    return name


class FolderTarget:
    """Objects as files below a folder, which may be a mount: while it is not there, nothing is made in its place."""

    def __init__(self, root: Path, files: FileOps = SYSTEM_FILES) -> None:
        self._root = root.absolute()
        self._files = files

    def __str__(self) -> str:
        return str(self._root)

    def prepare(self) -> None:
        try:
            make_folder(str(self._root), self._files, PRIVATE_FOLDER)
        except StorageFullError as error:
            raise SpilledError(f"the spill target {self} cannot be made ({error.__cause__})") from error

    def _path(self, name: str) -> Path:
        if not self._root.is_dir():
            raise SpilledError(f"the spill target {self} is not there; mount it, or open the store with another `spill`")
        return self._root / _checked(name)

    def put(self, name: str, chunks: Iterable[Chunk]) -> None:
        path = self._path(name)
        try:
            make_folder(str(path.parent), self._files, PRIVATE_FOLDER)
            write_file(str(path), chunks, self._files, PRIVATE_FILE)
        except (OSError, StorageFullError) as error:
            raise SpilledError(f"the spill target {self} refused an object ({_reason(error)}); make room there") from error

    def get(self, name: str) -> Iterator[bytes]:
        path = self._path(name)
        try:
            with open(path, "rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except FileNotFoundError:
            self._path(name)  # it may have gone as a whole
            raise MissingObjectError(f"the spill target {self} has no object {name}") from None
        except OSError as error:
            raise SpilledError(f"the spill target {self} did not give {name} ({_reason(error)})") from error

    def delete(self, name: str) -> None:
        try:
            remove(str(self._path(name)), self._files)
        except (OSError, StorageFullError) as error:
            raise SpilledError(f"the spill target {self} did not delete {name} ({_reason(error)})") from error

    def names(self, prefix: str) -> list[str]:
        def fail(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise SpilledError(f"the spill target {self} cannot be listed ({_reason(error)})") from error

        found = os.walk(self._path(prefix), onerror=fail)
        return sorted(os.path.relpath(os.path.join(folder, file), self._root).replace(os.sep, "/") for folder, _, files in found for file in files)


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


class FsspecTarget:
    """Objects below a URL of any of fsspec's file systems (s3, gs, az, sftp, memory and more). What protocols and credentials need is fsspec's business."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise InvalidInputError(f"spill is {without_secrets(url)!r}, for which fsspec is needed: `pip install 'agentir-ray[spill]'`, or give the path of a folder") from error
        try:
            self._fs: Any
            self._fs, root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InvalidInputError(f"spill is {without_secrets(url)!r}, which fsspec cannot open: {without_secrets(str(error))}") from error
        self._root = str(root).rstrip("/")
        self._url = without_secrets(url)

    def __str__(self) -> str:
        return self._url

    def _failed(self, what: str, error: Exception) -> SpilledError:
        return SpilledError(f"the spill target {self} did not {what} ({without_secrets(_reason(error))})")

    def prepare(self) -> None:
        try:
            self._fs.makedirs(self._root, exist_ok=True)
        except Exception as error:
            raise self._failed("make its folder", error) from error

    def put(self, name: str, chunks: Iterable[Chunk]) -> None:
        path = f"{self._root}/{_checked(name)}"
        try:
            with suppress(NotImplementedError):
                self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            with self._fs.open(path, "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
        except Exception as error:
            raise self._failed(f"take {name}", error) from error

    def get(self, name: str) -> Iterator[bytes]:
        try:
            with self._fs.open(f"{self._root}/{_checked(name)}", "rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except FileNotFoundError:
            raise MissingObjectError(f"the spill target {self} has no object {name}") from None
        except Exception as error:
            raise self._failed(f"give {name}", error) from error

    def delete(self, name: str) -> None:
        try:
            with suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{_checked(name)}")
        except Exception as error:
            raise self._failed(f"delete {name}", error) from error

    def names(self, prefix: str) -> list[str]:
        try:
            self._fs.invalidate_cache()
            found = self._fs.find(f"{self._root}/{_checked(prefix)}")
        except FileNotFoundError:
            return []
        except Exception as error:
            raise self._failed("list its objects", error) from error
        root = self._fs._strip_protocol(self._root)
        return sorted(str(path)[len(root) + 1 :] for path in found)
