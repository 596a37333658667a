"""When to seal and what to merge: facts in, decision out, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

GROWTH = 2  # each segment is more than this times larger than all smaller ones together, so their number grows with the logarithm of the records
MAX_CHANGED = 0.25  # of a segment's documents, since it was written: the manifest repeats all changes at every seal, until rewriting the segment puts them into its file


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may lie about before somebody tidies up. Tests take small ones, so that a few records go through everything.

    `seal_at` entries in the buffer: few enough that replaying them at open takes a fraction of a second, enough that a segment is worth its file. A writer that meets
    `max_unsealed` seals by itself: recovery time stays bounded when maintenance lags. `checkpoint_pages` of WAL (16 MiB) are copied into the database.
    """

    seal_at: int = 2_048
    max_unsealed: int = 4_096
    checkpoint_pages: int = 4_096


DEFAULT_LIMITS = Limits()


def choose_merge(documents: Sequence[int], small: int = 1) -> list[int]:
    """Positions of the segments to merge into one, by their sizes; empty when the sizes form a steep enough ladder. Sizes below `small` count as that much.

    The longest run of smallest segments is merged in which some segment is not much larger than all before it together: each record is then rewritten O(log n) times, and n records
    lie in O(log n) files (F19).
    """
    sizes = [max(n, small) for n in documents]  # many entries may leave few documents: a ladder of tiny segments would be long
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    smaller = merged = 0
    for i, position in enumerate(order):
        if i and sizes[position] <= GROWTH * smaller:
            merged = i + 1
        smaller += sizes[position]
    return sorted(order[:merged])


def choose_rewrite(segments: Sequence[tuple[int, int]]) -> list[int]:
    """Position of the segment, if any, to rewrite for its changes alone, by each one's documents and how many of them changed since it was written."""
    return [i for i, (documents, changed) in enumerate(segments) if changed > MAX_CHANGED * documents][:1]
