"""What holds of each encoder of the catalogue that is installed."""

from collections.abc import Callable

import numpy as np
import pytest

from agentir_ray.encoders import Encoder, SparseEncoder, TokenEncoder
from agentir_ray.encoders.records import encode_late_records, encode_query, encode_records, encode_sparse_query, encode_sparse_records
from agentir_ray.errors import EncodingError
from tests.unit.encoders.conftest import DENSE, LATE, SPARSE
from tests.unit.encoders.odd_texts import BLANK, LANGUAGES, LONG, ODD

GetDense = Callable[[str], Encoder]
GetSparse = Callable[[str], SparseEncoder]


def lengths(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(vectors.astype(np.float64)).sum(axis=1))


@pytest.mark.parametrize("name", DENSE)
def test_odd_texts_give_vectors_of_length_1_or_zero(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    for encode in (encoder.encode_documents, encoder.encode_queries):
        vectors = encode([*LANGUAGES, *ODD])
        assert vectors.dtype == np.float32 and vectors.shape == (len(LANGUAGES) + len(ODD), encoder.dim)
        length = lengths(vectors)
        assert np.all((length == 0) | (np.abs(length - 1) < 1e-6))
        assert (length[: len(LANGUAGES)] > 0).all()


@pytest.mark.parametrize("name", DENSE)
def test_blank_texts_give_zero_vectors_and_records_without_rows(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    assert not encoder.encode_documents(BLANK).any() and not encoder.encode_queries(BLANK).any()
    records = encode_records(encoder, ["a word", *BLANK, "another"])
    assert records.start.tolist() == [0, 1, 1, 1, 1, 1, 2]
    assert encoder.encode_documents([]).shape == (0, encoder.dim)
    assert encode_records(encoder, []).vectors.shape == (0, encoder.dim)


@pytest.mark.parametrize("name", DENSE)
def test_a_long_text_is_read_to_its_end(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    text = LONG[:9_000] + " The violin is under the stairs."
    start, vectors = encode_records(encoder, [text])
    assert start.tolist() == [0, len(encoder.passages(text))] and len(vectors) > 4
    query = encode_query(encoder, "violin under the stairs")
    assert int(np.argmax(vectors @ query)) == len(vectors) - 1


@pytest.mark.parametrize("name", DENSE)
def test_a_hundred_kilobytes_are_cut_and_as_a_query_cut_off(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    passages = encoder.passages(LONG)
    assert len(passages) > 20 and passages[0] == LONG[: len(passages[0])] and LONG.endswith(passages[-1])
    assert abs(lengths(encoder.encode_queries([LONG]))[0] - 1) < 1e-6


@pytest.mark.parametrize("name", DENSE)
def test_order_and_company_of_texts_do_not_matter(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    texts = [*LANGUAGES[:12], LONG[:800], "x", ""]
    together = encoder.encode_documents(texts)
    backwards = encoder.encode_documents(texts[::-1])[::-1]
    alone = np.concatenate([encoder.encode_documents([text]) for text in texts])
    np.testing.assert_allclose(together, backwards, atol=2e-6)
    np.testing.assert_allclose(together, alone, atol=2e-6)


@pytest.mark.parametrize("name", [name for name in DENSE if name != "hashing"])
def test_what_means_the_same_is_closer(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    query = encode_query(encoder, "What does Ana do for a living?")
    near, far = encoder.encode_documents(["Ana works as a nurse in a hospital.", "The kettle has been broken since Tuesday."])
    assert near @ query > far @ query + 0.05


@pytest.mark.parametrize("name", LATE)
def test_token_vectors_are_of_the_same_pass(name: str, dense: GetDense) -> None:
    encoder = dense(name)
    assert isinstance(encoder, TokenEncoder)
    texts = ["where did we park?", "", "on the third level, next to the lift, behind the pillar", *ODD[:8]]
    late = encoder.encode_documents_late(texts)
    np.testing.assert_array_equal(late.vectors, encoder.encode_documents(texts))
    assert len(late.tokens) == len(texts) and not len(late.tokens[1]) and len(late.tokens[0]) in (4, 5)
    for tokens in late.tokens:
        assert tokens.dtype == np.float32 and tokens.shape[1] == encoder.dim
        np.testing.assert_allclose(lengths(tokens), 1, atol=1e-6)
    queries = encoder.encode_queries_late(texts)
    np.testing.assert_array_equal(queries.vectors, encoder.encode_queries(texts))
    kept = encode_late_records(encoder, [LONG[:6_000], "", "short"])
    assert kept.records.start[1] > 3 and len(kept.tokens[0]) > 1_000 and not len(kept.tokens[1]) and len(kept.tokens[2]) == 1


@pytest.mark.parametrize("name", [name for name in DENSE if name != "hashing"])
def test_a_lone_surrogate_is_an_error(name: str, dense: GetDense) -> None:
    with pytest.raises(EncodingError, match="surrogate"):
        dense(name).encode_documents(["fine", "broken \ud800"])


@pytest.mark.parametrize("name", SPARSE)
def test_odd_texts_give_weights_above_zero(name: str, sparse: GetSparse) -> None:
    encoder = sparse(name)
    vectors = encode_sparse_records(encoder, [*LANGUAGES, *ODD, LONG[:5_000]])
    assert len(vectors) == len(LANGUAGES) + len(ODD) + 1
    for vector in vectors:
        assert vector.weights.dtype == np.float32 and len(vector.terms) == len(vector.weights) == len(set(vector.terms))
        assert np.isfinite(vector.weights).all() and (vector.weights > 0).all()
    assert all(len(vector.terms) == 0 for vector in encode_sparse_records(encoder, BLANK))
    assert encode_sparse_records(encoder, []) == []


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_record_has_the_words_of_all_its_passages(name: str, sparse: GetSparse) -> None:
    encoder = sparse(name)
    record = encode_sparse_records(encoder, [LONG[:8_000] + " The violin is under the stairs."])[0]
    assert {"violin", "stairs", "tram"} <= set(record.terms)
    assert "violin" in encode_sparse_query(encoder, "a violin").terms


def test_splade_expands(sparse: GetSparse) -> None:
    assert "cars" in encode_sparse_query(sparse("splade-tiny"), "where did we park the car?").terms
