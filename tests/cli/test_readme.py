"""The Python examples of the README and of the channels' page run as they stand."""

import re
from pathlib import Path

import pytest

from agentir_ray.encoders.catalogue import DENSE_ENCODERS, available

ROOT = Path(__file__).resolve().parents[2]


def run_example(page: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, page.name, "exec"), {})


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run_example(ROOT / "README.md")
    assert "2026-03-02  Alice moved to Lisbon" in capsys.readouterr().out


@pytest.mark.skipif("wordllama" not in available(DENSE_ENCODERS), reason="needs agentir-ray[offline-models]")
def test_the_example_of_channels_finds_what_words_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run_example(ROOT / "docs" / "channels.md")
    words, vectors, *channels = capsys.readouterr().out.splitlines()
    assert words == "bm25 -> We moved to Lisbon in March"
    assert vectors == "dense -> We adopted a puppy and named it Biscuit"
    assert [line.partition(":")[0] for line in channels] == ["bm25", "dense"]
