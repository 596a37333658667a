"""Tables: model2vec's format with all that it may have, and WordLlama as its own package computes it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agentir_ray.encoders import Encoder
from agentir_ray.encoders.catalogue import get_encoder
from agentir_ray.encoders.static import StaticEncoder
from agentir_ray.errors import EncodingError


def table(folder: Path, **tensors: np.ndarray) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    safetensors = pytest.importorskip("safetensors.numpy")
    folder.mkdir(exist_ok=True)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "red": 1, "green": 2, "blue": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    safetensors.save_file(tensors, folder / "model.safetensors")
    return folder


EMBEDDINGS = np.array([[9, 9], [1, 0], [0, 1], [3, 4]], np.float32)


def test_mean_of_the_known_words(tmp_path: Path) -> None:
    encoder = get_encoder(table(tmp_path / "m", embeddings=EMBEDDINGS.astype(np.float16)))
    assert isinstance(encoder, StaticEncoder) and encoder.dim == 2 and encoder.name == "m"
    half = np.sqrt(0.5)
    np.testing.assert_allclose(encoder.encode_queries(["red green", "blue mauve", "mauve", ""]), [[half, half], [0.6, 0.8], [0, 0], [0, 0]], atol=1e-3)


def test_weights_and_mapping(tmp_path: Path) -> None:
    folder = table(tmp_path / "m", embeddings=EMBEDDINGS, weights=np.array([1, 3, 4, 1], np.float64), mapping=np.array([0, 1, 2, 1]))
    np.testing.assert_allclose(get_encoder(folder).encode_documents(["red green", "blue"]), [[0.6, 0.8], [1, 0]], atol=1e-6)


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(EncodingError, match="model2vec"):
        get_encoder(table(tmp_path / "m", something=EMBEDDINGS)).encode_queries(["red"])


def test_wordllama_as_its_package_computes_it(dense: Callable[[str], Encoder]) -> None:
    encoder = dense("wordllama")
    import wordllama

    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ["Where is my passport?", "Caroline: I went to a support group yesterday.", "漢字 and 😀"]
    np.testing.assert_allclose(encoder.encode_documents(texts), np.concatenate([theirs.embed(text, norm=True) for text in texts]), atol=1e-5)
