"""What a search asks, checked: every parameter of `Memory.search` as the value that the engine works with."""

import contextlib
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from agentir_ray.errors import InvalidInputError
from agentir_ray.lexical.filters import EVERYTHING, Expression, parse_filter
from agentir_ray.lexical.filters.expression import And
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.lexical.query import Bm25, Priors
from agentir_ray.lexical.search import Visibility
from agentir_ray.retrieval.fusion import IMPORTANCE_WEIGHT, RECENCY_TAU_US, RECENCY_WEIGHT
from agentir_ray.temporal.partitions import MAX_WIDTH_US, MIN_WIDTH_US
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Time, TimeRange, kind_of, to_time_us, utc_offset_us

MAX_HITS = 10_000  # of k + offset
MAX_QUERY_BYTES = 2**20
MAX_WHOLE = 2**63 - 1
MAX_DEADLINE_NS = 2.0**62  # a century and a half
MAX_K1 = 1_000  # scores are as good as linear in the term frequency long before, and products with it stay far from overflow
LEAST_COVERAGE = 1e-16  # what is less cannot be told from 0 once it is taken from 1
AUTO, BM25, DENSE, SPARSE, RRF, CONVEX, AGENT_RRF = MODES = ("auto", "bm25", "dense", "sparse", "rrf", "convex", "agent_rrf")
CHANNELS = (BM25, SPARSE, DENSE)  # in the order of their cost
PLAIN = frozenset((AUTO, BM25))  # need no vectors
FUSED = frozenset((RRF, CONVEX, AGENT_RRF))
DEPTH = 100  # of each channel's list, in a fused mode
MAX_DEPTH = 10_000
MAXSIM = "maxsim"
RERANK_DEPTH, RERANK_WEIGHT = 50, 0.6
MAX_RERANK_DEPTH = 1_000
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_557_600.0}

Duration = str | int | float | timedelta
Recency = tuple[float, Duration]


class Fusion(NamedTuple):
    """How channels become one ranking: `weights` by channel (None: 1 each), `depth` of each channel's list, the weight of neighbours, the penalty for each doubling of passages."""

    weights: Mapping[str, float] | None = None
    depth: int = DEPTH
    context_weight: float = 0.0
    passage_penalty: float = 0.0


class Reranking(NamedTuple):
    """A `Reranker`, or the name of one, the weight of what it says, and of how many of the best it is asked."""

    reranker: Any
    weight: float
    depth: int


NO_FUSION = Fusion()


class Request(NamedTuple):
    query: str
    k: int
    offset: int
    mode: str
    coverage: str | float
    visibility: Visibility
    expression: Expression
    priors: Priors
    min_score: float
    deadline_ns: int | None
    max_tokens: int | None
    explain: bool
    time_range: TimeRange | None = None  # what the query says of time, which `visibility` has taken in
    fusion: Fusion = NO_FUSION
    reranking: Reranking | None = None
    approximate: bool = False  # the list by dense may come from graphs, where there are some

    @property
    def wanted(self) -> int:
        """How many documents are ranked."""
        wanted = self.k + self.offset
        return wanted if self.reranking is None else max(wanted, self.reranking.depth)


def make_request(
    query: object, now_us: int, *, k: int, offset: int, mode: str, since: Time | None, until: Time | None, where: Mapping[str, Any] | None, session: str | None,
    role: str | None, coverage: str | float, as_of: Time | None, recency: Recency | None, importance: float | None, min_score: float | None, deadline_ms: float | None,
    max_tokens: int | None, explain: bool, temporal: str | None = None, weights: Mapping[str, float] | None = None, depth: int | None = None, context_weight: float | None = None,
    passage_penalty: float | None = None, rerank: Any = None, rerank_weight: float | None = None, rerank_depth: int | None = None,
    approximate: bool = False,
) -> Request:  # fmt: skip
    """Raises InvalidInputError naming the parameter, or InvalidFilterError."""
    if not isinstance(query, str):
        raise InvalidInputError(f"query is {kind_of(query)}; give a string")
    if len(query) > MAX_QUERY_BYTES:
        raise InvalidInputError(f"query has {len(query):,} characters; at most {MAX_QUERY_BYTES:,} fit")
    whole_number(k, "k", 1)
    whole_number(offset, "offset", 0)
    if k + offset > MAX_HITS:
        raise InvalidInputError(f"k + offset is {k + offset:,}; at most {MAX_HITS:,} hits can be ranked")
    if not isinstance(mode, str) or mode not in MODES:
        raise InvalidInputError(f"mode is {shown(mode)}; give one of {', '.join(MODES)}")
    if temporal is not None and not (isinstance(temporal, str) and temporal == "parse"):
        raise InvalidInputError(f"temporal is {shown(temporal)}; give 'parse' to have times that the query names narrow the search, or None")
    visibility, time_range = visibility_of(now_us, since, until, as_of), None
    if temporal is not None:
        visibility, time_range = _narrowed(visibility, query, 0 if as_of is None else utc_offset_us(as_of))
    return Request(
        query,
        k,
        offset,
        mode,
        _coverage(coverage),
        visibility,
        expression_of(where, session, role),
        _priors(mode, recency, importance),
        -math.inf if min_score is None else _number(min_score, "min_score"),
        None if deadline_ms is None else round(min(_number(deadline_ms, "deadline_ms", positive=True) * 1e6, MAX_DEADLINE_NS)),
        None if max_tokens is None else whole_number(max_tokens, "max_tokens", 1),
        explain,
        time_range,
        _fusion(mode, weights, depth, context_weight, passage_penalty),
        _reranking(rerank, rerank_weight, rerank_depth),
        _approximate(approximate, mode, weights),
    )


