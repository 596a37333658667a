"""The memory of an LLM agent: an index that grows while it is being queried.

    from agentir_ray import Memory

    with Memory.open("memories", namespace="acme/alice") as memory:
        memory.add("Alice moved to Lisbon", timestamp="2026-03-02")
        print(memory.search("where does Alice live?").hits[0].record.text)

Importing this package loads no kernel, model or server: the engine comes in when its names are first used.
"""

from typing import TYPE_CHECKING, Any

from agentir_ray.errors import (
    AgentIRError,
    ConflictError,
    DamagedError,
    EncoderError,
    EncoderMismatchError,
    EncoderMissingError,
    EncodingError,
    ErasedError,
    FencedError,
    ForkedError,
    FormatError,
    InvalidFilterError,
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    StorageFullError,
    StoreClosedError,
    StoreError,
    StoreLockedError,
    UnknownOutcomeError,
    UnsupportedFileSystemError,
)
from agentir_ray.types import (
    ChannelScore,
    Coverage,
    Explanation,
    ForgetReceipt,
    FusedExplanation,
    Hit,
    Page,
    Problem,
    Record,
    RetentionReceipt,
    SearchResult,
    TermScore,
    TimeRange,
)

if TYPE_CHECKING:
    from agentir_ray.client.asynchronous import AsyncMemory
    from agentir_ray.client.memory import ImportReport, Memory

_ENGINE = {"Memory": "agentir_ray.client.memory", "ImportReport": "agentir_ray.client.memory", "AsyncMemory": "agentir_ray.client.asynchronous"}

__version__ = "0.1.0"
__all__ = [
    "AsyncMemory",
    "ImportReport",
    "Memory",
    "Record",
    "Hit",
    "SearchResult",
    "Coverage",
    "Explanation",
    "TermScore",
    "FusedExplanation",
    "ChannelScore",
    "TimeRange",
    "Page",
    "ForgetReceipt",
    "RetentionReceipt",
    "Problem",
    "AgentIRError",
    "InvalidInputError",
    "InvalidFilterError",
    "NotFoundError",
    "ConflictError",
    "ErasedError",
    "StoreError",
    "StoreLockedError",
    "StoreClosedError",
    "ReadOnlyError",
    "ForkedError",
    "UnsupportedFileSystemError",
    "StorageFullError",
    "DamagedError",
    "FormatError",
    "FencedError",
    "UnknownOutcomeError",
    "EncoderError",
    "EncoderMissingError",
    "EncoderMismatchError",
    "EncodingError",
]


def __getattr__(name: str) -> Any:
    if name in _ENGINE:
        import importlib

        return getattr(importlib.import_module(_ENGINE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
