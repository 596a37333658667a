"""The filters around the words: possessive, Java's lower case, stop words, in Lucene's order."""

import pytest

from agentir_ray.analysis import get_analyzer
from agentir_ray.analysis.filters import ENGLISH_STOP_WORDS, lower, without_possessive


@pytest.mark.parametrize(("word", "expected"), [("O'Neil's", "O'Neil"), ("it’S", "it"), ("x＇s", "x"), ("'s", ""), ("s", "s"), ("James'", "James'"), ("ss", "ss")])
def test_possessive(word: str, expected: str) -> None:
    assert without_possessive(word) == expected


@pytest.mark.parametrize(("word", "expected"), [("ΟΔΟΣ", "οδοσ"), ("İ", "i"), ("ẞ", "ß"), ("ÉA", "éa"), ("Ⅻ", "ⅻ"), ("ABC", "abc")])
def test_lower_case_is_javas(word: str, expected: str) -> None:
    assert lower(word) == expected


def test_stop_words_are_lucenes_33() -> None:
    assert len(ENGLISH_STOP_WORDS) == 33
    assert get_analyzer("english").tokens("The THE the's, and it's") == []
    assert get_analyzer("standard").tokens("The the's") == ["the", "the's"]


def test_stop_words_go_before_stemming() -> None:
    """ "ins" stems to a stop word's letters and stays."""
    assert get_analyzer("english").tokens("ins ands") == ["in", "and"]
