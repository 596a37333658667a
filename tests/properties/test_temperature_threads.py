"""Segments are spilled, loaded, merged and purged while they are searched, written to and erased: no answer is wrong, and the end is what one thread would have left."""

import threading
from pathlib import Path
from random import Random

from agentir_ray.client.memory import Memory
from tests.spill_targets import BUDGET, LIMITS, write_weeks

WEEKS, SEARCHERS = 24, 3


def test_threads(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    written = threading.Event()
    erased: set[str] = set()
    with Memory.open(tmp_path / "store", "acme/alice", limits=LIMITS, memory_budget_bytes=2 * BUDGET, spill=tmp_path / "target", durability="process") as memory:
        write_weeks(memory, 8)

        def search(seed: int) -> None:
            random = Random(seed)
            while not written.is_set():
                result = memory.search(random.choice(["common", "token3x4 common", "token0x1", "token5x9 token7x2 common"]), k=random.choice([5, 50, 1_000]))
                ids = [hit.record.id for hit in result.hits]
                assert len(ids) == len(set(ids)), "a record was found twice"
                if result.coverage.exact and len(ids) < 1_000 and len(ids) > 50:
                    assert len(ids) >= 8 * 20, "records that nobody erases were not found"
                assert len(memory.recent(50).records) == 50
                assert memory.get(f"w0-{random.randrange(20, 30)}").id.startswith("w0-2")

        def write() -> None:
            random = Random(9)
            for week in range(8, WEEKS):
                write_weeks(memory, 1, first=week)
                memory.update(f"w{random.randrange(week)}-{random.randrange(20, 30)}", text=f"common updated {week}")
                id = f"w{random.randrange(week)}-{random.randrange(20)}"
                memory.forget(ids=[id])
                erased.add(id)

        def kept(work: object, *arguments: object) -> None:
            try:
                work(*arguments)  # type: ignore[operator]
            except BaseException as error:
                failures.append(error)

        searchers = [threading.Thread(target=kept, args=(search, seed)) for seed in range(SEARCHERS)]
        for searcher in searchers:
            searcher.start()
        kept(write)
        written.set()
        for searcher in searchers:
            searcher.join()
        assert not failures, failures
        result = memory.search("common", k=5_000)
        assert result.coverage.exact and len(result) == 30 * WEEKS - len(erased)
        assert memory._store.wait_purged(30) and memory.verify() == []
        assert memory.stats()["namespace"]["temperature"]["spilled_segments"]
