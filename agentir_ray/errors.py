"""Every error that a caller can meet, as one small tree.

Each says what happened and what the caller can do. Lower errors (SQLite's, the operating system's) are translated into these at the edge of `storage`; nothing is swallowed. The
command line prints the message without a traceback and ends with `exit_code`.
"""


class AgentIRError(Exception):
    """The root: catch it to catch all of them."""

    exit_code = 1


class InvalidInputError(AgentIRError, ValueError):
    """An argument is outside what the call accepts. Nothing was written; correct it and call again."""

    exit_code = 2


class InvalidFilterError(InvalidInputError):
    """A `where` names an unknown field or operator, or its value has the wrong type."""


class NotFoundError(AgentIRError, LookupError):
    """The store, namespace or record does not exist."""

    exit_code = 3


class ConflictError(AgentIRError):
    """The id is taken by a record with other content, or a record changed while it was being updated. Use another id, or `update`."""

    exit_code = 4


class ErasedError(ConflictError):
    """The id belonged to a record that was erased. An erased id never comes back; use a new one."""


class StoreError(AgentIRError):
    """The store itself cannot do what was asked."""

    exit_code = 5


class StoreLockedError(StoreError):
    """Another process writes this store. Its pid and host are in the message; open with `read_only=True`, or stop that process."""


class ReadOnlyError(StoreError):
    """The store was opened read-only, or its disk is."""


class ForkedError(StoreError):
    """This process is a fork of the one that opened the store. Open the store again in the child."""


class UnsupportedFileSystemError(StoreError):
    """The folder lies on a network file system, whose locks cannot be trusted. Use a local disk."""


class StoreClosedError(StoreError):
    """The store was closed. Open it again."""


class StorageFullError(StoreError):
    """The disk refused a write (full, or an I/O error). Nothing that was acknowledged is lost; make room and call again."""


class DamagedError(StoreError):
    """A file does not hold what its checksum says. The message names the file and the way out (`agentir verify`, `agentir export --salvage`)."""

    exit_code = 6


class FormatError(StoreError):
    """The store was written by a newer version. Use that version; this one will not touch it."""


class FencedError(StoreError):
    """Another owner took the namespace over. Reload it before writing."""


class SpilledError(StoreError):
    """What was asked for was spilled, and the spill target does not give it now. Nothing is lost; see that the target answers, and call again."""


class UnknownOutcomeError(StoreError):
    """A write may or may not have been committed. Call again with the same id, which is in `ids` also where none was given: it is stored once either way."""

    ids: tuple[str, ...] = ()


class EncoderError(AgentIRError):
    """A neural channel cannot do what was asked. The lexical channel (`mode="bm25"`) goes on serving."""

    exit_code = 7


class EncoderMissingError(EncoderError):
    """No encoder is configured, or a package or model that it needs is not installed. The message says how to get it."""


class EncoderMismatchError(EncoderError):
    """The namespace's vectors were made by another encoder. Open the store with that one, or call `reembed`."""


class EncodingError(EncoderError):
    """An encoder failed on a text, or gave vectors that cannot be kept: not finite, of another width, or too few."""
