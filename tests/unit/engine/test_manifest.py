"""The manifest comes back as it was written, and says so when it cannot."""

import json
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.engine.manifest import FORMAT, Manifest, SegmentEntry, decode_manifest
from agentir_ray.errors import DamagedError, FormatError

int64s = st.integers(-(2**63), 2**63 - 1)
changes = st.lists(st.tuples(st.integers(0, 2**32), int64s, int64s, int64s, int64s), max_size=5)
manifests = st.builds(Manifest, st.text(), int64s, st.lists(st.builds(SegmentEntry, st.text(), changes), max_size=4).map(tuple))


@given(manifests)
def test_round_trip(manifest: Manifest) -> None:
    assert decode_manifest(manifest.encode(), "a") == manifest


@given(st.binary(max_size=200))
def test_other_bytes_are_damage_that_names_the_namespace(data: bytes) -> None:
    with pytest.raises(DamagedError, match="manifest of namespace acme/alice"):
        decode_manifest(data, "acme/alice")


@given(manifests, st.data())
def test_a_flipped_byte_is_damage(manifest: Manifest, data: st.DataObject) -> None:
    encoded = bytearray(manifest.encode())
    encoded[data.draw(st.integers(2, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(DamagedError):  # zlib's checksum covers the content; a bit that pads the last block means nothing
        assert decode_manifest(bytes(encoded), "a") == manifest


@pytest.mark.parametrize(
    "content", [[], 5, {}, {"format": 1}, {"format": 1, "analyzer": "x", "applied_seq": 0, "segments": [["a"]]}, {"format": "x"}, {"format": 1, "segments": 5}]
)
def test_content_that_is_no_manifest_is_damage(content: object) -> None:
    with pytest.raises(DamagedError):
        decode_manifest(zlib.compress(json.dumps(content).encode()), "a")


def test_a_later_format_is_named() -> None:
    newer = zlib.compress(json.dumps({"format": FORMAT + 1, "anything": 1}).encode())
    with pytest.raises(FormatError, match=f"namespace a/b has manifest format {FORMAT + 1}; this version of agentir_ray reads {FORMAT}"):
        decode_manifest(newer, "a/b")
