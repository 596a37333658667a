"""How every benchmark reports: a table for people, or with `--json` one object for machines.

    {"figures": {...}, "machine": {...}, "bars": [{"name", "value", "bar", "ok"}, ...]}

One bar a row of the issue's table, named by the row's first cell. A bar that was not measured is not ok.
"""

import json
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Outcome = tuple[Any, bool]  # what was seen, and whether the bar holds


class Report:
    """Collects figures (anything worth knowing) and bars (what an issue promised), and tells of each on stderr as it comes."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.figures: dict[str, Any] = {}
        self.bars: list[dict[str, Any]] = []

    def figure(self, name: str, value: Any) -> None:
        self.figures[name] = value
        print(f"     {name}: {shown(value)}", file=sys.stderr, flush=True)

    def measure(self, name: str, bar: str, work: Callable[[], Outcome]) -> None:
        """Run `work`. One that fails must not hide what the others measure: its bar is not ok."""
        try:
            value, ok = work()
        except Exception as error:
            value, ok = f"not measured: {type(error).__name__}: {error}", False
        self.bars.append({"name": name, "value": value, "bar": bar, "ok": bool(ok)})
        print(_line(self.bars[-1], len(name)), file=sys.stderr, flush=True)

    def end(self, as_json: bool) -> int:
        """Print everything on stdout; the exit code is 0 if every bar holds."""
        if as_json:
            print(json.dumps({"figures": self.figures, "machine": machine(), "bars": self.bars}, ensure_ascii=False, indent=1))
        else:
            width = max((len(bar["name"]) for bar in self.bars), default=0)
            print(f"\n{self.title}", *(_line(bar, width) for bar in self.bars), sep="\n")
        return 0 if all(bar["ok"] for bar in self.bars) else 1


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    system = {"processor": _processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()} {platform.machine()}", "python": platform.python_version()}
    return system | {name: _version(name) for name in ("numpy", "numba", "apsw")}


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1_000 else f"{value:,.0f}" if isinstance(value, float) else str(value)


def _line(bar: dict[str, Any], width: int) -> str:
    return f"{'ok  ' if bar['ok'] else 'MISS'} {bar['name']:<{width}}  {shown(bar['value'])}  (bar: {bar['bar']})"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0] if names else platform.processor() or "unknown"
