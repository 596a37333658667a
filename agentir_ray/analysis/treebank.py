"""`nltk`: NLTK's word tokens in lower case, each with NLTK's Porter stem. What many papers mean by "BM25 with NLTK" (AgentIR, arXiv:2605.25092, among them).

Punctuation marks are tokens too, and there are no stop words. `preserve_line` leaves out the splitting into sentences, whose model would have to be downloaded. NLTK is
imported when the analyzer is first asked for, because that takes most of a second. The rules of a word depend on its place in the line, so tokens are not remembered by chunk
as in the other analyzers, but stems are.
"""

from collections.abc import Callable
from functools import lru_cache

from agentir_ray.analysis.analyzer import fingerprint_of

VERSION = 1

# Longer tokens are no words, and NLTK's stemmer would recurse once for each y in a row.
MAX_STEMMED_LENGTH = 255


class TreebankAnalyzer:
    word_tokens = None
    divides_ideographs = False

    def __init__(self, split: Callable[[str], list[str]], stem: Callable[[str], str], release: str) -> None:
        self.name = "nltk"
        self.fingerprint = fingerprint_of("nltk", VERSION, release)
        self._split = split
        self._stem = lru_cache(maxsize=65_536)(stem)

    def tokens(self, text: str) -> list[str]:
        return [self._stem(token) if len(token) <= MAX_STEMMED_LENGTH else token for token in self._split(text.lower())]


def treebank() -> TreebankAnalyzer:
    import nltk
    from nltk.stem import PorterStemmer
    from nltk.tokenize import NLTKWordTokenizer

    return TreebankAnalyzer(NLTKWordTokenizer().tokenize, PorterStemmer().stem, nltk.__version__)
