"""The engines by name, and which of them this machine has."""

from collections.abc import Callable
from typing import Any

from benchmarks.compare import pisa
from benchmarks.compare.engine import Unavailable
from benchmarks.compare.ours import Ours


def _makers() -> dict[str, Callable[[], Any]]:
    return {"ours": Ours, **{f"pisa {algorithm}": (lambda algorithm=algorithm: pisa.Pisa(algorithm)) for algorithm in pisa.ALGORITHMS}}


def names() -> list[str]:
    return list(_makers())


def engine_named(name: str) -> Any:
    """Raises Unavailable where the peer is not installed."""
    return _makers()[name]()


def available(wanted: list[str]) -> tuple[list[Any], dict[str, str]]:
    """The engines whose name starts with one of `wanted`, and why others are missing."""
    found, missing = [], {}
    for name, make in _makers().items():
        if any(name == want or name.startswith(f"{want} ") for want in wanted):
            try:
                found.append(make())
            except Unavailable as error:
                missing[name] = str(error)
    return found, missing
