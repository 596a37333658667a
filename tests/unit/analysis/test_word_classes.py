"""The tables: what each class holds, against properties that the `regex` module knows from a later Unicode."""

import sys
from collections import Counter

import regex

from agentir_ray.analysis.word_classes import LATER, UNICODE_9, class_table

BASE = class_table(UNICODE_9)
ALL = class_table(UNICODE_9, LATER)


def test_ascii() -> None:
    ascii_classes = "".join(map(chr, range(128))).translate(BASE)
    assert Counter(ascii_classes) == {"A": 52, "N": 10, "O": 57, "h": 2, "L": 1, "M": 2, "Q": 1, "S": 1, "D": 1, "_": 1}
    assert ":,;.'\"_#*".translate(BASE) == "LMMQSD_hh"


def test_later_characters_are_only_added() -> None:
    changed = [code for code in range(len(ALL)) if ALL[code] != BASE[code]]
    assert len(changed) > 20_000
    assert all(BASE[code] == ord("O") for code in changed)


def test_white_space_is_in_no_word() -> None:
    """Hence texts can be cut at it. The narrow no-break space is a connector in Unicode; texts that hold it are cut at plain spaces only."""
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    assert [space for space in spaces if space.translate(ALL) != "O"] == ["\u202f"]


def test_surrogates_are_in_no_word() -> None:
    assert set(ALL[0xD800:0xE000]) == {ord("O")}


def test_classes_agree_with_a_later_unicode() -> None:
    """Every letter, digit and ideograph of the tables is still one; the exceptions are characters that Unicode has reclassified since 9.0."""
    reclassified = {"\u19da": "New Tai Lue digit one, from Complex_Context to Numeric"}
    properties = {
        "A": r"[\p{WB=ALetter}]",
        "H": r"\p{WB=Hebrew_Letter}",
        "N": r"\p{WB=Numeric}",
        "K": r"\p{WB=Katakana}",
        "G": r"\p{Han}",
        "g": r"\p{Han}",
        "I": r"\p{Hiragana}",
        "U": r"\p{Hangul}",
        "j": r"\p{Hangul}",
        "C": r"\p{LB=SA}",
        "x": r"\p{LB=SA}",
    }
    for letter, pattern in properties.items():
        members = [chr(code) for code, value in enumerate(ALL) if value == ord(letter)]
        known = regex.compile(pattern)
        assert [member for member in members if not known.match(member) and member not in reclassified] == [], letter
