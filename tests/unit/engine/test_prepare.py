"""What a record may be, field by field; and that every refusal names the field."""

from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest

from agentir_ray.analysis import get_analyzer
from agentir_ray.engine.prepare import FIELDS, MAX_NAME_BYTES, MAX_TEXT_BYTES, Prepared, check_namespace, prepare_record
from agentir_ray.errors import InvalidInputError
from agentir_ray.storage.codec import decode_body
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, Record

NOW_US = 1_700_000_000_000_000


def prepared(**fields: Any) -> Prepared:
    return prepare_record({"text": "hello"} | fields, get_analyzer("multilingual"), NOW_US)


def record(**fields: Any) -> Record:
    return prepared(**fields).record


def test_defaults() -> None:
    made = record()
    assert (made.timestamp_us, made.created_at_us, made.importance) == (NOW_US, NOW_US, 0.0)
    assert (made.session, made.role, made.expires_at_us, made.supersedes, made.metadata) == (None, None, None, None, {})
    assert len(made.id) == 36 and made.id != record().id


def test_ids_made_later_sort_later() -> None:
    ids = [record().id for _ in range(50)]
    assert ids == sorted(ids)


def test_the_body_holds_the_record() -> None:
    both = prepared(id="x", session="s", role="user", importance=0.5, timestamp=3, expires_at=9, metadata={"b": [1, {"c": None}], "a": "é"}, supersedes="w")
    assert decode_body(both.entry.body, 0) == both.record
    assert both.document.stored == both.entry.body


