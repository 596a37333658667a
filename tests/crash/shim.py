"""A disk whose power can be cut: everything that is written is journalled, and the journal tells what may be left at any moment.

`Journal` records creates, new folders, writes, truncations, syncs, renames, unlinks and syncs of folders, from SQLite (through `JournalVFS`) and from the engine's own
files (through `JournalFiles`) alike, in one order. `reconstruct` builds a disk as it may look after a power cut: what was synced is there; of the rest, any subset of the
512-byte sectors; of the changes to a folder since its last sync, any prefix (file systems journal them in order). SQLite's shared memory is not recorded: it does not survive a
power cut, and recovery must not need it.

`fail_at` makes the n-th write or sync from now fail instead, with the error of a full or of a dying disk.
"""

import errno
import itertools
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import apsw

from agentir_ray.storage.files import Chunk, FileOps

_serial = itertools.count()

SECTOR = 512

Verb = Literal["create", "make_dir", "write", "truncate", "sync", "rename", "unlink", "fsync_dir"]
SYNCS = ("sync", "fsync_dir")
FOLDER = -2


@dataclass(frozen=True, slots=True)
class Event:
    """One change. Paths are relative to the journal's root; `file` numbers what was created, whatever it is called by now."""

    verb: Verb
    path: str
    file: int = -1
    offset: int = 0
    data: bytes = b""
    target: str = ""


@dataclass
class Fault:
    """The `count`-th event of kind `verb` (1: the next) fails, once or from then on for ever. `partial` lets half of a failing write through."""

    verb: Literal["write", "sync"]
    count: int
    code: int = errno.ENOSPC
    lasting: bool = False
    partial: bool = False


@dataclass
class Journal:
    """What happened below `root`, in order. Thread-safe."""

    root: Path
    events: list[Event] = field(default_factory=list)
    fault: Fault | None = None
    names: dict[str, int] = field(default_factory=dict)  # as the running process sees them
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def relative(self, path: str) -> str:
        return os.path.relpath(os.path.abspath(path), self.root)

    def create(self, path: str) -> int:
        """The number of the file at `path`, which is new or emptied."""
        with self._lock:
            name = self.relative(path)
            if name in self.names:
                self.events.append(Event("truncate", name, self.names[name]))
            else:
                self.names[name] = next(self._numbers)
                self.events.append(Event("create", name, self.names[name]))
            return self.names[name]

    def open(self, path: str) -> int:
        """The number of the file at `path`, created if need be."""
        with self._lock:
            name = self.relative(path)
            return self.names[name] if name in self.names else self.create(path)

    def record(self, verb: Verb, path: str, file: int = -1, offset: int = 0, data: bytes = b"", target: str = "") -> None:
        with self._lock:
            name, target = self.relative(path), self.relative(target) if target else ""
            if verb == "rename":
                self.names[target] = self.names.pop(name)
            elif verb == "unlink":
                self.names.pop(name, None)
            self.events.append(Event(verb, name, file, offset, data, target))

    def fail_at(self, fault: Fault) -> None:
        self.fault = fault

    def failing(self, verb: Literal["write", "sync"]) -> Fault | None:
        """The fault that strikes now, if one does. The caller does nothing but raise it."""
        with self._lock:
            fault = self.fault
            if fault is None or fault.verb != verb:
                return None
            fault.count -= 1
            if fault.count > 0:
                return None
            if not fault.lasting:
                self.fault = None
            return fault

    def syncs(self, start: int = 0) -> list[int]:
        """The positions right after each sync: with the end, every moment at which a power cut can make a difference to what was promised."""
        return [at + 1 for at, event in enumerate(self.events) if at >= start and event.verb in SYNCS]


# ---- the two ways in -------------------------------------------------------------------------------------------------------------------------------------------

_SQLITE_ERRORS = {errno.ENOSPC: apsw.SQLITE_FULL, errno.EIO: apsw.SQLITE_IOERR}


