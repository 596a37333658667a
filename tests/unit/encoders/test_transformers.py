"""Dense transformers: sentence-transformers as it computes itself, and ONNX beside it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from agentir_ray.encoders import Encoder
from agentir_ray.encoders.catalogue import get_encoder
from agentir_ray.encoders.onnx import OnnxEncoder
from agentir_ray.encoders.sentence_dense import SentenceEncoder
from tests.unit.encoders.odd_texts import LANGUAGES, LONG

TEXTS = [*LANGUAGES[:8], LONG[:700]]


def folder_of(encoder: Encoder) -> Path:
    assert isinstance(encoder, SentenceEncoder)
    return encoder._folder


def test_minilm_as_sentence_transformers_computes_it(dense: Callable[[str], Encoder]) -> None:
    encoder = dense("minilm")
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(folder_of(encoder)), device="cpu", local_files_only=True)
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), theirs.encode(TEXTS, show_progress_bar=False), atol=1e-5)


def test_int8_is_near(dense: Callable[[str], Encoder]) -> None:
    full, int8 = dense("minilm").encode_documents(TEXTS), dense("minilm-int8").encode_documents(TEXTS)
    assert (np.einsum("ij,ij->i", full, int8) > 0.97).all()
    assert dense("minilm").revision != dense("minilm-int8").revision


def test_prompts_are_read_but_are_no_tokens_of_the_text(dense: Callable[[str], Encoder]) -> None:
    folder = folder_of(dense("minilm"))
    plain = dense("minilm")
    prompted = SentenceEncoder("prompted", folder, query_prompt="query: ", document_prompt="passage: ")
    np.testing.assert_allclose(prompted.encode_queries(TEXTS), plain.encode_queries([f"query: {text}" for text in TEXTS]), atol=1e-5)
    np.testing.assert_allclose(prompted.encode_documents(TEXTS), plain.encode_documents([f"passage: {text}" for text in TEXTS]), atol=1e-5)
    late = prompted.encode_queries_late(["green tea", ""])
    assert [len(tokens) for tokens in late.tokens] == [2, 0]
    whole = plain.encode_queries_late(["query: green tea"]).tokens[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(late.tokens[0], whole[-2:], atol=1e-5)


def test_a_passage_fits_the_window(dense: Callable[[str], Encoder]) -> None:
    encoder = dense("minilm")
    assert isinstance(encoder, SentenceEncoder)
    for text in (LONG, "漢字仮名" * 2_000, "supercalifragilistic" * 4 + " " + LONG[:9_000]):
        for passage in encoder.passages(text):
            assert len(encoder._tokens.plain(passage)) <= 254


def test_an_onnx_folder(tmp_path: Path, dense: Callable[[str], Encoder]) -> None:
    int8 = dense("minilm-int8")
    assert isinstance(int8, OnnxEncoder)
    shutil.copytree(folder_of(dense("minilm")), tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    shutil.copy(int8._graph, tmp_path / "model" / "model.onnx")
    encoder = get_encoder(tmp_path / "model")
    assert isinstance(encoder, OnnxEncoder) and encoder.name == "model" and encoder.dim == 384
    np.testing.assert_array_equal(encoder.encode_queries(TEXTS[:2]), int8.encode_queries(TEXTS[:2]))
    assert encoder.revision == int8.revision
