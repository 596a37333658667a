"""Passages cover the text, fit the window, overlap, and begin at words where there are any."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.encoders.passages import bounds, cut, cut_characters


def spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"\w{1,4}|[^\w\s]", text)]


@given(st.text("ab .,漢\n", max_size=300), st.integers(1, 12), st.data())
def test_every_character_is_in_a_passage(text: str, window: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, window - 1))
    offsets = spans(text)
    found = bounds(text, offsets, window, overlap)
    assert found[0][0] == 0 and found[-1][1] == len(text)
    for (begin, end), (next_begin, next_end) in pairwise(found):
        assert begin < next_begin <= end < next_end
        assert sum(next_begin <= token < end for token, _ in offsets) >= min(overlap, sum(begin <= token < end for token, _ in offsets) - 1)
    if len(offsets) > window:
        assert all(0 < sum(begin <= token < end for token, _ in offsets) <= window for begin, end in found)
    assert cut(text, offsets, window, overlap) == [text[begin:end] for begin, end in found]


def test_a_text_that_fits_is_itself() -> None:
    assert cut("", [], 4, 1) == [""] and cut(" a b ", spans(" a b "), 2, 1) == [" a b "]


def test_passages_overlap_and_begin_at_words() -> None:
    text = "one two three four five six seven eight nine ten"
    assert cut(text, [found.span() for found in re.finditer(r"\w+", text)], 4, 2) == [
        "one two three four ",
        "three four five six ",
        "five six seven eight ",
        "seven eight nine ten",
    ]
    pieces = cut_characters("alpha beta gamma delta", 12, 6)
    assert pieces == ["alpha beta ", " beta gamma ", "gamma delta"]


def test_without_spaces_it_is_cut_anywhere() -> None:
    pieces = cut_characters("漢" * 100_000, 1_500, 200)
    assert all(len(piece) <= 1_500 for piece in pieces) and len(pieces) == 77
