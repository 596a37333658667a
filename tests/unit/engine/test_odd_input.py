"""Odd texts, times, numbers, queries and types: an answer, or an error of ours that names the offender; never a traceback from inside a library."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentir_ray import AgentIRError, InvalidInputError, Memory, NotFoundError
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US

HUGE = 10**5_000  # its repr raises
ODD: list[Any] = [
    None, "", "x", "a\0b", "\ud800", 0, -1, 1.5, True, float("nan"), float("inf"), 1e308, HUGE, -HUGE, 10**400, b"x", (), (1, 2), [], [[]], ["x"], {}, {"x": "y"}, {1: 2},
    object(), date(2020, 1, 1), np.float64(1), np.array([1, 2]), Ellipsis, len, Path("x"),
]  # fmt: skip


def ids(memory: Memory, query: str, **parameters: Any) -> list[str]:
    return [hit.record.id for hit in memory.search(query, **parameters)]


@pytest.fixture(params=["buffer", "segment"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The same in the buffer, and sealed by every call that writes."""
    limits = Limits(seal_at=1, max_unsealed=2) if request.param == "segment" else Limits()
    with Memory.open(tmp_path / "store", "acme/alice", clock=ManualClock(), background=False, limits=limits) as memory:
        yield memory


# Texts.


@pytest.mark.parametrize(
    "text",
    [
        "🙂👩‍👩‍👧‍👦🏳️‍🌈 party", "שלום party עולם", "\u202eparty\u202c", "party\n\t\r\v\f\x1b[31m", "p\u0301arty party", "party " + "\U0010ffff\uffff\ufffe", "party" + " " * 10_000,
        "'; DROP TABLE entries; -- party", "party AND (OR NOT \"", "%s %d {party} ${party} party",
    ],
)  # fmt: skip
def test_any_text_comes_back_as_it_was(memory: Memory, text: str) -> None:
    record = memory.add(text, id="it", session=text[:50].replace("\0", ""), metadata={text[:50]: text})
    assert memory.get("it") == record
    assert record.text == text
    (hit,) = memory.search("party")
    assert hit.record == record
    assert memory.recent().records == tuple(memory.export()) == (record,)
    assert ids(memory, text) == ["it"]


def test_an_empty_text_is_stored_and_never_found_by_a_word(memory: Memory) -> None:
    memory.add("", id="empty")
    memory.add(" \n\t", id="blank")
    memory.add("!?.", id="marks")
    assert ids(memory, "anything") == ids(memory, "") == []
    assert [record.id for record in memory.recent().records] == ["marks", "blank", "empty"]
    memory.add("word", id="word")
    assert ids(memory, "word") == ["word"]


def test_10_mb_of_text(memory: Memory) -> None:
    words = " ".join(f"word{i % 5_000}" for i in range(1_000_000))
    assert len(words) > 8_000_000
    text = words + " needle " + "x" * 1_000_000
    memory.add(text, id="it")
    (hit,) = memory.search("needle", explain=True)
    assert hit.record.text == text
    assert hit.explanation is not None and hit.explanation.length > 1_000_000
    assert ids(memory, "word17") == ["it"]


def test_a_term_many_times(memory: Memory) -> None:
    for n in (254, 255, 256, 257, 65_535, 65_537):
        memory.add("again " * n, id=str(n))
    hits = memory.search("again", explain=True).hits
    assert {hit.record.id: hit.explanation.terms[0].tf for hit in hits if hit.explanation} == {str(n): n for n in (254, 255, 256, 257, 65_535, 65_537)}


def test_two_terms_of_one_hash(memory: Memory) -> None:
    first, second = "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"
    standard = memory.use("acme/bob")
    standard.add(first, id="a")
    standard.add(second, id="b")
    for word, id in ((first, "a"), (second, "b")):
        assert id in ids(standard, word)


# Times.


def test_times_at_the_ends(memory: Memory) -> None:
    memory.add("rain", id="first", timestamp="0001-01-01")
    memory.add("rain", id="last", timestamp=datetime.max, importance=1.0)
    memory.add("rain", id="future", timestamp="2999-01-01")
    memory.add("rain", id="expires", timestamp=0, expires_at=datetime.max)
    assert ids(memory, "rain") == ["expires", "future", "last", "first"]
    assert [record.id for record in memory.recent().records] == ["last", "future", "expires", "first"]
    assert memory.get("first").timestamp == datetime(1, 1, 1, tzinfo=UTC)
    assert memory.get("last").timestamp == datetime.max.replace(tzinfo=UTC)
    for as_of in (datetime.min, datetime.max, MIN_TIME_US, MAX_TIME_US):
        for recency in ((1.0, "1s"), (1.0, 1e300), (1.0, 1e-300), (1e308, "100y"), (5e-324, 1)):
            hits = memory.search("rain", as_of=as_of, recency=recency, importance=1e308, explain=True).hits
            assert len(hits) == (0 if as_of in (datetime.min, MIN_TIME_US) else 3 if as_of in (datetime.max, MAX_TIME_US) else 4)
            assert all(hit.explanation is not None and hit.explanation.score == hit.score == hit.score for hit in hits)
    assert ids(memory, "rain", since=datetime.max) == ["last"]
    assert ids(memory, "rain", until=datetime.min) == ["first"]
    assert ids(memory, "rain", since="2026-01-02", until="2026-01-01") == []
    stats = memory.stats()["namespace"]
    assert (stats["oldest"][:4], stats["newest"][:4]) == ("0001", "9999")
    memory.update("last", timestamp=datetime.min)
    assert ids(memory, "rain", until=datetime.min) == ["last", "first"]


