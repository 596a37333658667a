"""What every analyzer promises: a name, a stable fingerprint, the same tokens however they are reached, and no input that it cannot take."""

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.analysis import ANALYZERS, DEFAULT_ANALYZER, get_analyzer
from agentir_ray.analysis.analyzer import MAX_CHUNK_LENGTH, ChunkAnalyzer, fingerprint_of
from agentir_ray.analysis.lucene import english_tokens, standard_tokens
from agentir_ray.analysis.multilingual import multilingual_tokens
from agentir_ray.errors import InvalidInputError

FROM_SCRATCH = {"english": english_tokens, "standard": standard_tokens, "multilingual": multilingual_tokens}

# Changing one of these means that every store of that analyzer is rebuilt from its log: do it on purpose, and raise the analyzer's VERSION.
FINGERPRINTS = {
    "english": "64bccaf90ea96604d35fbea5c35014ceb8299da8290f8e2b519432a378cf9ec1",
    "standard": "3abdac8c486e1bc8c01a4773de057dbc342457d64f8f8431b65751f419b42181",
}

MIXED = st.text(st.one_of(st.characters(max_codepoint=127), st.sampled_from("é'’京ひテกั한ר\u0301\u200d\u202f\u3000\u2028\x1c👍🏽🇩🇪\ud800"), st.characters()), max_size=60)


def test_names() -> None:
    assert ANALYZERS == ("english", "multilingual", "nltk", "standard")
    assert DEFAULT_ANALYZER == "multilingual"
    assert all(get_analyzer(name).name == name for name in ANALYZERS)
    assert get_analyzer("english") is get_analyzer("english")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="'klingon' is unknown; use one of english, multilingual, nltk, standard"):
        get_analyzer("klingon")


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_fingerprints_of_frozen_analyzers_are_pinned(name: str) -> None:
    assert get_analyzer(name).fingerprint == FINGERPRINTS[name]


def test_fingerprints_differ_and_are_the_same_in_another_process() -> None:
    here = [get_analyzer(name).fingerprint for name in ANALYZERS]
    assert len(set(here)) == len(ANALYZERS)
    code = "from agentir_ray.analysis import *; print(*[get_analyzer(name).fingerprint for name in ANALYZERS])"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert there == here


def test_fingerprint_depends_on_every_part_and_its_place() -> None:
    digests = {fingerprint_of("a", 1, "b", "c"), fingerprint_of("a", 1, "bc"), fingerprint_of("a", 1, "c", "b"), fingerprint_of("a", 2, "b", "c"), fingerprint_of("b", 1, "b", "c")}
    assert len(digests) == 5


@pytest.mark.parametrize("name", FROM_SCRATCH)
@given(text=MIXED)
def test_remembered_chunks_change_nothing(name: str, text: str) -> None:
    expected = list(FROM_SCRATCH[name](text))
    assert get_analyzer(name).tokens(text) == expected
    assert get_analyzer(name).tokens(text) == expected


@pytest.mark.parametrize("name", FROM_SCRATCH)
@given(text=st.text("aBs1٣é.,:;!?\"()[]'_-/ ", max_size=40))
def test_marks_at_the_edges_of_a_word_change_nothing(name: str, text: str) -> None:
    assert get_analyzer(name).tokens(text) == list(FROM_SCRATCH[name](text))


def test_memory_of_chunks_is_bounded() -> None:
    asked: list[str] = []
    analyzer = ChunkAnalyzer("test", "", lambda chunk: asked.append(chunk) or [chunk], lambda word: asked.append(word) or [word], max_chunks=3)
    assert analyzer.tokens("a b c a b c") == list("abcabc")
    assert asked == ["a", "b", "c"]
    assert analyzer.tokens("d a") == ["d", "a"]
    assert asked == ["a", "b", "c", "d", "a"]
    long = "x" * (MAX_CHUNK_LENGTH + 1)
    analyzer.tokens(f"{long} {long}")
    assert asked[5:] == [long, long]


@pytest.mark.parametrize("name", ANALYZERS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "\0",
        "a\0b",
        "\ud800",
        "a\udc00b \ud800\udc00",
        "\u200d\u200d",
        "\u0301",
        "‮abc‬",
        "é" * 300,
        "x" * 1_000,
        "👩‍👩‍👧‍👦" * 100,
        "\U0010ffff",
        "\ufeff",
        "ั" * 400,
        "_" * 5_000,
        "y" * 5_000,
    ],
    ids=ascii,
)
def test_odd_text_is_no_error(name: str, text: str) -> None:
    tokens = get_analyzer(name).tokens(text)
    assert all(isinstance(token, str) and token for token in tokens)


@pytest.mark.parametrize("name", FROM_SCRATCH)
@pytest.mark.parametrize("piece", ["a", "_", "\u200d", "\u0301\u0323", "京", "ก", "\u1100", "1.", "👩\u200d", "🇩", "א'", "\0", "word "], ids=ascii)
def test_time_is_linear(name: str, piece: str) -> None:
    """A quadratic step anywhere would take minutes on these, not a fraction of a second."""
    get_analyzer(name).tokens(piece * (100_000 // len(piece)))


def test_ten_megabytes() -> None:
    assert len(get_analyzer("multilingual").tokens("the quick brown fox " * 500_000)) == 1_500_000


def test_threads_get_the_same_tokens() -> None:
    analyzer = ChunkAnalyzer("test", "", multilingual_tokens, multilingual_tokens, max_chunks=8)
    text = "Running cats, 北京 книги Москве running δρόμους المدرسة " * 20
    expected = list(multilingual_tokens(text))
    results: list[bool] = []

    def run() -> None:
        results.extend(analyzer.tokens(text) == expected for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80


def test_importing_does_not_import_nltk() -> None:
    code = "import agentir_ray.analysis, sys; print('nltk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
