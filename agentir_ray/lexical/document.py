"""What the index needs of a record: made outside every lock, before the record has a sequence number."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.analysis import Analyzer

Int32s = npt.NDArray[np.int32]


class IndexedDocument(NamedTuple):
    """`terms` are distinct, in order of first appearance, with their `tfs`; `length` counts all tokens. `keys` are the filter keys, `stored` what a hit is decoded from."""

    id: str
    timestamp_us: int
    created_at_us: int
    expires_at_us: int
    importance: float
    supersedes: str | None
    length: int
    terms: tuple[str, ...]
    tfs: Int32s
    keys: Sequence[bytes]
    stored: bytes


class CountedText(NamedTuple):
    """Number of tokens, distinct terms in order of first appearance, and their frequencies."""

    length: int
    terms: tuple[str, ...]
    tfs: Int32s


def count_terms(analyzer: Analyzer, text: str) -> CountedText:
    tokens = analyzer.tokens(text)
    counted = Counter(tokens)
    return CountedText(len(tokens), tuple(counted), np.fromiter(counted.values(), np.int32, len(counted)))
