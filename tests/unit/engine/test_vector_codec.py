"""Vectors of every channel survive the ledger."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agentir_ray.encoders.protocol import SparseVector
from agentir_ray.engine.vector_codec import pack_dense, pack_sparse, pack_tokens, unpack_dense, unpack_sparse, unpack_tokens

SHAPES = st.tuples(st.integers(0, 5), st.integers(1, 9))
FLOATS = st.floats(-2.0, 2.0, width=32)


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=FLOATS)))
def test_dense_vectors_come_back_bit_for_bit(vectors: np.ndarray) -> None:
    assert unpack_dense(pack_dense(vectors)).tobytes() == vectors.tobytes()
    assert unpack_dense(pack_dense(vectors)).shape == vectors.shape


@given(SHAPES.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=FLOATS)))
def test_numbers_of_tokens_are_off_by_half_a_scale_at_most(vectors: np.ndarray) -> None:
    back = unpack_tokens(pack_tokens(vectors))
    assert back.dtype == np.float32 and back.shape == vectors.shape
    scale = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True) / 127.0
    assert (np.abs(back - vectors) <= 0.5 * scale * (1 + 1e-5) + 1e-37).all()


@given(st.lists(st.tuples(st.text(), st.floats(2.0**-20, 100.0, width=32)), unique_by=lambda one: one[0]))
def test_weights_come_back_bit_for_bit(weights: list[tuple[str, float]]) -> None:
    vector = SparseVector(tuple(term for term, _ in weights), np.array([weight for _, weight in weights], np.float32))
    back = unpack_sparse(pack_sparse(vector))
    assert back.terms == vector.terms
    assert back.weights.tobytes() == vector.weights.tobytes()
