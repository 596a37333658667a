"""Several segments into the draft of one. Erased documents, and the terms and keys that only they had, stay behind; deleted ones come along for `as_of`.

Stored blocks are copied as they are, whatever the new order of the documents, except from segments with erased documents: those are packed anew.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.hashing import unite_strings
from agentir_ray.kernels.invert import count_each, gather_forward
from agentir_ray.lexical.builder import OVERLAY, Draft
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.stored import StoredFields, join_stored, pack_stored
from agentir_ray.lexical.strings import Strings, join_strings, pack_strings, take_strings

Array = npt.NDArray[Any]


def draft_segments(segments: Sequence[Segment], namespace: str, fingerprint: str) -> Draft:
    """The content of all `segments`, documents in time order (newest sequence number last among equals)."""
    frozen = [segment.overlay.columns() for segment in segments]  # as it is now; what changes while the merge runs is handed over by the engine
    kept = [_kept(columns) for columns in frozen]
    columns = {
        name: np.concatenate([segment.column(name)[docs] for segment, docs in zip(segments, kept, strict=True)]) for name in ("seq", "timestamp", "created_at", "expires_at")
    }
    columns["importance"] = np.concatenate([segment.column("importance")[docs] for segment, docs in zip(segments, kept, strict=True)])
    columns["length"] = np.concatenate([segment.array("length")[docs] for segment, docs in zip(segments, kept, strict=True)])
    for name in OVERLAY:
        columns[name] = np.concatenate([overlay[name][docs] for overlay, docs in zip(frozen, kept, strict=True)])
    order = np.lexsort((columns["seq"], columns["timestamp"]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    bounds = np.cumsum([0, *(len(docs) for docs in kept)])
    places = [place[bounds[i] : bounds[i + 1]] for i in range(len(segments))]

    terms, ordinals = _united_terms(segments)
    doc_start, term, tf = _forward(segments, kept, places, ordinals)
    keys, key_number, key_doc = _keys(segments, kept, places)
    return Draft(
        columns={name: values[order] for name, values in columns.items()},
        id_hash=np.concatenate([_id_hashes(segment)[docs] for segment, docs in zip(segments, kept, strict=True)])[order],
        doc_start=doc_start,
        term=term,
        tf=tf,
        terms=terms,
        keys=keys,
        key_number=key_number,
        key_doc=key_doc,
        stored=_stored(segments, kept, order),
        namespace=namespace,
        fingerprint=fingerprint,
    )


def _kept(overlay: dict[str, Array]) -> Array:
    return np.flatnonzero(overlay["deleted_at"] != ERASED_AT)


def _id_hashes(segment: Segment) -> Array:
    by_doc = np.empty(segment.documents, np.uint64)
    by_doc[segment.array("id_doc")] = segment.array("id_hash")
    return by_doc


def _united_terms(segments: Sequence[Segment]) -> tuple[Strings, list[Array]]:
    """The distinct terms by ascending hash, and for each segment its ordinals' new ones."""
    joined = join_strings([segment.terms for segment in segments])
    term_hash = np.concatenate([segment.array("term_hash") for segment in segments])
    order = np.argsort(term_hash, kind="stable")  # which merges the sorted runs that these are
    united = np.empty(len(order), np.int32)
    count = unite_strings(term_hash, joined.start, joined.data, order, united)
    first = np.empty(count, np.int64)
    first[united[order[::-1]]] = order[::-1]
    bounds = np.cumsum([0, *(len(segment.terms) for segment in segments)])
    return take_strings(joined, first), [united[bounds[i] : bounds[i + 1]] for i in range(len(segments))]


def _forward(segments: Sequence[Segment], kept: list[Array], places: list[Array], ordinals: list[Array]) -> tuple[Array, Array, Array]:
    pairs = np.zeros(sum(map(len, kept)) + 1, np.int64)
    for segment, docs, where in zip(segments, kept, places, strict=True):
        count = np.empty(len(docs), np.int64)
        count_each(segment.array("forward_start"), segment.array("forward"), docs, count)
        pairs[where + 1] = count
    doc_start = np.cumsum(pairs)
    term, tf = np.empty(doc_start[-1], np.int32), np.empty(doc_start[-1], np.int32)
    for segment, docs, where, ordinal in zip(segments, kept, places, ordinals, strict=True):
        gather_forward(segment.array("forward_start"), segment.array("forward"), docs, ordinal, where, doc_start, term, tf)
    return doc_start, term, tf


def _keys(segments: Sequence[Segment], kept: list[Array], places: list[Array]) -> tuple[Strings, Array, Array]:
    lists = []
    for segment in segments:
        strings = Strings(segment.array("key_data"), segment.array("key_start"))
        lists.append([strings.get(i) for i in range(len(strings))])
    keys = sorted(set().union(*lists))
    number = {key: i for i, key in enumerate(keys)}
    numbers, docs = [], []
    for segment, own, kept_docs, where in zip(segments, lists, kept, places, strict=True):
        place = np.full(segment.documents, -1, np.int64)
        place[kept_docs] = where
        new = place[segment.array("key_doc")]
        named = np.repeat(np.fromiter((number[key] for key in own), np.int64, len(own)), np.diff(segment.array("key_posting")))
        numbers.append(named[new >= 0])
        docs.append(new[new >= 0])
    return pack_strings(keys), np.concatenate(numbers), np.concatenate(docs)


def _stored(segments: Sequence[Segment], kept: list[Array], order: Array) -> StoredFields:
    parts = []
    for segment, docs in zip(segments, kept, strict=True):
        if len(docs) < segment.documents:
            parts.append(pack_stored(segment.stored(int(doc)) for doc in docs))
        else:
            parts.append(segment.stored_fields)
    return join_stored(parts, order)
