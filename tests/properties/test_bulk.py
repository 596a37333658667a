"""Segments built in bulk are those that a buffer of the same documents seals into, whatever the number of threads."""

import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.analysis import get_analyzer
from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.builder import build_sections
from agentir_ray.lexical.bulk import BulkBuilder, Documents, Limits, Progress
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.document import IndexedDocument, count_terms
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import NEVER_US

ENGLISH = get_analyzer("english")
WORDS = ["the", "river", "Rivers", "bank", "naïve", "don't", "漢字" * 40, "x" * 260, "river " * 300]

documents = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
        st.integers(0, 5),  # timestamp
        st.sampled_from([NEVER_US, 7]),
        st.sampled_from([0.0, 0.5]),
        st.sets(st.sampled_from([b"k1", b"k2", b"k3"])).map(sorted),
    ),
    max_size=12,
)
Drawn = Sequence[tuple[str, int, int, float, list[bytes]]]


def batches(drawn: Drawn, size: int) -> Iterator[Documents]:
    for first in range(0, len(drawn), size):
        texts, timestamp, expires_at, importance, keys = zip(*drawn[first : first + size], strict=True)
        seq = np.arange(first + 1, first + 1 + len(texts))
        ids = [f"r{number}" for number in seq]
        stored = [f"{id}\0{text}".encode() for id, text in zip(ids, texts, strict=True)]
        yield Documents(texts, ids, stored, seq, np.array(timestamp), seq * 10, np.array(expires_at), np.array(importance), keys)


def sealed(drawn: Drawn) -> Buffer:
    buffer = Buffer()
    for seq, (text, timestamp, expires_at, importance, keys) in enumerate(drawn, 1):
        length, terms, tfs = count_terms(ENGLISH, text)
        buffer.add(seq, IndexedDocument(f"r{seq}", timestamp, seq * 10, expires_at, importance, None, length, terms, tfs, keys, f"r{seq}\0{text}".encode()))
    return buffer


@settings(max_examples=40)
@given(documents, st.integers(1, 5))
def test_a_segment_built_in_bulk_is_the_sealed_one(drawn: Drawn, size: int) -> None:
    files = []
    for workers in (1, 3):
        with BulkBuilder(ENGLISH, "n", workers=workers) as builder:
            made = [builder.sections(draft) for draft in builder.drafts(batches(drawn, size))]
        assert len(made) == (1 if drawn else 0)
        files.append([(name, values.dtype, values.tolist()) for sections in made for name, values in sections.items()])
    assert files[0] == files[1]
    expected = build_sections(draft_buffer(sealed(drawn), "n", ENGLISH.fingerprint))
    for sections in made:
        assert list(sections) == list(expected)
        for name, values in sections.items():  # stored blocks end with each batch
            assert values.dtype == expected[name].dtype
            if name not in ("stored_data", "stored_block_start", "stored_block", "stored_start"):
                assert values.tolist() == expected[name].tolist(), name


def test_stored_bytes_and_ids_are_found_in_the_files(tmp_path: Path) -> None:
    drawn = [(f"river number {i}", (i * 7) % 31, NEVER_US, 0.0, []) for i in range(100)]
    seen: list[Progress] = []
    with BulkBuilder(ENGLISH, "n", workers=2, limits=Limits(documents=30), progress=seen.append) as builder:
        paths = builder.write(batches(drawn, 10), tmp_path)
    segments = [Segment(path, SegmentCache(), lambda stored: stored.split(b"\0")[0].decode()) for path in paths]
    assert [segment.documents for segment in segments] == [30, 30, 30, 10]
    for segment in segments:
        segment.verify()
        seq = segment.array("seq").tolist()
        for doc in range(segment.documents):
            assert segment.stored(doc) == f"r{seq[doc]}\0river number {seq[doc] - 1}".encode()
            assert list(segment.documents_of_id(f"r{seq[doc]}")) == [doc]
    assert [progress.analysed for progress in seen] == [*range(10, 101, 10), 100]
    assert seen[-1] == Progress(100, 100, 4)


def test_segments_are_closed_before_their_text_grows_too_long() -> None:
    drawn = [("river " * 10, 0, NEVER_US, 0.0, []) for _ in range(20)]
    with BulkBuilder(ENGLISH, "n", workers=1, limits=Limits(text_characters=200)) as builder:
        assert [len(draft.columns["seq"]) for draft in builder.drafts(batches(drawn, 1))] == [3] * 6 + [2]


def test_memory_does_not_grow_with_the_documents() -> None:
    """The peak of many segments is that of two: the one being built, and the one that its reader has not let go yet."""

    def peak(segments: int) -> int:
        drawn = [(f"river w{i % 5_000} bank b{i % 997} and more of the same words to make it longer", i, NEVER_US, 0.0, []) for i in range(4_000)]
        many = (batch for _ in range(segments) for batch in batches(drawn, 500))
        tracemalloc.start()
        with BulkBuilder(ENGLISH, "n", workers=2, limits=Limits(documents=4_000)) as builder:
            for draft in builder.drafts(many):
                builder.sections(draft)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(8) < 1.3 * peak(3)
