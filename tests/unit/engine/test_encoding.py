"""The write-behind: what it encodes, what it does when an encoder fails, and that words are searched whatever becomes of it."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray import Memory
from agentir_ray.clock import ManualClock
from agentir_ray.encoders.hashing import HashingEncoder
from agentir_ray.encoders.protocol import Floats
from agentir_ray.engine import encoding
from agentir_ray.engine.policy import Limits
from agentir_ray.errors import EncoderMismatchError, EncodingError, InvalidInputError
from tests.crash.test_erasure import found
from tests.crash.vector_invariants import Counting, check_vectors

LIMITS = Limits(seal_at=10, max_unsealed=20)


class Failing(Counting):
    """Fails while `down`; and on texts with a word of `refused`, alone or among others."""

    down = False
    refused: tuple[str, ...] = ("poison",)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        if self.down or any(word in text for text in texts for word in self.refused):
            raise RuntimeError("no memory is left on the device")
        return super().encode_documents(texts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def dense(memory: Memory) -> dict[str, Any]:
    told: dict[str, Any] = memory.stats()["namespace"]["channels"]["dense"]
    return told


def test_a_text_is_encoded_once(path: Path) -> None:
    encoder = Counting()
    with Memory.open(path, encoder=encoder, background=False, limits=LIMITS) as memory:
        for n in range(30):
            memory.add(f"rain {n % 7}")
        assert memory.wait_encoded() and len(encoder.encoded) == 7
        memory.use("other").add("rain 1")
        assert memory.use("other").wait_encoded() and len(encoder.encoded) == 8, "namespaces share nothing"
    with Memory.open(path, encoder=encoder, background=False, limits=LIMITS, analyzer="english") as memory:  # which rebuilds the index
        memory.add("rain 3")
        assert memory.wait_encoded() and len(encoder.encoded) == 8
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)
        assert (dense(memory)["encoded_records"], dense(memory)["records"], dense(memory)["lag_entries"]) == (31, 31, 0)


def test_the_thread_encodes_by_itself_and_what_was_left_by_others(path: Path) -> None:
    with Memory.open(path, background=False, limits=LIMITS) as memory:
        memory.use("old").add("a walk by the sea")
    with Memory.open(path, encoder=HashingEncoder(8), limits=LIMITS) as memory:
        for n in range(50):
            memory.add(f"rain {n}")
        assert memory.wait_encoded(60) and memory.use("old").wait_encoded(60)
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)
        check_vectors(memory, "old", [HashingEncoder(8)], complete=True)
    with Memory.open(path, read_only=True) as reader:
        check_vectors(reader, "default", [HashingEncoder(8)], complete=True)


def test_a_follower_sees_what_is_encoded_while_it_reads(path: Path) -> None:
    clock = ManualClock()
    with Memory.open(path, encoder=HashingEncoder(8), background=False) as memory:
        memory.add("rain")
        memory.wait_encoded()
        with Memory.open(path, read_only=True, clock=clock) as reader:
            assert dense(reader)["young_records"] == 1
            memory.add("snow")
            memory.wait_encoded()
            clock.advance(1)
            assert dense(reader)["young_records"] == 2
            check_vectors(reader, "default", [HashingEncoder(8)], complete=True)


def test_a_text_that_the_encoder_refuses_holds_up_no_other(path: Path) -> None:
    encoder = Failing()
    with Memory.open(path, encoder=encoder, background=False) as memory:
        memory.add("rain")
        seq = memory.add("poison").seq
        memory.add("snow")
        assert memory.wait_encoded()
        told = dense(memory)
        assert told["refused"] == 1 and "no memory is left" in told["refused_entries"][str(seq)] and told["encoded_records"] == 2
        assert [hit.record.text for hit in memory.search("poison", mode="bm25")] == ["poison"]
    encoder.encoded.clear()
    with Memory.open(path, encoder=encoder, background=False) as memory:
        assert memory.wait_encoded() and not encoder.encoded
        encoder.refused = ()
        memory.reembed()
        assert encoder.encoded == ["poison"]
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)


def test_an_encoder_that_does_not_work_at_all_refuses_nothing(path: Path) -> None:
    encoder = Failing()
    encoder.down = True
    with Memory.open(path, encoder=encoder, background=False) as memory:
        memory.add("rain")
        with pytest.raises(EncodingError, match=r"no memory is left.*bm25"):
            memory.wait_encoded()
        assert len(memory.search("rain", mode="bm25")) == 1
        assert dense(memory)["refused"] == 0 and "no memory" in dense(memory)["trouble"]
        encoder.down = False
        assert memory.wait_encoded() and dense(memory)["trouble"] is None
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)


def test_a_failing_encoder_is_tried_again_ever_more_rarely(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "RETRY_S", 0.01)
    encoder = Failing()
    encoder.down = True
    with Memory.open(path, encoder=encoder) as memory:
        memory.add("rain")
        with pytest.raises(EncodingError, match="no memory is left"):
            memory.wait_encoded(60)
        encoder.down = False
        until = threading.Event()
        for _ in range(400):
            if dense(memory)["lag_entries"] == 0:
                break
            until.wait(0.02)  # for another thread, which waits for its turn to come
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)


def test_a_writer_waits_for_an_encoder_that_works(path: Path) -> None:
    class Gated(Counting):
        gate = threading.Event()

        def encode_documents(self, texts: Sequence[str]) -> Floats:
            self.gate.wait(30)
            return super().encode_documents(texts)

    with Memory.open(path, encoder=Gated(), max_unencoded=3) as memory:
        done = threading.Event()

        def write() -> None:
            for n in range(5):
                memory.add(f"rain {n}")
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert not done.wait(0.3)
        Gated.gate.set()
        assert done.wait(30)
        writer.join()
        assert memory.wait_encoded(30)


@pytest.mark.parametrize("background", [False, True])
def test_what_is_erased_is_in_no_file(path: Path, background: bool) -> None:
    encoder = HashingEncoder(8)
    with Memory.open(path, encoder=encoder, token_vectors=True, background=background, limits=LIMITS) as memory:
        for n in range(45):
            memory.add(f"rain and number {n}", id=f"r{n}")
        assert memory.wait_encoded(60)
        needles = [encoder.encode_documents([f"rain and number {n}"]).tobytes() for n in (3, 30, 44)]
        assert all(any(needle in file.read_bytes() for file in path.rglob("*") if file.is_file()) for needle in needles)
        assert memory.forget(ids=["r3", "r30", "r44"], wait=True).purged
        assert not any(needle in file.read_bytes() for needle in needles for file in path.rglob("*") if file.is_file())
        assert found(path, encoding.digest_of("rain and number 3").hex()) == []
        memory.drop()
        assert memory._store.wait_purged(30)
        rest = encoder.encode_documents(["rain and number 5"]).tobytes()
        assert not any(rest in file.read_bytes() for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("how", ["gone", "cut", "overwritten"])
def test_a_lost_ledger_costs_no_vector_that_sidecars_have(path: Path, how: str, caplog: pytest.LogCaptureFixture) -> None:
    encoder = Counting()
    with Memory.open(path, encoder=encoder, background=False, limits=LIMITS) as memory:
        for n in range(25):
            memory.add(f"rain {n}")
        memory.wait_encoded()
    for file in path.glob("vectors.sqlite3*"):
        if how == "gone":
            file.unlink()
        elif how == "cut":
            file.write_bytes(file.read_bytes()[:20_000])
        else:
            file.write_bytes(b"nonsense" * 10_000)
    encoder.encoded.clear()
    with Memory.open(path, encoder=encoder, background=False, limits=LIMITS) as memory:
        assert memory.wait_encoded()
        assert len(encoder.encoded) <= 5, "only what was in no sidecar is encoded again"
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)
        assert memory.verify() == []
    assert how == "gone" or any("begun anew" in record.message for record in caplog.records)


def test_a_damaged_sidecar_is_told_and_built_again(path: Path) -> None:
    encoder = Counting()
    with Memory.open(path, encoder=encoder, background=False, limits=LIMITS) as memory:
        for n in range(25):
            memory.add(f"rain {n}")
        memory.wait_encoded()
    encoder.encoded.clear()
    for file in path.glob("segments/*/*.dense"):
        content = bytearray(file.read_bytes())
        content[-100] ^= 0xFF
        file.write_bytes(content)
    with Memory.open(path, encoder=encoder, background=False, limits=LIMITS) as memory:
        assert any(".dense" in problem.file for problem in memory.verify())
        with memory._store.namespace("default") as namespace:
            assert memory._store.compactor is not None
            try:
                for segment in namespace.index.segments:
                    segment.sidecars["dense"].verify()
            except Exception as error:
                memory._store.report_damage(namespace, error)  # type: ignore[arg-type]
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)
        assert memory.verify() == [] and not encoder.encoded


def test_f17_another_encoder_is_a_clear_error_that_names_the_way_out(path: Path) -> None:
    with Memory.open(path, encoder=HashingEncoder(8), background=False, limits=LIMITS) as memory:
        for n in range(25):
            memory.add(f"rain {n}")
        memory.wait_encoded()
    with Memory.open(path, encoder=HashingEncoder(16), background=False, limits=LIMITS) as memory:
        memory.add("rain 99")
        with pytest.raises(EncoderMismatchError, match=r"hashing@1-8.*hashing@1-16.*reembed"):
            memory.wait_encoded()
        assert len(memory.search("rain", mode="bm25", k=50)) == 26
        seen: list[tuple[int, int]] = []
        memory.reembed(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (26, 26) and memory.wait_encoded()
        check_vectors(memory, "default", [HashingEncoder(16)], complete=True)
        assert dense(memory)["encoder"] == "hashing@1-16"


def test_reembedding_that_was_interrupted_goes_on_where_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "BATCH", 5)
    with Memory.open(path, encoder=HashingEncoder(8), background=False, limits=LIMITS) as memory:
        for n in range(25):
            memory.add(f"rain {n}")
        memory.wait_encoded()
        other = Counting(4)

        def stop(done: int, total: int) -> None:
            if done >= 15:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.reembed(other, progress=stop)
        check_vectors(memory, "default", [HashingEncoder(8)], complete=True)
        before = len(other.encoded)
        memory.add("while it is not done")
        memory.reembed(other)
        assert before == 15 and len(other.encoded) == len(set(other.encoded)) == 26
        check_vectors(memory, "default", [HashingEncoder(4)], complete=True)
        assert memory._store.vectors.reader is not None and {key for _, key in memory._store.vectors.reader.cursors()} == {"dense:hashing@1-4"}


@pytest.mark.parametrize(
    "arguments", [{"encoder": 5}, {"encoder": object()}, {"sparse_encoder": HashingEncoder(8)}, {"token_vectors": True}, {"max_unencoded": 0}, {"max_unencoded": "many"}]
)
def test_what_is_no_encoder_is_refused(path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        Memory.open(path, **arguments)
    assert not path.exists()


def test_vectors_that_cannot_be_kept_reach_no_index(path: Path) -> None:
    class NotANumber(Counting):
        def encode_documents(self, texts: Sequence[str]) -> Floats:
            made = np.array(super().encode_documents(texts))
            made[["nan" in text for text in texts]] = np.nan
            return made

    with Memory.open(path, encoder=NotANumber(), background=False) as memory:
        memory.add_many([{"text": "rain"}, {"text": "a nan"}, {"text": "snow"}])
        assert memory.wait_encoded()
        assert dense(memory)["refused"] == 1 and "not finite" in next(iter(dense(memory)["refused_entries"].values()))
