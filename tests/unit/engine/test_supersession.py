"""What a record supersedes can change: it does so until the version that says so is replaced or erased, whatever the index went through, and in a copy as in the original."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.engine.policy import Limits

START_US = 1_000
Story = Callable[[Memory, ManualClock], None]


def dropped(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x", supersedes="old")
    clock.advance(1)
    memory.update("x", supersedes=None)


def turned_to_another(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x", supersedes="old")
    clock.advance(1)
    memory.update("x", supersedes="other")


def turned_back(memory: Memory, clock: ManualClock) -> None:
    turned_to_another(memory, clock)
    clock.advance(1)
    memory.update("x", supersedes="old")


def goes_on(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x", supersedes="old")
    clock.advance(1)
    memory.update("x", text="green tea")


def comes_late(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x")
    clock.advance(1)
    memory.update("x", supersedes="old")


def in_turns(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x", supersedes="old")
    clock.advance(1)
    memory.add("black tea", id="y", supersedes="old")
    clock.advance(1)
    memory.update("x", supersedes=None)


def a_chain_loses_its_end(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x", supersedes="old")
    memory.add("black tea", id="y", supersedes="x")
    clock.advance(1)
    memory.update("y", supersedes=None)


def a_chain_loses_its_middle(memory: Memory, clock: ManualClock) -> None:
    memory.add("tea", id="x", supersedes="old")
    memory.add("black tea", id="y", supersedes="x")
    clock.advance(1)
    memory.update("x", supersedes=None)


def dropped_and_forgotten(memory: Memory, clock: ManualClock) -> None:
    dropped(memory, clock)
    memory.forget(ids=["x"])


def forgotten_after_an_update(memory: Memory, clock: ManualClock) -> None:
    goes_on(memory, clock)
    memory.forget(ids=["x"])


def the_one_that_took_over_is_forgotten(memory: Memory, clock: ManualClock) -> None:
    in_turns(memory, clock)
    memory.forget(ids=["y"])


def the_old_one_is_updated(memory: Memory, clock: ManualClock) -> None:
    dropped(memory, clock)
    memory.update("old", text="old tea, again")


# What is seen in the end, and by an `as_of` at the start, one second and two seconds later, "x" and "y" left out there.
STORIES: dict[Story, tuple[str, list[str]]] = {
    dropped: ("old other x", ["old other"] * 3),  # the time when it was hidden is forgotten (decision 10)
    turned_to_another: ("old x", ["old other", "old", "old"]),
    turned_back: ("other x", ["old other", "old other", "other"]),
    goes_on: ("other x", ["other"] * 3),
    comes_late: ("other x", ["old other", "other", "other"]),
    in_turns: ("other x y", ["other"] * 3),
    a_chain_loses_its_end: ("other x y", ["other"] * 3),
    a_chain_loses_its_middle: ("old other y", ["old other"] * 3),
    dropped_and_forgotten: ("old other", ["old other"] * 3),
    forgotten_after_an_update: ("old other", ["old other"] * 3),
    the_one_that_took_over_is_forgotten: ("old other x", ["old other"] * 3),
    the_old_one_is_updated: ("old other x", ["old other"] * 3),
}


def seen(memory: Memory, as_of: int | None = None) -> list[str]:
    return sorted(hit.record.id for hit in memory.search("tea", as_of=as_of))


@pytest.mark.parametrize("seal_at", [1, 2, 3, 100])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_version_supersedes_until_it_is_replaced(story: Story, seal_at: int, tmp_path: Path) -> None:
    clock = ManualClock(START_US)
    expected, expected_then = STORIES[story]

    def opened() -> Memory:
        return Memory.open(tmp_path / "store", clock=clock, background=False, limits=Limits(seal_at, seal_at + 1))

    def check(memory: Memory) -> None:
        assert " ".join(seen(memory)) == expected
        then = [seen(memory, START_US + second * 1_000_000) for second in range(3)]
        assert [" ".join(id for id in ids if id in ("old", "other")) for ids in then] == expected_then

    with opened() as memory:
        memory.add_many([{"text": f"{id} tea", "id": id} for id in ("old", "other")])
        story(memory, clock)
        check(memory)
        copy = memory.use("copy")
        assert copy.import_(record_fields(memory)).failed == []
        assert seen(copy) == seen(memory)
    with opened() as memory:  # the manifest, and what the log holds beyond it
        check(memory)
    for segment in (tmp_path / "store").rglob("*.segment"):
        segment.unlink()
    with opened() as memory:  # the log alone
        check(memory)


def record_fields(memory: Memory) -> Iterator[dict[str, object]]:
    """Backwards: the order of an import means nothing."""
    for record in reversed(list(memory.export())):
        fields = record._asdict()
        for name in ("timestamp", "created_at", "expires_at"):
            fields[name] = fields.pop(f"{name}_us")
        yield {name: value for name, value in fields.items() if name != "seq"}
