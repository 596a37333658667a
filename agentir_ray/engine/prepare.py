"""From what a caller passes to what is committed and indexed: checked, encoded and analysed before any lock is taken.

All that can be wrong with a record is found here, so that nothing can fail between the commit and the index.
"""

import re
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import uuid_utils

from agentir_ray.analysis import Analyzer
from agentir_ray.errors import InvalidInputError
from agentir_ray.lexical.document import CountedText, IndexedDocument, count_terms
from agentir_ray.lexical.filters import check_metadata, document_keys
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.storage.codec import canonical_metadata, content_digest, encode_body
from agentir_ray.storage.protocol import EntryKind, NewEntry
from agentir_ray.types import NEVER_US, Record, kind_of, to_time_us

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_TEXT_BYTES = 16 * 2**20
MAX_NAME_BYTES = 512  # of an id, a session, a role, a namespace
FIELDS = frozenset({"id", "text", "timestamp", "importance", "session", "role", "metadata", "expires_at", "supersedes", "created_at"})


class Prepared(NamedTuple):
    """A record ready to be committed: the log's entry and the index's document, made of one and the same content. `record.seq` is 0 until then."""

    record: Record
    entry: NewEntry
    document: IndexedDocument


class Encoded(NamedTuple):
    """A record of which nothing is missing but what the analyzer makes of its text."""

    record: Record
    entry: NewEntry


def prepare_record(fields: Mapping[str, Any], analyzer: Analyzer, now_us: int) -> Prepared:
    """A first version. Raises InvalidInputError naming the field."""
    encoded = encode_record(fields, now_us)
    return analysed(encoded, count_terms(analyzer, encoded.record.text))


def encode_record(fields: Mapping[str, Any], now_us: int) -> Encoded:
    """The same without its index document, for texts that are analysed many at once."""
    if not isinstance(fields, Mapping):
        raise InvalidInputError(f"a record is {shown(fields)}; give a dict of the arguments of add")
    check_fields(fields, FIELDS)
    get = fields.get
    id, timestamp, created_at, expires_at = get("id"), get("timestamp"), get("created_at"), get("expires_at")
    created_at_us = now_us if created_at is None else to_time_us(created_at, "created_at")
    timestamp_us = None if timestamp is None else to_time_us(timestamp, "timestamp")
    record = Record(
        str(uuid_utils.uuid7()) if id is None else check_name(id, "id"),
        _check_text(get("text")),
        created_at_us if timestamp_us is None else timestamp_us,
        created_at_us,
        _check_importance(get("importance")),
        _optional_name(get("session"), "session"),
        _optional_name(get("role"), "role"),
        None if expires_at is None else to_time_us(expires_at, "expires_at"),
        _optional_name(get("supersedes"), "supersedes"),
        _check_metadata(get("metadata")),
    )
    if record.supersedes == record.id:
        raise InvalidInputError(f"record {record.id!r} supersedes itself; use update to change it")
    return _encode(record, 0, timestamp_us)


def analysed(encoded: Encoded, counted: CountedText) -> Prepared:
    return Prepared(encoded.record, encoded.entry, _document(encoded.record, encoded.entry.body, counted))


def prepare(record: Record, analyzer: Analyzer, version: int, given_timestamp_us: int | None) -> Prepared:
    """A version of a record whose fields were checked."""
    return analysed(_encode(record, version, given_timestamp_us), count_terms(analyzer, record.text))


def _encode(record: Record, version: int, given_timestamp_us: int | None) -> Encoded:
    """`given_timestamp_us` is None where the clock chose the timestamp: a retry, which comes later, is still the same."""
    metadata = canonical_metadata(record.metadata)
    body = encode_body(record, metadata)
    digest = content_digest(record.text, given_timestamp_us, record.importance, record.session, record.role, record.expires_at_us, record.supersedes, metadata)
    kind = EntryKind.UPDATE if version else EntryKind.ADD
    entry = NewEntry(kind, record.id, version, record.created_at_us, record.timestamp_us, digest, body)
    return Encoded(record, entry)


def index_document(record: Record, body: bytes, analyzer: Analyzer) -> IndexedDocument:
    return _document(record, body, count_terms(analyzer, record.text))


def _document(record: Record, body: bytes, counted: CountedText) -> IndexedDocument:
    length, terms, tfs = counted
    keys = document_keys(session=record.session, role=record.role, supersedes=record.supersedes, metadata=record.metadata)
    expires_at_us = NEVER_US if record.expires_at_us is None else record.expires_at_us
    return IndexedDocument(record.id, record.timestamp_us, record.created_at_us, expires_at_us, record.importance, record.supersedes, length, terms, tfs, keys, body)


def check_fields(fields: Mapping[str, Any], allowed: Set[str]) -> None:
    for name in fields:
        if name not in allowed:
            raise InvalidInputError(f"there is no field {repr(name[:60]) if isinstance(name, str) else shown(name)} here; give {', '.join(sorted(allowed))}")


def check_name(value: object, name: str) -> str:
    """An id, session or role: 1 to 512 bytes of UTF-8 without NUL."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is {kind_of(value)}; give a string")
    size = len(check_encodable(value, name))
    if not 0 < size <= MAX_NAME_BYTES:
        raise InvalidInputError(f"{name} has {size} bytes; give 1 to {MAX_NAME_BYTES}")
    return value


def check_namespace(value: object, called: str = "namespace") -> str:
    """Segments joined by "/", none empty; every character is literal."""
    name = check_name(value, called)
    if "" in name.split("/"):
        raise InvalidInputError(f"{called} {name!r} has an empty segment; give names joined by single slashes, such as acme/alice")
    if _CONTROL.search(name):
        raise InvalidInputError(f"{called} {name!r} holds control characters; names are printed in lists, a line each")
    return name


def _optional_name(value: object, name: str) -> str | None:
    return None if value is None else check_name(value, name)


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInputError("a record needs a text" if value is None else f"text is {kind_of(value)}; give a string")
    size = len(check_encodable(value, "text"))
    if size > MAX_TEXT_BYTES:
        raise InvalidInputError(f"text has {size:,} bytes; at most {MAX_TEXT_BYTES:,} fit: split it into passages")
    return value


def check_encodable(value: str, name: str) -> bytes:
    if "\0" in value:
        raise InvalidInputError(f"{name} holds a NUL character; remove it")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{name} holds a lone surrogate, which is no character; decode the text with errors='replace'") from None


def _check_importance(value: object) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidInputError(f"importance is {shown(value)}; give a number from 0 to 1")
    return float(value) + 0.0


def _check_metadata(value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"metadata is {kind_of(value)}; give a dict")
    check_metadata(value)
    return {key: _copied(member) for key, member in value.items()}


def _copied(value: Any) -> Any:
    """A copy that the caller cannot change afterwards; the depth was checked."""
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(element) for element in value] if isinstance(value, list) else value
