"""When to seal and what to merge: facts in, decision out, no I/O."""

from collections.abc import Sequence

SEAL_AT = 2_048  # entries in the buffer; small enough that replaying them at open takes a fraction of a second, large enough that a segment is worth its file
MAX_UNSEALED = 4_096  # a writer that meets this many seals by itself: recovery time stays bounded when maintenance lags
GROWTH = 2  # each segment is more than this times larger than all smaller ones together, so their number grows with the logarithm of the records
MAX_DEAD = 0.25  # a segment with more than this share of deleted documents is rewritten, to keep its overlay small


def choose_merge(documents: Sequence[int]) -> list[int]:
    """Positions of the segments to merge into one, by their sizes; empty when the sizes form a steep enough ladder.

    The longest run of smallest segments is merged in which some segment is not much larger than all before it together: each record is then rewritten O(log n) times, and n records
    lie in O(log n) files (F19).
    """
    order = sorted(range(len(documents)), key=lambda i: documents[i])
    smaller = merged = 0
    for i, position in enumerate(order):
        if i and documents[position] <= GROWTH * smaller:
            merged = i + 1
        smaller += documents[position]
    return sorted(order[:merged])
