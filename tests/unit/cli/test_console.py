"""Tables in any width."""

import pytest
from rich.console import Console

from agentir_ray.cli.console import Rows


def lines(rows: Rows, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(rows)
    return captured.get().splitlines()


COLUMNS: list[str | tuple[str, str]] = [("#", "right"), "date", "id", ("text", "wrap")]
CELLS = [(1, "2026-03-02 09:00", "01a22d1b-3ea3", "Alice moved to Lisbon in March"), (2, "2026-03-03 10:00", "", "日本 [bold]and[/] more")]


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 200])
def test_every_cell_can_be_read(width: int) -> None:
    shown = lines(Rows(COLUMNS, CELLS, "Found"), width)
    assert all(len(line) <= width for line in shown)
    words = " ".join(shown).split()
    for word in " ".join(str(cell) for row in CELLS for cell in row).split():
        assert word in words
    assert ("text" in words) == (width >= 80), "a table with its head, where there is room"


def test_figures_keep_their_head() -> None:
    assert "weight" in " ".join(lines(Rows(["term", ("weight", "right")], [("lisbon", "1")]), 20))
