"""The hashing encoders are the same on every machine, and know shared words."""

import numpy as np
import pytest

from agentir_ray.encoders import Encoder, SparseEncoder, TokenEncoder, identity
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder


def test_they_are_encoders() -> None:
    assert isinstance(HashingEncoder(), TokenEncoder) and isinstance(HashingEncoder(), Encoder) and isinstance(HashingSparseEncoder(), SparseEncoder)
    assert identity(HashingEncoder(32)) == "hashing@1-32" and identity(HashingSparseEncoder()) == "hashing@1"


@pytest.mark.parametrize("dim", [1, 7, 64, 384])
def test_texts_that_share_words_are_close(dim: int) -> None:
    vectors = HashingEncoder(dim).encode_documents(["The red bicycle", "a RED bicycle", "quarterly revenue figures", "the red bicycle!"])
    assert vectors.shape == (4, dim)
    np.testing.assert_array_equal(vectors[0], vectors[3])
    if dim >= 64:
        assert vectors[0] @ vectors[1] > 0.5 > abs(vectors[0] @ vectors[2])


def test_the_same_on_every_machine() -> None:
    assert np.sign(HashingEncoder(8).encode_queries(["tram"])[0]).astype(int).tolist() == GOLDEN


GOLDEN = [-1, 1, -1, 1, -1, 1, 1, -1]
