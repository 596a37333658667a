"""A child process under a memory limit of its own, where this process may make a control group below the one it runs in (Linux, version 1 or 2).

The limit counts what the group's processes touch, the page cache of files included, which the kernel takes back before it kills anybody.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


class Unwritable(Exception):
    """There is no way to make a group here; the message says why."""


class Group:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._second = (folder / "memory.max").exists()

    def limit(self, limit_bytes: int) -> None:
        (self.folder / ("memory.max" if self._second else "memory.limit_in_bytes")).write_text(str(limit_bytes))

    def join(self) -> None:
        """Called by the child, before it becomes another program."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self) -> int:
        lines = (self.folder / ("memory.events" if self._second else "memory.oom_control")).read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)

    def peak_bytes(self) -> int | None:
        path = self.folder / ("memory.peak" if self._second else "memory.max_usage_in_bytes")
        return int(path.read_text()) if path.exists() else None


@contextmanager
def limited(limit_bytes: int) -> Iterator[Group]:
    """A group with that limit, removed at the end, when its processes must have ended. Raises Unwritable."""
    folder = _own() / f"agentir-bench-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise Unwritable(f"no control group can be made in {folder.parent}: {error.strerror}") from error
    try:
        group = Group(folder)
        try:
            group.limit(limit_bytes)
        except OSError as error:
            raise Unwritable(f"no memory limit can be set in {folder}: {error.strerror}") from error
        yield group
    finally:
        _remove(folder)


def _own() -> Path:
    """The folder of the group that this process runs in and that counts memory."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError as error:
        raise Unwritable("this system has no control groups") from error
    groups = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    first = next((MOUNT / "memory" / path.lstrip("/") for controllers, path in groups.items() if "memory" in controllers.split(",")), None)
    if first is not None and first.is_dir():
        return first
    if "" in groups and (MOUNT / "cgroup.controllers").exists():
        return MOUNT / groups[""].lstrip("/")
    raise Unwritable(f"no control group that counts memory is mounted at {MOUNT}")


def _remove(folder: Path) -> None:
    for _ in range(100):  # a process that has just ended may still be counted
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.05)