def _fusion(mode: str, weights: object, depth: int | None, context_weight: float | None, passage_penalty: float | None) -> Fusion:
    if mode not in FUSED:
        if weights is None and depth is None and context_weight is None and passage_penalty is None:  # nearly always
            return NO_FUSION
        given = {"weights": weights, "depth": depth, "context_weight": context_weight, "passage_penalty": passage_penalty}
        for name in [name for name, value in given.items() if value is not None]:
            raise InvalidInputError(f"{name} is for the modes {', '.join(sorted(FUSED))}, not for {mode!r}; a single channel fuses, too: mode='convex', weights={{'bm25': 1}}")
        return NO_FUSION
    share = 0.0 if context_weight is None else _number(context_weight, "context_weight", positive=True)
    if share > 1.0:
        raise InvalidInputError(f"context_weight is {shown(context_weight)}; give a number from 0 to 1")
    penalty = 0.0 if passage_penalty is None else _number(passage_penalty, "passage_penalty", positive=True)
    if penalty and mode != CONVEX:
        raise InvalidInputError(f"passage_penalty is for the mode 'convex', not for {mode!r}")
    return Fusion(_weights(weights), DEPTH if depth is None else whole_number(depth, "depth", 1, MAX_DEPTH), share, penalty)


def _weights(weights: object) -> Mapping[str, float] | None:
    if weights is None:
        return None
    if not isinstance(weights, Mapping) or not weights or not all(isinstance(name, str) and name in CHANNELS for name in weights):
        raise InvalidInputError(f"weights is {shown(weights)}; give a number from 0 on to some of {', '.join(CHANNELS)}, such as {{'bm25': 0.3, 'dense': 0.7}}")
    checked = {name: _number(weights[name], f"the weight of {name}", positive=True) for name in CHANNELS if name in weights}
    if not any(checked.values()):
        raise InvalidInputError("all weights are 0; give some channel more")
    return checked


def _reranking(rerank: Any, weight: float | None, depth: int | None) -> Reranking | None:
    if rerank is None:
        if weight is not None or depth is not None:
            raise InvalidInputError("rerank_weight and rerank_depth are given without rerank; give rerank='maxsim' or a Reranker")
        return None
    if not (isinstance(rerank, str) and rerank == MAXSIM) and not callable(getattr(rerank, "rerank", None)):
        raise InvalidInputError(f"rerank is {shown(rerank)}; give 'maxsim' or a Reranker")
    share = RERANK_WEIGHT if weight is None else _number(weight, "rerank_weight", positive=True)
    if share > 1.0:
        raise InvalidInputError(f"rerank_weight is {shown(weight)}; give a number from 0 to 1")
    return Reranking(rerank, share, RERANK_DEPTH if depth is None else whole_number(depth, "rerank_depth", 1, MAX_RERANK_DEPTH))


def _approximate(approximate: object, mode: str, weights: Mapping[str, float] | None) -> bool:
    if not isinstance(approximate, bool):
        raise InvalidInputError(f"approximate is {shown(approximate)}; give True or False")
    if approximate and (mode not in FUSED | {DENSE} or (weights is not None and not weights.get(DENSE))):
        raise InvalidInputError(f"approximate is for the channel 'dense', which is not asked here: give mode='dense' or one of {', '.join(sorted(FUSED))} with a weight of it")
    return approximate


def visibility_of(now_us: int, since: Time | None, until: Time | None, as_of: Time | None) -> Visibility:
    since_us = MIN_TIME_US if since is None else to_time_us(since, "since")
    until_us = MAX_TIME_US if until is None else to_time_us(until, "until")
    if as_of is None:
        return Visibility(now_us, since_us=since_us, until_us=until_us)
    as_of_us = to_time_us(as_of, "as_of")
    return Visibility(as_of_us, as_of_us, since_us, until_us)


