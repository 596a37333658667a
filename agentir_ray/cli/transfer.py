"""`agentir import`, `export` and `backup`: memories in and out of a store."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from agentir_ray.cli.console import animates, complain, plain, print_json, stderr, stdout, working
from agentir_ray.cli.encoding import finish_encoding
from agentir_ray.cli.options import Encoder, Json, Namespace, SparseEncoder, Store, opened
from agentir_ray.cli.output_file import output_file
from agentir_ray.cli.storing import Totals, store_items
from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import FORMATS, read, write_export
from agentir_ray.types import Record

T = TypeVar("T")
_SHOWN = 10  # complaints about single records; the rest is counted


def import_(
    file: Annotated[str, typer.Argument(help="A file, plain or gzip; - reads standard input; a folder is taken as BEAM chats.")],
    store: Store = None,
    namespace: Namespace = "default",
    format: Annotated[str, typer.Option("--format", "-f", help=f"auto, {', '.join(FORMATS)}.")] = "auto",
    encoder: Encoder = None,
    sparse_encoder: SparseEncoder = None,
    as_json: Json = False,
) -> None:
    """Import an export or a chat. Ends with 1 when a part of it could not be stored; the rest is."""
    start = time.perf_counter()
    outcomes = _begun(read(file, format))  # a file that cannot be read leaves no empty store behind
    with opened(store, namespace, write=True, create=True, encoder=encoder, sparse_encoder=sparse_encoder) as memory:
        with _progress("importing", as_json) as progress:
            task = progress.add_task("records", total=None)
            totals = store_items(memory, namespace, outcomes, lambda count: progress.advance(task, count))
        for name in sorted(totals.namespaces) if encoder or sparse_encoder else ():
            finish_encoding(memory, name, as_json)
    _report(totals, time.perf_counter() - start, as_json)
    if totals.troubles:
        raise typer.Exit(1)


def export(
    file: Annotated[str, typer.Argument(help="Where to; - writes to standard output; a name that ends in .gz is compressed.")] = "-",
    store: Store = None,
    namespace: Namespace = "default",
    salvage: Annotated[bool, typer.Option("--salvage", help="Read around damage instead of stopping at it.")] = False,
    as_json: Json = False,
) -> None:
    """Export a namespace as JSON Lines, which `agentir import` reads."""
    if file == "-" and as_json:
        raise InvalidInputError("--json reports on an export to a file; standard output is JSON Lines already")
    with opened(store, namespace) as memory:
        records = _begun(memory.export(salvage=salvage))  # a namespace that is not there leaves no file with nothing in it
        if file == "-":
            write_export(records, sys.stdout, namespace)
            return
        with _progress("exporting", as_json) as progress, output_file(Path(file)) as out:
            task = progress.add_task("records", total=None)
            count = write_export(_counted(records, progress, task), out, namespace)
    if as_json:
        print_json({"namespace": namespace, "records": count, "file": file})
    else:
        stdout().print(plain(f"exported {count:,} records to {file}"))


def backup(
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    store: Store = None,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """Copy the whole store, consistently. A process that has it open backs it up with `Memory.backup`."""
    with opened(store, namespace, write=True) as memory, working("copying the store"):
        memory.backup(os.fspath(folder))
    if as_json:
        print_json({"folder": os.fspath(folder)})
    else:
        stdout().print(plain(f"backed up to {folder}"))


def _begun(elements: Iterator[T]) -> Iterator[T]:
    """The same elements, the first one fetched now: what is wrong with all of them shows before anything is made."""
    for first in elements:
        return chain((first,), elements)
    return iter(())


def _report(totals: Totals, seconds: float, as_json: bool) -> None:
    for where, what in totals.troubles[:_SHOWN]:
        complain(f"not stored: {where}: {what}")
    if len(totals.troubles) > _SHOWN:
        complain(f"and {len(totals.troubles) - _SHOWN:,} more were not stored")
    if as_json:
        print_json({"added": totals.added, "duplicates": totals.duplicates, "failed": totals.troubles, "namespaces": sorted(totals.namespaces), "seconds": seconds})
        return
    places = f" in {len(totals.namespaces)} namespaces" if len(totals.namespaces) > 1 else ""
    stdout().print(f"added {totals.added:,}, already there {totals.duplicates:,}, not stored {len(totals.troubles):,}{places}; {seconds:.2f} s")


class _Records(ProgressColumn):
    """How many so far, and how many a second of late."""

    def render(self, task: Task) -> Text:
        rate = "" if task.speed is None else f", {task.speed:,.0f}/s"
        return plain(f"{task.completed:,.0f} records{rate}")


def _progress(what: str, as_json: bool) -> Progress:
    """On standard error, and only on a terminal: a log file is no place for animation. Who asks for JSON is a program. The number of records is not known before the end."""
    console = stderr()
    columns = (SpinnerColumn(), TextColumn(what), BarColumn(), _Records(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=as_json or not animates(console))


def _counted(records: Iterable[Record], progress: Progress, task: int) -> Iterator[Record]:
    for record in records:
        yield record
        progress.advance(task)  # type: ignore[arg-type]  # TaskID is an int
