"""What a search asks of a namespace, whichever channels it goes through: `covering` decides which partitions are read, an asker ranks what lies in them.

An `Asker` looks at a namespace once and gives `Answers` about that moment: the same snapshot answers for the best of any range of time, for what was left out, and for why a hit
has its score.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.namespace import Namespace
from agentir_ray.kernels.rows import Array
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.search import Expired, Found, TopK, Visibility
from agentir_ray.types import Explanation, FusedExplanation, Record

Bools = npt.NDArray[np.bool_]


class EncoderExchangedError(Exception):
    """`reembed` exchanged the vectors of a namespace while it was being looked at. Look again."""


class Answers(Protocol):
    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def stages(self) -> tuple[str, ...]:
        """The channels that ran."""
        ...

    @property
    def reservation(self) -> str:
        """Why the answer need not be exact though everything was searched; empty: it is."""
        ...

    def top_k(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        """The best visible documents, of the filter, priors and least score that were asked for."""
        ...

    def could_matter(self, best: TopK, visibility: Visibility, wanted: int) -> Bools:
        """bool (segments): those of the segments left out that could change the answer."""
        ...

    def explain(self, found: Found, record: Record) -> Explanation | FusedExplanation:
        """Why a hit of the last answer has its score."""
        ...


class Asker(Protocol):
    def look(self, namespace: Namespace) -> Answers:
        """Raises EncoderExchangedError."""
        ...


class ChannelAnswers(Answers, Protocol):
    """Of one channel. `lowest` is the least that a score of its kind can be."""

    name: str
    lowest: float

    def listed(self, k: int, visibility: Visibility, expired: Expired | None) -> TopK:
        """The best visible documents by the channel's score alone."""
        ...

    def scores(self, refs: Array) -> npt.NDArray[np.float64]:
        """float64: of documents (int64 refs, any order) the channel's score alone; NaN where it has none."""
        ...


class Channelled(Protocol):
    """An asker of one channel, in two steps: what is young is looked at before the snapshot, so that nothing is missed that moves into a sidecar meanwhile."""

    name: str

    @property
    def terms(self) -> tuple[str, ...]:
        """What the snapshot must look up for it."""
        ...

    def before(self, namespace: Namespace) -> "Channelled":
        """This asker, having looked at what the snapshot does not hold."""
        ...

    def at(self, snapshot: Snapshot) -> ChannelAnswers:
        """Raises EncoderExchangedError."""
        ...
