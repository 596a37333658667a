"""A record as the bytes of a log entry's body, and back; and the digest that tells a retry from a conflict.

The body is a fixed little-endian header, then the UTF-8 bytes of id, text, session, role and supersedes and the metadata as canonical JSON, in that order. Absent strings have
the length `ABSENT`; empty metadata has length 0. The sequence number is not inside: it is given at commit, after the body was made.

Nothing here validates what a caller may store (the edge does); what cannot be encoded at all is an InvalidInputError. A body that does not add up is a DamagedError, one of a
later format a FormatError.
"""

import json
import struct
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agentir_ray.errors import DamagedError, FormatError, InvalidInputError
from agentir_ray.types import NEVER_US, Metadata, Record

BODY_FORMAT = 1
ABSENT = 0xFFFFFFFF
DIGEST_SIZE = 16

# format, timestamp_us, created_at_us, expires_at_us (NEVER_US: none), importance, lengths of id, text, session, role, supersedes, metadata
HEADER = struct.Struct("<Bqqqd6I")
_unpack = HEADER.unpack_from
_SIZE = HEADER.size

_read_json = json.JSONDecoder().raw_decode  # what `json.loads` calls in the end, without its guesses about encodings and its search for trailing data: both are fixed here
_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_metadata(metadata: Metadata) -> bytes:
    """Metadata as JSON with one spelling a value: keys sorted, no spaces, no NaN. Empty metadata is empty bytes."""
    if not metadata:
        return b""
    try:
        return _encoder.encode(dict(metadata)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"metadata cannot be written as JSON: {error}") from error


def encode_body(record: Record, metadata: bytes) -> bytes:
    """The body of `record`, whose metadata the caller has made canonical already (the digest needs it too). `record.seq` is left out."""
    id, text = record.id.encode(), record.text.encode()
    session, role, supersedes = _optional(record.session), _optional(record.role), _optional(record.supersedes)
    expires_at_us = NEVER_US if record.expires_at_us is None else record.expires_at_us
    header = HEADER.pack(
        BODY_FORMAT,
        record.timestamp_us,
        record.created_at_us,
        expires_at_us,
        record.importance,
        len(id),
        len(text),
        _length(session),
        _length(role),
        _length(supersedes),
        len(metadata),
    )
    return b"".join((header, id, text, session or b"", role or b"", supersedes or b"", metadata))


def decode_body(body: bytes, seq: int) -> Record:
    """The record of a body, at its place in the log."""
    try:
        format, timestamp_us, created_at_us, expires_at_us, importance, id_length, text_length, session_length, role_length, supersedes_length, metadata_length = _unpack(body)
        if format != BODY_FORMAT:
            raise _foreign(format)
        end = _SIZE + id_length
        id = body[_SIZE:end].decode()
        start, end = end, end + text_length
        text = body[start:end].decode()
        session = role = supersedes = None
        if session_length != ABSENT:
            start, end = end, end + session_length
            session = body[start:end].decode()
        if role_length != ABSENT:
            start, end = end, end + role_length
            role = body[start:end].decode()
        if supersedes_length != ABSENT:
            start, end = end, end + supersedes_length
            supersedes = body[start:end].decode()
        metadata: Mapping[str, Any] = _read_json(body[end : end + metadata_length].decode())[0] if metadata_length else {}
    except (struct.error, ValueError) as error:
        raise DamagedError(f"the body of seq {seq} cannot be read ({error}); run `agentir verify`") from error
    if end + metadata_length != len(body):
        raise DamagedError(f"the body of seq {seq} has {len(body)} bytes instead of {end + metadata_length}; run `agentir verify`")
    expiry = None if expires_at_us == NEVER_US else expires_at_us
    return Record(id, text, timestamp_us, created_at_us, importance, session, role, expiry, supersedes, metadata, seq)


def decode_id(body: bytes) -> str:
    """The id alone, of a body that may hold a large text."""
    try:
        return body[_SIZE : _SIZE + _unpack(body)[5]].decode()
    except (struct.error, ValueError) as error:
        raise DamagedError(f"the body of a record cannot be read ({error}); run `agentir verify`") from error


def content_digest(
    text: str,
    timestamp_us: int | None,
    importance: float,
    session: str | None,
    role: str | None,
    expires_at_us: int | None,
    supersedes: str | None,
    metadata: bytes,
) -> bytes:
    """16 bytes that identify what a caller supplied: equal for a retry, different for other content under the same id.

    `timestamp_us` is None where the caller left it to the clock: the retry comes later and must still be the same. `metadata` is canonical.
    """
    text_bytes, session_bytes, role_bytes, supersedes_bytes = text.encode(), _optional(session), _optional(role), _optional(supersedes)
    header = HEADER.pack(
        BODY_FORMAT,
        NEVER_US if timestamp_us is None else timestamp_us,
        0,
        NEVER_US if expires_at_us is None else expires_at_us,
        importance,
        0,
        len(text_bytes),
        _length(session_bytes),
        _length(role_bytes),
        _length(supersedes_bytes),
        len(metadata),
    )
    return blake2b(b"".join((header, text_bytes, session_bytes or b"", role_bytes or b"", supersedes_bytes or b"", metadata)), digest_size=DIGEST_SIZE).digest()


def _optional(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _length(data: bytes | None) -> int:
    return ABSENT if data is None else len(data)


def _foreign(format: int) -> Exception:
    if format > BODY_FORMAT:
        return FormatError(f"a record has format {format}; this version of agentir reads up to {BODY_FORMAT}: use the version that wrote it")
    return DamagedError("a record has format 0, which never was; run `agentir verify`")
