"""F01, F02, F03, F10, F16: every call touches what it names, and nothing else."""

import threading
from typing import Any

import pytest

from agentir_ray import InvalidFilterError, InvalidInputError, Memory
from agentir_ray.engine.policy import Limits
from tests.field_reports.conftest import Open


def texts(memory: Memory, query: str = "secret", **parameters: Any) -> list[str]:
    return sorted(hit.record.text for hit in memory.search(query, k=100, **parameters))


def test_f01_forget_touches_its_scope_only(memory: Memory) -> None:
    bob = memory.use("acme/bob")
    for each in (memory, bob):
        each.add("secret of session one", id="a", session="s1")
        each.add("secret of session two", id="b", session="s2")
    assert memory.forget({"session": {"eq": "s1"}}).ids == ("a",)
    assert memory.forget(ids=["b", "nobody"]).ids == ("b",)
    assert texts(memory) == []
    assert texts(bob) == ["secret of session one", "secret of session two"]
    assert [record.id for record in bob.export()] == ["a", "b"]


@pytest.mark.parametrize(
    "empty", [{}, {"and": []}, {"or": []}, {"not": {}}, {"and": [{}]}, {"session": {}}, {"id": {"in": []}}, {"id": {"exists": True}}, {"created_at": {"exists": True}}]
)
def test_f01_a_filter_that_came_out_empty_is_refused(memory: Memory, empty: Any) -> None:
    memory.add("secret")
    for dry_run in (True, False):
        with pytest.raises(InvalidInputError, match=r"empty|no operator|everything"):
            memory.forget(empty, dry_run=dry_run)
    assert texts(memory) == ["secret"]


def test_f01_forget_needs_one_scope(memory: Memory) -> None:
    memory.add("secret", id="a")
    for arguments in ({}, {"where": {"session": {"eq": "a"}}, "ids": ["a"]}, {"ids": "a"}, {"ids": None}):
        with pytest.raises(InvalidInputError):
            memory.forget(**arguments)
    assert memory.forget(ids=[]).ids == ()
    assert texts(memory) == ["secret"]


def test_f01_drop_takes_one_namespace(memory: Memory) -> None:
    neighbours = ["acme/alice2", "acme/alice/work", "acme", "acme-alice"]
    for name in ["acme/alice", *neighbours]:
        memory.use(name).add(f"secret of {name}")
    assert memory.drop() is True
    assert memory.namespaces() == sorted(neighbours)
    for name in neighbours:
        assert texts(memory.use(name)) == [f"secret of {name}"]


def test_f02_namespaces_are_literal(memory: Memory) -> None:
    names = ["acme", "acme/x", "acme/x/y", "acme-corp", "acme-corp/x", "acme0", "acm_", "acm%", "%", "_", "ACME", "açme", "acme.", "acme*"]
    for name in names:
        memory.use(name).add(f"secret of {name}")
    for name in names:
        assert texts(memory.use(name)) == [f"secret of {name}"]
    assert memory.namespaces("acme") == ["acme", "acme/x", "acme/x/y"]
    assert memory.namespaces("acme/x") == ["acme/x", "acme/x/y"]
    assert memory.namespaces("acm_") == ["acm_"]
    assert memory.namespaces("acm%") == ["acm%"]
    assert memory.namespaces("%") == ["%"]
    assert memory.namespaces("ac") == []
    assert memory.namespaces() == sorted(names, key=str.encode)


def test_f02_sessions_and_metadata_are_literal(memory: Memory) -> None:
    for session in ("s_1", "sx1", "s%", "s", "S_1", "s_1 "):
        memory.add(f"secret of {session}", session=session, metadata={"tag": session})
    for session in ("s_1", "s%", "s"):
        assert texts(memory, session=session) == texts(memory, where={"metadata.tag": {"eq": session}}) == [f"secret of {session}"]


def test_f03_concurrent_writes_stay_with_their_tenant(open_memory: Open) -> None:
    memory = open_memory(background=True, durability="process", limits=Limits(seal_at=8, max_unsealed=16), memory_budget_bytes=100_000)
    names = [f"tenant{i}/user" for i in range(12)]
    failures: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for round in range(20):
                for step in range(len(names)):
                    name = names[(start * 5 + step * 7) % len(names)]
                    mine = memory.use(name)
                    mine.add(f"secret of {name}", id=f"{start}-{round}", session=name)
                    assert {hit.record.session for hit in mine.search("secret", k=5)} == {name}
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for name in names:
        records = list(memory.use(name).export())
        assert {record.text for record in records} == {f"secret of {name}"}
        assert sorted(record.id for record in records) == sorted(f"{start}-{round}" for start in range(4) for round in range(20))
        assert [record.seq for record in records] == list(range(1, 81))


def test_f10_every_write_path_deduplicates(memory: Memory) -> None:
    item = {"text": "secret", "id": "a"}
    first = memory.add(**item)
    assert memory.add_many([item, item]) == [first, first]
    report = memory.import_([item, {"text": "secret", "id": "b"}, {"text": "secret", "id": "b"}, {"text": "other", "id": "a"}])
    assert (report.added, report.duplicates) == (1, 2)
    assert [id for id, _ in report.failed] == ["a"]
    report = memory.import_({"id": record.id, "text": record.text, "timestamp": record.timestamp_us, "created_at": record.created_at_us} for record in list(memory.export()))
    assert (report.added, report.duplicates, report.failed) == (0, 2, [])
    assert memory.get("a") == first
    assert texts(memory) == ["secret", "secret"]


def test_f16_what_is_unknown_is_refused(memory: Memory) -> None:
    memory.add("secret", session="s1", metadata={"topic": "x"})
    for where in (
        {"sesion": {"eq": "s1"}}, {"topic": {"eq": "x"}}, {"session": "s1"}, {"session": {"equals": "s1"}}, {"session": {"$eq": "s1"}}, {"AND": [{"session": {"eq": "s1"}}]},
        {"session": {"eq": "s1"}, "user": {"eq": "u"}}, {"metadata": {"topic": "x"}}, {"importance": {"contains": 1}}, {"timestamp": {"gte": "soon"}},
    ):  # fmt: skip
        calls = (lambda w: memory.search("secret", where=w), lambda w: memory.recent(where=w), lambda w: memory.forget(w), lambda w: memory.forget(w, dry_run=True))
        for call in calls:
            with pytest.raises(InvalidFilterError):
                call(where)
    for parameters in ({"mode": "hybrid"}, {"coverage": "most"}):
        with pytest.raises(InvalidInputError):
            memory.search("secret", **parameters)
    with pytest.raises(TypeError, match="filters"):
        memory.search("secret", filters={})  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="user_id"):
        memory.update("a", user_id="u")
    (refused,) = memory.add_many([{"text": "x", "user_id": "u"}])
    assert "there is no field 'user_id'" in str(refused)
    assert texts(memory) == ["secret"]
