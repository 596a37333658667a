"""What a sidecar is built from: what the ledger has, told apart from what is still to be encoded and from what is lost."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from agentir_ray.encoders.protocol import SparseVector
from agentir_ray.engine.channel import SPARSE, Channel
from agentir_ray.engine.sidecars import Sidecars, attach
from agentir_ray.engine.vector_codec import pack_sparse
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.files import SYSTEM_FILES
from agentir_ray.types import Record
from tests.properties.index_world import document_of, write_segment

EMPTY = pack_sparse(SparseVector((), np.empty(0, np.float32)))


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    index = Index([], 0)
    for seq in range(1, 5):
        index.add(seq, document_of(Record(f"r{seq}", "a", seq, seq), seq))
    made = write_segment(draft_buffer(index.freeze(), "n", "f"), tmp_path / "1.segment")
    assert made is not None
    return made


def ledger_of(held: Mapping[int, bytes], meanwhile: Callable[[], None] = lambda: None) -> Callable[[str, str, Sequence[int]], Mapping[int, bytes]]:
    def values(channel: str, encoder: str, seqs: Sequence[int]) -> Mapping[int, bytes]:
        found = {seq: held[seq] for seq in seqs if seq in held}
        meanwhile()
        return found

    return values


def test_empty_vectors_are_covered_and_refused_texts_are_not(segment: Segment) -> None:
    lost: list[int] = []
    held = {1: pack_sparse(SparseVector(("a",), np.ones(1, np.float32))), 2: EMPTY, 3: b""}  # what the encoder refused is kept as nothing
    sidecar = Sidecars(SYSTEM_FILES).build(Channel(SPARSE, "e@1", encoded_seq=3), segment, [], ledger_of(held), lost.append)
    assert sidecar is not None and sidecar.has(np.arange(4)).tolist() == [True, True, False, False] and sidecar.encoder == "e@1" and lost == []


def test_where_all_vectors_are_empty_they_are_kept_as_such(segment: Segment) -> None:
    sidecar = Sidecars(SYSTEM_FILES).build(Channel(SPARSE, "e@1", encoded_seq=4), segment, [], ledger_of(dict.fromkeys(range(1, 5), EMPTY)), lambda seq: None)
    assert sidecar is not None and sidecar.has(np.arange(4)).all()


def test_what_is_encoded_meanwhile_is_not_lost(segment: Segment) -> None:
    channel, lost = Channel(SPARSE, "e@1", encoded_seq=1), list[int]()

    def encode_on() -> None:
        channel.encoded_seq = 4

    Sidecars(SYSTEM_FILES).build(channel, segment, [], ledger_of({1: EMPTY}, encode_on), lost.append)
    assert lost == []
    Sidecars(SYSTEM_FILES).build(channel, segment, [], ledger_of({1: EMPTY}), lost.append)
    assert lost == [2]


def test_a_sidecar_of_another_encoder_is_to_be_built_again(segment: Segment) -> None:
    held = {seq: pack_sparse(SparseVector(("a",), np.ones(1, np.float32))) for seq in range(1, 5)}
    sidecar = Sidecars(SYSTEM_FILES).build(Channel(SPARSE, "one@1", 4), segment, [], ledger_of(held), lambda seq: None)
    assert sidecar is not None
    assert attach(segment, {SPARSE: sidecar.path.name}, {SPARSE: Channel(SPARSE, "one@1", 4)}) == []
    assert attach(segment, {SPARSE: sidecar.path.name}, {SPARSE: Channel(SPARSE, "other@1", 4)}) == [SPARSE]
    assert SPARSE not in segment.sidecars
