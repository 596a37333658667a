"""Analyzers: how a text becomes the tokens that are counted.

| name | tokens |
|---|---|
| `multilingual` | the default: English words stemmed, other scripts by their own rules, pairs of characters where words are not separated |
| `english` | Lucene 9.9's EnglishAnalyzer, token for token |
| `standard` | Lucene 9.9's StandardAnalyzer, token for token |
| `nltk` | NLTK's word tokens with Porter stems |

To read: `word_classes` -> `segmentation` -> `filters`, `porter` -> `lucene` -> `folding` -> `multilingual`; `analyzer` has the protocol and the memory that makes them fast.
"""

from collections.abc import Callable
from functools import cache

from agentir_ray.analysis.analyzer import Analyzer
from agentir_ray.analysis.lucene import english, standard
from agentir_ray.analysis.multilingual import multilingual
from agentir_ray.analysis.treebank import treebank
from agentir_ray.errors import InvalidInputError

__all__ = ["ANALYZERS", "DEFAULT_ANALYZER", "Analyzer", "get_analyzer"]

_MAKERS: dict[str, Callable[[], Analyzer]] = {"english": english, "multilingual": multilingual, "nltk": treebank, "standard": standard}

ANALYZERS = tuple(_MAKERS)
DEFAULT_ANALYZER = "multilingual"


def get_analyzer(name: str) -> Analyzer:
    """The analyzer of that name, the same object each time, so that what it remembers is shared. Raises InvalidInputError for an unknown name."""
    if name not in _MAKERS:
        raise InvalidInputError(f"analyzer {name!r} is unknown; use one of {', '.join(ANALYZERS)}")
    return _make(name)


@cache
def _make(name: str) -> Analyzer:
    return _MAKERS[name]()
