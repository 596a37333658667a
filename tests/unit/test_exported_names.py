"""The public facade, name by name: adding one is a decision, removing one breaks somebody."""

import agentir_ray
import agentir_ray.ingest

EXPORTED = {
    # the engine in this process
    "Memory",
    "AsyncMemory",
    # what calls return
    "Record",
    "Hit",
    "SearchResult",
    "Coverage",
    "Explanation",
    "TermScore",
    "TimeRange",
    "Page",
    "ForgetReceipt",
    "RetentionReceipt",
    "ImportReport",
    "Problem",
    # what calls raise
    "AgentIRError",
    "InvalidInputError",
    "InvalidFilterError",
    "NotFoundError",
    "ConflictError",
    "ErasedError",
    "StoreError",
    "StoreLockedError",
    "ReadOnlyError",
    "ForkedError",
    "UnsupportedFileSystemError",
    "StoreClosedError",
    "StorageFullError",
    "DamagedError",
    "FormatError",
    "FencedError",
    "UnknownOutcomeError",
    "EncoderError",
    "EncoderMissingError",
    "EncoderMismatchError",
    "EncodingError",
    "FusedExplanation",
    "ChannelScore",
}


def test_the_package_exports_these_names() -> None:
    assert set(agentir_ray.__all__) == EXPORTED
    assert all(hasattr(agentir_ray, name) for name in EXPORTED)


def test_ingest_exports_these_names() -> None:
    assert set(agentir_ray.ingest.__all__) == {"FORMATS", "Item", "Skipped", "detect", "read", "record_to_dict", "write_export"}
