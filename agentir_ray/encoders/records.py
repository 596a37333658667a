"""From the texts of records to what is kept of them: 1..n passages a record, encoded, checked and put together. It knows no store.

What an encoder gives is not trusted: another width, another number of rows, or a number that is not finite is an EncodingError that says so, and nothing of the call is
returned. A passage in which the encoder found nothing to read has a zero vector, which is left out: a record of such passages has no row, and is in no dense list.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from agentir_ray.encoders.normal import normalized
from agentir_ray.encoders.protocol import Encoder, Floats, LateVectors, SparseEncoder, SparseVector, TokenEncoder
from agentir_ray.errors import AgentIRError, EncodingError

Starts = npt.NDArray[np.int64]
T = TypeVar("T")


class EncodedRecords(NamedTuple):
    """`vectors` float32 (rows, dim), each of length 1; those of record r are rows start[r]:start[r + 1]. `start` int64 (records + 1)."""

    start: Starts
    vectors: Floats


class LateRecords(NamedTuple):
    """`records` for search; `tokens` of each record the vectors of all its passages' tokens, float32 (tokens, dim), each of length 1."""

    records: EncodedRecords
    tokens: list[Floats]


def encode_records(encoder: Encoder, texts: Sequence[str]) -> EncodedRecords:
    """One text a record. Raises EncodingError where the encoder fails or gives what cannot be kept."""
    passages, owner = _passages(encoder.passages, texts)
    return _by_record(checked_vectors(encoder, _called(encoder, encoder.encode_documents, passages), len(passages)), owner, len(texts))


def encode_late_records(encoder: TokenEncoder, texts: Sequence[str]) -> LateRecords:
    """The same with the tokens of one forward pass; tokens in the overlap of two passages are there twice, which a maximum does not mind."""
    passages, owner = _passages(encoder.passages, texts)
    late = checked_late(encoder, _called(encoder, encoder.encode_documents_late, passages), len(passages))
    tokens: list[list[Floats]] = [[np.empty((0, encoder.dim), np.float32)] for _ in texts]
    for record, vectors in zip(owner, late.tokens, strict=True):
        tokens[record].append(vectors)
    return LateRecords(_by_record(late.vectors, owner, len(texts)), [np.concatenate(each) for each in tokens])


def encode_sparse_records(encoder: SparseEncoder, texts: Sequence[str]) -> list[SparseVector]:
    """Of each record, each term's greatest weight over the passages, terms in the order in which they come first."""
    passages, owner = _passages(encoder.passages, texts)
    weights: list[dict[str, float]] = [{} for _ in texts]
    for record, vector in zip(owner, checked_sparse(encoder, _called(encoder, encoder.encode_documents, passages), len(passages)), strict=True):
        pooled = weights[record]
        for term, weight in zip(vector.terms, vector.weights.tolist(), strict=True):
            pooled[term] = max(weight, pooled.get(term, 0.0))
    return [SparseVector(tuple(each), np.fromiter(each.values(), np.float32, len(each))) for each in weights]


def encode_query(encoder: Encoder, text: str) -> Floats:
    """float32 (dim), of length 1, or zero where there is nothing in it to read."""
    vector: Floats = checked_vectors(encoder, _called(encoder, encoder.encode_queries, [text]), 1)[0]
    return vector


def encode_late_query(encoder: TokenEncoder, text: str) -> LateVectors:
    """Of one text, checked."""
    return checked_late(encoder, _called(encoder, encoder.encode_queries_late, [text]), 1)


def encode_sparse_query(encoder: SparseEncoder, text: str) -> SparseVector:
    """Checked."""
    return checked_sparse(encoder, _called(encoder, encoder.encode_queries, [text]), 1)[0]


def checked_vectors(encoder: Encoder, given: Floats, rows: int) -> Floats:
    """float32 (rows, dim), of length 1 or zero. Encoders of the user's own may give other lengths, and float64."""
    vectors = np.asarray(given)
    if vectors.shape != (rows, encoder.dim):
        raise EncodingError(f"{encoder.name} gave an array of shape {vectors.shape} for {rows} texts, where its `dim` promises {(rows, encoder.dim)}. Correct the encoder.")
    if vectors.dtype.kind != "f":
        raise EncodingError(f"{encoder.name} gave {vectors.dtype} where floats were expected. Correct the encoder.")
    _finite(encoder.name, vectors, "vector")
    return normalized(vectors)


def checked_late(encoder: TokenEncoder, given: LateVectors, rows: int) -> LateVectors:
    """The same for tokens; a token without a length is left out."""
    vectors = checked_vectors(encoder, given.vectors, rows)
    if len(given.tokens) != rows:
        raise EncodingError(f"{encoder.name} gave the tokens of {len(given.tokens)} texts for {rows}. Correct the encoder.")
    tokens = [checked_vectors(encoder, each, len(each)) for each in given.tokens]
    return LateVectors(vectors, [each[each.any(axis=1)] for each in tokens])


def checked_sparse(encoder: SparseEncoder, given: Sequence[SparseVector], rows: int) -> list[SparseVector]:
    """Weights as float32, above 0."""
    if len(given) != rows:
        raise EncodingError(f"{encoder.name} gave {len(given)} vectors for {rows} texts. Correct the encoder.")
    checked = []
    for vector in given:
        weights = np.asarray(vector.weights, np.float32)
        if weights.shape != (len(vector.terms),) or len(set(vector.terms)) != len(vector.terms):
            raise EncodingError(f"{encoder.name} gave {len(set(vector.terms))} distinct terms of {len(vector.terms)}, with weights of shape {weights.shape}. Correct the encoder.")
        _finite(encoder.name, weights, "weight")
        if (weights <= 0).any():
            raise EncodingError(f"{encoder.name} gave the weight {weights.min()}; weights are above 0. Correct the encoder.")
        checked.append(SparseVector(tuple(vector.terms), weights))
    return checked


def _called(encoder: Encoder | SparseEncoder, encode: Callable[[Sequence[str]], T], texts: Sequence[str]) -> T:
    try:
        return encode(texts)
    except AgentIRError:
        raise
    except Exception as error:  # whatever a framework, or an encoder of the user's own, raises
        raise EncodingError(f"{encoder.name} failed on {len(texts)} texts: {type(error).__name__}: {error}. The texts are kept, and can be encoded again.") from error


def _finite(name: str, numbers: npt.NDArray[np.floating[Any]], what: str) -> None:
    if not np.isfinite(numbers).all():
        raise EncodingError(f"{name} gave a {what} that is not finite (NaN or infinite). With a dtype of 16 bits, try float32.")


def _passages(cut: Callable[[str], list[str]], texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The passages of all texts, and of each the number of its text."""
    owned = [(passage, number) for number, text in enumerate(texts) for passage in cut(text)]
    return [passage for passage, _ in owned], [number for _, number in owned]


def _by_record(vectors: Floats, owner: Sequence[int], records: int) -> EncodedRecords:
    kept = vectors.any(axis=1)
    start = np.zeros(records + 1, np.int64)
    np.cumsum(np.bincount(np.asarray(owner, np.int64)[kept], minlength=records), out=start[1:])
    return EncodedRecords(start, vectors[kept])
