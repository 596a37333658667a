"""The pieces of a draft are what its documents alone would have made, and hold nothing of each other."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.cut import cut
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.stored import unpack_block
from agentir_ray.types import Record
from tests.properties.index_world import document_of, write_segment

WORDS = ["river", "bank", "lisbon", "dog"]
records = st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), st.integers(0, 9), st.sampled_from([None, "s1", "s2"])), min_size=1, max_size=12)


def segment_of(drawn: list[tuple[str, int, str | None]], first: int, path: Path) -> Segment:
    buffer = Buffer()
    for seq, (text, timestamp, session) in enumerate(drawn, first):
        buffer.add(seq, document_of(Record(f"r{seq}", f"{text} unique{seq}x", timestamp, 1, session=session), seq))
    segment = write_segment(draft_buffer(buffer, "n", "f"), path)
    assert segment is not None
    return segment


@settings(max_examples=60)
@given(st.lists(records, min_size=1, max_size=3), st.data())
def test_pieces(sources: list[list[tuple[str, int, str | None]]], data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        segments, first = [], 1
        for i, drawn in enumerate(sources):
            segments.append(segment_of(drawn, first, folder / f"source{i}"))
            first += len(drawn)
        whole = write_segment(draft_segments(segments, "n", "f"), folder / "whole")
        assert whole is not None
        ends = sorted(data.draw(st.sets(st.integers(1, whole.documents), max_size=3)) | {whole.documents})
        sizes = np.diff([0, *ends]).tolist()
        begin = 0
        for i, draft in enumerate(cut(draft_segments(segments, "n", "f"), sizes)):
            piece = write_segment(draft, folder / f"piece{i}")
            assert piece is not None and piece.documents == sizes[i]
            check_same(piece, whole, begin)
            stored = piece.stored_fields
            blocks = [unpack_block(stored.data, stored.block_start, block, "") for block in range(len(stored.block_start) - 1)]
            content = b"".join([*blocks, piece.array("term_data").tobytes()])
            held = {int(seq) for seq in piece.array("seq")}
            for seq in range(1, first):
                assert (f"unique{seq}x".encode() in content) == (seq in held), "a piece holds words of a document that it does not have"
            begin += sizes[i]


def check_same(piece: Segment, whole: Segment, begin: int) -> None:
    docs = np.arange(begin, begin + piece.documents)
    for column in ("seq", "timestamp", "created_at", "length", "importance", "expires_at"):
        assert (piece.column(column) == whole.column(column)[docs]).all()
    for doc in range(piece.documents):
        assert piece.stored(doc) == whole.stored(begin + doc)
        assert piece.documents_of_id(piece.id(doc)) == [doc]
    terms = [piece.terms.get(i) for i in range(len(piece.terms))]
    for i in range(len(whole.terms)):
        term = whole.terms.get(i)
        tfs = [whole.tf(i, begin + doc) for doc in range(piece.documents)]
        assert ([piece.tf(terms.index(term), doc) for doc in range(piece.documents)] if term in terms else [0] * piece.documents) == tfs
    own = {key: docs.tolist() for key, docs in piece.keys(b"", b"\xff")}
    theirs = {key: [doc - begin for doc in docs.tolist() if begin <= doc < begin + piece.documents] for key, docs in whole.keys(b"", b"\xff")}
    assert own == {key: docs for key, docs in theirs.items() if docs}
