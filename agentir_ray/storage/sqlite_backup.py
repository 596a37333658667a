"""A consistent copy of a database that is being written."""

import os
from contextlib import closing

import apsw

from agentir_ray.errors import InvalidInputError
from agentir_ray.storage.files import FileOps, publish, refused, remove, temporary_name
from agentir_ray.storage.sqlite_errors import translated
from agentir_ray.storage.sqlite_schema import open_reader


def backup(source_path: str, path: str, vfs: str | None, files: FileOps) -> None:
    """Complete and durable at `path` when this returns. Raises InvalidInputError when `path` exists: a backup replaces nothing."""
    if os.path.exists(path):
        raise InvalidInputError(f"{path} exists; give a new name for the backup")
    temporary = temporary_name(path)
    try:
        # A connection of its own: others may have cached pages from before a purge.
        with translated(path), closing(open_reader(source_path, vfs, immutable=False)) as source:
            target = apsw.Connection(temporary, vfs=vfs)
            try:
                with target.backup("main", source, "main") as copy:
                    copy.step(-1)  # all of it in one snapshot; commits go on meanwhile
            finally:
                target.close()
        publish(temporary, path, files)
    except BaseException as error:
        remove(temporary, files)
        if isinstance(error, OSError):
            raise refused(path, error) from error
        raise
