"""`import agentir_ray` stays light: what only some users need is imported by those who use it. (How fast it is, is measured in `benchmarks.embedded`.)"""

import subprocess
import sys

import pytest

HEAVY = ("torch", "ray", "sentence_transformers", "transformers", "faiss", "nltk", "typer", "rich", "platformdirs", "psycopg", "mcp")


def imported_with(statement: str) -> set[str]:
    """Top-level modules in `sys.modules` of a fresh interpreter after `statement`."""
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", ["import agentir_ray", "import agentir_ray.ingest"])
def test_import_brings_nothing_heavy(statement: str) -> None:
    assert imported_with(statement).isdisjoint(HEAVY)
