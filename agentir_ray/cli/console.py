"""Printing: tables for people, JSON for programs, complaints on standard error.

Texts come from anywhere, so they are never taken for markup, and control characters (which could move the cursor or rewrite the screen) are taken out. rich leaves out colours
and animation by itself where the output is no terminal.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FILE_WIDTH = 160  # a pipe or a file has no width of its own; 80 would cut the texts to a few words


def stdout() -> Console:
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def working(what: str) -> AbstractContextManager[object]:
    """A sign of life on a terminal while the block runs, for what cannot tell how far it is."""
    console = stderr()
    return console.status(plain(what)) if console.is_terminal else nullcontext()


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


def date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def table(columns: Sequence[str | tuple[str, str]], rows: Iterable[Sequence[object]], title: str | None = None) -> Table:
    """A table of plain cells. A column is its name, or (name, "right" | "wrap"); only "wrap" columns give way when the width is short."""
    result = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        name, kind = (column, "") if isinstance(column, str) else column
        result.add_column(name, justify="right" if kind == "right" else "left", no_wrap=kind != "wrap", overflow="fold" if kind == "wrap" else "ellipsis")
    for row in rows:
        result.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    return result


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _FILE_WIDTH
    return console