# Numbers and queries.


def test_k_from_one_to_far_beyond_all(memory: Memory) -> None:
    memory.add_many([{"text": "rain", "id": str(i)} for i in range(5)])
    assert ids(memory, "rain", k=1) == ["4"]
    assert ids(memory, "rain", k=10_000) == ["4", "3", "2", "1", "0"]
    assert ids(memory, "rain", k=2, offset=4) == ["0"]
    assert ids(memory, "rain", k=1, offset=9_999) == []
    assert ids(memory, "rain", max_tokens=2) == ["4", "3"]
    assert ids(memory, "rain", min_score=-1e308) == ids(memory, "rain")
    assert ids(memory, "rain", min_score=1e308) == []


def test_queries_that_say_nothing(memory: Memory) -> None:
    memory.add("the rain in Spain", id="a")
    for query in ("", " ", "the", "unknown", "!?", "\0", "\ud800", "\0\ud800 unknown", "🙃", "\u202e", "a" * 1_000_000):
        result = memory.search(query, explain=True, recency=(1.0, "1d"), importance=1.0)
        assert result.hits == () and result.coverage.exact
    assert ids(memory, "\0 rain \ud800 the") == ["a"]


def test_a_query_of_100_000_terms(memory: Memory) -> None:
    memory.add("word7 word8 word99999", id="a")
    memory.add("word7", id="b")
    query = " ".join(f"word{i}" for i in range(100_000))
    hits = memory.search(query, explain=True).hits
    assert [hit.record.id for hit in hits] == ["a", "b"]
    assert hits[0].explanation is not None and [term.term for term in hits[0].explanation.terms] == ["word7", "word8", "word99999"]
    (hit,) = memory.search("word8 " * 100_000, explain=True)
    assert hit.explanation is not None and hit.explanation.terms[0].weight == 100_000
    with pytest.raises(InvalidInputError, match=r"query has 1,048,577 characters"):
        memory.search("x" * (2**20 + 1))


def test_large_metadata(memory: Memory) -> None:
    metadata = {f"key{i}": ["x" * 200, i, i / 3, None, {"nested": True}] for i in range(50)}
    record = memory.add("rain", id="a", metadata=metadata)
    assert memory.get("a").metadata == record.metadata == metadata
    assert ids(memory, "rain", where={"metadata.key49": {"contains": 49}}) == ["a"]
    with pytest.raises(InvalidInputError, match="metadata takes"):
        memory.add("rain", metadata={"a": "x" * 100_000})
    with pytest.raises(InvalidInputError, match="metadata holds more than 256 values"):
        memory.add("rain", metadata={"a": list(range(10_000))})


# Types.


