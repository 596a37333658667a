"""From documents to the sections of a segment file. Sealing a buffer and merging segments end here, in one path.

Sections (N documents in time order, T terms by ascending hash, B blocks, P postings, K filter keys):

    meta                JSON: documents, length (tokens), live_* = without the dead, namespace, analyzer fingerprint, largest_importance
    seq timestamp created_at int64 (N) | expires_at int64 (N), importance float64 (N): only where some record has one | length uint32 (N)
    deleted_seq deleted_at superseded_seq superseded_at int64 (N): the overlay at the time of writing, only where some document has one
    term_hash uint64 (T) | term_start int64 (T+1) | term_data uint8 | term_block int64 (T+1)
    block_window uint32 (B) | block_posting int64 (B+1) | block_skyline int64 (B+1)
    posting_doc uint16 (P) | posting_tf uint8 (P) | overflow_posting int64, overflow_tf uint32: postings whose tf is 255 or more
    skyline_tf skyline_length uint32
    forward_start int64 (N+1) | forward uint8
    key_start uint64 (K+1) | key_data uint8 | key_posting int64 (K+1) | key_doc uint32
    id_hash uint64 (N, ascending) | id_doc uint32 (N)
    stored_data uint8 | stored_block_start uint64 | stored_block stored_start stored_length uint32 (N)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels import invert
from agentir_ray.lexical.stored import StoredFields
from agentir_ray.lexical.strings import Strings, hashes, take_strings
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
FORMAT_VERSION = 1
OVERLAY = ("deleted_seq", "deleted_at", "superseded_seq", "superseded_at")


@dataclass(slots=True)
class Draft:
    """A segment's content, documents in final order.

    `doc_start` (N + 1), `term`, `tf` (P) list each document's terms, numbered into `terms`, whose strings are distinct and ordered by ascending `term_hash`; terms that no document
    uses are left out of the file. `key_number` and `key_doc` pair filter keys (numbered into `keys`, ascending) with documents.
    """

    columns: dict[str, Array]
    id_hash: Array
    doc_start: Array
    term: Array
    tf: Array
    terms: Strings
    keys: Strings
    key_number: Array
    key_doc: Array
    stored: StoredFields
    namespace: str
    fingerprint: str


def build_sections(draft: Draft) -> dict[str, Array]:
    """The sections of the segment file, in the order in which they are written."""
    columns = draft.columns
    documents = len(columns["seq"])
    length = columns["length"].astype(np.uint32)
    live = columns["deleted_seq"] == NEVER_US
    importance = columns["importance"]
    meta = {
        "format": FORMAT_VERSION,
        "namespace": draft.namespace,
        "fingerprint": draft.fingerprint,
        "documents": documents,
        "length": int(length.sum()),
        "live_documents": int(live.sum()),
        "live_length": int(length[live].sum()),
        "largest_importance": float(importance.max()) if documents else 0.0,
    }
    sections: dict[str, Array] = {"meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8)}
    for name in ("seq", "timestamp", "created_at"):
        sections[name] = columns[name]
    if (columns["expires_at"] != NEVER_US).any():
        sections["expires_at"] = columns["expires_at"]
    if importance.any():
        sections["importance"] = importance
    sections["length"] = length
    if any((columns[name] != NEVER_US).any() for name in OVERLAY):
        sections |= {name: columns[name] for name in OVERLAY}
    sections |= _terms_and_postings(draft, length)
    sections |= _filter_keys(draft)
    by_hash = np.argsort(draft.id_hash, kind="stable")
    sections |= {"id_hash": draft.id_hash[by_hash], "id_doc": by_hash.astype(np.uint32)}
    stored = draft.stored
    sections |= {"stored_data": stored.data, "stored_block_start": stored.block_start, "stored_block": stored.block, "stored_start": stored.start, "stored_length": stored.length}
    return sections


def _terms_and_postings(draft: Draft, length: Array) -> Mapping[str, Array]:
    used = np.zeros(len(draft.terms), bool)
    used[draft.term] = True
    ordinal = np.cumsum(used, dtype=np.int32) - 1
    term = ordinal[draft.term]
    terms = take_strings(draft.terms, np.flatnonzero(used))
    tf, doc_start = draft.tf, draft.doc_start
    invert.sort_terms(doc_start, term, tf)

    postings = len(term)
    term_block = invert.count_blocks(doc_start, term, len(terms))
    blocks = int(term_block[-1])
    block_window = np.empty(blocks, np.uint32)
    block_posting = np.empty(blocks + 1, np.int64)
    posting_doc, posting_tf, exact = np.empty(postings, np.uint16), np.empty(postings, np.uint8), np.empty(postings, np.int32)
    invert.invert(doc_start, term, tf, term_block, block_window, block_posting, posting_doc, posting_tf, exact)
    overflow = np.flatnonzero(posting_tf == invert.TF_LIMIT).astype(np.int64)

    room = int(np.minimum(np.diff(block_posting), invert.TF_LIMIT + 1).sum())
    block_skyline = np.empty(blocks + 1, np.int64)
    skyline_tf, skyline_length = np.empty(room, np.uint32), np.empty(room, np.uint32)
    pairs = invert.skylines(block_window, block_posting, posting_doc, exact, length, block_skyline, skyline_tf, skyline_length)

    forward_start = np.empty(len(doc_start), np.int64)
    forward = np.empty(10 * postings + 1, np.uint8)
    forward_bytes = invert.pack_forward(doc_start, term, tf, forward_start, forward)
    return {
        "term_hash": hashes(terms),
        "term_start": terms.start,
        "term_data": terms.data,
        "term_block": term_block,
        "block_window": block_window,
        "block_posting": block_posting,
        "block_skyline": block_skyline,
        "posting_doc": posting_doc,
        "posting_tf": posting_tf,
        "overflow_posting": overflow,
        "overflow_tf": exact[overflow].astype(np.uint32),
        "skyline_tf": skyline_tf[:pairs],
        "skyline_length": skyline_length[:pairs],
        "forward_start": forward_start,
        "forward": forward[:forward_bytes],
    }


def _filter_keys(draft: Draft) -> Mapping[str, Array]:
    order = np.lexsort((draft.key_doc, draft.key_number))
    used, count = np.unique(draft.key_number, return_counts=True)
    keys = take_strings(draft.keys, used)
    key_posting = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return {"key_start": keys.start.astype(np.uint64), "key_data": keys.data, "key_posting": key_posting, "key_doc": draft.key_doc[order].astype(np.uint32)}
