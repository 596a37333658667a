"""`agentir search`: a question, and its dated answers with scores, timings and what was searched."""

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any

import typer

from agentir_ray.cli.answers import Answer, ask
from agentir_ray.cli.console import Rows, date, plain, print_json, stdout
from agentir_ray.cli.explain import explanation_table
from agentir_ray.cli.options import Encoder, Json, Namespace, Role, Session, Since, SparseEncoder, Store, Until, Where, opened, parse_where
from agentir_ray.cli.snippet import snippet
from agentir_ray.engine.request import MODES
from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import record_to_dict
from agentir_ray.types import TimeRange


def search(
    query: Annotated[str, typer.Argument(help="The question, in any language.")],
    store: Store = None,
    namespace: Namespace = "default",
    k: Annotated[int, typer.Option("-k", help="How many answers.")] = 10,
    offset: Annotated[int, typer.Option("--offset", help="Leave out the first ones.")] = 0,
    mode: Annotated[str, typer.Option("--mode", help=f"{', '.join(MODES)}.")] = "auto",
    since: Since = None,
    until: Until = None,
    where: Where = None,
    session: Session = None,
    role: Role = None,
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="Ask as if it were then.")] = None,
    recency: Annotated[str | None, typer.Option("--recency", metavar="WEIGHT:TIME", help="Prefer the recent, e.g. 0.5:30d.")] = None,
    importance: Annotated[float | None, typer.Option("--importance", help="Prefer the important, by this weight.")] = None,
    min_score: Annotated[float | None, typer.Option("--min-score")] = None,
    coverage: Annotated[str, typer.Option("--coverage", help="auto, exact, or a probability such as 0.95.")] = "auto",
    deadline_ms: Annotated[float | None, typer.Option("--deadline-ms")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Leave out texts that do not fit into this many together.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
    temporal: Annotated[str | None, typer.Option("--temporal", metavar="parse", help="'parse': times that the question names in English narrow the search.")] = None,
    weights: Annotated[str | None, typer.Option("--weights", metavar="CHANNEL=NUMBER,...", help="What each channel counts, e.g. bm25=.3,dense=.7.")] = None,
    depth: Annotated[int | None, typer.Option("--depth", help="How many of the best of each channel are fused.")] = None,
    context_weight: Annotated[float | None, typer.Option("--context-weight", help="0 to 1: what the neighbours in the session count.")] = None,
    passage_penalty: Annotated[float | None, typer.Option("--passage-penalty", help="What a record loses for each doubling of its passages.")] = None,
    rerank: Annotated[str | None, typer.Option("--rerank", metavar="maxsim", help="'maxsim': compare the best again, token by token.")] = None,
    rerank_weight: Annotated[float | None, typer.Option("--rerank-weight", help="0 to 1: what that counts.")] = None,
    rerank_depth: Annotated[int | None, typer.Option("--rerank-depth", help="How many of the best.")] = None,
    encoder: Encoder = None,
    sparse_encoder: SparseEncoder = None,
    as_json: Json = False,
) -> None:
    """Search a namespace, or the ones below it where it holds nothing itself."""
    options: dict[str, Any] = {
        "mode": mode,
        "since": since,
        "until": until,
        "where": parse_where(where),
        "session": session,
        "role": role,
        "as_of": as_of,
        "recency": _parse_recency(recency),
        "importance": importance,
        "min_score": min_score,
        "coverage": _parse_coverage(coverage),
        "deadline_ms": deadline_ms,
        "max_tokens": max_tokens,
        "explain": explain,
        "temporal": temporal,
        "weights": _parse_weights(weights),
        "depth": depth,
        "context_weight": context_weight,
        "passage_penalty": passage_penalty,
        "rerank": rerank,
        "rerank_weight": rerank_weight,
        "rerank_depth": rerank_depth,
    }
    with opened(store, namespace, encoder=encoder, sparse_encoder=sparse_encoder) as memory:
        answer = ask(memory, namespace, query, k=k, offset=offset, **options)
    if as_json:
        print_json(_as_json(answer))
    else:
        print_answer(answer, query, first=offset + 1)


def print_answer(answer: Answer, query: str, *, title: str | None = None, first: int = 1) -> None:
    """The table, the timings and the coverage; explanations where they were asked for."""
    several = len(answer.results) > 1
    columns: list[str | tuple[str, str]] = [("#", "right"), "date", ("score", "right"), *(["namespace"] if several else []), "session", ("text", "wrap")]
    rows = [
        [place, date(hit.record.timestamp), f"{hit.score:.3f}", *([plain(name)] if several else []), hit.record.session or "", snippet(hit.record.text, query)]
        for place, (name, hit) in enumerate(answer.hits, start=first)
    ]
    out = stdout()
    out.print(Rows(columns, rows, title) if rows else plain("nothing found"))
    for place, (_, hit) in enumerate(answer.hits, start=first):
        if hit.explanation is not None:
            out.print(explanation_table(hit.explanation, f"# {place}: {hit.record.id}"))
    if answer.time_range is not None:
        out.print(plain(f"understood: {answer.time_range.phrase!r} as {_range(answer.time_range)}", "dim"))
    out.print(plain(f"time: {_timings(answer.timings_us)}", "dim"))
    out.print(plain(f"coverage: {answer.coverage()}", "dim"))


def _range(time_range: TimeRange) -> str:
    since, until = (None if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC" for time in (time_range.since, time_range.until))
    return f"{since} to {until}" if since and until else f"since {since}" if since else f"until {until}"


def _timings(timings_us: Mapping[str, float]) -> str:
    return ", ".join(f"{step} {time_us:,.0f} us" for step, time_us in timings_us.items())


def _as_json(answer: Answer) -> dict[str, Any]:
    return {
        "hits": [{"namespace": name, "score": hit.score, "record": record_to_dict(hit.record), "explanation": _dict(hit.explanation)} for name, hit in answer.hits],
        "coverage": {name: _dict(result.coverage) for name, result in answer.results.items()},
        "stages": {name: list(result.stages) for name, result in answer.results.items()},
        "timings_us": answer.timings_us,
        "time_range": None if answer.time_range is None else {"phrase": answer.time_range.phrase, "since": answer.time_range.since, "until": answer.time_range.until},
        "query_ids": {name: result.query_id for name, result in answer.results.items()},
    }


def _dict(value: Any) -> Any:
    """Dataclasses with their nested ones, as JSON has them."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _parse_coverage(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _parse_recency(text: str | None) -> tuple[float, str] | None:
    if text is None:
        return None
    weight, separator, tau = text.partition(":")
    try:
        if separator:
            return float(weight), tau
    except ValueError:
        pass
    raise InvalidInputError(f"--recency is {text!r}; give weight and time, such as 0.5:30d")


def _parse_weights(text: str | None) -> dict[str, float] | None:
    """What the channels and numbers may be is judged by the engine."""
    if text is None:
        return None
    found: dict[str, float] = {}
    try:
        for part in text.split(","):
            channel, separator, weight = part.partition("=")
            if not separator or channel.strip() in found:
                raise ValueError
            found[channel.strip()] = float(weight)
    except ValueError:
        raise InvalidInputError(f"--weights is {text!r}; give channels and numbers, such as bm25=.3,dense=.7") from None
    return found