class JournalFiles(FileOps):
    """The engine's own files, journalled."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[int, tuple[str, int, int]] = {}

    def create(self, path: str, mode: int = 0o666) -> int:
        descriptor = super().create(path, mode)
        self._open[descriptor] = path, self._journal.create(path), 0
        return descriptor

    def write(self, descriptor: int, data: Chunk) -> None:
        path, file, offset = self._open[descriptor]
        content = bytes(data)
        fault = self._journal.failing("write")
        if fault is not None:
            content = content[: len(content) // 2] if fault.partial else b""
        super().write(descriptor, content)
        self._journal.record("write", path, file, offset, content)
        self._open[descriptor] = path, file, offset + len(content)
        if fault is not None:
            raise OSError(fault.code, os.strerror(fault.code))

    def fsync(self, descriptor: int) -> None:
        path, file, _ = self._open[descriptor]
        if fault := self._journal.failing("sync"):
            raise OSError(fault.code, os.strerror(fault.code))
        self._journal.record("sync", path, file)

    def close(self, descriptor: int) -> None:
        super().close(descriptor)
        del self._open[descriptor]

    def make_dir(self, path: str, mode: int = 0o777) -> None:
        super().make_dir(path, mode)
        self._journal.record("make_dir", path, FOLDER)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self._journal.open(source)
        self._journal.record("rename", source, target=target)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._journal.record("unlink", path)

    def fsync_dir(self, path: str) -> None:
        if fault := self._journal.failing("sync"):
            raise OSError(fault.code, os.strerror(fault.code))
        self._journal.record("fsync_dir", path)


class JournalVFS(apsw.VFS):
    """SQLite's files, journalled. Registered under `name` until `unregister`."""

    def __init__(self, name: str, journal: Journal) -> None:
        self.name = name
        self._journal = journal
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or flags[0] & apsw.SQLITE_OPEN_READONLY:
            return apsw.VFSFile("", name, flags)
        return _JournalFile(self._journal, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self._journal.record("unlink", filename)
        if syncdir:
            self._journal.record("fsync_dir", os.path.dirname(filename))


class _JournalFile(apsw.VFSFile):
    def __init__(self, journal: Journal, path: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        existed = os.path.exists(path)
        super().__init__("", name, flags)
        self._journal, self._path = journal, path
        self._file = journal.open(path)
        # As SQLite's own: the first sync of a journal that it made also syncs the folder; that of a database does not.
        self._sync_folder = not existed and not flags[0] & apsw.SQLITE_OPEN_MAIN_DB

    def _raise(self, fault: Fault) -> None:
        error = apsw.exception_for(_SQLITE_ERRORS[fault.code])
        raise error

    def xWrite(self, data: bytes, offset: int) -> None:
        content = bytes(data)
        fault = self._journal.failing("write")
        if fault is not None:
            content = content[: len(content) // 2] if fault.partial else b""
        if content:
            super().xWrite(content, offset)
            self._journal.record("write", self._path, self._file, offset, content)
        if fault is not None:
            self._raise(fault)

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._journal.record("truncate", self._path, self._file, newsize)

    def xSync(self, flags: int) -> None:
        if fault := self._journal.failing("sync"):
            self._raise(fault)
        self._journal.record("sync", self._path, self._file)
        if self._sync_folder:
            self._sync_folder = False
            self._journal.record("fsync_dir", os.path.dirname(self._path))


# ---- the cut ---------------------------------------------------------------------------------------------------------------------------------------------------

Keep = Literal["nothing", "everything", "some"]


@dataclass
class _Content:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)

    def sync(self) -> None:
        for event in self.pending:
            _apply(self.durable, event, None)
        self.pending.clear()


def _apply(content: bytearray, event: Event, rng: random.Random | None) -> None:
    """Carry out a write or truncation; with `rng`, each sector of it only perhaps."""
    if event.verb == "truncate":
        if rng is None or rng.random() < 0.5:
            del content[event.offset :]
            content.extend(bytes(event.offset - len(content)))
        return
    start = event.offset
    while start < event.offset + len(event.data):
        end = min(start - start % SECTOR + SECTOR, event.offset + len(event.data))
        if rng is None or rng.random() < 0.5:
            content.extend(bytes(max(0, end - len(content))))
            content[start:end] = event.data[start - event.offset : end - event.offset]
        start = end


def _rename(names: dict[str, int], event: Event) -> None:
    match event.verb:
        case "create" | "make_dir":
            names[event.path] = event.file
        case "unlink":
            names.pop(event.path, None)
        case "rename":
            names[event.target] = names.pop(event.path)


def disk_after(journal: Journal, cut_at: int, rng: random.Random, keep: Keep = "some") -> dict[str, bytes]:
    """The files that a power cut before event `cut_at` may leave. `keep` says what becomes of everything that was not synced by then."""
    contents: dict[int, _Content] = {}
    names: dict[str, int] = {}
    changes: dict[str, list[Event]] = {}  # by folder, since its last sync
    for event in journal.events[:cut_at]:
        folder = os.path.dirname(event.path) or "."
        match event.verb:
            case "create":
                contents[event.file] = _Content()
                changes.setdefault(folder, []).append(event)
            case "make_dir":
                changes.setdefault(folder, []).append(event)
            case "write" | "truncate":
                contents[event.file].pending.append(event)
            case "sync":
                contents[event.file].sync()
            case "rename" | "unlink":
                changes.setdefault(folder, []).append(event)
            case "fsync_dir":
                for change in changes.pop(event.path, []):
                    _rename(names, change)
    for pending in changes.values():
        kept = {"nothing": 0, "everything": len(pending), "some": rng.randint(0, len(pending))}[keep]
        for change in pending[:kept]:
            _rename(names, change)
    made = {event.path for event in journal.events[:cut_at] if event.verb == "make_dir"}
    lost = made - names.keys()
    files = {}
    for name, file in names.items():
        if file == FOLDER or any(os.path.join(*parts[:n]) in lost for parts in [name.split(os.sep)] for n in range(1, len(parts))):
            continue  # what lies in a folder that is gone is gone
        content = contents[file]
        if keep != "nothing":
            for event in content.pending:
                _apply(content.durable, event, rng if keep == "some" else None)
        files[name] = bytes(content.durable)
    return files


def reconstruct(journal: Journal, cut_at: int, rng: random.Random, target: Path, keep: Keep = "some") -> None:
    """Write the disk after a power cut into the folder `target`, which is made if need be."""
    target.mkdir(parents=True, exist_ok=True)
    for name, content in disk_after(journal, cut_at, rng, keep).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@contextmanager
def journalled(root: Path) -> Iterator[tuple[Journal, JournalVFS]]:
    """A new folder `root` whose files are written through a journal, by SQLite too while the block runs."""
    root.mkdir()
    journal = Journal(root)
    vfs = JournalVFS(f"journal-{next(_serial)}", journal)
    try:
        yield journal, vfs
    finally:
        vfs.unregister()