def _narrowed(visibility: Visibility, query: str, offset_us: int) -> tuple[Visibility, TimeRange | None]:
    """What lies in both the range that the caller gave and the one that the query names. Where that is nothing, the caller's holds, and none was understood."""
    from agentir_ray.temporal.expressions import time_range  # the one user of dateutil, which only those wait for who ask for it

    named = time_range(query, visibility.as_of_us, offset_us)
    if named is None:
        return visibility, None
    since_us, until_us = max(visibility.since_us, named.since_us), min(visibility.until_us, named.until_us)
    return (visibility._replace(since_us=since_us, until_us=until_us), named) if since_us <= until_us else (visibility, None)


def expression_of(where: Mapping[str, Any] | None, session: str | None, role: str | None) -> Expression:
    """`where`, `session` and `role` must all hold."""
    if session is None and role is None:
        return EVERYTHING if where is None else parse_filter(where)
    named = {name: {"eq": value} for name, value in (("session", session), ("role", role)) if value is not None}
    expression = parse_filter(named)
    return expression if where is None or (isinstance(where, Mapping) and not where) else And((expression, parse_filter(where)))


def duration_us(value: Duration, name: str) -> float:
    """Microseconds of "30d", "12h", a timedelta, or a number of seconds."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        try:
            seconds = float(value[:-1]) * UNITS_S[value[-1:]]
        except (ValueError, KeyError):
            raise InvalidInputError(f"{name} is {shown(value)}; give a number with one of the units {', '.join(UNITS_S)}, such as 30d") from None
    else:
        seconds = _number(value, name)
    if not 0 < seconds < math.inf:
        raise InvalidInputError(f"{name} is {shown(value)}; give a positive duration")
    return seconds * 1e6


def check_width(value: Duration) -> int:
    """Microseconds of a partition."""
    width_us = duration_us(value, "width")
    if not MIN_WIDTH_US <= width_us <= MAX_WIDTH_US:
        raise InvalidInputError(f"width is {shown(value)}; give a duration from 1h to 100y")
    return round(width_us)


def check_bm25(value: object) -> Bm25:
    """k1 and b as a `Bm25`, or as a plain pair."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidInputError(f"bm25 is {shown(value)}; give (k1, b), such as (0.9, 0.4)")
    bm25 = Bm25(_number(value[0], "k1 of bm25", positive=True), _number(value[1], "b of bm25", positive=True))
    if bm25.k1 > MAX_K1:
        raise InvalidInputError(f"k1 of bm25 is {bm25.k1}; give a number from 0 to {MAX_K1:,}")
    if bm25.b > 1.0:
        raise InvalidInputError(f"b of bm25 is {bm25.b}; give a number from 0 to 1")
    return bm25


def _priors(mode: str, recency: Recency | None, importance: float | None) -> Priors:
    """`agent_rrf` has some of its own (DESIGN 7): well below the largest reciprocal rank, so that they decide between what is as good as equal."""
    weight, tau_us = (RECENCY_WEIGHT, RECENCY_TAU_US) if mode == AGENT_RRF else (0.0, 1.0)
    if importance is None and mode == AGENT_RRF:
        importance = IMPORTANCE_WEIGHT
    if recency is not None:
        if not isinstance(recency, tuple | list) or len(recency) != 2:
            raise InvalidInputError(f"recency is {shown(recency)}; give (weight, tau), such as (0.5, '30d')")
        weight, tau_us = _number(recency[0], "the weight of recency", positive=True), duration_us(recency[1], "tau of recency")
    return Priors(weight, tau_us, 0.0 if importance is None else _number(importance, "the weight of importance", positive=True))


def _coverage(coverage: str | float) -> str | float:
    if isinstance(coverage, str) and coverage in ("exact", "auto"):
        return coverage
    if isinstance(coverage, bool) or not isinstance(coverage, int | float) or not LEAST_COVERAGE <= coverage < 1.0:
        raise InvalidInputError(f"coverage is {shown(coverage)}; give 'exact', 'auto' or a probability from {LEAST_COVERAGE} to below 1")
    return float(coverage)


def whole_number(value: object, name: str, least: int, most: int = MAX_WHOLE) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInputError(f"{name} is {shown(value)}; give a whole number from {least} {'on' if most == MAX_WHOLE else f'to {most:,}'}")
    return value


def _number(value: object, name: str, positive: bool = False) -> float:
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer beyond the floats
            number = float(value)
    if not math.isfinite(number) or (positive and number < 0):
        raise InvalidInputError(f"{name} is {shown(value)}; give a {'finite number from 0 on' if positive else 'finite number'}")
    return number
