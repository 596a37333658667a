"""When to seal, what to merge, and where to cut what was merged: facts in, decision out, no I/O.

Segments grow by merging until they are of a decent size, and end there: at the boundary of a partition where there is one. So a segment spans adjacent partitions, its newest
ones alone are still rewritten, and what a merge holds in memory does not grow with the namespace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

GROWTH = 2  # each segment is more than this times larger than all smaller ones together, so their number grows with the logarithm of the records
MAX_CHANGED = 0.25  # of a segment's documents, since it was written: the manifest repeats all changes at every seal, until rewriting the segment puts them into its file


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may lie about before somebody tidies up. Tests take small ones, so that a few records go through everything.

    `seal_at` entries in the buffer: few enough that replaying them at open takes a fraction of a second, enough that a segment is worth its file. A writer that meets
    `max_unsealed` seals by itself: recovery time stays bounded when maintenance lags. `checkpoint_pages` of WAL (16 MiB) are copied into the database.

    A segment of `decent` documents, one window of the kernel, ends with its partition; none goes on beyond `largest`, of which a merge takes some 300 MB.

    A segment of fewer bytes than `temper_from_bytes` is neither copied nor spilled: it is not worth an object (F19).
    """

    seal_at: int = 2_048
    max_unsealed: int = 4_096
    checkpoint_pages: int = 4_096
    decent: int = 65_536
    largest: int = 262_144
    temper_from_bytes: int = 2**20


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


def at_once(chosen: Sequence[int], documents: Sequence[int], limits: Limits) -> list[int]:
    """Of the segments that are to be merged, the smallest that together are no larger than two of the largest, or none. After partitions became wider, many are due."""
    taken: list[int] = []
    together = 0
    for position in sorted(chosen, key=lambda i: documents[i]):
        together += documents[position]
        if together > 2 * limits.largest:
            break
        taken.append(position)
    return sorted(taken) if len(taken) > 1 else []


class Extent(NamedTuple):
    """A segment's size, and the newest partition that it holds documents of."""

    documents: int
    newest: int


def closed(segment: Extent, newest: int, limits: Limits) -> bool:
    """Whether a segment is left as it is; `newest` is the newest partition of all."""
    return segment.documents >= limits.largest or (segment.documents >= limits.decent and segment.newest < newest)


def choose_cuts(partitions: Sequence[int], limits: Limits) -> list[int]:
    """How many documents each piece of a run of partitions gets, given how many each partition has, the oldest first. All but the last piece are closed, or will be."""
    pieces: list[int] = []
    piece = 0
    for documents in partitions:
        if piece >= limits.decent:
            pieces.append(piece)
            piece = 0
        piece += documents
        full = (piece - 1) // limits.largest  # what is exactly full may still end with its partition
        pieces += [limits.largest] * full
        piece -= full * limits.largest
    return [*pieces, piece]


def choose_rewrite(segments: Sequence[tuple[int, int]]) -> list[int]:
    """Position of the segment, if any, to rewrite for its changes alone, by each one's documents and how many of them changed since it was written."""
    return [i for i, (documents, changed) in enumerate(segments) if changed > MAX_CHANGED * documents][:1]
