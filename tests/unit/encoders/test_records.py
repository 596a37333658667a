"""What encoders give is checked before it is kept."""

from collections.abc import Sequence

import numpy as np
import pytest

from agentir_ray.encoders import SparseVector
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.encoders.records import checked_late, encode_late_records, encode_query, encode_records, encode_sparse_records
from agentir_ray.errors import EncodingError

NAN = float("nan")


class Given:
    """Gives the same, whatever is asked; a passage a line."""

    name = "given"
    revision = "1"
    dim = 2

    def __init__(self, given: object) -> None:
        self.given = given

    def passages(self, text: str) -> list[str]:
        return text.split("\n")

    def encode_queries(self, texts: Sequence[str]) -> object:
        return self.given

    encode_documents = encode_queries


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([[1.0, NAN]]), "not finite"),
        (np.array([[1.0, np.inf]], np.float16), "not finite"),
        (np.ones((1, 3)), "shape"),
        (np.ones((2, 2)), "shape"),
        (np.ones(2), "shape"),
        (np.ones((1, 2), np.int64), "int64"),
        (None, "shape"),
    ],
)
def test_vectors_that_cannot_be_kept(given: object, message: str) -> None:
    with pytest.raises(EncodingError, match=message) as caught:
        encode_records(Given(given), ["text"])  # type: ignore[arg-type]
    assert "given" in str(caught.value)
    with pytest.raises(EncodingError, match=message):
        encode_query(Given(given), "text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "0 vectors for 1"),
        ([SparseVector(("a", "b"), np.ones(1, np.float32))], "shape"),
        ([SparseVector(("a", "a"), np.ones(2, np.float32))], "distinct"),
        ([SparseVector(("a",), np.array([NAN], np.float32))], "not finite"),
        ([SparseVector(("a",), np.array([0], np.float32))], "above 0"),
        ([SparseVector(("a",), np.array([-1], np.float32))], "above 0"),
    ],
)
def test_weights_that_cannot_be_kept(given: object, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        encode_sparse_records(Given(given), ["text"])  # type: ignore[arg-type]


def test_vectors_are_normalised_and_zero_rows_left_out() -> None:
    given = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0], [1e-30, 0.0]])
    start, vectors = encode_records(Given(given), ["one\nblank", "two", "three"])  # type: ignore[arg-type]
    assert start.dtype == np.int64 and start.tolist() == [0, 1, 2, 3]
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0, 1], [1, 0]], rtol=1e-6)


def test_passages_belong_to_their_records() -> None:
    encoder = HashingEncoder(16)
    texts = ["w " * 300, "", "short one", "word " * 129]
    start, vectors = encode_records(encoder, texts)
    counts = [len(encoder.passages(text)) if text else 0 for text in texts]
    assert np.diff(start).tolist() == counts and counts[0] > 2 and counts[3] == 2
    np.testing.assert_array_equal(vectors[start[2]], encoder.encode_documents(["short one"])[0])


def test_a_records_weights_are_the_greatest_of_its_passages() -> None:
    encoder = HashingSparseEncoder()
    text = "alpha alpha alpha " + "filler " * 200 + "alpha omega"
    (vector,) = encode_sparse_records(encoder, [text])
    weight = dict(zip(vector.terms, vector.weights.tolist(), strict=True))
    assert vector.terms == ("alpha", "filler", "omega")
    assert weight["alpha"] == np.float32(np.log1p(3)) and weight["omega"] == np.float32(np.log1p(1))


def test_late_vectors_are_checked() -> None:
    encoder = HashingEncoder(4)
    good = encoder.encode_documents_late(["a b"])
    with pytest.raises(EncodingError, match="tokens of 0 texts"):
        checked_late(encoder, good._replace(tokens=[]), 1)
    with pytest.raises(EncodingError, match="shape"):
        checked_late(encoder, good._replace(tokens=[np.ones((2, 3), np.float32)]), 1)
    with pytest.raises(EncodingError, match="not finite"):
        checked_late(encoder, good._replace(tokens=[np.full((2, 4), NAN, np.float32)]), 1)
    late = encode_late_records(encoder, ["a b", "", "w " * 200])
    assert [len(each) for each in late.tokens] == [2, 0, sum(len(piece.split()) for piece in encoder.passages("w " * 200))]


def test_what_an_encoder_raises_becomes_an_error_of_ours() -> None:
    class Failing(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
            raise MemoryError("out of memory")

    with pytest.raises(EncodingError, match="hashing failed on 1 texts: MemoryError: out of memory"):
        encode_records(Failing(), ["text"])
