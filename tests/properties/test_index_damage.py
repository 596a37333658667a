"""A damaged segment says so: it never gives a wrong answer, and never crashes."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from agentir_ray.errors import DamagedError, FormatError
from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.sections import ALIGNMENT, SectionFile, encode_sections
from agentir_ray.types import Record
from tests.naive import NaiveIndex, Question
from tests.properties.index_world import check_answer, document_of, id_of, write_segment

QUESTION = Question(["a", "w3", "w5"], [1.0, 1.0, 1.0], k=100, now_us=50, where={"session": {"eq": "s"}}, importance_weight=1.0)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, NaiveIndex]:
    index, oracle = Index([], 0), NaiveIndex()
    for i in range(40):
        text = f"a w{i % 7} " + "b " * (i * 20)
        record = Record(f"r{i}", text, i, i, i / 40, "s", None, None if i % 3 else 100 + i, f"r{i - 1}" if i % 9 == 1 else None, {"n": i})
        index.add(i + 1, document_of(record, i + 1))
        oracle.add(i + 1, record, text.split())
    index.seq = 40
    path = tmp_path_factory.mktemp("sealed") / "sealed.segment"
    write_segment(draft_buffer(index.freeze(), "n", "f"), path)
    return path, oracle


def use(path: Path, oracle: NaiveIndex) -> None:
    """Everything that reads a segment; what it answers is right."""
    segment = Segment(path, SegmentCache(), id_of)
    index = Index([segment], 40)
    check_answer(index, oracle, QUESTION)
    assert [int(place.part.column("seq")[place.doc]) for place in index.find("r7")] == [8]
    draft_segments([segment], "n", "f")


def test_flipped_bytes(sealed: tuple[Path, NaiveIndex], tmp_path: Path) -> None:
    path, oracle = sealed
    whole = path.read_bytes()
    use(path, oracle)
    file = SectionFile(path)
    table = ALIGNMENT * (1 + len(file.names()))
    offsets = [*range(0, table, 5), *range(table, len(whole), 97)]
    # The first and last byte of every section, found by its own bytes.
    for name in file.names():
        raw = file.array(name).tobytes()
        if raw:
            at = whole.index(raw, table)
            offsets += [at, at + len(raw) - 1]
    harmless = 0
    damaged = tmp_path / "damaged.segment"
    for offset in sorted(set(offsets)):
        damaged.write_bytes(whole[:offset] + bytes([whole[offset] ^ (1 << offset % 8)]) + whole[offset + 1 :])
        try:
            use(damaged, oracle)
            harmless += 1  # the padding between sections holds nothing, and nobody reads it
        except DamagedError:
            with pytest.raises(DamagedError):
                Segment(damaged, SegmentCache(), id_of).verify()
    assert harmless < len(offsets) / 4


def test_truncated_and_extended(sealed: tuple[Path, NaiveIndex], tmp_path: Path) -> None:
    path, _ = sealed
    whole = path.read_bytes()
    damaged = tmp_path / "damaged.segment"
    for size in [0, 1, 63, 64, 65, 128, *range(200, len(whole), 501), len(whole) - 1]:
        damaged.write_bytes(whole[:size])
        with pytest.raises(DamagedError, match="damaged"):
            Segment(damaged, SegmentCache(), id_of)
    damaged.write_bytes(whole + b"\0")
    with pytest.raises(DamagedError):
        Segment(damaged, SegmentCache(), id_of)


def test_noise(tmp_path: Path) -> None:
    damaged = tmp_path / "noise.segment"
    random = Random(1)
    for size in (64, 100, 4_096):
        damaged.write_bytes(random.randbytes(size))
        with pytest.raises(DamagedError):
            Segment(damaged, SegmentCache(), id_of)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="missing"):
        Segment(tmp_path / "none.segment", SegmentCache(), id_of)


def test_sections_come_back(tmp_path: Path) -> None:
    arrays = {"one": np.arange(5), "none": np.empty(0, np.float64), "bytes": np.arange(100, dtype=np.uint8), "slice": np.arange(10)[::2]}
    path = tmp_path / "sections"
    path.write_bytes(b"".join(encode_sections(arrays)))
    file = SectionFile(path)
    file.verify()
    for name, values in arrays.items():
        read = file.array(name)
        assert read.dtype == values.dtype and np.array_equal(read, values)
        assert read.size == 0 or (read.ctypes.data % ALIGNMENT == 0 and not read.flags.writeable)
    with pytest.raises(DamagedError, match="lacks"):
        file.array("two")


def test_newer_container_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "newer"
    with monkeypatch.context() as newer:
        newer.setattr("agentir_ray.sections.CONTAINER_VERSION", 2)
        path.write_bytes(b"".join(encode_sections({"one": np.arange(5)})))
    with pytest.raises(FormatError):
        SectionFile(path)


def test_a_damaged_block_of_texts_costs_no_text_of_another(tmp_path: Path) -> None:
    """Each block has a checksum of its own: nothing of a segment's texts is checked before one of them is read, and nothing wrong is ever read."""
    buffer = Buffer()
    texts = [" ".join(f"{word}x{seq}" for word in range(seq % 90)) for seq in range(1, 200)]
    for seq, text in enumerate(texts, 1):
        buffer.add(seq, document_of(Record(f"r{seq}", text, seq, seq), seq))
    path = tmp_path / "whole.segment"
    whole = write_segment(draft_buffer(buffer, "n", "f"), path)
    assert whole is not None
    fields = whole.stored_fields
    blocks = len(fields.block_start) - 1
    assert blocks > 20
    content = path.read_bytes()
    begin = content.index(fields.data.tobytes())
    expected = [whole.stored(doc) for doc in range(whole.documents)]
    found = noticed = 0
    for block in range(0, blocks, 5):
        for offset in range(int(fields.block_start[block]), int(fields.block_start[block + 1]), 7):
            at = begin + offset
            damaged = tmp_path / "damaged.segment"
            damaged.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
            segment = Segment(damaged, SegmentCache(), id_of)
            of_block = set(np.flatnonzero(fields.block == block).tolist())
            for doc in [*sorted(of_block), 0, whole.documents - 1]:
                try:
                    assert segment.stored(doc) == expected[doc]  # also in that block, where the bit means nothing (one in a frame's header does)
                    found += doc in of_block
                except DamagedError:
                    assert doc in of_block
                    noticed += 1
            with pytest.raises(DamagedError):
                segment.verify()
    assert noticed > 10 * found
