"""How a benchmark says what it found: rows with a value and a bar, as a table or, with `--json`, as one object.

    {"figures": {...}, "machine": {...}, "bars": [{"name", "value", "sense", "bar", "ok", "note"}]}

A row that was not measured has the value null and is not ok: a bar is met only by a measurement. It knows no benchmark.
"""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """A measured value and the bar that it must reach (`>=`), or stay at or below (`<=`).

    `value` is None where it was not measured, and `note` then says why; `bar` is None where the bar itself would have been measured.
    """

    name: str
    value: float | None
    bar: float | None
    sense: str = ">="
    note: str = ""
    ok: bool = field(init=False)

    def __post_init__(self) -> None:
        # Not-a-number compares false either way, so that it is never ok.
        met = self.value is not None and self.bar is not None and (self.value >= self.bar if self.sense == ">=" else self.value <= self.bar)
        object.__setattr__(self, "ok", met)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def publish(rows: Sequence[Row], figures: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the report; returns the exit code, 0 when every row is ok."""
    if as_json:
        report = {"figures": dict(figures), "machine": machine(), "bars": [asdict(row) for row in rows]}
        sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write(table(rows) + "\n")
    return 0 if all(row.ok for row in rows) else 1


def table(rows: Sequence[Row]) -> str:
    """The rows as an aligned table, failing ones marked."""
    cells = [("", "row", "value", "bar", "")]
    cells += [("ok" if row.ok else "NOT", row.name, _number(row.value), f"{row.sense} {_number(row.bar)}", row.note) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells)


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.0f}"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0] if names else platform.processor() or "unknown"
