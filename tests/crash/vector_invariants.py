"""What must hold of a store's vectors whatever happened to it: each version of a record has those that its encoder makes of its text, or none yet; nothing else has any.

`check_vectors` looks at the ledger, the sidecars and what is young, and repairs nothing. `Counting` says which texts were encoded: paid for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agentir_ray.client.memory import Memory
from agentir_ray.encoders.hashing import HashingEncoder
from agentir_ray.encoders.protocol import Floats, LateVectors
from agentir_ray.encoders.records import encode_late_records
from agentir_ray.engine.channel import DENSE, TOKENS
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.vector_codec import pack_tokens, unpack_dense, unpack_tokens
from agentir_ray.engine.vectors import key_of
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.storage.codec import decode_body


class Counting(HashingEncoder):
    """Remembers the texts in the order in which it was given them."""

    def __init__(self, dim: int = 8) -> None:
        super().__init__(dim)
        self.encoded: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        self.encoded += texts
        return super().encode_documents(texts)

    def encode_documents_late(self, texts: Sequence[str]) -> LateVectors:
        self.encoded += texts
        return super().encode_documents_late(texts)


def versions(memory: Memory, namespace: Namespace) -> dict[int, str]:
    """The text of every version that was not erased, by sequence number."""
    entries = memory._store.log.read(namespace.number)
    return {entry.seq: decode_body(entry.body, entry.seq).text for entry in entries if entry.id is not None and entry.body is not None}


def searched(namespace: Namespace) -> dict[int, Any]:
    """By sequence number, the dense vectors that a search would find. A document has them in one place, unless a reader is to ignore the young ones."""
    found: dict[int, Any] = {}
    channel = namespace.channels.get(DENSE)
    if channel is None:
        return found
    if channel.young is not None:
        view = channel.young.view()
        found = {int(seq): view.vectors[view.start[i] : view.start[i + 1]] for i, seq in enumerate(view.seq)}
    for segment in namespace.index.segments:
        sidecar = segment.sidecars.get(DENSE)
        if sidecar is not None:
            assert sidecar.encoder == channel.encoder
            sidecar.verify()
            start, vectors = sidecar.vectors_of(np.arange(segment.documents))
            for doc, seq in enumerate(segment.array("seq").tolist()):
                if start[doc + 1] > start[doc]:
                    found[seq] = vectors[start[doc] : start[doc + 1]]
    return found


def check_vectors(memory: Memory, name: str, encoders: Sequence[HashingEncoder], complete: bool = False) -> None:
    """`encoders` are those of which the namespace may have vectors. `complete`: of every version, as after `wait_encoded`."""
    store = memory._store
    with store.namespace(name) as namespace:
        texts = versions(memory, namespace)
        ledger = store.vectors.reader
        channel = namespace.channels.get(DENSE)
        if channel is None or ledger is None:
            assert not complete or not texts
            return
        (encoder,) = [one for one in encoders if f"{one.name}@{one.revision}" == channel.encoder]
        expected = encode_late_records(encoder, list(texts.values()))
        vectors = {seq: expected.records.vectors[expected.records.start[i] : expected.records.start[i + 1]] for i, seq in enumerate(texts)}
        tokens = dict(zip(texts, expected.tokens, strict=True))
        assert set(ledger.seqs(namespace.number)) <= set(texts) | _erased(namespace), "the ledger holds a record that the log does not"
        found = searched(namespace)
        for seq, given in found.items():
            if seq in texts:
                np.testing.assert_array_equal(given, vectors[seq], err_msg=f"entry {seq} has vectors of something else")
        held = dict(ledger.held(namespace.number, key_of(DENSE, channel.encoder)))
        for seq, data in held.items():
            if seq in texts:
                np.testing.assert_array_equal(unpack_dense(data), vectors[seq])
                assert seq in found or not len(vectors[seq]), f"entry {seq} was encoded and is not searched"
        for seq, data in ledger.held(namespace.number, key_of(TOKENS, channel.encoder)):
            if seq in texts:
                np.testing.assert_array_equal(unpack_tokens(data), unpack_tokens(pack_tokens(tokens[seq])))
        if complete:
            assert {seq for seq in texts if len(vectors[seq])} <= set(found) and set(texts) <= set(held)
            assert channel.encoded_seq == namespace.index.seq


def _erased(namespace: Namespace) -> set[int]:
    """What is still in some part, and was erased: hidden, and not purged yet."""
    found: set[int] = set()
    for part in namespace.index.parts:
        deleted_at = part.overlay.deleted_at
        if len(deleted_at):
            found.update(part.column("seq")[deleted_at[: part.documents] == ERASED_AT].tolist())
    return found
