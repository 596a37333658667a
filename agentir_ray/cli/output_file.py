"""The file that a command writes to: a regular file is replaced by the complete new one, anything else that the path names (a pipe, a device) is written straight to."""

import errno
import gzip
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from agentir_ray.errors import InvalidInputError, StorageFullError
from agentir_ray.storage.files import SYSTEM_FILES

_REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def output_file(path: Path) -> Iterator[TextIO]:
    """Text for `path`, compressed where its name ends in .gz; links are followed. A file that is there stays as it is until the block has ended well.

    Raises InvalidInputError when nothing can be written there, and StorageFullError when the disk refuses in the middle.
    """
    target = Path(os.path.realpath(path))
    compressed = path.suffix == ".gz"
    try:
        if target.exists() and not target.is_file():
            with _opened(target, "w", compressed, path) as out:
                yield out
        else:
            with _replacing(target, compressed, path) as out:
                yield out
    except OSError as error:
        if error.errno in _REFUSED:
            raise StorageFullError(f"{path}: cannot be written: {error.strerror}; make room, or name another place") from None
        raise


@contextmanager
def _replacing(target: Path, compressed: bool, called: Path) -> Iterator[TextIO]:
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    with _opened(partial, "x", compressed, called) as out:
        try:
            if target.exists():
                shutil.copymode(target, partial)
            yield out
            out.close()
            _sync(partial)
            os.replace(partial, target)
            SYSTEM_FILES.fsync_dir(str(target.parent))
        finally:
            partial.unlink(missing_ok=True)


def _opened(path: Path, mode: str, compressed: bool, called: Path) -> TextIO:
    try:
        return cast(TextIO, (gzip.open if compressed else open)(path, f"{mode}t", encoding="utf-8", newline="\n"))
    except OSError as error:
        if error.errno in _REFUSED:
            raise
        raise InvalidInputError(f"{called}: cannot be written: {error.strerror}") from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        SYSTEM_FILES.fsync(descriptor)
    finally:
        os.close(descriptor)
