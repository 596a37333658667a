"""`standard` and `english`: Lucene 9.9's StandardAnalyzer and EnglishAnalyzer, token for token.

Standard: words, lower case. English: words, without possessive 's, lower case, without stop words, stemmed; in this order, as there. Neither has settings.
"""

from collections.abc import Iterator
from itertools import chain

from agentir_ray.analysis import porter
from agentir_ray.analysis.analyzer import ChunkAnalyzer, fingerprint_of
from agentir_ray.analysis.filters import ENGLISH_STOP_WORDS, lower, without_possessive
from agentir_ray.analysis.segmentation import GRAMMAR, word_spans
from agentir_ray.analysis.word_classes import UNICODE_9, class_table

VERSION = 1


def words(text: str) -> Iterator[str]:
    """The words of `text` as they stand in it."""
    for start, end in word_spans(text, text.translate(class_table(UNICODE_9))):
        yield text[start:end]


def standard_tokens(text: str) -> Iterator[str]:
    return map(lower, words(text))


def english_tokens(text: str) -> Iterator[str]:
    return chain.from_iterable(english_word(without_possessive(word)) for word in words(text))


def english_word(word: str) -> tuple[str, ...]:
    """The token of one word, none for a stop word."""
    token = lower(word)
    return () if token in ENGLISH_STOP_WORDS else (porter.stem(token),)


def standard() -> ChunkAnalyzer:
    return ChunkAnalyzer("standard", fingerprint_of("standard", VERSION, UNICODE_9, GRAMMAR), standard_tokens, lambda word: (word.lower(),), divides_ideographs=True)


def english() -> ChunkAnalyzer:
    parts = (UNICODE_9, GRAMMAR, " ".join(sorted(ENGLISH_STOP_WORDS)), porter.TABLES)
    return ChunkAnalyzer("english", fingerprint_of("english", VERSION, *parts), english_tokens, english_word, divides_ideographs=True)
