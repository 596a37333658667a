"""The engines by name, and which of them this machine has. Each is imported only when it is asked for, so that one that cannot be imported does not stop the others."""

from importlib import import_module
from typing import Any

from benchmarks.compare.engine import Unavailable

# Conjunctive ones (ranked_and, block_max_ranked_and) answer another question; the taat ones are in the compiled part, though not in the list of the package.
PISA_ALGORITHMS = ("maxscore", "block_max_maxscore", "wand", "block_max_wand", "ranked_or", "ranked_or_taat", "ranked_or_taat_lazy")
# Name: module, class, arguments.
_ENGINES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ours": ("ours", "Ours", ()),
    **{f"pisa {algorithm}": ("pisa", "Pisa", (algorithm,)) for algorithm in PISA_ALGORITHMS},
    "lucene": ("lucene", "Lucene", ()),
    "tantivy": ("tantivy_peer", "Tantivy", ()),
    "bm25s": ("bm25s_peer", "Bm25s", ()),
}


def engine_named(name: str) -> Any:
    """Raises Unavailable where the peer is not installed."""
    module, kind, arguments = _ENGINES[name]
    return getattr(import_module(f"benchmarks.compare.{module}"), kind)(*arguments)


def available(wanted: list[str]) -> tuple[list[Any], dict[str, str]]:
    """The engines of the wanted families (or by full name), and why others are missing."""
    found, missing = [], {}
    for name in _ENGINES:
        if name in wanted or name.split()[0] in wanted:
            try:
                found.append(engine_named(name))
            except Unavailable as error:
                missing[name] = str(error)
    return found, missing
