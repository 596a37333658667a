"""Lucene's Porter stemmer. NLTK has Martin Porter's later program as one of its modes: the oracle."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.stem import PorterStemmer

from agentir_ray.analysis.porter import stem

ORACLE = PorterStemmer(PorterStemmer.MARTIN_EXTENSIONS)
SUFFIXES = """
    s es ies sses eed ed ing y ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti iviti biliti logi
    icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent sion tion ion ou ism ate iti ous ive ize e l ll at bl iz
""".split()  # noqa: SIM905
WORDS = st.builds("".join, st.tuples(st.text("aeiouybcdlstzwx1'é", max_size=6), st.lists(st.sampled_from(SUFFIXES), max_size=3).map("".join)))


@given(WORDS)
@example("ion")
@example("aed")
@example("yyy")
def test_equals_nltks_martin_mode(word: str) -> None:
    assert stem(word) == ORACLE.stem(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("possibly", "possibl"),
        ("morphology", "morpholog"),
        ("geology", "geologi"),
        ("skies", "ski"),
        ("dying", "dy"),
        ("caresses", "caress"),
        ("as", "as"),
        ("", ""),
        ("generalizations", "gener"),
        ("123s", "123"),
    ],
)
def test_examples(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_a_letter_above_ffff_counts_as_two_consonants() -> None:
    assert stem("\U0001d518s") == "\U0001d518"
    assert stem("yy\U0001d518ing") == "yy\U0001d518"
    assert stem("aés") == "aé"
