"""F12, F19, F20, F21: a store grows in records, not in files, in memory or in the time it takes to open."""

from pathlib import Path

from agentir_ray import Memory
from agentir_ray.engine.policy import Limits
from tests.field_reports.conftest import Open
from tests.spill_targets import BUDGET, LIMITS, temperatures, write_weeks


def test_f12_opening_reads_no_namespace(open_memory: Open) -> None:
    memory = open_memory(durability="process", limits=Limits(seal_at=2))
    for i in range(150):
        memory.use(f"tenant/{i}").add_many([{"text": "rain"}, {"text": f"rain {i}"}])
    memory.close()
    memory = open_memory()
    assert memory.stats()["store"] | {"namespaces": 150, "loaded_namespaces": 0} == memory.stats()["store"]
    assert len(memory.namespaces("tenant")) == 150
    assert len(memory.use("tenant/77").search("rain 77")) == 2
    assert memory.stats()["store"]["loaded_namespaces"] == 1


def test_f19_many_small_writes_leave_few_files(open_memory: Open, store: Path) -> None:
    memory = open_memory(durability="process", limits=Limits(seal_at=16))
    for i in range(400):
        memory.add(f"rain {i}")
        assert len(list(store.rglob("*.segment"))) <= 4  # 1 + log3(400 / 16)
    files = [path for path in store.rglob("*") if path.is_file()]
    assert len(files) <= 4 + 4  # and the database with its -wal and -shm, and the lock
    memory.close()
    assert len(open_memory().search("rain", k=1_000)) == 400


def test_f19_updates_and_erasures_do_not_pile_up(open_memory: Open, store: Path) -> None:
    memory = open_memory(durability="process", limits=Limits(seal_at=8))
    for i in range(8):
        memory.add(f"rain {i}", id=str(i))
    for round in range(30):
        for i in range(8):
            memory.update(str(i), text=f"rain {i} {round}")
    assert len(list(store.rglob("*.segment"))) <= 4
    memory.forget(ids=[str(i) for i in range(7)], wait=True)
    memory.add_many([{"text": "snow"}] * 8)
    assert len(list(store.rglob("*.segment"))) <= 2
    assert memory.stats()["namespace"]["records"] == 9


def test_f20_memory_keeps_to_its_budget(open_memory: Open) -> None:
    budget = 400_000
    memory = open_memory(durability="process", memory_budget_bytes=budget)
    written = 0
    for i in range(40):
        mine = memory.use(f"tenant/{i}")
        text = f"rain {i} " * 500
        mine.add_many([{"text": f"{text} {n}"} for n in range(10)])
        written += 10 * len(text)
        assert memory.stats()["store"]["memory_bytes"] <= budget
    assert written > 3 * budget
    assert memory.stats()["store"]["loaded_namespaces"] < 40
    for i in range(40):
        assert len(memory.use(f"tenant/{i}").search(f"rain {i}")) == 10
        assert memory.stats()["store"]["memory_bytes"] <= budget


def test_f21_searchable_from_the_first_record_to_the_last(open_memory: Open) -> None:
    memory = open_memory(durability="process", limits=Limits(seal_at=8))
    for i in range(60):
        memory.add(f"rain word{i}", id=str(i))
        assert [hit.record.id for hit in memory.search(f"word{i}")] == [str(i)]
        assert len(memory.search("rain", k=100)) == i + 1
        if i % 25 == 24:
            memory.close()
            memory = open_memory(durability="process", limits=Limits(seal_at=8))


def test_f21_an_index_that_began_empty_is_no_different(memory: Memory) -> None:
    assert memory.add_many([]) == []
    assert memory.search("rain").hits == ()
    memory.add("rain")
    assert len(memory.search("rain")) == 1


def test_f20_a_spill_target_that_goes_away_costs_answers_for_now_and_no_record(open_memory: Open, tmp_path: Path) -> None:
    target, away = tmp_path / "target", tmp_path / "away"
    memory = open_memory(durability="process", limits=LIMITS, memory_budget_bytes=BUDGET, spill=target)
    write_weeks(memory, 12)
    assert temperatures(memory)["cold_segments"] and temperatures(memory)["heavy_bytes"] <= BUDGET
    target.rename(away)
    result = memory.search("common", k=1_000)
    assert 0 < len(result) < 360 and not result.coverage.exact and result.coverage.not_searched
    assert "is not there; mount it" in result.coverage.reason
    assert memory.get("w0-3").id == "w0-3" and len(memory.recent(400).records) == len(list(memory.export())) == 360
    write_weeks(memory, 1, first=12)
    assert memory.forget(ids=["w0-3"]).hidden and not target.exists()
    assert [problem.file for problem in memory.verify()]
    away.rename(target)
    assert len(memory.search("common", k=1_000)) == 389
    assert memory.forget(ids=["w1-3"], wait=True).purged and memory.verify() == []
