"""Word boundaries: the grammar against its literal statement, and each rule by example."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentir_ray.analysis.lucene import words
from agentir_ray.analysis.segmentation import MAX_TOKEN_UNITS, word_spans
from tests.unit.analysis import grammar_oracle

CLASSES = "AUjBHNKLMQSD_GgIRXZVPktTxCEemhO"


@given(st.one_of(st.text(CLASSES, max_size=12), st.text("HDSQAN_X", max_size=12), st.text("EemZPXtTBk", max_size=12), st.text("Z_xAE", max_size=12)))
@example("H.HHDH".replace(".", "Q"))  # the Hebrew letter before a double quote must not be taken by the letters before it
@example("EPZmX")
def test_grammar_equals_its_literal_statement(classes: str) -> None:
    assert list(word_spans("a" * len(classes), classes)) == grammar_oracle.spans(classes)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from("_ZAEXOx"), st.sampled_from([1, 2, 254, 255, 256])), min_size=1, max_size=3))
@example([("Z", 1_021), ("E", 1)])
@example([("_", 1_020), ("A", 1)])
def test_skipping_long_runs_changes_nothing(runs: list[tuple[str, int]]) -> None:
    classes = "".join(letter * length for letter, length in runs)
    assert list(word_spans("a" * len(classes), classes)) == grammar_oracle.spans(classes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't O'Neil", ["don't", "O'Neil"]),
        ("a.b a..b .net", ["a.b", "a", "b", "net"]),
        ("1,234.5 1;2 1, 2", ["1,234.5", "1;2", "1", "2"]),
        ("a,b a:b 1:2", ["a", "b", "a:b", "1", "2"]),
        ("3rd x86_64 __init__ ___", ["3rd", "x86_64", "__init__"]),
        ("صَه a\u0301b", ["صَه", "a\u0301b"]),
        ('צה"ל ג\'ירפה א"', ['צה"ל', "ג'ירפה", "א"]),
        ("中文ab", ["中", "文", "ab"]),
        ("テキストab_テ", ["テキスト", "ab_テ"]),
        ("ひら", ["ひ", "ら"]),
        ("한국어AI", ["한국어AI"]),
        ("ภาษาไทย ລາວ", ["ภาษาไทย", "ລາວ"]),
        ("👩\u200d👩\u200d👧!👍🏽👍", ["👩\u200d👩\u200d👧", "👍🏽", "👍"]),
        ("🇩🇪🇫🇷🇩", ["🇩🇪", "🇫🇷"]),
        ("#\ufe0f\u20e3 1\ufe0f\u20e3 # *", ["#\ufe0f\u20e3", "1\ufe0f\u20e3"]),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", ["\U0001f3f4\U000e0067\U000e0062\U000e007f"]),
        ("\u0301a \u200db", ["a", "b"]),
    ],
)
def test_rule(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


def test_a_token_is_at_most_255_utf_16_units() -> None:
    assert [len(word) for word in words("x" * 600)] == [255, 255, 90]
    assert [len(word) for word in words("\U0001d518" * 200)] == [127, 73]
    assert list(words("a" * (MAX_TOKEN_UNITS - 1) + ".b")) == ["a" * (MAX_TOKEN_UNITS - 1), "b"]
