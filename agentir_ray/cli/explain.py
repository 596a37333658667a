"""A score, term by term or channel by channel: what its explanation promises, as a table."""

from rich.console import Group

from agentir_ray.cli.console import Rows, plain
from agentir_ray.types import Explanation, FusedExplanation


def explanation_table(explanation: Explanation | FusedExplanation, title: str | None = None) -> Group:
    """One row a term or channel, then what else counts, then the sum."""
    return _of_words(explanation, title) if isinstance(explanation, Explanation) else _of_channels(explanation, title)


def _of_words(explanation: Explanation, title: str | None) -> Group:
    rows: list[tuple[object, ...]] = [(term.term, f"{term.weight:g}", f"{term.tf}", f"{term.df:,}", f"{term.idf:.4f}", f"{term.score:.6f}") for term in explanation.terms]
    rows += [(name, "", "", "", "", f"{value:.6f}") for name, value in (("recency", explanation.recency), ("importance", explanation.importance)) if value]
    rows.append(("score", "", "", "", "", f"{explanation.score:.6f}"))
    columns: list[str | tuple[str, str]] = ["term", ("weight", "right"), ("tf", "right"), ("df", "right"), ("idf", "right"), ("adds", "right")]
    lengths = f"{explanation.documents:,} records; this one has {explanation.length} terms, the average is {explanation.average_length:.1f}"
    return Group(Rows(columns, rows, title), plain(lengths, "dim"))


def _of_channels(explanation: FusedExplanation, title: str | None) -> Group:
    def shown(value: float | None) -> str:
        return "" if value is None else f"{value:.6f}"

    rows: list[tuple[object, ...]] = [
        (one.channel, shown(one.score), "" if one.rank is None else f"{one.rank}", shown(one.normalised), f"{one.weight:g}", shown(one.adds)) for one in explanation.channels
    ]
    if explanation.passages:
        rows.append(("passages", "", "", "", "", shown(-explanation.passages)))
    if explanation.context is not None:
        with_them = explanation.fused - explanation.recency - explanation.importance
        rows += [(name, "", "", "", "", shown(value)) for name, value in (("together", explanation.own), ("neighbours' mean", explanation.context), ("with that", with_them))]
    rows += [(name, "", "", "", "", shown(value)) for name, value in (("recency", explanation.recency), ("importance", explanation.importance)) if value]
    if explanation.reranked is not None:
        rows += [("before reranking", "", "", "", "", shown(explanation.fused)), ("reranker", "", "", "", "", shown(explanation.reranked))]
    rows.append(("score", "", "", "", "", shown(explanation.score)))
    columns: list[str | tuple[str, str]] = ["channel", ("score", "right"), ("rank", "right"), ("normalised", "right"), ("weight", "right"), ("adds", "right")]
    return Group(Rows(columns, rows, title))
