"""Plots of experiments as PNG files, in one style. matplotlib comes with `pip install agentir-ray[bench]` and is imported only when something is drawn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "plots"  # git ignores it
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")  # told apart by colour-blind readers, too (Okabe and Ito)


@contextmanager
def figure(folder: Path, name: str, title: str, panels: int = 1) -> Iterator[Any]:
    """The axes (a list where there are several panels, one above the other) of a figure that is saved as `folder/name.png` when the block ends."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    drawn, axes = pyplot.subplots(panels, 1, figsize=(8.0, 5.0 if panels == 1 else 3.2 * panels), dpi=150, layout="constrained", squeeze=False)
    own = [row[0] for row in axes]
    own[0].set_title(title, loc="left", fontsize=11)
    for one in own:
        one.grid(True, which="major", color="#dddddd", linewidth=0.7)
        one.spines[["top", "right"]].set_visible(False)
    yield own[0] if panels == 1 else own
    drawn.savefig(folder / f"{name}.png")
    pyplot.close(drawn)


def label_ends(axes: Any, x: float, ends: Sequence[tuple[float, str, str]], apart: float = 1.25) -> None:
    """Name the last points of lines, given as (value, words, colour), on a logarithmic axis; labels that would overlap move up."""
    lowest = 0.0
    for value, words, colour in sorted(ends):
        lowest = max(value, lowest * apart)
        axes.annotate(words, (x, lowest), textcoords="offset points", xytext=(8, -3), fontsize=8, color=colour)
