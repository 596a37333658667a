"""What a reranker is: a question and some texts in, a score a text out, within a deadline (F18: a second look on a CPU must not take minutes)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt


class Candidate(NamedTuple):
    """A record's text and, where they are kept, the vectors of its tokens, float32 (tokens, dim)."""

    text: str
    tokens: npt.NDArray[np.float32] | None = None


class Reranker(Protocol):
    @property
    def lowest(self) -> float | None:
        """The least that a score can be; None: there is no such number, and the least of the candidates counts as 0."""
        ...

    def rerank(self, query: str, candidates: Sequence[Candidate], deadline_ns: int | None, now_ns: Callable[[], int]) -> npt.NDArray[np.float64]:
        """float64 (candidates), NaN for those that it did not come to. The candidates come best first; work ends when `now_ns()` has passed `deadline_ns` (None: none)."""
        ...
