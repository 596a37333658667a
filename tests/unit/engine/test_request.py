"""Every parameter of a search: what it becomes, and that every refusal names it."""

import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.engine.request import MAX_QUERY_BYTES, Request, check_bm25, duration_us, make_request
from agentir_ray.errors import InvalidFilterError, InvalidInputError
from agentir_ray.lexical.filters import EVERYTHING
from agentir_ray.lexical.query import Bm25, Priors
from agentir_ray.lexical.search import Visibility
from agentir_ray.temporal.geometric import partitions_for
from agentir_ray.temporal.prior import decide
from agentir_ray.temporal.statistics import AgeStatistics
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US

DEFAULTS: dict[str, Any] = {
    "k": 10, "offset": 0, "mode": "auto", "since": None, "until": None, "where": None, "session": None, "role": None, "coverage": "auto", "as_of": None, "recency": None,
    "importance": None, "min_score": None, "deadline_ms": None, "max_tokens": None, "explain": False, "temporal": None,
    "weights": None, "depth": None, "context_weight": None, "passage_penalty": None, "rerank": None, "rerank_weight": None, "rerank_depth": None, "approximate": False,
}  # fmt: skip
HUGE = 10**5_000  # its repr raises
NAN = float("nan")


def request(query: Any = "hello", **parameters: Any) -> Request:
    return make_request(query, 1_000, **DEFAULTS | parameters)


def test_defaults() -> None:
    assert request() == Request("hello", 10, 0, "auto", "auto", Visibility(1_000), EVERYTHING, Priors(), -math.inf, None, None, False)


BAD: dict[str, list[Any]] = {
    "query": [None, 5, b"x", ["x"], "x" * (MAX_QUERY_BYTES + 1)],
    "k": [0, -1, 1.0, True, "5", None, NAN, [], 10_001, HUGE, -HUGE, np.float64(3)],
    "offset": [-1, 1.0, True, "5", None, HUGE],
    "mode": ["vector", "", None, 1, [], np.array(["auto", "bm25"]), HUGE],
    "since": ["", "soon", 1.5, True, [], 10**30, HUGE, MAX_TIME_US + 1],
    "until": ["", "soon", 1.5, True, [], 10**30, HUGE, MAX_TIME_US + 1],
    "as_of": ["", "soon", 1.5, True, [], 10**30, HUGE, MAX_TIME_US + 1],
    "where": [[], "", 0, False, "session", [{"session": {"eq": "s"}}], {"sesion": {"eq": "s"}}, {"session": "s"}, {"session": {"is": "s"}}, {5: 6}],
    "session": [5, [], {"eq": "s"}, b"s", "a\0", "\ud800", HUGE],
    "role": [5, [], {"eq": "s"}, b"s", "a\0", "\ud800", HUGE],
    "coverage": ["all", 0.0, 1.0, 1, -0.5, True, None, NAN, [], HUGE, 1e-20, 5e-324, 1 - 1e-17],
    "recency": [
        1.0, "30d", (), (1.0,), (1.0, "30d", 2), (-1.0, "30d"), (NAN, "30d"), ("1", "30d"), (1.0, ""), (1.0, "30"), (1.0, "x"), (1.0, "0d"), (1.0, -5), (1.0, NAN),
        (1.0, math.inf), (1.0, None), (1.0, timedelta(0)), (1.0, HUGE), (HUGE, "1d"), HUGE, (1.0, "nand"), (1.0, "infd"),
    ],
    "importance": [-1, NAN, math.inf, "1", True, [], 10**400, HUGE],
    "min_score": [NAN, math.inf, -math.inf, "1", True, [], 10**400, HUGE],
    "deadline_ms": [-1, NAN, math.inf, "1", True, [], HUGE],
    "max_tokens": [0, -1, 1.5, NAN, "1", True, [], HUGE, -HUGE],
    "weights": [{}, [], "bm25", 1.0, {"bm26": 1}, {5: 1}, {"bm25": -1}, {"bm25": NAN}, {"bm25": "1"}, {"bm25": True}, {"bm25": 0, "dense": 0.0}, {"dense": HUGE}, HUGE],
    "depth": [0, -1, 1.5, True, "5", [], NAN, 10_001, HUGE],
    "approximate": [None, 1, 0, "yes", [], HUGE, True],
    "context_weight": [-0.1, 1.1, NAN, "1", True, [], HUGE],
    "passage_penalty": [-0.1, NAN, math.inf, "1", True, [], HUGE],
    "rerank": ["", "maxsims", 1, [], object(), HUGE, np.array(["maxsim"])],
    "rerank_weight": [-0.1, 1.1, NAN, "1", True, [], HUGE],
    "rerank_depth": [0, -1, 1.5, True, "5", [], NAN, 1_001, HUGE],
    "temporal": ["", "Parse", "auto", True, 1, [], b"parse", HUGE, np.array(["parse"])],
}  # fmt: skip


FUSING = {"weights": {"bm25": 1}, "depth": 5, "context_weight": 0.5, "passage_penalty": 0.1}


@pytest.mark.parametrize("name", FUSING)
def test_what_fuses_is_refused_where_nothing_is_fused(name: str) -> None:
    for mode in ("auto", "bm25", "dense", "sparse"):
        with pytest.raises(InvalidInputError, match=f"{name} is for the modes agent_rrf, convex, rrf"):
            request(mode=mode, **{name: FUSING[name]})


def test_a_penalty_of_passages_is_for_scores_and_not_for_ranks() -> None:
    assert request(mode="convex", passage_penalty=0.1).fusion.passage_penalty == 0.1
    with pytest.raises(InvalidInputError, match="passage_penalty is for the mode 'convex'"):
        request(mode="rrf", passage_penalty=0.1)


