"""What a model's folder holds, read from its small JSON files: no weights are loaded, no network is asked. Layouts: transformers', sentence-transformers', model2vec's.

Weights are read from `safetensors` and ONNX files only: PyTorch's own format is a pickle, which runs what it says.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentir_ray.encoders.revision import revision
from agentir_ray.errors import EncoderMissingError

LARGEST_WINDOW = 512  # tokens, where a model reads more: a passage should be about one thing


def settings(folder: Path, file: str) -> dict[str, Any]:
    """A JSON object of the folder; empty where there is no such file."""
    path = folder / file
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EncoderMissingError(f"{path} is not JSON: {error}. Get the model again.") from error
    return found if isinstance(found, dict) else {}


def modules(folder: Path) -> list[tuple[str, Path]]:
    """Of a sentence-transformers folder the class name and folder of each module in order; empty for others."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    return [(module["type"].rsplit(".", 1)[-1], folder / module["path"]) for module in json.loads(path.read_text(encoding="utf-8"))]


def window(folder: Path) -> int:
    """How many tokens the model reads at most, special ones included."""
    known = [
        settings(folder, "sentence_bert_config.json").get("max_seq_length"),
        settings(folder, "config.json").get("max_position_embeddings"),
        settings(folder, "tokenizer_config.json").get("model_max_length"),
    ]
    return min([int(tokens) for tokens in known if tokens] + [LARGEST_WINDOW])


def dim(folder: Path) -> int:
    """The width of the vectors."""
    width = settings(folder, "config.json").get("hidden_size") or settings(folder, "config.json").get("dim")
    for kind, path in modules(folder):
        config = settings(path, "config.json")
        if kind == "Dense":
            width = config["out_features"]
        elif kind == "Pooling":
            width = config.get("word_embedding_dimension") or config.get("embedding_dimension") or width
    if not width:
        raise EncoderMissingError(f"{folder} does not say how wide its vectors are: it has no config.json with a 'hidden_size'. Name the folder of a transformer.")
    return int(width)


def pooling(folder: Path) -> str:
    """How tokens become a vector: "mean", "cls", or another mode's name."""
    for kind, path in modules(folder):
        if kind == "Pooling":
            config = settings(path, "config.json")
            modes = [key.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens") for key, value in config.items() if key.startswith("pooling_mode_") and value]
            return str(config.get("pooling_mode") or "+".join(modes))
    return "mean"


def prompts(folder: Path) -> tuple[str, str]:
    """For queries and for documents, as sentence-transformers names them; empty where the model has none."""
    named: Mapping[str, str] = settings(folder, "config_sentence_transformers.json").get("prompts") or {}
    return named.get("query", ""), named.get("document", named.get("passage", ""))


def check(folder: Path) -> None:
    """Raises EncoderMissingError where weights or tokenizer are missing or not such as are read: frameworks would fall back on a pickle where safetensors are missing."""
    for part in [folder, *(path for _, path in modules(folder))]:
        pickles = [*part.glob("*.bin"), *part.glob("*.pt"), *part.glob("*.pth")]
        if pickles and not list(part.glob("*.safetensors")) and not list(part.rglob("*.onnx")):
            raise EncoderMissingError(f"{pickles[0]} is a pickle, which may run anything, and is not read. Get the model as safetensors, or convert it.")
    if not list(folder.rglob("*.safetensors")) and not list(folder.rglob("*.onnx")):
        raise EncoderMissingError(f"{folder} holds no weights (*.safetensors, *.onnx). Name the folder of a model.")
    if not list(folder.rglob("tokenizer.json")):
        raise EncoderMissingError(f"{folder} holds no tokenizer.json. Load its tokenizer with transformers and save it there.")


def folder_revision(folder: Path, **how: Any) -> str:
    """Over every weight and every setting of the folder."""
    files = [file for kind in ("*.safetensors", "*.json", "*.txt", "*.model") for file in folder.rglob(kind)]
    return revision(sorted(files), **how)
