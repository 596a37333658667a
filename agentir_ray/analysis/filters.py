"""What Lucene's English chain does to a word between finding and stemming it.

It knows single words, not texts. Lower-casing is Java's, code point by code point, which differs from Python's in two letters: U+0130 becomes a plain i, and a sigma never
turns into a final one.
"""

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
ENGLISH_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with".split()  # noqa: SIM905
)

_APOSTROPHES = "'\u2019\uff07"


def lower(word: str) -> str:
    """`word` in lower case as Java's `Character.toLowerCase(int)` has it."""
    if word.isascii():
        return word.lower()
    return word.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()


def without_possessive(word: str) -> str:
    """`word` without a final 's, with any of the three apostrophes."""
    if len(word) >= 2 and word[-1] in "sS" and word[-2] in _APOSTROPHES:
        return word[:-2]
    return word
