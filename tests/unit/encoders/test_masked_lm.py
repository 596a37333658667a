"""BERT in numpy equals transformers' own, and the weights are SPLADE's of its logits."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from agentir_ray.encoders import SparseEncoder
from agentir_ray.encoders.catalogue import get_sparse_encoder
from agentir_ray.encoders.masked_lm import MaskedLMEncoder
from tests.unit.encoders.odd_texts import LANGUAGES, LONG


def reference(folder: Path, ids: list[int]) -> np.ndarray:
    """max(log1p(relu(logits))) by transformers."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0]
        return torch.log1p(torch.relu(logits)).amax(dim=0).numpy()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_bert(tmp_path_factory.mktemp("bert"))


def random_bert(folder: Path) -> Path:
    """A BertForMaskedLM of two layers with random weights and a vocabulary of letters and a few words."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"), "park", "car", "level"]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(vocab={word: number for number, word in enumerate(words)}, model_max_length=64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64, initializer_range=0.4
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder, safe_serialization=True)
    return folder


def test_random_weights(tiny: Path) -> None:
    assert MaskedLMEncoder.fits(tiny)
    encoder = get_sparse_encoder(tiny)
    assert isinstance(encoder, MaskedLMEncoder)
    for text in ("where did we park the car", "a", "level c " * 200):
        ids = encoder._tokens.tokenize(text).ids
        expected = reference(tiny, ids)
        (vector,) = encoder.encode_documents([text])
        vocabulary = encoder._tokens.vocabulary()
        given = np.zeros_like(expected)
        given[[vocabulary.index(term) for term in vector.terms]] = vector.weights
        np.testing.assert_allclose(given, expected, atol=1e-4)


@pytest.mark.parametrize("text", [LANGUAGES[0], LANGUAGES[1], "Caroline: I went to a support group yesterday.", LONG[:2_000]])
def test_splade_tiny_equals_torch(text: str, sparse: Callable[[str], SparseEncoder]) -> None:
    encoder = sparse("splade-tiny")
    assert isinstance(encoder, MaskedLMEncoder)
    expected = reference(encoder._folder, encoder._tokens.tokenize(text).ids)
    (vector,) = encoder.encode_queries([text])
    vocabulary = {term: number for number, term in enumerate(encoder._tokens.vocabulary())}
    given = np.zeros_like(expected)
    given[[vocabulary[term] for term in vector.terms]] = vector.weights
    np.testing.assert_allclose(given, expected, atol=1e-4)


def test_threads_agree(tiny: Path) -> None:
    encoder = get_sparse_encoder(tiny)
    texts = [text for text in ("park", "car level", "abc def", "level") for _ in range(5)]
    given: dict[int, object] = {}

    def work(number: int) -> None:
        given[number] = encoder.encode_documents([texts[number]])[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, expected in enumerate(encoder.encode_documents(texts)):
        assert given[number][0] == expected.terms  # type: ignore[index]
        np.testing.assert_array_equal(given[number][1], expected.weights)  # type: ignore[index]
