"""Terms are found where they lie, however their hashes are spread and whatever changes meanwhile."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.kernels.lookup import _from_guess
from agentir_ray.lexical import segment as segment_module
from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.directory import Directory
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.types import Record
from tests.properties.index_world import document_of, write_segment

WORDS = ["a", "b", "c", "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ", "é", "漢字"]  # the fourth and the fifth have one hash
hashes = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 40), st.integers(2**64 - 40, 2**64 - 1))


@given(st.lists(hashes, min_size=1, max_size=60).map(sorted), hashes, st.data())
def test_any_guess_leads_to_the_place(values: list[int], wanted: int, data: st.DataObject) -> None:
    array = np.array(values, np.uint64)
    guess = data.draw(st.integers(0, len(values) - 1))
    assert _from_guess(array, np.uint64(wanted), guess) == np.searchsorted(array, np.uint64(wanted))


def segments_of(texts: list[list[str]], folder: Path) -> tuple[Segment, ...]:
    segments, seq = [], 0
    for number, own in enumerate(texts):
        buffer = Buffer()
        for text in own:
            seq += 1
            buffer.add(seq, document_of(Record(f"r{seq}", text, seq, 1), seq))
        segment = write_segment(draft_buffer(buffer, "n", "f"), folder / f"{number}-{len(list(folder.iterdir()))}")
        assert segment is not None
        segments.append(segment)
    return tuple(segments)


def expected(directory: Directory, terms: list[str]) -> tuple[list[list[int]], list[int]]:
    ordinals, df = [], []
    for term in terms:
        own = []
        for segment in directory.segments:
            names = [segment.terms.get(i) for i in range(len(segment.terms))]
            own.append(names.index(term.encode()) if term.encode() in names else -1)
        ordinals.append(own)
        deleted = [set(segment.overlay.deleted().tolist()) for segment in directory.segments]
        df.append(sum(segment.tf(own[s], doc) > 0 and doc not in deleted[s] for s, segment in enumerate(directory.segments) for doc in range(segment.documents)))
    return ordinals, df


def check(directory: Directory, terms: list[str]) -> None:
    ordinals, df = directory.look_up(terms)
    assert (ordinals.tolist(), df) == expected(directory, terms)


texts = st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=4), min_size=1, max_size=8)
asked = st.lists(st.sampled_from([*WORDS, "nowhere"]), max_size=6, unique=True)


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.lists(asked, min_size=1, max_size=4), st.data())
def test_what_is_remembered_goes_on_to_the_next_directory(first: list[list[str]], second: list[list[str]], questions: list[list[str]], data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        before = segments_of(first, Path(name))
        directory = Directory(before)
        for terms in questions:
            check(directory, terms)
        for segment in before:
            if data.draw(st.booleans()):
                segment.delete(np.array([0]), 99, 5)
        directory = Directory(before)  # a deletion starts anew
        for terms in questions:
            check(directory, terms)
        kept = [segment for segment in before if data.draw(st.booleans())]
        mixed = data.draw(st.permutations([*kept, *segments_of(second, Path(name))]))
        directory = Directory(tuple(mixed), directory)
        for terms in [*questions, *questions[::-1], WORDS]:
            check(directory, terms)


def test_forgetting_all_at_once_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentir_ray.lexical.directory.MAX_KNOWN_BYTES", 3_000)
    directory = Directory(segments_of([["a b"], ["b c"], ["c"], ["a"], ["b é"]], tmp_path))
    for i in range(20):
        check(directory, [WORDS[i % 7], WORDS[(i + 3) % 7]])
        assert directory.memory_bytes() < 20_000


def test_a_row_that_a_deletion_overtook_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search makes a segment's row, without the lock, while its first deletion comes."""
    (segment,) = segments_of([["a b", "a", "a c"]], tmp_path)
    make_row = segment_module.make_row

    def overtaken(*arguments: Any) -> Any:
        row = make_row(*arguments)
        monkeypatch.setattr(segment_module, "make_row", make_row)
        segment.delete(np.array([1]), 99, 5)
        return row

    monkeypatch.setattr(segment_module, "make_row", overtaken)
    Directory((segment,)).look_up(["a"])
    check(Directory((segment,)), ["a", "b"])
