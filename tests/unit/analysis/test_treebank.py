"""NLTK's tokens and stems, without any of its downloads."""

from nltk.stem import PorterStemmer
from nltk.tokenize import word_tokenize

from agentir_ray.analysis import get_analyzer

TEXT = "I don't know, Mr. O'Neil's (3) cats weren't running... gonna see at 5 p.m."


def test_equals_nltk() -> None:
    stem = PorterStemmer().stem
    assert get_analyzer("nltk").tokens(TEXT) == [stem(token) for token in word_tokenize(TEXT.lower(), preserve_line=True)]


def test_tokens() -> None:
    assert get_analyzer("nltk").tokens("Cats aren't running.") == ["cat", "are", "n't", "run", "."]
