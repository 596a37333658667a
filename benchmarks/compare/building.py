"""Builds of indexes, each in a process of its own, so that its CPU and its peak memory can be told; the figures stay beside the index and are read again when it is cached.

python -m benchmarks.compare.building ENGINE COLLECTION_FOLDER INDEX_FOLDER
"""

import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.compare.corpora import Collection
from benchmarks.compare.engine import Engine, folder_bytes
from benchmarks.compare.peers import engine_named

_FIGURES = "build.json"


def built(engine: Any, collection: Collection) -> tuple[Path, dict[str, Any]]:
    """The engine's index of the collection and what building it cost."""
    folder = collection.folder / "indexes" / engine.index_name
    if not (folder / _FIGURES).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"     building {engine.index_name} for {collection.name}", file=sys.stderr, flush=True)
        _in_a_process(engine.name, collection, folder)
    return folder, json.loads((folder / _FIGURES).read_text())


def _in_a_process(name: str, collection: Collection, folder: Path) -> None:
    log = collection.folder / "indexes" / f"{folder.name}.log"  # engines talk a lot while they build
    with log.open("w") as output:
        command = [sys.executable, "-m", "benchmarks.compare.building", name, str(collection.folder), str(folder)]
        if subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode:
            raise RuntimeError(f"building {name} failed: {log.read_text()[-500:]}")


def _build(engine: Engine, collection: Collection, folder: Path) -> None:
    # What every engine is given: read before the clock starts.
    _ = collection.length, collection.counted
    before, began = _cpu_s(), time.perf_counter()
    engine.build(collection, folder)
    wall, cpu = time.perf_counter() - began, _cpu_s() - before
    figures = {"wall_s": wall, "cpu_s": cpu, "peak_memory_bytes": _peak_bytes(), "index_bytes": folder_bytes(folder), "documents_per_s": collection.documents / wall}
    (folder / _FIGURES).write_text(json.dumps(figures))


def _peak_bytes() -> int:
    """Of this process, or of the largest that it started (a JVM). `ru_maxrss` of a process that replaced another's image contains that one's, so its own comes from elsewhere."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    status = Path("/proc/self/status")
    if not status.exists():
        return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    own = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return max(children, int(own.split()[1]) * 1024)


def _cpu_s() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


if __name__ == "__main__":
    _name, _collection, _folder = sys.argv[1:]
    _build(engine_named(_name), Collection(Path(_collection)), Path(_folder))
