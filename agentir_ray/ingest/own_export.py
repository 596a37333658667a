"""Reads our own export (`export.py`).

A line that cannot be read (torn by a full disk, overwritten, of another shape) is reported and skipped; the rest is served. What the fields hold is judged by the store, record
by record.
"""

from collections.abc import Iterator
from typing import Any

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest.export import FORMAT, VERSION
from agentir_ray.ingest.items import Item, Skipped
from agentir_ray.ingest.source import Source
from agentir_ray.lexical.filters.metadata import shown

FIELDS = frozenset({"id", "text", "timestamp", "created_at", "session", "role", "importance", "expires_at", "supersedes", "metadata"})


def is_header(value: Any) -> bool:
    return isinstance(value, dict) and value.get("format") == FORMAT


def read(source: Source) -> Iterator[Item | Skipped]:
    """Items in the file's order. Exports that were concatenated are read as one: a header may come again."""
    headed = False
    try:
        for number, line in source.lines():
            where = f"{source.name}, line {number}"
            try:
                value = source.parse(line, where)
            except InvalidInputError as error:
                yield Skipped(where, str(error).removeprefix(f"{where}: "))
                continue
            if is_header(value):
                _check_version(value, where)
                headed = True
                continue
            if not headed:
                # The header itself may be the torn line, so this is told once and does not stop the rest.
                yield Skipped(where, f'no header {{"format": "{FORMAT}", ...}} before the first record')
                headed = True
            what = _wrong(value)
            yield Skipped(where, what) if what else Item(value, where=where)
    except InvalidInputError as error:
        if not headed:
            raise
        yield Skipped(source.name, f"the rest cannot be read: {error}")


def _check_version(header: dict[str, Any], where: str) -> None:
    version = header.get("version")
    if version != VERSION:
        raise InvalidInputError(f"{where}: export version {shown(version)}; this version reads {VERSION}")


def _wrong(value: Any) -> str:
    if not isinstance(value, dict):
        return "not a record: a JSON object was expected"
    unknown = sorted(value.keys() - FIELDS)
    if unknown:
        return f"unknown field {unknown[0]!r}"
    missing = sorted({"id", "text"} - value.keys())
    return f"{missing[0]!r} is missing" if missing else ""
