"""A file of named, versioned, checksummed arrays: the container of segments and, later, of their sidecars.

It knows bytes and dtypes, not what they mean. Layout, little-endian: a 64-byte header, a table of 64-byte entries, then the sections, each aligned to 64 bytes.

    header  magic 8s | container version u32 | sections u32 | file length u64 | CRC-32 of header (this field zero) and table u32 | zeros
    entry   name 24s | dtype 8s | version u32 | CRC-32 of the section u32 | offset u64 | bytes u64 | zeros

Invariants: header, table and length are checked at open, a section at its first touch, unless its reader checks it piece by piece (or all of them by `verify`); sections that a
reader does not ask for are never read, so newer writers may add some; a file is never modified in place.
"""

import errno
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agentir_ray.errors import DamagedError, FormatError, StoreError

MAGIC = b"AGENTIR\x00"
CONTAINER_VERSION = 1
ALIGNMENT = 64
MAX_SECTIONS = 1_024  # a damaged count must not make us read gigabytes of table
_HEADER = struct.Struct("<8sIIQI")
_ENTRY = struct.Struct("<24s8sIIQQ")
_CRC_AT = 24

Array = np.ndarray[Any, np.dtype[Any]]


class Section(NamedTuple):
    """What a file's table tells of a section, besides its place."""

    name: str
    dtype: str
    crc: int
    bytes: int


def encode_sections(arrays: Mapping[str, Array], version: int = 1) -> list[bytes | memoryview]:
    """The file's contents as chunks to write one after the other."""
    raws = [memoryview(np.ascontiguousarray(values).data).cast("B") if values.size else memoryview(b"") for values in arrays.values()]
    sections = [Section(name, values.dtype.str, zlib.crc32(raw), raw.nbytes) for (name, values), raw in zip(arrays.items(), raws, strict=True)]
    body: list[bytes | memoryview] = []
    for raw in raws:
        body += [raw, padding(raw.nbytes)]
    return [encode_table(sections, version), *body]


def encode_table(sections: Sequence[Section], version: int = 1) -> bytes:
    """What comes before the sections. They follow in this order, each with its `padding`."""
    offset = _aligned(ALIGNMENT * (1 + len(sections)))
    table = bytearray()
    for name, dtype, crc, size in sections:
        table += _ENTRY.pack(name.encode(), dtype.encode(), version, crc, offset, size).ljust(ALIGNMENT, b"\0")
        offset = _aligned(offset + size)
    blank = _HEADER.pack(MAGIC, CONTAINER_VERSION, len(sections), offset, 0).ljust(ALIGNMENT, b"\0")
    header = _HEADER.pack(MAGIC, CONTAINER_VERSION, len(sections), offset, _header_crc(blank, bytes(table))).ljust(ALIGNMENT, b"\0")
    return header + table


def padding(size_bytes: int) -> bytes:
    """What follows a section of that size."""
    return bytes(_aligned(size_bytes) - size_bytes)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _header_crc(header: bytes, table: bytes) -> int:
    return zlib.crc32(table, zlib.crc32(header[:_CRC_AT] + bytes(4) + header[_CRC_AT + 4 :]))


class SectionFile:
    """A mapped file of sections, or one copied into memory. The bytes live as long as any array taken from it, also after the file was unlinked."""

    def __init__(self, path: Path, copied: bool = False) -> None:
        self.path = path
        self.copied = copied
        try:
            with open(path, "rb") as file:
                self.length_bytes = os.fstat(file.fileno()).st_size
                if self.length_bytes < ALIGNMENT:
                    raise self._damaged("is truncated")
                if copied:
                    self._map = mmap.mmap(-1, self.length_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # aligned as the file's pages would be
                    if file.readinto(self._map) != self.length_bytes:
                        raise self._damaged("is truncated")
                else:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise self._damaged("is missing") from None
        except OSError as error:
            way_out = "allow this process more open files (`ulimit -n`)" if error.errno in (errno.EMFILE, errno.ENFILE) else "see that this user may read it and memory is left"
            raise StoreError(f"{path} cannot be opened ({error.strerror}); {way_out}, and call again") from error
        self._lock = threading.Lock()
        self._table = self._read_table()
        self._checked: dict[str, Array] = {}

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(f"{self.path} {what}; it is rebuilt from the log when the store is opened for writing, `agentir verify` shows the rest")

    def _read_table(self) -> dict[str, tuple[np.dtype[Any], int, int, int]]:
        magic, version, sections, length, crc = _HEADER.unpack_from(self._map)
        if magic != MAGIC or sections > MAX_SECTIONS:
            raise self._damaged("is not a segment file")
        table = self._map[ALIGNMENT : ALIGNMENT * (1 + sections)]
        if length != self.length_bytes or _header_crc(self._map[:ALIGNMENT], table) != crc:
            raise self._damaged("is truncated or has a damaged header")
        # After the checksum, whose place is the same in every version: a damaged number is not a newer file.
        if version > CONTAINER_VERSION:
            raise FormatError(f"{self.path} has container version {version}; this version of agentir_ray reads {CONTAINER_VERSION}")
        entries = (_ENTRY.unpack_from(table, i * ALIGNMENT) for i in range(sections))
        return {name.rstrip(b"\0").decode(): (np.dtype(code.rstrip(b"\0").decode()), sum_, start, size) for name, code, _, sum_, start, size in entries}

    def __contains__(self, name: str) -> bool:
        return name in self._table

    def names(self) -> list[str]:
        return list(self._table)

    def section(self, name: str) -> Section:
        dtype, crc, _, size = self._table[name]
        return Section(name, dtype.str, crc, size)

    def array(self, name: str) -> Array:
        """The section as a read-only array over the mapping. Raises DamagedError at first touch when its checksum differs."""
        found = self._checked.get(name)
        if found is not None:
            return found
        values = self.unchecked(name)
        _, crc, offset, size = self._table[name]
        if zlib.crc32(memoryview(self._map)[offset : offset + size]) != crc:
            raise self._damaged(f"has a damaged section {name!r}")
        with self._lock:
            return self._checked.setdefault(name, values)

    def unchecked(self, name: str) -> Array:
        """The same for a section whose content has checksums of its own, which its reader tests piece by piece."""
        if name not in self._table:
            raise self._damaged(f"lacks the section {name!r}")
        dtype, _, offset, size = self._table[name]
        values = np.frombuffer(self._map, dtype, size // dtype.itemsize, offset) if size else np.empty(0, dtype)
        values.flags.writeable = False
        return values

    def verify(self) -> None:
        """Check every section; raises DamagedError at the first that differs."""
        for name, (_, crc, offset, size) in self._table.items():
            if zlib.crc32(memoryview(self._map)[offset : offset + size]) != crc:
                raise self._damaged(f"has a damaged section {name!r}")
