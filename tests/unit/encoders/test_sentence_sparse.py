"""sentence-transformers' SparseEncoder: SPLADE pooling, and inference-free queries from their table without torch."""

from pathlib import Path

import numpy as np
import pytest

from agentir_ray.encoders import SparseVector
from agentir_ray.encoders.catalogue import get_sparse_encoder
from agentir_ray.encoders.masked_lm import MaskedLMEncoder
from agentir_ray.encoders.sentence_sparse import SentenceSparseEncoder
from tests.unit.encoders.test_masked_lm import random_bert

TEXTS = ["where did we park the car", "level a", "", "park car level " * 40]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_bert(tmp_path_factory.mktemp("plain"))


def weights(vector: SparseVector) -> dict[str, float]:
    return dict(zip(vector.terms, vector.weights.tolist(), strict=True))


def test_it_pools_a_plain_masked_language_model_as_numpy_does(plain: Path) -> None:
    pytest.importorskip("sentence_transformers")
    ours = MaskedLMEncoder("ours", plain).encode_documents(TEXTS)
    theirs = SentenceSparseEncoder("theirs", plain).encode_documents(TEXTS)
    for mine, other in zip(ours, theirs, strict=True):
        assert weights(mine) == pytest.approx(weights(other), abs=1e-4)


def test_inference_free_queries(plain: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SparseStaticEmbedding, SpladePooling

    transformer = MLMTransformer(str(plain))
    generator = torch.Generator().manual_seed(3)
    table = SparseStaticEmbedding(transformer.tokenizer, weight=torch.rand(len(transformer.tokenizer), generator=generator), frozen=True)
    model = SparseEncoder(modules=[Router.for_query_document(query_modules=[table], document_modules=[transformer, SpladePooling("max")])], similarity_fn_name="dot")
    model.save_pretrained(str(tmp_path / "free"))

    encoder = get_sparse_encoder(tmp_path / "free")
    assert isinstance(encoder, SentenceSparseEncoder)
    queries = encoder.encode_queries(TEXTS)
    assert not encoder._model._made  # no transformer was loaded for them
    vocabulary = encoder._tokens.vocabulary()
    for query, expected in zip(queries, model.encode_query(TEXTS, convert_to_sparse_tensor=False).numpy(), strict=True):
        special = {"[CLS]", "[SEP]", "[PAD]"}
        assert weights(query) == pytest.approx({vocabulary[word]: expected[word] for word in np.flatnonzero(expected) if vocabulary[word] not in special})
    documents = encoder.encode_documents(TEXTS)
    for document, other in zip(documents, MaskedLMEncoder("ours", plain).encode_documents(TEXTS), strict=True):
        assert weights(document) == pytest.approx(weights(other), abs=1e-4)
