"""A record survives its body; a digest tells contents apart; a damaged body is noticed or decodes to nothing worse."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.errors import DamagedError, FormatError, InvalidInputError
from agentir_ray.storage.codec import HEADER, canonical_metadata, content_digest, decode_body, encode_body
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Record

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
TIME = st.integers(MIN_TIME_US, MAX_TIME_US)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.builds(
    Record,
    id=TEXT,
    text=TEXT,
    timestamp_us=TIME,
    created_at_us=TIME,
    importance=st.floats(0, 1),
    session=st.none() | TEXT,
    role=st.none() | TEXT,
    expires_at_us=st.none() | TIME,
    supersedes=st.none() | TEXT,
    metadata=st.dictionaries(TEXT, JSON, max_size=4),
    seq=st.integers(0, 2**40),
)


def encode(record: Record) -> bytes:
    return encode_body(record, canonical_metadata(record.metadata))


def digest(record: Record) -> bytes:
    return content_digest(
        record.text, record.timestamp_us, record.importance, record.session, record.role, record.expires_at_us, record.supersedes, canonical_metadata(record.metadata)
    )


@given(RECORDS)
def test_a_record_survives_its_body(record: Record) -> None:
    assert decode_body(encode(record), record.seq) == record


@given(RECORDS, RECORDS)
def test_bodies_and_digests_tell_records_apart(one: Record, other: Record) -> None:
    assert (encode(one) == encode(other)) == (one._replace(seq=0) == other._replace(seq=0)) or 0.0 == one.importance == other.importance
    same = other._replace(id=one.id, created_at_us=one.created_at_us, seq=one.seq)
    assert (digest(one) == digest(other)) == (one == same)


@given(st.dictionaries(TEXT, JSON, max_size=4), st.randoms())
def test_metadata_has_one_spelling(metadata: dict[str, Any], random: Any) -> None:
    items = list(metadata.items())
    random.shuffle(items)
    assert canonical_metadata(dict(items)) == canonical_metadata(metadata)


@pytest.mark.parametrize(
    "change", [{"text": "b"}, {"session": ""}, {"role": "s"}, {"expires_at_us": 0}, {"supersedes": "a"}, {"importance": 0.5}, {"timestamp_us": 1}, {"metadata": {"a": None}}]
)
def test_every_field_counts(change: dict[str, Any]) -> None:
    record = Record("a", "a", 0, 0)
    assert digest(record) != digest(record._replace(**change))
    assert encode(record) != encode(record._replace(**change))


def test_fields_do_not_run_into_each_other() -> None:
    record = Record("a", "bc", 0, 0, session="d", role="ef")
    assert digest(record) != digest(record._replace(session="de", role="f"))
    assert content_digest("a", None, 0.0, None, None, None, None, b"") != content_digest("a", 0, 0.0, None, None, None, None, b"")


@given(RECORDS, st.data())
def test_a_body_of_another_length_is_damaged(record: Record, data: st.DataObject) -> None:
    body = encode(record)
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises((DamagedError, FormatError)):
        decode_body(body[:cut], 1)
    with pytest.raises(DamagedError, match="seq 1"):
        decode_body(body + b"x", 1)


@given(st.binary(max_size=200) | st.binary(min_size=HEADER.size, max_size=200).map(lambda rest: b"\1" + rest))
def test_no_bytes_do_anything_but_decode_or_be_refused(body: bytes) -> None:
    with contextlib.suppress(DamagedError, FormatError):
        decode_body(body, 1)


def test_a_later_format_is_not_taken_for_damage() -> None:
    body = encode(Record("a", "b", 0, 0))
    with pytest.raises(FormatError, match="format 2"):
        decode_body(b"\2" + body[1:], 1)
    with pytest.raises(DamagedError):
        decode_body(b"\0" + body[1:], 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", object(), "\ud800"])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="metadata"):
        canonical_metadata({"a": value})
