"""One draft into several, each a range of its documents.

No stored block is in two pieces: where it would be, each piece packs its own documents anew. Else what is erased from one file could still be read in the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.builder import Draft
from agentir_ray.lexical.stored import StoredFields, join_stored, pack_stored, unpack_block
from agentir_ray.lexical.strings import Strings, take_strings

Array = npt.NDArray[Any]


def cut(draft: Draft, sizes: Sequence[int]) -> Iterator[Draft]:
    """Pieces of so many documents each, in order; `sizes` add up to the draft's. The draft itself where there is one size alone."""
    if len(sizes) == 1:
        yield draft
        return
    for first, end in pairwise([0, *np.cumsum(sizes).tolist()]):
        pairs = slice(int(draft.doc_start[first]), int(draft.doc_start[end]))
        here = (draft.key_doc >= first) & (draft.key_doc < end)
        yield replace(
            draft,
            columns={name: values[first:end] for name, values in draft.columns.items()},
            id_hash=draft.id_hash[first:end],
            doc_start=draft.doc_start[first : end + 1] - draft.doc_start[first],
            term=draft.term[pairs].copy(),  # which building renames
            tf=draft.tf[pairs].copy(),
            key_number=draft.key_number[here],
            key_doc=draft.key_doc[here] - first,
            stored=_stored(draft.stored, first, end),
        )


def _stored(stored: StoredFields, first: int, end: int) -> StoredFields:
    """The stored fields of documents [first, end)."""
    block = stored.block[first:end].astype(np.int64)
    here, everywhere = np.bincount(block, minlength=len(stored.block_start) - 1), np.bincount(stored.block, minlength=len(stored.block_start) - 1)
    shared = np.flatnonzero(here[block] < everywhere[block])
    whole = np.flatnonzero(here[block] == everywhere[block])
    used = np.unique(block[whole])
    kept = take_strings(Strings(stored.data, stored.block_start.astype(np.int64)), used)
    parts = [
        StoredFields(
            kept.data, kept.start.astype(np.uint64), np.searchsorted(used, block[whole]).astype(np.uint32), stored.start[first:end][whole], stored.length[first:end][whole]
        ),
        pack_stored(_bodies(stored, (first + shared).tolist())),
    ]
    order = np.empty(end - first, np.int64)
    order[np.concatenate([whole, shared])] = np.arange(end - first)
    return join_stored(parts, order)


def _bodies(stored: StoredFields, docs: Sequence[int]) -> Iterator[bytes]:
    unpacked: dict[int, bytes] = {}  # blocks at the ends of the piece: one or two a source
    for doc in docs:
        block, start = int(stored.block[doc]), int(stored.start[doc])
        if block not in unpacked:
            unpacked[block] = unpack_block(stored.data, stored.block_start, block, "a segment being merged")
        yield unpacked[block][start : start + int(stored.length[doc])]
