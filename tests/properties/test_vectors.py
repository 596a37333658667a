"""Whatever is written, sealed, merged, encoded, exchanged, lost and opened again: each version of a record has the vectors that its encoder makes of its text, or none yet.

Nothing is encoded twice for one encoder, but for what was erased, dropped by an exchange of encoders, or lost with a ledger.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentir_ray.client.memory import Memory
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.engine import encoding
from agentir_ray.engine.channel import SPARSE
from agentir_ray.engine.policy import Limits
from agentir_ray.engine.sidecars import covered
from agentir_ray.engine.vector_codec import unpack_sparse
from agentir_ray.engine.vectors import key_of
from tests.crash.vector_invariants import Counting, check_vectors, versions

WORDS = ["rain", "snow in the hills", "wind", "", "a long walk by the sea", "rain again", "fog and rain", "...", "sun"]
DIMS = (8, 4)


class VectorWorld(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "store")
        self.batch, encoding.BATCH = encoding.BATCH, 3
        self.which = 0
        self.ids: list[str] = []
        self.n = 0
        self.may_repeat = False
        self._open()

    def _open(self) -> None:
        self.encoder = Counting(DIMS[self.which])
        self.memory = Memory.open(
            self.path, background=False, durability="process", encoder=self.encoder, sparse_encoder=HashingSparseEncoder(), token_vectors=True,
            limits=Limits(seal_at=5, max_unsealed=10),
        )  # fmt: skip

    @rule(texts=st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
    def add(self, texts: list[str]) -> None:
        for text in texts:
            self.ids.append(self.memory.add(text, id=f"r{self.n}", timestamp=1_600_000_000 + (self.n * 7919) % 100 * 86_400).id)
            self.n += 1

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), text=st.sampled_from(WORDS))
    def update(self, data: st.DataObject, text: str) -> None:
        self.memory.update(data.draw(st.sampled_from(self.ids)), text=text)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), wait=st.booleans())
    def forget(self, data: st.DataObject, wait: bool) -> None:
        gone = data.draw(st.lists(st.sampled_from(self.ids), min_size=1, max_size=4, unique=True))
        assert self.memory.forget(ids=gone, wait=wait).purged or not wait
        self.ids = [id for id in self.ids if id not in gone]
        self.may_repeat = True  # their texts may come again

    @rule()
    def encode(self) -> None:
        assert self.memory.wait_encoded()
        if self.n:
            check_vectors(self.memory, "default", [HashingEncoder(dim) for dim in DIMS], complete=True)

    @rule()
    def encode_some(self) -> None:
        self.memory.wait_encoded(0)

    @precondition(lambda self: self.n)
    @rule()
    def seal(self) -> None:
        store = self.memory._store
        with store.namespace("default") as namespace:
            store.compactor.seal(namespace)
            store.compactor.merge(namespace)

    @precondition(lambda self: self.n)
    @rule(other=st.booleans())
    def reembed(self, other: bool) -> None:
        self.which ^= other
        self.memory.reembed(Counting(DIMS[self.which]))
        self.encoder = self.memory._store.encoders.dense  # type: ignore[assignment]
        self.may_repeat = True

    @rule(analyzer=st.sampled_from([None, None, "english"]))
    def open_again(self, analyzer: str | None) -> None:
        self.memory.close()
        self._open()

    @rule()
    def lose_the_ledger(self) -> None:
        self.memory.close()
        for file in self.path.glob("vectors.sqlite3*"):
            file.unlink()
        self.may_repeat = True
        self._open()

    @precondition(lambda self: self.n)
    @rule(data=st.data())
    def lose_a_sidecar(self, data: st.DataObject) -> None:
        self.memory.close()
        files = sorted(path for suffix in ("dense", "sparse") for path in self.path.glob(f"segments/*/*.{suffix}"))
        if files:
            file = data.draw(st.sampled_from(files))
            if data.draw(st.booleans()):
                file.unlink()
            else:
                file.write_bytes(file.read_bytes()[:-70])
        self._open()

    @rule()
    def read_only(self) -> None:
        self.memory.close()
        if self.path.exists() and self.n:
            with Memory.open(self.path, read_only=True) as reader:
                check_vectors(reader, "default", [HashingEncoder(dim) for dim in DIMS])
        self._open()

    @rule()
    def copy(self) -> None:
        target = Path(self.folder.name, "copy")
        self.memory.backup(target)
        with Memory.open(target, background=False) as copy:
            if self.n:
                check_vectors(copy, "default", [HashingEncoder(dim) for dim in DIMS])
            assert copy.verify() == []
        shutil.rmtree(target)

    @invariant()
    def right(self) -> None:
        if not self.n:
            return
        check_vectors(self.memory, "default", [HashingEncoder(dim) for dim in DIMS])
        self.check_weights()
        if not self.may_repeat:
            passages = [text for text in self.encoder.encoded if text]
            assert len(passages) == len(set(passages)), "something was paid for twice"

    def check_weights(self) -> None:
        with self.memory._store.namespace("default") as namespace:
            channel = namespace.channels.get(SPARSE)
            if channel is None:
                return
            texts = versions(self.memory, namespace)
            ledger = self.memory._store.vectors.reader
            assert ledger is not None
            held = {seq: unpack_sparse(data) for seq, data in ledger.held(namespace.number, key_of(SPARSE, channel.encoder))}
            young = set() if channel.young is None else {int(seq) for seq in channel.young.view().seq}
            there = set(young)
            for segment in namespace.index.segments:
                sidecar = segment.sidecars.get(SPARSE)
                if sidecar is not None:
                    there.update(segment.array("seq")[covered(sidecar)].tolist())
            for seq, text in texts.items():
                if seq in held:
                    (expected,) = HashingSparseEncoder().encode_documents([text])
                    assert dict(zip(held[seq].terms, held[seq].weights.tolist(), strict=True)) == dict(zip(expected.terms, np.asarray(expected.weights).tolist(), strict=True))
                    assert seq in there

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
            encoding.BATCH = self.batch
            self.folder.cleanup()


TestVectorWorld = VectorWorld.TestCase
TestVectorWorld.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
