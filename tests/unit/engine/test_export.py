"""An export is of one moment, and whoever reads it may do anything meanwhile."""

from pathlib import Path

import pytest

from agentir_ray import Memory, NotFoundError
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits
from agentir_ray.storage.sqlite_reader import CHUNK_ROWS


def test_what_is_written_meanwhile_belongs_to_the_next_export(memory: Memory) -> None:
    memory.add_many([{"text": "rain", "id": str(i)} for i in range(CHUNK_ROWS + 20)])
    expected = list(memory.export())
    got = []
    for record in memory.export():
        got.append(record)
        if record.id == "3":
            memory.update("1", text="snow")
            memory.update("5", text="snow")
            memory.update(str(CHUNK_ROWS + 5), text="snow")
            memory.add("rain", id="new")
    assert got == expected
    assert sorted(record.id for record in memory.export() if record.text == "snow") == ["1", str(CHUNK_ROWS + 5), "5"]


def test_what_is_erased_meanwhile_is_left_out(memory: Memory) -> None:
    memory.add_many([{"text": "rain", "id": str(i)} for i in range(CHUNK_ROWS + 2)])
    export = memory.export()
    next(export)
    memory.forget(ids=[str(CHUNK_ROWS)])
    assert [record.id for record in export][-1] == str(CHUNK_ROWS + 1)
    assert str(CHUNK_ROWS) not in [record.id for record in memory.export()]


def test_a_drop_meanwhile_ends_it_with_an_error(memory: Memory) -> None:
    for anew in (False, True):
        memory.add_many([{"text": "rain"}] * (CHUNK_ROWS + 1))
        export = memory.export()
        next(export)
        assert memory.drop()  # and does not wait for the export, which waits for us
        if anew:
            memory.add("another")
        with pytest.raises(NotFoundError):
            list(export)
        memory.drop()


def test_a_follower_may_search_while_it_exports(tmp_path: Path, clock: ManualClock) -> None:
    with Memory.open(tmp_path / "store", clock=clock, background=False, limits=Limits(seal_at=4)) as writer:
        writer.add("rain", id="0")
        with Memory.open(tmp_path / "store", clock=clock, read_only=True) as reader:
            for record in reader.export():
                writer.add_many([{"text": "rain"}] * 8)  # its segments are replaced, so it loads the namespace anew
                clock.advance(1)
                assert len(reader.search("rain", k=100)) == 9
                assert record.id == "0"
