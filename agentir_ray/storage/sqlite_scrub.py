"""Zero the unallocated space of a database's pages: the one place where SQLite keeps what was deleted, also under `secure_delete`.

`secure_delete` overwrites content where it is deleted. But when a page of a B-tree splits or is compacted, cells move, and their old copies stay in the gap between the page's cell
pointers and its cells; a row that is erased from its new place later is still readable there. No reader ever looks into a gap, so zeroing it changes nothing, needs no transaction,
and may be torn by a power cut anywhere.

It works on the database file beside SQLite, through SQLite's own VFS (a descriptor of our own would drop SQLite's locks when closed). The caller sees to it that the WAL is
empty and that nobody commits while pages are written, and that cached copies of them are not written back. File format: https://www.sqlite.org/fileformat2.html, section 1.6.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import apsw

MAX_PAGES = 1 << 25  # up to here the first byte of a page that is no B-tree page, a page number's highest, is no B-tree page's type
CHUNK_PAGES = 256
_HEADER_BYTES = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}  # by type: index and table, interior and leaf
_DATABASE_HEADER_BYTES = 100


class Pages:
    """The pages of a database file, numbered from 1."""

    def __init__(self, file: apsw.VFSFile) -> None:
        self._file = file
        header = file.xRead(_DATABASE_HEADER_BYTES, 0)
        size = int.from_bytes(header[16:18], "big")
        self.size = 65_536 if size == 1 else size
        self.count = file.xFileSize() // self.size

    def soiled(self) -> list[int]:
        """The numbers of the pages whose gap holds something. Costs one read of the file, some 2 us a page."""
        found = []
        for first in range(1, self.count + 1, CHUNK_PAGES):
            amount = min(CHUNK_PAGES, self.count + 1 - first)
            chunk = self._file.xRead(amount * self.size, (first - 1) * self.size)
            for i in range(amount):
                start, end = self._gap(first + i, chunk[i * self.size : (i + 1) * self.size])
                if chunk.count(0, i * self.size + start, i * self.size + end) < end - start:
                    found.append(first + i)
        return found

    def clean(self, numbers: Iterable[int]) -> None:
        """Zero the gaps of these pages, durably. A page that is no B-tree page any more is left alone."""
        for number in numbers:
            offset = (number - 1) * self.size
            start, end = self._gap(number, self._file.xRead(self.size, offset))
            if end > start:
                self._file.xWrite(bytes(end - start), offset + start)
        self._file.xSync(apsw.SQLITE_SYNC_FULL)

    def _gap(self, number: int, page: bytes) -> tuple[int, int]:
        """Where the unallocated space begins and ends; (0, 0) for a page that has none."""
        at = _DATABASE_HEADER_BYTES if number == 1 else 0
        header = _HEADER_BYTES.get(page[at])
        if header is None or number > MAX_PAGES:
            return 0, 0
        cells, content = int.from_bytes(page[at + 3 : at + 5], "big"), int.from_bytes(page[at + 5 : at + 7], "big") or 65_536
        start = at + header + 2 * cells
        return (start, content) if start <= content <= self.size else (0, 0)


@contextmanager
def opened_pages(path: str, vfs: str | None) -> Iterator[Pages]:
    """The pages of the database at `path`, which SQLite has open through `vfs`."""
    file = apsw.VFSFile(vfs or "", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        yield Pages(file)
    finally:
        file.xClose()
