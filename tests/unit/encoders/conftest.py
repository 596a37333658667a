"""The encoders of the catalogue that are installed, loaded once; the others are skipped with what they lack."""

from collections.abc import Callable

import pytest

from agentir_ray.encoders import Encoder, SparseEncoder
from agentir_ray.encoders.catalogue import get_encoder, get_sparse_encoder
from agentir_ray.errors import EncoderMissingError

DENSE = ["hashing", "wordllama", "minilm", "minilm-int8", "e5-small"]
LATE = ["hashing", "minilm", "minilm-int8"]
SPARSE = ["hashing", "splade-tiny"]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")


@pytest.fixture(scope="session")
def dense() -> Callable[[str], Encoder]:
    loaded: dict[str, Encoder] = {}

    def get(name: str) -> Encoder:
        if name not in loaded:
            try:
                loaded[name] = get_encoder(name)
            except EncoderMissingError as error:
                pytest.skip(str(error))
        return loaded[name]

    return get


@pytest.fixture(scope="session")
def sparse() -> Callable[[str], SparseEncoder]:
    loaded: dict[str, SparseEncoder] = {}

    def get(name: str) -> SparseEncoder:
        if name not in loaded:
            try:
                loaded[name] = get_sparse_encoder(name)
            except EncoderMissingError as error:
                pytest.skip(str(error))
        return loaded[name]

    return get
