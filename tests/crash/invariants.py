"""What must hold of a store whatever happened to it, and a model to hold it against.

A `World` is what callers were promised: per namespace the live records and the erased ids. `check` opens nothing and repairs nothing; it asks the public face and the log, and
names the world, of those possible, in which the store is.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from agentir_ray.client.memory import Memory
from agentir_ray.engine.manifest import decode_manifest
from agentir_ray.engine.namespace import replay
from agentir_ray.errors import AgentIRError, ErasedError, NotFoundError
from agentir_ray.lexical.index import Index
from tests.properties.index_world import fates

WORDS = ("lisbon", "harbour", "violin", "glacier", "tram", "saffron", "letter", "orchid", "meteor", "cellar")


@dataclass
class Model:
    live: dict[str, str] = field(default_factory=dict)  # id -> text
    erased: set[str] = field(default_factory=set)
    supersedes: dict[str, str] = field(default_factory=dict)  # id -> the one that it replaces as knowledge

    def shown(self) -> dict[str, str]:
        """What a search may find."""
        hidden = {old for new, old in self.supersedes.items() if new in self.live}
        return {id: text for id, text in self.live.items() if id not in hidden}


World = dict[str, Model]


@dataclass(frozen=True)
class Op:
    """A verb of `Memory`: "add" (`records`, one or many), "update" (one), "forget" (their ids), "drop" (none: the whole namespace)."""

    verb: str
    namespace: str
    records: tuple[tuple[str, str], ...]
    supersedes: str | None = None

    def run(self, memory: Memory, wait: bool = False) -> None:
        memory = memory.use(self.namespace)
        if self.verb == "add" and len(self.records) == 1:
            memory.add(self.records[0][1], id=self.records[0][0], metadata={"n": 1}, supersedes=self.supersedes)
        elif self.verb == "add":
            for outcome in memory.add_many([{"id": id, "text": text, "metadata": {"n": 1}} for id, text in self.records]):
                if isinstance(outcome, AgentIRError):
                    raise outcome
        elif self.verb == "update":
            memory.update(self.records[0][0], text=self.records[0][1])
        elif self.verb == "drop":
            memory.drop()
        else:
            memory.forget(ids=[id for id, _ in self.records], wait=wait)

    def apply(self, world: World) -> None:
        if self.verb == "drop":
            world.pop(self.namespace, None)
            return
        model = world.setdefault(self.namespace, Model())
        for id, text in self.records:
            if self.verb == "forget":
                del model.live[id]
                model.erased.add(id)
            else:
                model.live[id] = text
                if self.supersedes is not None:
                    model.supersedes[id] = self.supersedes


def token(id: str) -> str:
    """The term that only this record holds."""
    return f"tok{id}"


def text_of(rng: random.Random, id: str, version: int) -> str:
    return f"common {token(id)} version{version} {' '.join(rng.choices(WORDS, k=rng.randint(1, 60)))}"


def plan(rng: random.Random, world: World, namespaces: Sequence[str], mark: str, count: int, crowd: int = 15, drops: bool = False) -> Iterator[Op]:
    """Verbs that make sense one after the other; only records whose id starts with `mark` are touched, and about `crowd` of them stay live in a namespace.

    With `drops`, which nobody else who writes may expect, now and then a whole namespace goes; its name is used again.
    """
    world = deepcopy(world)
    for n in range(count):
        name = rng.choice(namespaces)
        model = world.setdefault(name, Model())
        own = [id for id in model.live if id.startswith(mark)]
        verb = rng.choices(("add", "add_many", "update", "forget"), (8, 2, 4 if own else 0, (len(own) * 4 / crowd) if own else 0))[0]
        if drops and own and rng.random() < 0.07:
            op = Op("drop", name, ())
        elif verb == "update":
            id = rng.choice(own)
            op = Op("update", name, ((id, text_of(rng, id, n + 1)),))
        elif verb == "forget":
            op = Op("forget", name, tuple((id, "") for id in rng.sample(own, min(len(own), rng.choice((1, 1, 3, 9))))))
        else:
            ids = [f"{mark}x{rng.getrandbits(40):x}" for _ in range(1 if verb == "add" else rng.randint(2, 12))]
            op = Op("add", name, tuple((id, text_of(rng, id, 0)) for id in ids), rng.choice(own) if verb == "add" and own and rng.random() < 0.3 else None)
        op.apply(world)
        yield op


def after(world: World, ops: Sequence[Op]) -> World:
    world = deepcopy(world)
    for op in ops:
        op.apply(world)
    return world


def check(memory: Memory, worlds: Sequence[World], rng: random.Random) -> int:
    """The number of the world that the store is in, having checked that everything about it agrees."""
    assert memory.verify() == []
    names = memory.namespaces()
    found: dict[str, dict[str, str]] = {}
    for name in names:
        records = list(memory.use(name).export())
        found[name] = {record.id: record.text for record in records}
        assert len(found[name]) == len(records), "a record came twice"
    holding = {name: records for name, records in found.items() if records}
    fitting = [i for i, world in enumerate(worlds) if holding == {name: model.live for name, model in world.items() if model.live}]
    assert fitting, _difference(found, worlds)
    world = worlds[fitting[0]]
    for name in names:
        check_namespace(memory.use(name), world.get(name, Model()), rng)
    check_files(memory)
    return fitting[0]


def _difference(found: dict[str, dict[str, str]], worlds: Sequence[World]) -> str:
    lines = ["the store is in none of the possible worlds:"]
    for i, world in enumerate(worlds):
        for name, model in world.items():
            have = found.get(name, {})
            lines.append(
                f"world {i}, {name}: missing {sorted(model.live.keys() - have.keys())}, unexpected {sorted(have.keys() - model.live.keys())}, "
                f"other text {[id for id in model.live.keys() & have.keys() if model.live[id] != have[id]]}"
            )
    return "\n".join(lines)


def check_namespace(memory: Memory, model: Model, rng: random.Random) -> None:
    """One namespace equals its model, by every way to look at it."""
    hits = memory.search("common", k=10_000).hits
    shown = model.shown()
    found = {hit.record.id: hit.record.text for hit in hits}
    assert found == shown, _difference({memory.namespace: found}, [{memory.namespace: Model(shown)}])
    assert len(hits) == len(found), "a record was found twice"
    recent = memory.recent(10_000).records
    assert sorted(record.id for record in recent) == sorted(shown)
    some = rng.sample(sorted(model.live), min(12, len(model.live)))
    for id in some:
        assert memory.get(id).text == model.live[id]
        assert [hit.record.id for hit in memory.search(token(id)).hits] == [id] * (id in shown)
    gone = rng.sample(sorted(model.erased), min(6, len(model.erased)))
    for id in gone:
        with pytest.raises(NotFoundError):
            memory.get(id)
        assert memory.search(token(id)).hits == ()
        with pytest.raises(ErasedError):
            memory.add("back again", id=id)
    check_index(memory, ["common", *WORDS, *(token(id) for id in [*some, *gone])])


def check_index(memory: Memory, words: Sequence[str]) -> None:
    """The index is what one built from the log alone is, to the fate of every version, and counts the same; and the log has no gap."""
    store = memory._store
    with store.namespace(memory.namespace) as namespace:
        terms = [term for word in words for term in namespace.analyzer.tokens(word)]
        rebuilt = Index([], 0)
        seqs = deque(replay(rebuilt, store.log.read(namespace.number), namespace.analyzer))
        assert list(seqs) == list(range(1, namespace.index.seq + 1))
        assert namespace.index.snapshot(terms).statistics == rebuilt.snapshot(terms).statistics
        assert fates(namespace.index) == fates(rebuilt)


def check_files(memory: Memory) -> None:
    """Every file that a manifest names is there, and no other."""
    store = memory._store
    with_files = set()
    for name in memory.namespaces():
        state = store.log.state(name)
        assert state is not None
        folder = store.folder(state.number)
        named = {file for entry in decode_manifest(state.manifest, name).segments for file in (entry.file, *entry.sidecars.values())} if state.manifest else set()
        assert {path.name for path in folder.iterdir()} == named if folder.is_dir() else not named
        with_files.add(folder)
    assert set((store.path / "segments").glob("*")) <= with_files
    databases = {f"{name}.sqlite3{suffix}" for name in ("log", "vectors") for suffix in ("", "-wal", "-shm")}
    assert {path.name for path in store.path.iterdir()} <= {"LOCK", "segments", "SPILL", "loaded", *databases}