def each_verb(memory: Memory, tmp_path: Path) -> dict[str, Callable[[Any], Any]]:
    def with_(verb: Callable[..., Any], name: str, *arguments: Any) -> Callable[[Any], Any]:
        return lambda odd: verb(*arguments, **{name: odd})

    def opened(name: str) -> Callable[[Any], Any]:
        return lambda odd: Memory.open(**{"path": tmp_path / "other", name: odd}).close()

    calls = {f"add {name}": with_(memory.add, name, "hi") for name in ("timestamp", "importance", "session", "role", "metadata", "expires_at", "supersedes")}
    calls |= {f"update {name}": with_(memory.update, name, "a") for name in ("text", "timestamp", "importance", "session", "role", "metadata", "expires_at", "supersedes")}
    calls |= {
        f"search {name}": with_(memory.search, name, "rain")
        for name in (
            "k", "mode", "since", "until", "where", "session", "role", "coverage", "as_of", "recency", "importance", "min_score", "deadline_ms", "offset", "max_tokens", "explain",
        )
    }  # fmt: skip
    calls |= {f"recent {name}": with_(memory.recent, name) for name in ("limit", "cursor", "where", "session", "role", "since", "until", "as_of")}
    calls |= {f"open {name}": opened(name) for name in ("namespace", "analyzer", "durability", "memory_budget_bytes", "bm25")}
    return calls | {
        "add text": memory.add,
        "add id": lambda odd: memory.add("hi", id=odd),
        "add_many items": lambda odd: memory.add_many(odd),
        "add_many item": lambda odd: raising(memory.add_many([odd])),
        "add_many created_at": lambda odd: raising(memory.add_many([{"text": "hi", "created_at": odd}])),
        "import items": lambda odd: memory.import_(odd),
        "import item": lambda odd: memory.import_([odd]),
        "import field": lambda odd: memory.import_([{"id": odd, "text": odd}]),
        "update id": lambda odd: memory.update(odd, text="hi"),
        "update operation_id": lambda odd: memory.update("a", operation_id=odd, text="hi"),
        "forget where": lambda odd: memory.forget(odd, dry_run=True),
        "forget ids": lambda odd: memory.forget(ids=odd, dry_run=True),
        "forget id": lambda odd: memory.forget(ids=[odd], dry_run=True),
        "forget operation_id": lambda odd: memory.forget(ids=["nobody"], operation_id=odd),
        "search query": memory.search,
        "get": memory.get,
        "use": memory.use,
        "namespaces": memory.namespaces,
        "drop": lambda odd: memory.drop("x" if odd is None else odd),
        "backup": lambda odd: memory.backup(odd if not isinstance(odd, str | Path) else "a\0b"),
        "open path": lambda odd: Memory.open(odd if not isinstance(odd, str | Path) else "a\0b").close(),
    }


def raising(outcomes: Any) -> None:
    for outcome in outcomes:
        if isinstance(outcome, AgentIRError):
            raise outcome


def test_wrong_types_everywhere(memory: Memory, tmp_path: Path) -> None:
    memory.add("rain", id="a")
    refused = 0
    for name, call in each_verb(memory, tmp_path).items():
        for odd in ODD:
            try:
                call(odd)
            except AgentIRError as error:
                refused += 1
                assert 10 < len(str(error)) < 1_000, name
            except Exception as error:
                raise AssertionError(f"{name} of {type(odd)} met {type(error).__name__}: {error}") from error
    assert refused > 1_000
    assert memory.get("a").id == "a"  # and all is well afterwards
    assert memory.verify() == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def shared_memory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Memory.open(tmp_path_factory.mktemp("odd") / "store", clock=ManualClock(), background=False, durability="process", limits=Limits(seal_at=16)) as memory:
        yield memory


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(fields=st.fixed_dictionaries({"text": st.text(st.characters())}, optional=dict.fromkeys(("id", "importance", "session", "metadata", "timestamp", "extra"), anything)))
def test_any_record_is_kept_or_refused(shared_memory: Memory, fields: dict[str, Any]) -> None:
    (outcome,) = shared_memory.add_many([fields])
    if isinstance(outcome, AgentIRError):
        assert str(outcome)
    else:
        assert shared_memory.get(outcome.id) == outcome
        assert outcome.text == fields["text"]
        assert outcome in shared_memory.recent(10_000, where={"id": {"eq": outcome.id}}).records


@given(query=st.text(st.characters()), where=anything, k=st.integers() | anything)
def test_any_search_is_answered_or_refused(shared_memory: Memory, query: str, where: Any, k: Any) -> None:
    try:
        shared_memory.add("rain", id="rain")
        shared_memory.search(query)
        shared_memory.search(query, where=where, k=k)
    except AgentIRError as error:
        assert str(error)


def test_a_namespace_that_is_not_there(memory: Memory) -> None:
    nobody = memory.use("nobody")
    for call in (
        lambda: nobody.search("x"), lambda: nobody.get("x"), lambda: nobody.recent(), lambda: list(nobody.export()), lambda: nobody.update("x", text="y"),
        lambda: nobody.forget(ids=["x"]),
    ):  # fmt: skip
        with pytest.raises(NotFoundError, match="no namespace 'nobody'"):
            call()
    assert nobody.drop() is False
    assert nobody.stats()["namespace"] is None
    assert memory.namespaces() == []


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a store")
    with pytest.raises(InvalidInputError, match=r"notes\.txt is a file; a store is a folder"):
        Memory.open(tmp_path / "notes.txt")


@pytest.mark.parametrize("name", ["семья/бабушка", "家族/👩‍👩‍👧", "a\u200fb", "全\u3000角"])
def test_namespaces_in_any_script(tmp_path: Path, name: str) -> None:
    with Memory.open(tmp_path, name) as memory:
        memory.add("here")
        assert memory.namespaces() == [name]


def test_an_empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="path is empty"):
        Memory.open("")
    assert not list(tmp_path.iterdir())
