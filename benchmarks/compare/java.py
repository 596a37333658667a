"""Lucene's classes and the process that runs them.

They come from the Anserini jar inside the source distribution of `pyserini`, which pip downloads into the cache folder once; nothing of it is installed. `LuceneBench.java` is
compiled there as well. Needs a JDK of version 17 or later.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.compare.engine import Unavailable

_SOURCE = Path(__file__).with_name("LuceneBench.java")
HEAP = "-Xmx8g"


def cache_folder() -> Path:
    """Where the jar and the compiled class are kept; `lexical.py` sets the variable."""
    return Path(os.environ.get("AGENTIR_BENCH_CACHE") or tempfile.gettempdir())


def jar() -> Path:
    """Raises Unavailable where it is not in the cache and cannot be downloaded."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        raise Unavailable("Lucene: it takes a JDK of version 17 or later (`java` and `javac` on the path)")
    found = sorted(cache_folder().glob("anserini-*-fatjar.jar"))
    if not found:
        _download(cache_folder())
        found = sorted(cache_folder().glob("anserini-*-fatjar.jar"))
    if not found:
        raise Unavailable("Lucene: the source distribution of pyserini holds no Anserini jar any more")
    return found[-1]


def _download(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        print("     downloading the source distribution of pyserini for its Anserini jar", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pyserini", "--dest", temporary, "pyserini"]
        result = subprocess.run(command, capture_output=True, text=True)
        archive = next(Path(temporary).glob("pyserini-*.tar.gz"), None)
        if archive is None:
            raise Unavailable(f"Lucene: pip could not download pyserini ({result.stderr.strip()[-200:]})")
        with tarfile.open(archive) as packed:
            for member in packed:
                name = Path(member.name).name
                if name.startswith("anserini-") and name.endswith("-fatjar.jar"):
                    content = packed.extractfile(member)
                    assert content is not None
                    with (folder / f"{name}.part").open("wb") as file:
                        shutil.copyfileobj(content, file)
                    (folder / f"{name}.part").rename(folder / name)


def _compiled() -> Path:
    folder = cache_folder() / "java"
    made = folder / "LuceneBench.class"
    if not made.exists() or made.stat().st_mtime < _SOURCE.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(["javac", "-cp", str(jar()), "-d", str(folder), str(_SOURCE)], capture_output=True, text=True)
        if result.returncode:
            raise Unavailable(f"Lucene: javac failed, a JDK of version 17 or later is needed: {result.stderr.strip()[:300]}")
    return folder


class Jvm:
    """A running `LuceneBench`. `ask` sends one command and returns the words of its answer."""

    def __init__(self) -> None:
        classes = f"{jar()}{os.pathsep}{_compiled()}"
        self._process = subprocess.Popen(["java", HEAP, "-cp", classes, "LuceneBench"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, *words: str) -> list[str]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"Lucene: its process ended with {self._process.wait()} at {words[0]!r}")
        return answer.rstrip("\n").split("\t")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
