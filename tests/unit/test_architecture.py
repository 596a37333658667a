"""ARCHITECTURE.md names every module that exists, and none that does not."""

import re
from collections.abc import Iterator
from pathlib import Path

from agentir_ray import sections
from agentir_ray.dense import sidecar
from agentir_ray.engine import manifest
from agentir_ray.ingest import export
from agentir_ray.lexical import builder, spilled, weights
from agentir_ray.storage import codec, sqlite_schema, vector_ledger
from agentir_ray.temporal import statistics

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agentir_ray"


def listed() -> Iterator[str]:
    """Paths in the first code block after "## The tree": folders end with "/", the indentation is two spaces a level, the name ends at the first space."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = re.search(r"## The tree\n.*?```\n(.*?)```", text, re.DOTALL)
    assert block is not None
    folders: list[str] = []
    for line in block[1].splitlines():
        name, level = line.split()[0], (len(line) - len(line.lstrip())) // 2
        del folders[level:]
        if name.endswith("/"):
            folders.append(name)
        else:
            yield "".join(folders) + name


def test_the_tree_is_the_tree() -> None:
    names = list(listed())
    exist = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    assert set(names) == exist
    assert len(names) == len(set(names))


def test_the_versions_of_formats_are_those_of_the_code() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = {module: int(version) for version, module in re.findall(r"\| (\d+) \|.*\(`(.*?\.py)`\) \|", text)}
    assert told == {
        "storage/sqlite_schema.py": sqlite_schema.FORMAT_VERSION,
        "storage/vector_ledger.py": vector_ledger.FORMAT_VERSION,
        "storage/codec.py": codec.BODY_FORMAT,
        "engine/manifest.py": manifest.FORMAT,
        "sections.py": sections.CONTAINER_VERSION,
        "lexical/builder.py": builder.FORMAT_VERSION,
        "lexical/spilled.py": spilled.FORMAT_VERSION,
        "lexical/weights.py": weights.FORMAT_VERSION,
        "dense/sidecar.py": sidecar.FORMAT_VERSION,
        "temporal/statistics.py": statistics.FORMAT,
        "ingest/export.py": export.VERSION,
    }


def test_every_module_says_what_it_is() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert not [path for path, text in texts.items() if text and not text.startswith(('"""', 'r"""'))]