@pytest.mark.parametrize("name", ["rerank_weight", "rerank_depth"])
def test_how_to_rerank_is_refused_where_nobody_does(name: str) -> None:
    with pytest.raises(InvalidInputError, match="without rerank"):
        request(**{name: 1})


def test_weights_come_in_the_order_of_the_channels_cost() -> None:
    assert request(mode="rrf", weights={"dense": 1, "bm25": 0, "sparse": 2}).fusion.weights == {"bm25": 0.0, "sparse": 2.0, "dense": 1.0}


def test_agent_rrf_prefers_the_recent_and_the_important_a_little() -> None:
    assert request(mode="agent_rrf").priors == Priors(0.002, 30 * 86_400e6, 0.001)
    assert request(mode="agent_rrf", recency=(0.5, "1d"), importance=0.0).priors == Priors(0.5, 86_400e6, 0.0)


def test_what_is_reranked_is_ranked_before() -> None:
    assert request(k=3, offset=2).wanted == 5
    assert request(k=3, offset=2, rerank="maxsim", rerank_depth=4).wanted == 5
    assert request(k=3, rerank="maxsim").wanted == 50


def test_every_parameter_is_tried() -> None:
    assert BAD.keys() == DEFAULTS.keys() - {"explain"} | {"query"}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_refused_by_name(name: str) -> None:
    named = {"where": "filter|field|operator|session", "weights": "weight"}.get(name, name)
    beside: dict[str, Any] = {"mode": "convex"} if name in FUSING else {"rerank": "maxsim"} if name in ("rerank_weight", "rerank_depth") else {}
    for bad in BAD[name]:
        with pytest.raises(InvalidInputError, match=named) as caught:
            request(bad) if name == "query" else request(**beside | {name: bad})
        assert len(str(caught.value)) < 500


def test_a_filter_is_refused_also_beside_a_session() -> None:
    for bad in BAD["where"]:
        with pytest.raises(InvalidFilterError):
            request(where=bad, session="s")


def test_k_and_offset_together_have_a_limit() -> None:
    assert request(k=1, offset=9_999).offset == 9_999
    with pytest.raises(InvalidInputError, match=r"^k \+ offset is 10,001"):
        request(k=2, offset=9_999)


def test_times_are_inclusive_bounds_in_utc() -> None:
    assert request(since=datetime(1970, 1, 1), until="1970-01-01T00:00:01+00:00").visibility == Visibility(1_000, NEVER_US - 1, 0, 1_000_000)
    assert request(since=MIN_TIME_US, until=MAX_TIME_US).visibility == Visibility(1_000)
    assert request(as_of=500).visibility == Visibility(500, 500)


def test_session_role_and_where_must_all_hold() -> None:
    assert request(where={}) == request()
    assert request(where={}, session="s") == request(session="s")
    both = request(where={"importance": {"gt": 0}}, session="s", role="r").expression
    assert both != request(session="s", role="r").expression != EVERYTHING


@pytest.mark.parametrize(
    ("given", "us"),
    [
        ("30s", 30e6), ("2m", 120e6), ("1.5h", 5_400e6), ("30d", 2_592_000e6), ("1w", 604_800e6), ("1y", 31_557_600e6), (60, 60e6), (0.5, 0.5e6), (timedelta(hours=1), 3_600e6),
        (" 3 s", 3e6), ("1e3s", 1e9),
    ],
)  # fmt: skip
def test_durations(given: Any, us: float) -> None:
    assert duration_us(given, "tau") == us


def test_durations_beyond_measure_are_infinite_and_no_error() -> None:
    assert duration_us(1e305, "tau") == math.inf
    assert request(deadline_ms=1e308).deadline_ns == 2**62


def test_priors() -> None:
    assert request(recency=(0.5, "1d"), importance=2).priors == Priors(0.5, 86_400e6, 2.0)
    assert request(recency=[0, 5], importance=0).priors == Priors(0.0, 5e6, 0.0)


def test_coverage_may_be_a_probability() -> None:
    assert request(coverage=0.95).coverage == 0.95
    assert request(coverage="exact").coverage == "exact"


@given(st.floats(0, 1) | st.floats(-70, 0).map(lambda power: 2.0**power) | st.floats(-70, 0).map(lambda power: 1 - 2.0**power))
def test_a_probability_is_refused_or_is_one_that_the_prior_takes(probability: float) -> None:
    try:
        eps = 1.0 - float(request(coverage=probability).coverage)
    except InvalidInputError as error:
        assert "a probability from 1e-16 to below 1" in str(error)
    else:
        assert decide(AgeStatistics(), 50, eps).partitions == 50
        assert 1 <= partitions_for(1.7, eps, 50) <= 50


def test_bm25_is_a_pair_of_numbers() -> None:
    assert check_bm25((1.2, 0.75)) == check_bm25(Bm25(1.2, 0.75)) == Bm25(1.2, 0.75)
    assert check_bm25((0, 1)) == Bm25(0.0, 1.0)
    for bad in (None, 1.2, [1.2, 0.75], (1.2,), (-1, 0.5), (1.2, 1.1), (1.2, -0.1), (NAN, 0.5), (1.2, NAN), ("1", 0), (HUGE, 0.5), (math.inf, 0.5)):
        with pytest.raises(InvalidInputError, match="bm25"):
            check_bm25(bad)
    for extreme in ((1_000.1, 0.5), (1e308, 0.5), (True, 0.5), (1.2, True), (1.2, math.inf)):
        with pytest.raises(InvalidInputError, match="bm25"):
            check_bm25(extreme)
