"""A score, term by term: the sum that `Explanation` promises, as a table."""

from rich.console import Group

from agentir_ray.cli.console import Rows, plain
from agentir_ray.types import Explanation


def explanation_table(explanation: Explanation, title: str | None = None) -> Group:
    """One row a term, then recency and importance where they count, then the sum."""
    rows: list[tuple[object, ...]] = [(term.term, f"{term.weight:g}", f"{term.tf}", f"{term.df:,}", f"{term.idf:.4f}", f"{term.score:.6f}") for term in explanation.terms]
    rows += [(name, "", "", "", "", f"{value:.6f}") for name, value in (("recency", explanation.recency), ("importance", explanation.importance)) if value]
    rows.append(("score", "", "", "", "", f"{explanation.score:.6f}"))
    columns: list[str | tuple[str, str]] = ["term", ("weight", "right"), ("tf", "right"), ("df", "right"), ("idf", "right"), ("adds", "right")]
    lengths = f"{explanation.documents:,} records; this one has {explanation.length} terms, the average is {explanation.average_length:.1f}"
    return Group(Rows(columns, rows, title), plain(lengths, "dim"))
