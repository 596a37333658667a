"""A file of an importer: bytes, lines or JSON, plain or gzip (told by its first bytes, not by its name), or standard input (`-`).

Whatever is wrong with the file becomes an InvalidInputError that names the file and the line. Sizes are bounded before anything is held in memory: a line (`MAX_LINE_BYTES`)
and a JSON document (`MAX_DOCUMENT_BYTES`), both counted after decompression, so that a gzip bomb is refused instead of unpacked.
"""

import codecs
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from agentir_ray.errors import InvalidInputError, NotFoundError
from agentir_ray.ingest.items import Skipped

MAX_LINE_BYTES = 128 << 20  # a 10 MB text with every character escaped as \uXXXX fits
MAX_DOCUMENT_BYTES = 1 << 30  # parsed whole: several times this in memory

_GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """One open file, read once, from the front. `name` is how messages call it."""

    def __init__(self, stream: IO[bytes], name: str, *, max_line_bytes: int = MAX_LINE_BYTES, max_document_bytes: int = MAX_DOCUMENT_BYTES) -> None:
        buffered = io.BufferedReader(cast(io.RawIOBase, stream))  # for peek: standard input cannot seek
        self._stream = cast(IO[bytes], gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == _GZIP_MAGIC else buffered)
        self.name = name
        self._max_line_bytes = max_line_bytes
        self._max_document_bytes = max_document_bytes
        self._first: bytes | None = None
        self._first_number = 1
        self._document: Any = None
        self._has_document = False

    def first_line(self) -> bytes:
        """The first line that is not blank, without consuming it; b"" when there is none. At most `max_line_bytes + 1` bytes of it."""
        number = 0
        while self._first is None:
            number += 1
            line = self._readline()
            if line.strip() or not line:
                self._first, self._first_number = line.removeprefix(codecs.BOM_UTF8), number
        return self._first

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(line number from 1, line without its ends) of every line that is not blank. A line over the limit comes as b"", which `parse` refuses."""
        line, number = self.first_line(), self._first_number
        self._first = b""
        while line:
            if len(line) > self._max_line_bytes:
                self._skip_rest_of_line(line)
                yield number, b""
            elif line.strip():
                yield number, line.strip()
            line, number = self._readline(), number + 1

    def document(self) -> Any:
        """The whole file as one JSON value; read and parsed once, then kept."""
        if not self._has_document:
            content = self.first_line() + self._read_rest()
            self._first = b""
            self._document, self._has_document = self.parse(content, self.name), True
        return self._document

    def values(self) -> Iterator[tuple[str, Any]]:
        """(where, value) of each JSON value of the file: the elements of a list, one object, or one value per line (JSON Lines), where a line that cannot be read is a Skipped."""
        if self._has_document or not self._is_json_lines():
            document = self.document()
            if isinstance(document, list):
                yield from ((f"{self.name}, element {number}", value) for number, value in enumerate(document, start=1))
            else:
                yield self.name, document
            return
        for number, line in self.lines():
            where = f"{self.name}, line {number}"
            try:
                yield where, self.parse(line, where)
            except InvalidInputError as error:
                yield where, Skipped(where, str(error).removeprefix(f"{where}: "))

    def first_value(self) -> Any:
        """The first of `values`, or None, without consuming it."""
        if self._is_json_lines():
            return json.loads(self.first_line())
        document = self.document()
        return next(iter(document), None) if isinstance(document, list) else document

    def parse(self, content: bytes, where: str) -> Any:
        """The JSON value of `content`; InvalidInputError that begins with `where` otherwise."""
        if not content.strip():
            raise InvalidInputError(f"{where}: empty, or longer than {self._max_line_bytes:,} bytes")
        try:
            return json.loads(content)
        except json.JSONDecodeError as error:
            place = f" (line {error.lineno}, column {error.colno})" if error.lineno > 1 else f" (column {error.colno})"
            raise InvalidInputError(f"{where}: not JSON: {error.msg}{place}") from None
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"{where}: not UTF-8 at byte {error.start:,}") from None
        except (ValueError, RecursionError) as error:  # an integer of thousands of digits, nesting of thousands of levels
            raise InvalidInputError(f"{where}: JSON that cannot be read: {error}") from None

    def _is_json_lines(self) -> bool:
        line = self.first_line().strip()
        if not line.startswith(b"{"):
            return False
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return False  # an object that goes on in the next line
        return True

    def _readline(self) -> bytes:
        with self._translated():
            return self._stream.readline(self._max_line_bytes + 1)

    def _skip_rest_of_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._readline()

    def _read_rest(self) -> bytes:
        with self._translated():
            rest = self._stream.read(self._max_document_bytes + 1)
        if len(rest) > self._max_document_bytes:
            raise InvalidInputError(f"{self.name}: larger than {self._max_document_bytes:,} bytes; split it, or use JSON Lines, which is read line by line")
        return rest

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InvalidInputError(f"{self.name}: the gzip data is cut off or damaged: {error}") from None
        except OSError as error:
            raise InvalidInputError(f"{self.name}: cannot be read: {error.strerror or error}") from None


@contextmanager
def open_source(path: str | Path) -> Iterator[Source]:
    """The file at `path`, or standard input for `-`; raises NotFoundError or InvalidInputError."""
    if str(path) == "-":
        yield Source(sys.stdin.buffer, "standard input")
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115  closed by the with below; only the opening is translated here
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be opened: {error.strerror}") from None
    with stream:
        yield Source(stream, str(path))
