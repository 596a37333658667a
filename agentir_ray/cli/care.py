"""`agentir stats`, `verify` and `doctor`: what a store holds, whether it is sound, and whether this machine is ready for it."""

import importlib
import os
import pkgutil
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer

from agentir_ray import kernels
from agentir_ray.cli.console import Rows, plain, print_json, stdout, working
from agentir_ray.cli.options import SPILL_VARIABLE, Json, Namespace, Store, default_store, opened
from agentir_ray.client.memory import Memory
from agentir_ray.client.warm import warm_up
from agentir_ray.errors import AgentIRError, DamagedError
from agentir_ray.storage.spill import without_secrets

_PACKAGES = ("agentir-ray", "numpy", "numba", "apsw", "PyStemmer", "nltk", "zstandard")


def stats(store: Store = None, namespace: Namespace = "default", as_json: Json = False) -> None:
    """Show what a namespace and its store hold."""
    with opened(store, namespace) as memory:
        found = memory.stats()
        if found["namespace"] is None:
            found["below"] = memory.namespaces(namespace)
    if as_json:
        print_json(found)
    else:
        stdout().print(Rows(["", ("value", "wrap")], _flat(found)))


def verify(store: Store = None, namespace: Namespace = "default", as_json: Json = False) -> None:
    """Check every checksum of the store. Ends with 6 when something is damaged."""
    with opened(store, namespace) as memory, working("reading every byte"):
        problems = memory.verify()
    if as_json:
        print_json([asdict(problem) for problem in problems])
    elif problems:
        stdout().print(Rows([("file", "wrap"), ("what", "wrap"), ("way out", "wrap")], [(problem.file, problem.what, problem.remedy) for problem in problems]))
    else:
        stdout().print("no damage found")
    if problems:
        raise typer.Exit(DamagedError.exit_code)


def doctor(store: Store = None, as_json: Json = False) -> None:
    """Show versions and places, compile and cache the kernels, and try the store."""
    path = store or default_store()
    first_s, second_s = warm_up(), warm_up()
    findings: dict[str, Any] = {
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        **{name: _version(name) for name in _PACKAGES},
        "kernels compiled and tried": f"{first_s:.2f} s, then {second_s:.2f} s",
        "kernels cached in": ", ".join(_cache_folders()) or "nowhere (every process compiles anew; set NUMBA_CACHE_DIR to a folder that can be written)",
        "store": str(path),
        "store's state": _state(path),
        **_encoders(),
        "spills to": without_secrets(os.environ.get(SPILL_VARIABLE, "")) or f"nowhere (set {SPILL_VARIABLE} to a folder or a URL)",
    }
    if as_json:
        print_json(findings)
    else:
        stdout().print(Rows(["", ("finding", "wrap")], [(name, plain(value)) for name, value in findings.items()]))


def _cache_folders() -> list[str]:
    """Where Numba keeps what it compiled, asked of the kernels themselves: numba is imported by nobody else."""
    modules = [importlib.import_module(module.name) for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}.")]
    paths = (getattr(getattr(value, "stats", None), "cache_path", None) for module in modules for value in vars(module).values())
    return sorted({path for path in paths if path})


def _state(path: Path) -> str:
    if not path.exists():
        return "not there yet; the first `agentir add` or `agentir import` makes it"
    try:
        with Memory.open(str(path), read_only=True, create=False) as memory:
            return f"opens; {len(memory.namespaces()):,} namespaces"
    except AgentIRError as error:
        return str(error)


def _encoders() -> dict[str, str]:
    """By the option that takes it and its name: what each encoder is, and whether it is here or how to get it."""
    from agentir_ray.encoders.catalogue import DENSE_ENCODERS, SPARSE_ENCODERS, available  # which no other command's start need wait for

    found = {}
    for option, entries in (("--encoder", DENSE_ENCODERS), ("--sparse-encoder", SPARSE_ENCODERS)):
        here = available(entries)
        for name, entry in entries.items():
            model = f"; the model {entry.hub} must be in the hub's cache on this machine" if entry.hub else ""
            state = f"not installed: {entry.install}" if name not in here else "packages are installed" if entry.hub else "installed"
            found[f"{option} {name}"] = f"{state}{model} ({entry.about})"
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _cell(inner)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "none" if value is None else str(value)
