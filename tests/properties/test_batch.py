"""Texts counted in batches have the tokens that the analyzer finds in each of them."""

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentir_ray.analysis import ANALYZERS, Analyzer, get_analyzer
from agentir_ray.kernels.tokenize import LONGEST_PIECE
from agentir_ray.lexical import batch
from agentir_ray.lexical.batch import Vocabulary
from agentir_ray.lexical.document import count_terms

FAST = ["english", "standard", "multilingual"]
# What the rules of words tell apart, in a few characters, and some that need the analyzer: marks, apostrophes, scripts without spaces, keycaps, spaces that are none.
ASCII = "aZsS09_'.:,;\"#*- \n\x00\x1f\x7f"
MIXED = ASCII + "“—·，。Ａ～々ー〇\u302a" + "é\u0301\u2019漢字ーあ\u202f\u00a0\u3000\ufe0f\u20e3א\u0e01한😀\u200d\ud800"
WORDS = ["the", "The", "don't", "dogs'", "U.S.A.", "a@b.com", "http://x.org/a_b?c=1,2", "1,234.5", "naïve", "cats\u2019s", "generalizations", "漢字" * 40, "x" * 300, "_" * 300]

texts = st.one_of(
    st.text(ASCII, max_size=40),
    st.text(MIXED, max_size=40),
    st.text("ab_", max_size=12).map(lambda text: text.replace("a", "a" * 127).replace("_", "_" * 126)),  # around the longest token
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
    st.text(max_size=40),
)


def assert_same(vocabulary: Vocabulary, analyzer: Analyzer, given: Sequence[str]) -> None:
    counted = vocabulary.count(given)
    assert len(counted.doc_start) == len(given) + 1 and len(counted.term) == len(counted.tf) == counted.doc_start[-1]
    for i, text in enumerate(given):
        length, terms, tfs = count_terms(analyzer, text)
        own = slice(counted.doc_start[i], counted.doc_start[i + 1])
        assert (counted.length[i], tuple(vocabulary.terms[t] for t in counted.term[own]), counted.tf[own].tolist()) == (length, terms, tfs.tolist()), text


@pytest.mark.parametrize("name", FAST)
@given(st.lists(st.lists(texts, max_size=6), max_size=3))
@example([["_" * 254 + "a", "_" * 255 + "a", "_" * 600, "a" * 254 + "'b", "a" * 255 + "'b", "a" * 253 + "'b", "1" * 254 + ".1", "a" * 254 + "__b"]])
@example([["#\ufe0f\u20e3 1\ufe0f\u20e3 a#\ufe0fb", "a'.b a_.b a._b a.b_1,2 1'2 1.a a:1 a:b 1;2 a;b", "é" * LONGEST_PIECE, "é" * (LONGEST_PIECE // 2), ""]])
def test_batches_equal_the_analyzer(name: str, batches: list[list[str]]) -> None:
    vocabulary = Vocabulary(get_analyzer(name))
    for given_texts in batches:  # the second meets words that are known
        assert_same(vocabulary, get_analyzer(name), given_texts)


@settings(max_examples=10)
@given(st.lists(st.text("ab,. é", max_size=20), max_size=5))
def test_an_analyzer_that_looks_at_whole_texts_is_asked_for_them(given_texts: list[str]) -> None:
    assert_same(Vocabulary(get_analyzer("nltk")), get_analyzer("nltk"), given_texts)


@settings(max_examples=20)
@given(st.lists(st.text("abcdefghij é", min_size=20, max_size=60), min_size=1, max_size=20))
def test_a_memory_that_starts_afresh_changes_nothing(given_texts: list[str]) -> None:
    vocabulary = Vocabulary(get_analyzer("english"), max_words=8)
    for text in given_texts:
        assert_same(vocabulary, get_analyzer("english"), [text, given_texts[0]])


@pytest.mark.parametrize("name", ANALYZERS)
def test_many_records_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MAX_SHARED_WORDS", 100)
    analyzer = get_analyzer(name)
    for size in (batch.FEW - 1, batch.FEW, 200):
        given_texts = [f"the river{i % 50} {i} of rivers{size}" for i in range(size)]
        for text, counted in zip(given_texts, batch.count_many(analyzer, given_texts), strict=True):
            length, terms, tfs = count_terms(analyzer, text)
            assert (counted.length, counted.terms, counted.tfs.tolist()) == (length, terms, tfs.tolist())


def test_long_words_with_much_in_common_are_told_apart() -> None:
    """A short word is its own key, a longer one is compared byte by byte: around eight bytes the two meet."""
    vocabulary = Vocabulary(get_analyzer("standard"))
    assert_same(vocabulary, get_analyzer("standard"), [" ".join(f"{'a' * size}{i:0{width}d}" for i in range(300)) for size in (0, 4, 5, 8, 16) for width in (3, 8, 9)])


@pytest.mark.parametrize("name", ANALYZERS)
@pytest.mark.parametrize("collection", ["cacm", "cranfield", "npl", "scifact"])
def test_judged_collections(shared: Path, name: str, collection: str, long_form: bool) -> None:
    path = shared / "data" / collection / "corpus.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} of {collection} in the shared data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [f"{row.get('title', '')} {row['text']}" for row in map(json.loads, lines)]
    step = 1 if long_form else 40 if name == "nltk" else 4
    assert_same(Vocabulary(get_analyzer(name)), get_analyzer(name), rows[::step])


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("collection", ["xquad", "cmrc2018", "rgb_zh", "beam"])
def test_texts_of_many_scripts(shared: Path, name: str, collection: str) -> None:
    """The raw lines with their escapes undone: keys and punctuation of JSON among the words do no harm."""
    files = sorted(path for path in (shared / "data" / collection).rglob("*") if ".json" in path.suffixes)[:6]
    if not files:
        pytest.skip(f"no {collection} in the shared data")
    texts = [(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode() for path in files]
    pieces = [
        re.sub(r"\\u(?!d[89a-f])([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text[i : i + 1_500]) for text in texts for i in range(0, min(len(text), 300_000), 1_500)
    ]
    assert_same(Vocabulary(get_analyzer(name)), get_analyzer(name), pieces)
