"""A segment in two: both halves together are the segment, and damage to the spilled one is noticed."""

from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

from agentir_ray.errors import DamagedError
from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.builder import HEAVY
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.spilled import remainder_sections, restored, spilled_sections
from agentir_ray.sections import SectionFile, encode_sections
from tests.properties.index_world import document_of, write_segment
from tests.properties.test_index import some_record


def some_segment(folder: Path, seed: int, documents: int = 300) -> Segment:
    random, buffer = Random(seed), Buffer()
    for i in range(documents):
        buffer.add(i + 1, document_of(some_record(random, f"é{seed}-{i}"), i + 1))
    segment = write_segment(draft_buffer(buffer, "tenant/space", "print"), folder / f"{seed}.segment")
    assert segment is not None
    return segment


def in_two(segment: Segment, folder: Path) -> tuple[Segment, Path]:
    (folder / "remainder").write_bytes(b"".join(encode_sections(remainder_sections(segment))))
    (folder / "object").write_bytes(b"".join(encode_sections(spilled_sections(segment))))
    return segment.over(SectionFile(folder / "remainder"), spilled="object"), folder / "object"


def test_both_halves_are_the_whole(tmp_path: Path) -> None:
    segment = some_segment(tmp_path, 1)
    cold, spilled = in_two(segment, tmp_path)
    assert cold.cold and cold.heavy_bytes == 0 and not set(cold.sections) & set(HEAVY)
    (tmp_path / "local").write_bytes(b"".join(map(bytes, restored(SectionFile(spilled), cold))))
    loaded = cold.over(heavy=SectionFile(tmp_path / "local"))
    assert not loaded.cold and loaded.heavy_bytes == segment.heavy_bytes
    for name in segment.sections:
        assert loaded.array(name).dtype == segment.array(name).dtype and np.array_equal(loaded.array(name), segment.array(name)), name
    ids = [segment.id(doc) for doc in range(segment.documents)]
    assert ids == [cold.id(doc) for doc in range(segment.documents)] == [segment.ids().get(doc).decode() for doc in range(segment.documents)]
    assert [cold.documents_of_id(id) for id in ids] == [segment.documents_of_id(id) for id in ids]
    again = in_two(loaded, tmp_path)[0]
    assert again.sections == cold.sections


def test_every_damaged_byte_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    cold, spilled = in_two(some_segment(tmp_path, 2, 40), tmp_path)
    whole = spilled.read_bytes()
    expected = b"".join(map(bytes, restored(SectionFile(spilled), cold)))
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        spilled.write_bytes(damaged)
        with suppress(DamagedError):
            assert b"".join(map(bytes, restored(SectionFile(spilled), cold))) == expected  # it was padding
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        spilled.write_bytes(whole[:length])
        with pytest.raises(DamagedError):
            b"".join(map(bytes, restored(SectionFile(spilled), cold)))


def test_an_object_of_other_documents_is_refused(tmp_path: Path) -> None:
    cold, _ = in_two(some_segment(tmp_path, 3), tmp_path)
    (tmp_path / "other").mkdir()
    _, spilled = in_two(some_segment(tmp_path, 4, 299), tmp_path / "other")
    with pytest.raises(DamagedError, match="other documents"):
        list(restored(SectionFile(spilled), cold))


def test_a_copy_in_memory_is_the_file(tmp_path: Path) -> None:
    segment = some_segment(tmp_path, 5)
    hot = segment.over(SectionFile(segment.path, copied=True))
    hot.touch()
    assert hot.hot and hot.memory_bytes() >= segment.memory_bytes() + segment.bytes
    segment.path.unlink()
    assert all(np.array_equal(hot.array(name), segment.array(name)) and not hot.array(name).flags.writeable for name in segment.sections)
