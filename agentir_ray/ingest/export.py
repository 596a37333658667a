"""Our own export: JSON Lines, a header and then one record a line, in the log's order. `own_export` reads it.

Every line stands alone, so that a damaged one costs one record. Times are ISO 8601 in UTC with microseconds; absent fields are left out. `seq` is not exported: it is given by
the log that a record enters.
"""

import json
from collections.abc import Iterable
from typing import Any, TextIO

from agentir_ray.types import Record, to_datetime

FORMAT = "agentir-export"
VERSION = 1


def record_to_dict(record: Record) -> dict[str, Any]:
    """The record as JSON-ready arguments of `Memory.add` plus `created_at`; None, empty metadata and importance 0 are left out."""
    fields: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "timestamp": _iso(record.timestamp_us),
        "created_at": _iso(record.created_at_us),
        "session": record.session,
        "role": record.role,
        "importance": record.importance or None,
        "expires_at": None if record.expires_at_us is None else _iso(record.expires_at_us),
        "supersedes": record.supersedes,
        "metadata": dict(record.metadata) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def write_export(records: Iterable[Record], out: TextIO, namespace: str) -> int:
    """Write header and records to `out`; returns the number of records. Lines are ASCII, so that no terminal, pipe or editor changes them."""
    out.write(json.dumps({"format": FORMAT, "version": VERSION, "namespace": namespace}) + "\n")
    count = 0
    for record in records:
        out.write(json.dumps(record_to_dict(record)) + "\n")
        count += 1
    return count


def _iso(time_us: int) -> str:
    return to_datetime(time_us).isoformat(timespec="microseconds").replace("+00:00", "Z")
