"""Keys sort as their values do, ranges hold what they should, and the bitmap kernels equal sets."""

import bisect
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.kernels import bitmap
from agentir_ray.lexical.filters import document_keys
from agentir_ray.lexical.filters.keys import scalar_key
from agentir_ray.lexical.filters.ranges import key_range, prefix_successor, successor

byte_keys = st.binary(max_size=3) | st.text("ab\xff", max_size=4).map(lambda text: text.encode("latin-1"))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_sort_as_keys(a: float, b: float) -> None:
    assert (scalar_key(a) < scalar_key(b)) == (a < b)
    assert (scalar_key(a) == scalar_key(b)) == (a == b)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_sort_as_keys(a: str, b: str) -> None:
    assert (scalar_key(a) < scalar_key(b)) == (a < b)


def test_the_keys_of_a_record_are_pinned() -> None:
    """The layout is part of the segment format."""
    keys = document_keys(session="s", role=None, supersedes=None, metadata={"a": {"b": [1, "x", 1.0, ["y"]]}, "n": None, "t": True, "f": -2})
    assert keys == [
        b"session\0?",
        b"session\0ss",
        b"metadata.a\0?",
        b"metadata.a.b\0?",
        b'metadata.a.b\0l[1.0,"x",1.0,["y"]]',
        b"metadata.a.b\0en\xbf\xf0\0\0\0\0\0\0",
        b"metadata.a.b\0esx",
        b"metadata.n\0?",
        b"metadata.n\x000",
        b"metadata.t\0?",
        b"metadata.t\0b1",
        b"metadata.f\0?",
        b"metadata.f\0n\x3f\xff\xff\xff\xff\xff\xff\xff",
    ]


@given(byte_keys, byte_keys)
def test_successors_have_nothing_between(key: bytes, other: bytes) -> None:
    assert (other > key) == (other >= successor(key))
    if key.strip(b"\xff"):
        assert other.startswith(key) == (key <= other < prefix_successor(key))


@pytest.mark.parametrize("prefix", [b"", b"\xff", b"\xff\xff"])
def test_a_prefix_without_successor_is_refused(prefix: bytes) -> None:
    with pytest.raises(ValueError, match="no key lies above"):
        prefix_successor(prefix)


@settings(deadline=None)
@given(st.sets(byte_keys), byte_keys, byte_keys, st.integers(0, 5))
def test_key_range_is_two_bisections(keys: set[bytes], low: bytes, high: bytes, start: int) -> None:
    ordered = sorted(keys)
    offsets = np.array(list(itertools.accumulate(map(len, ordered), initial=start)), np.uint64)
    data = b"x" * start + b"".join(ordered)
    first = bisect.bisect_left(ordered, low)
    expected = (first, max(first, bisect.bisect_left(ordered, high)))
    assert key_range(offsets, data, low, high) == expected
    assert key_range(offsets, np.frombuffer(data, np.uint8), low, high) == expected


@settings(deadline=None)
@given(st.integers(1, 200).flatmap(lambda count: st.tuples(st.just(count), st.lists(st.integers(0, count - 1)))), st.sampled_from([np.uint32, np.int32, np.int64]))
def test_bitmaps_are_sets(drawn: tuple[int, list[int]], dtype: type) -> None:
    count, documents = drawn
    words = bitmap.nothing(count)
    bitmap.scatter(np.array(documents, dtype), words)
    assert bitmap.members(words).tolist() == sorted(set(documents))
    assert bitmap.count(words) == len(set(documents))
    bitmap.invert(words, count)
    assert bitmap.members(words).tolist() == sorted(set(range(count)) - set(documents))
    assert bitmap.members(bitmap.everything(count)).tolist() == list(range(count))


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=150), st.integers(-4, 4), st.integers(-4, 4), st.booleans())
def test_a_column_range_refines_a_set(values: list[int], low: int, high: int, as_float: bool) -> None:
    column = np.array(values, np.float64 if as_float else np.int64)
    column.flags.writeable = False  # as a mapped file's is
    words = bitmap.everything(len(values))
    if len(values) > 70:
        words[0] = 0
    before = bitmap.members(words).tolist()
    bitmap.keep_in_range(column, low, high, words)
    assert bitmap.members(words).tolist() == [document for document in before if low <= values[document] <= high]
