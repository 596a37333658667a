"""What a weight sidecar refuses: weights that it could not give back, and files that are not the segment's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentir_ray.errors import DamagedError, FormatError, InvalidInputError
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.query import Query
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.strings import hashes, pack_strings
from agentir_ray.lexical.weight_sidecar import WeightedPostings, weight_scoring
from agentir_ray.lexical.weights import CLASSES, Encoding, SparseVectors, build_weights, pack_vectors, quantise, stamp
from agentir_ray.sections import encode_sections
from agentir_ray.types import Record
from tests.properties.index_world import document_of, write_segment

DOCUMENTS = 3


def make_segment(path: Path, seqs: range = range(1, DOCUMENTS + 1), namespace: str = "n") -> Segment:
    index = Index([], 0)
    for seq in seqs:
        index.add(seq, document_of(Record(f"r{seq}", "a b", seq, seq), seq))
    segment = write_segment(draft_buffer(index.freeze(), namespace, "f"), path)
    assert segment is not None
    return segment


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return make_segment(tmp_path / "1.segment")


def vectors_of(weight: float) -> SparseVectors:
    """The weight is that of the term "odd" in document 1."""
    return pack_vectors([{"fine": 1.0}, {"fine": 2.0, "odd": weight}, {}])


@pytest.mark.parametrize(
    ("weight", "encoding", "scale", "why"),
    [
        (-1.0, "u8", 1.0, "is negative"),
        (-1e-30, "f32", 1.0, "is negative"),
        (float("nan"), "f32", 1.0, "is not finite"),
        (float("nan"), "u16", 1.0, "is not finite"),
        (float("inf"), "f32", 1.0, "is not finite"),
        (float("inf"), "u8", 1.0, "is not finite"),
        (1e39, "f32", 1.0, "is outside the range of float32"),
        (1e-50, "f32", 1.0, "is outside the range of float32"),
        (256.0, "u8", 1.0, "is more than 255 times the scale 1.0"),
        (65_536.0, "u16", 1.0, "is more than 65,535 times the scale 1.0"),
        (0.75, "u8", 0.5, "is no multiple of the scale 0.5"),
        (np.nextafter(1.0, 2.0), "u16", 1.0, "is no multiple of the scale 1.0"),
        (1e-300, "u16", 1.0, "is no multiple of the scale 1.0"),
    ],
)
def test_weights_that_cannot_be_kept(segment: Segment, weight: float, encoding: Encoding, scale: float, why: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        build_weights(vectors_of(weight), encoding, stamp(segment), scale)
    assert f"the weight {weight} of the term 'odd' in document 1 {why}" in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-40, 1e37, float("inf"), float("nan")])
def test_scales_that_give_no_float32(segment: Segment, scale: float) -> None:
    with pytest.raises(InvalidInputError, match="the scale of u8"):
        build_weights(vectors_of(1.0), "u8", stamp(segment), scale)


def test_an_unknown_encoding(segment: Segment) -> None:
    with pytest.raises(InvalidInputError, match=r"'f16'.*u8, u16, f32"):
        build_weights(vectors_of(1.0), "f16", stamp(segment))  # type: ignore[arg-type]


def test_arrays_that_do_not_fit(segment: Segment) -> None:
    good = vectors_of(1.0)
    for vectors, why in [
        (pack_vectors([{}, {}]), "2 vectors do not fit .* 3 documents"),
        (good._replace(doc_start=np.array([0, 2, 1, 3])), "doc_start must ascend"),
        (good._replace(doc_start=np.array([0, 1, 2, 2])), "doc_start must ascend"),
        (good._replace(doc_start=np.array([1, 1, 3, 3])), "doc_start must ascend"),
        (good._replace(weight=good.weight[:-1]), "doc_start must ascend"),
        (good._replace(term=np.array([0, 0, 2], np.int32)), "entry 2 has the term number 2; there are 2 terms"),
        (good._replace(term=np.array([0, -1, 1], np.int32)), "entry 1 has the term number -1"),
        (good._replace(term=np.array([0, 1, 1], np.int32)), "the term 'odd' in document 1 has several weights"),
        (good._replace(terms=pack_strings([b"same", b"same"])), "the term 'same' has several numbers"),
    ]:
        with pytest.raises(InvalidInputError, match=why):
            build_weights(vectors, "f32", stamp(segment))


@pytest.mark.parametrize("encoding", ["u8", "u16", "f32"])
def test_zeros_are_left_out(segment: Segment, encoding: Encoding) -> None:
    sections = build_weights(pack_vectors([{"a": 0.0, "b": 1.0}, {"a": 0.0, "b": -0.0}, {"c": 0.0}]), encoding, stamp(segment))
    assert sections["term_data"].tobytes() == b"b" and len(sections["posting_doc"]) == 1


@pytest.mark.parametrize("encoding", ["u8", "u16"])
def test_quantised_weights_can_be_kept(encoding: Any) -> None:
    given = np.abs(np.random.default_rng(1).normal(size=10_000)) * 1e-3
    kept, scale = quantise(given, encoding)
    assert np.abs(kept - given).max() <= scale * 0.5000001 and kept.max() == pytest.approx(given.max(), rel=1e-15)
    assert (np.rint(kept / scale) * scale == kept).all() and np.rint(kept / scale).max() == (255 if encoding == "u8" else 65_535)
    assert quantise(np.zeros(2), encoding)[1] == 1.0 and len(quantise(np.empty(0), encoding)[0]) == 0


@pytest.mark.parametrize(("encoding", "scale"), [("u8", 0.1), ("u16", 0.1), ("u16", 1e33), ("f32", 1.0)])
def test_classes_bound_their_weights_closely(tmp_path: Path, encoding: Encoding, scale: float) -> None:
    """With more distinct weights than classes too: no weight is above its class, and each class has about as many postings as any."""
    rng = np.random.default_rng(2)
    most = 255 if encoding == "u8" else 65_535
    weight = rng.integers(1, most + 1, 3_000) * scale if encoding != "f32" else 10.0 ** rng.uniform(-6, 6, 3_000)
    segment = make_segment(tmp_path / "1.segment", range(1, 1_001))
    vectors = SparseVectors(np.arange(0, 3_001, 3), np.tile(np.arange(3, dtype=np.int32), 1_000), weight, pack_strings([b"x", b"y", b"z"]))
    sections = build_weights(vectors, encoding, stamp(segment), scale)
    of, bound = sections["posting_class"], sections["class_weight"].astype(np.float64)
    exact = {"u8": of * scale, "u16": sections.get("posting_u16", of) * scale, "f32": sections.get("posting_f32", of).astype(np.float64)}[encoding]
    assert (exact <= bound[of]).all() and np.isfinite(bound).all() and (np.diff(bound[: int(of.max()) + 1]) >= 0).all()
    if encoding != "u8":
        assert np.bincount(of, minlength=CLASSES).max() <= 2 * 3_000 / CLASSES and of.max() == CLASSES - 1


def write(sections: dict[str, Any], path: Path) -> Path:
    path.write_bytes(b"".join(encode_sections(sections)))
    return path


def with_meta(sections: dict[str, Any], **changes: Any) -> dict[str, Any]:
    meta = {name: value for name, value in (json.loads(sections["meta"].tobytes()) | changes).items() if value is not None}
    return sections | {"meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}


def test_files_that_cannot_be_read(segment: Segment, tmp_path: Path) -> None:
    path, sections = tmp_path / "1.weights", build_weights(vectors_of(1.0), "u8", stamp(segment))
    with pytest.raises(DamagedError, match="is missing"):
        WeightedPostings(path, stamp(segment))
    with pytest.raises(FormatError, match="weight format 2; this version of agentir_ray reads 1"):
        WeightedPostings(write(with_meta(sections, format=2), path), stamp(segment))
    for changes in ({"encoding": "f8"}, {"encoding": None}, {"scale": "much"}, {"format": None}, {"format": "one"}):
        with pytest.raises(DamagedError, match="unreadable metadata"):
            WeightedPostings(write(with_meta(sections, **changes), path), stamp(segment))
    sidecar = WeightedPostings(write(sections, path), stamp(segment))
    sidecar.verify()
    assert sidecar.memory_bytes() > 0 and sidecar.bytes == path.stat().st_size

    damaged = bytearray(path.read_bytes())
    at = damaged.index(sections["class_weight"].tobytes())
    damaged[at] ^= 1
    path.write_bytes(damaged)
    sidecar = WeightedPostings(path, stamp(segment))
    for touch in (sidecar.verify, lambda: sidecar.row(segment)):
        with pytest.raises(DamagedError, match="damaged section 'class_weight'"):
            touch()


def test_sidecars_of_other_segments(segment: Segment, tmp_path: Path) -> None:
    path = write(build_weights(vectors_of(1.0), "u8", stamp(segment)), tmp_path / "1.weights")
    assert WeightedPostings(path, stamp(make_segment(tmp_path / "same.segment"))).posting_count(0) > 0
    for other in (
        make_segment(tmp_path / "2.segment", range(1, 3)),
        make_segment(tmp_path / "3.segment", range(2, 5)),
        make_segment(tmp_path / "4.segment", range(1, 6, 2)),
        make_segment(tmp_path / "5.segment", namespace="m"),
    ):
        with pytest.raises(DamagedError, match="weights of other documents"):
            WeightedPostings(path, stamp(other))


def test_terms_are_found(segment: Segment, tmp_path: Path) -> None:
    sidecar = WeightedPostings(write(build_weights(vectors_of(1.0), "u16", stamp(segment)), tmp_path / "1.weights"), stamp(segment))
    wanted = pack_strings([b"odd", b"absent", b"fine"])
    odd, absent, fine = sidecar.ordinals(wanted, hashes(wanted)).tolist()
    assert absent == -1 and {odd, fine} == {0, 1}
    assert [sidecar.posting_count(t) for t in (odd, absent, fine)] == [1, 0, 2]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), 1e39, 1e-40])
def test_queries_of_impossible_weights(weight: float) -> None:
    with pytest.raises(InvalidInputError, match=r"the query's weight .* of the term 'b'"):
        weight_scoring(Query(("a", "b"), (0.0, weight)))
