"""`english` and `standard` against what the real Lucene 9.9 emitted."""

import gzip
import json
from pathlib import Path

import pytest

from agentir_ray.analysis import get_analyzer

# Texts whose tokens may differ, with the reason. Empty: the tables are those of the Unicode versions that Lucene was generated from.
KNOWN_DIFFERENCES: dict[str, str] = {}


@pytest.mark.parametrize("name", ["english", "standard"])
def test_every_golden_text_has_lucenes_tokens(name: str, shared: Path) -> None:
    path = shared / "golden" / "lucene_tokens.jsonl.gz"
    if not path.exists():
        pytest.skip("the golden tokens are not in the shared data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        golden = [row for row in map(json.loads, lines) if row["analyzer"] == name]
    analyzer = get_analyzer(name)
    different = [row["text"] for row in golden if analyzer.tokens(row["text"]) != row["tokens"] and row["text"] not in KNOWN_DIFFERENCES]
    assert len(golden) > 500
    assert different == []
