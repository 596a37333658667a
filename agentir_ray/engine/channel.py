"""A neural channel of a namespace: whose vectors it has, how far the log was encoded, and those that no sidecar holds yet.

`CHANNELS` are "dense", "sparse" and "tokens" (vectors of tokens, which are only looked up). It does no work: `encoding` encodes, `sidecars` builds.

A channel that `reembed` exchanged is another object: whoever reads takes the object once, of it the young view, and then the lexical snapshot. Where a segment's sidecar is of
another encoder than the object, the exchange came between, and the reader begins again.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

DENSE, SPARSE, TOKENS = "dense", "sparse", "tokens"
CHANNELS = (DENSE, SPARSE, TOKENS)
KEPT_FAILURES = 16  # named in `stats`


@dataclass(eq=False)
class Channel:
    """`encoder` is the identity of what made all vectors of it. Every entry of the log up to `encoded_seq` has its vectors in the ledger, or was erased, or failed.

    `young` (`dense.young.YoungVectors`, `lexical.young_weights.YoungWeights`; None: none yet, or "tokens") has the vectors that the sidecars lack. `failures` has the reasons of
    the latest texts that their encoder refuses, by sequence number; `failed` counts all since the namespace was loaded.
    """

    name: str
    encoder: str
    encoded_seq: int = 0
    young: Any = None
    failed: int = 0
    failures: OrderedDict[int, str] = field(default_factory=OrderedDict)

    def fail(self, seq: int, reason: str) -> None:
        """The encoder refuses the text of an entry."""
        self.failed += 1
        self.failures[seq] = reason
        while len(self.failures) > KEPT_FAILURES:
            self.failures.popitem(last=False)

    def memory_bytes(self) -> int:
        """Estimate of what it holds of its own."""
        return 1_024 + (0 if self.young is None else int(self.young.memory_bytes()))
