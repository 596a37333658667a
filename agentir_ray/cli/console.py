"""Printing: tables for people, JSON for programs, complaints on standard error.

Texts come from anywhere, so they are never taken for markup, and control characters (which could move the cursor or rewrite the screen) are taken out. rich leaves out colours
and animation by itself where the output is no terminal.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FILE_WIDTH = 160  # a pipe or a file has no width of its own; 80 would cut the texts to a few words
_GAP = 3  # between columns, their separator included
_LEAST_WIDTH = 24  # of a column of texts


def stdout() -> Console:
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def animates(console: Console) -> bool:
    """Whether what moves is in place there: on a terminal that can, not in a log file, even one that is told to be in colour (FORCE_COLOR)."""
    return console.is_interactive and console.file.isatty()


def working(what: str) -> AbstractContextManager[object]:
    """A sign of life on a terminal while the block runs, for what cannot tell how far it is."""
    console = stderr()
    return console.status(plain(what)) if animates(console) else nullcontext()


def complain(message: str) -> None:
    """One line on standard error, in the form that other tools use."""
    sys.stderr.write(f"agentir: {clean(message)}\n")


def print_json(value: Any) -> None:
    """One JSON document, its scripts readable where the output is UTF-8."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=not utf8, indent=2, default=str) + "\n")


def clean(text: str) -> str:
    """`text` on one line, without control characters."""
    return _CONTROL.sub(" ", text)


def plain(text: object, style: str = "") -> Text:
    """`text` as it is: no markup in it is followed."""
    return Text(clean(str(text)), style=style)


def counted(count: int, what: str) -> str:
    """Such as: 1 record, 1,234 records."""
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


class Rows:
    """Plain cells under their names: a table where the width allows it, and else a block a row, so that long texts can still be read.

    A column is its name, or (name, "right" | "wrap"); only "wrap" columns give way when the width is short.
    """

    def __init__(self, columns: Sequence[str | tuple[str, str]], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
        self._columns = [(column, "") if isinstance(column, str) else column for column in columns]
        self._rows = [[cell if isinstance(cell, Text) else plain(cell) for cell in row] for row in rows]
        self._title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rigid = [n for n, (_, kind) in enumerate(self._columns) if kind != "wrap"]
        widths = [max([len(self._columns[n][0]), *(row[n].cell_len for row in self._rows)]) + _GAP for n in rigid]
        supple = len(self._columns) - len(rigid)
        if not supple or sum(widths) + supple * (_LEAST_WIDTH + _GAP) <= options.max_width:
            yield self._table()
        else:
            yield from self._blocks(rigid)

    def _table(self) -> Table:
        result = Table(box=box.SIMPLE_HEAD, title=self._title, title_justify="left", title_style="bold", pad_edge=False)
        for name, kind in self._columns:
            result.add_column(name, justify="right" if kind == "right" else "left", no_wrap=kind != "wrap", overflow="fold" if kind == "wrap" else "ellipsis")
        for row in self._rows:
            result.add_row(*row)
        return result

    def _blocks(self, rigid: Sequence[int]) -> Iterator[RenderableType]:
        if self._title is not None:
            yield plain(self._title, "bold")
        for row in self._rows:
            yield Text("  ").join(row[n] for n in rigid if row[n])
            for n in range(len(row)):
                if n not in rigid:
                    yield Padding(row[n], (0, 0, 0, _GAP))


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _FILE_WIDTH
    return console