@pytest.mark.parametrize("name", ["id", "session", "role", "supersedes"])
def test_names_have_1_to_512_bytes(name: str) -> None:
    assert getattr(record(**{name: "é" * (MAX_NAME_BYTES // 2)}), name) == "é" * (MAX_NAME_BYTES // 2)
    assert getattr(record(**{name: " %_/'\"\n🙂"}), name) == " %_/'\"\n🙂"
    for bad in ("", "é" * (MAX_NAME_BYTES // 2) + "x", "a\0b", "a\ud800", 7, b"x", ["x"], True):
        with pytest.raises(InvalidInputError, match=f"^{name} "):
            record(**{name: bad})


def test_texts_have_up_to_16_mib() -> None:
    assert record(text="").text == ""
    with pytest.raises(InvalidInputError, match=r"^text has 16,777,218 bytes; at most 16,777,216 fit"):
        record(text="é" * (MAX_TEXT_BYTES // 2 + 1))
    for bad in ("a\0b", "\udfff", 7, b"x", ["x"], True):
        with pytest.raises(InvalidInputError, match=r"^text "):
            record(text=bad)
    with pytest.raises(InvalidInputError, match="needs a text"):
        prepare_record({}, get_analyzer("standard"), 0)


@pytest.mark.parametrize("good", [0, 1, 0.0, 1.0, 0.5, 5e-324, -0.0])
def test_importance_lies_in_0_to_1(good: float) -> None:
    assert record(importance=good).importance == good
    assert str(record(importance=-0.0).importance) == "0.0"  # a zero has one spelling, so a retry is a retry


def test_importance_beyond_that_is_refused() -> None:
    for bad in (-0.1, 1.1, float("nan"), float("inf"), -float("inf"), True, "0.5", [0.5], 10**400, -(10**5_000)):
        with pytest.raises(InvalidInputError, match=r"^importance is "):
            record(importance=bad)


@pytest.mark.parametrize("name", ["timestamp", "created_at", "expires_at"])
def test_times(name: str) -> None:
    def us(value: Any) -> int:
        return int(getattr(record(**{name: value}), f"{name}_us"))

    assert us(5) == 5
    assert us(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000  # naive: UTC
    assert us(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1_000_000
    assert us(datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == 0
    assert us("1970-01-01T02:00:00+02:00") == us("1970-01-01") == us("1970-01-01T00:00:00Z") == 0
    assert us(datetime.min) == us("0001-01-01") == MIN_TIME_US
    assert us(datetime.max) == us("9999-12-31T23:59:59.999999") == MAX_TIME_US
    for outside in (MIN_TIME_US - 1, MAX_TIME_US + 1, 10**400, "0001-01-01T00:00+01:00", datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))):
        with pytest.raises(InvalidInputError, match=f"^{name} lies outside the years 1 to 9999$"):
            record(**{name: outside})
    for bad in ("", "yesterday", "2026-13-01", 1.5, True, b"2026", [2026], float("nan"), datetime(2026, 1, 1).date()):
        with pytest.raises(InvalidInputError, match=f"^{name} is "):
            record(**{name: bad})


def test_metadata_is_json_within_limits() -> None:
    assert record(metadata=MappingProxyType({"a": 1})).metadata == {"a": 1}
    deep: Any = 1
    for _ in range(17):
        deep = {"a": deep}
    for bad, what in [
        ({"a": float("nan")}, r"metadata\.a is nan"),
        ({"a": {"b": [1, object()]}}, r"metadata\.a\.b\[1\] is an object"),
        ({"a": (1, 2)}, r"metadata\.a is a tuple"),
        ({"a": 2**63}, r"metadata\.a is an integer beyond 64 bits"),
        ({1: 2}, r"metadata has the key 1"),
        ({"a": "\0"}, "metadata.a.*NUL"),
        ({"a\ud800": 1}, "a key of metadata.*lone surrogate"),
        (deep, "nested more than 16 levels"),
        ({str(i): i for i in range(257)}, "more than 256 values"),
        ({"a": "x" * 70_000}, "metadata takes 70,008 bytes"),
        ([1], "metadata is a list; give a dict"),
        ("x", "metadata is a str; give a dict"),
    ]:
        with pytest.raises(InvalidInputError, match=what):
            record(metadata=bad)


def test_a_record_does_not_supersede_itself() -> None:
    with pytest.raises(InvalidInputError, match="'x' supersedes itself"):
        record(id="x", supersedes="x")


def test_unknown_fields_are_refused_with_a_list_of_the_known() -> None:
    with pytest.raises(InvalidInputError, match="'time'.*" + ", ".join(sorted(FIELDS))):
        record(time=1)
    for odd in (1, None, b"text", ("a",), 10**5_000):
        with pytest.raises(InvalidInputError, match="there is no field"):
            prepare_record({odd: 1, "text": "x"}, get_analyzer("standard"), 0)  # type: ignore[dict-item]
    for odd in ("text", None, 1, ["text"], [("text", "x")]):
        with pytest.raises(InvalidInputError, match=r"^a record is .*give a dict"):
            prepare_record(odd, get_analyzer("standard"), 0)  # type: ignore[arg-type]


def test_the_digest_is_of_what_the_caller_gave() -> None:
    def digest(now_us: int = 0, **fields: Any) -> bytes:
        return prepare_record({"text": "hello", "id": "x"} | fields, get_analyzer("standard"), now_us).entry.digest

    base = digest()
    assert digest(now_us=5) == base  # the clock moved between the first try and the retry
    assert digest(metadata={}) == digest(importance=0) == digest(session=None) == digest(created_at=7) == base
    assert digest(metadata={"a": 1, "b": 2}) == digest(metadata={"b": 2, "a": 1})
    others = [
        digest(text="hello "), digest(timestamp=0), digest(importance=0.1), digest(session="a"), digest(role="a"), digest(expires_at=0), digest(supersedes="a"),
        digest(metadata={"a": 1}), digest(metadata={"a": True}), digest(metadata={"a": 1.0}),
    ]  # fmt: skip
    assert len({base, *others}) == len(others) + 1


@pytest.mark.parametrize("good", ["a", "acme/alice", "a b/c%_'", "é/日本/🙂", "a/../b", "."])
def test_namespaces(good: str) -> None:
    assert check_namespace(good) == good


def test_other_namespaces_are_refused() -> None:
    for bad in ("", "/", "/a", "a/", "a//b", "a\nb", "a\0", "\ud800", "x" * 513, 5, None, b"a"):
        with pytest.raises(InvalidInputError, match=r"^namespace "):
            check_namespace(bad)
        with pytest.raises(InvalidInputError, match=r"^prefix "):
            check_namespace(bad, "prefix")
