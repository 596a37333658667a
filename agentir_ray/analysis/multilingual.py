"""`multilingual`, the default: any script, mixed as people mix them.

- Where words are separated, a token is a word: found by UAX #29, without possessive 's, folded, without English stop words, stemmed by its script. For ASCII text this is
  `english` exactly.
- Where they are not (ideographs, kana, Thai, Lao, Khmer, Myanmar...), and in Korean, whose particles cling to the word, each unit (a character with its marks) is a token, and
  so are each two neighbours. The pairs carry the meaning, the single ones let a word of one character be found: BM25 on CMRC 2018 reaches nDCG@10 .983 with both, .981 with
  pairs alone, .946 with single characters alone (`standard`); Thai XQuAD .956 against .240.

Such runs are cut out first, so that the letters and digits beside them ("3月", "AI는") are tokens of their own. Ideographs need no dictionary here, hence no download and no
language guess.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from agentir_ray.analysis.analyzer import ChunkAnalyzer, fingerprint_of
from agentir_ray.analysis.filters import ENGLISH_STOP_WORDS, without_possessive
from agentir_ray.analysis.folding import fold, identity, stem
from agentir_ray.analysis.lucene import english_word
from agentir_ray.analysis.segmentation import GRAMMAR, word_spans
from agentir_ray.analysis.word_classes import LATER, UNICODE_9, class_table

VERSION = 1

_RUN = re.compile("(?:[CGIKUgjx][XxZVPktT]*)+")
# Korean may come as conjoining letters (file names of macOS do): those compose to syllables first. Marks beyond 32 carry no meaning and would only cost time.
_UNIT = re.compile("j+|[CGIKUgx][XxZVPktT]{0,32}")


def multilingual_tokens(text: str) -> Iterator[str]:
    classes = text.translate(class_table(UNICODE_9, LATER))
    done = 0
    for run in _RUN.finditer(classes):
        yield from _words(text, classes, done, run.start())
        yield from _units_and_pairs(text, classes, *run.span())
        done = run.end()
    yield from _words(text, classes, done, len(text))


def _words(text: str, classes: str, start: int, end: int) -> Iterator[str]:
    for first, last in word_spans(text, classes, start, end):
        for token in fold(without_possessive(text[first:last])).split():
            if token not in ENGLISH_STOP_WORDS:
                yield stem(token)


def _units_and_pairs(text: str, classes: str, start: int, end: int) -> Iterator[str]:
    units: list[str] = []
    for match in _UNIT.finditer(classes, start, end):
        unit = _fold_unit(text[match.start() : match.end()])
        units += unit if classes[match.start()] == "j" else [unit]
    for unit, following in pairwise(units):
        yield unit
        yield unit + following
    yield from units[-1:]


@lru_cache(maxsize=16_384)
def _fold_unit(unit: str) -> str:
    """A unit without the spaces that a few compatibility characters fold to."""
    return fold(unit).replace(" ", "")


def multilingual() -> ChunkAnalyzer:
    parts = (UNICODE_9, LATER, GRAMMAR, _RUN.pattern, _UNIT.pattern, " ".join(sorted(ENGLISH_STOP_WORDS)), identity())
    return ChunkAnalyzer("multilingual", fingerprint_of("multilingual", VERSION, *parts), multilingual_tokens, english_word, divides_ideographs=False)
