"""From documents to the sections of a segment file. Sealing a buffer and merging segments end here, in one path.

Sections (N documents in time order, T terms by ascending hash, B blocks, P postings, K filter keys):

    meta                JSON: documents, length (tokens), live_* = without the dead, namespace, analyzer fingerprint, largest_importance, newest_created,
                        sealed = base and slope of `best_worth`
    seq timestamp created_at int64 (N) | expires_at int64 (N), importance float64 (N): only where some record has one | length uint32 (N)
    deleted_seq deleted_at superseded_seq superseded_at int64 (N): the overlay at the time of writing, only where some document has one
    term_hash uint64 (T) | term_start int64 (T+1) | term_data uint8 | term_block int64 (T+1)
    block_window uint16 (B) | block_posting uint32 (B+1) | block_skyline uint32 (B+1) | skyline uint8: per block the classes that no other one beats
    posting_doc uint16 (P) | posting_class uint8 (P) | class_tf class_shortest uint32 (256) | overflow_posting overflow_tf uint32: the tf of the postings without a class
    best_worth uint8 (3T): what a term's tenth, hundredth and thousandth best posting is worth at least, in 255ths of its gain, at the default k1 and b and the average length here
    bitmap_term uint32 | bitmap uint64 | bitmap_rank uint16 | weak_classes uint32 (1): of terms in more than one document of 64, whole blocks of 512 documents a term. Words come
        in pairs: who has the term, and whose posting's class is not among the first `weak_classes`; ranks are of the blocks
    forward_start int64 (N+1) | forward uint8
    key_start uint64 (K+1) | key_data uint8 | key_posting int64 (K+1) | key_doc uint32
    id_hash uint64 (N, ascending) | id_doc uint32 (N)
    stored_data uint8 | stored_block_start uint64 | stored_block stored_start stored_length uint32 (N)

What is left of a segment that was spilled (`lexical/spilled.py`) lacks the sections of `HEAVY`, and has instead id_data uint8 | id_start int64 (N+1).
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels import invert
from agentir_ray.kernels.classes import TFS, best_worth
from agentir_ray.lexical.classes import choose_classes
from agentir_ray.lexical.query import Bm25
from agentir_ray.lexical.stored import StoredFields
from agentir_ray.lexical.strings import Strings, hashes, take_strings
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
T = TypeVar("T")
FORMAT_VERSION = 1
MAX_POSTINGS = 2**32 - 1
MIN_BITMAP_DOCUMENTS = 2_048
SPAN = 65_536  # documents of which one thread renames the terms
OVERLAY = ("deleted_seq", "deleted_at", "superseded_seq", "superseded_at")
HEAVY = (
    "posting_doc", "posting_class", "overflow_posting", "overflow_tf", "bitmap_term", "bitmap", "bitmap_rank",
    "stored_data", "stored_block_start", "stored_block", "stored_start", "stored_length",
)  # fmt: skip


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


def build_sections(draft: Draft, pool: Executor | None = None) -> dict[str, Array]:
    """The sections of the segment file, in the order in which they are written. The threads of `pool`, if given, help."""
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
        "sealed": sealed_scoring(length),
        "newest_created": int(columns["created_at"].max()) if documents else 0,
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
    sections |= _terms_and_postings(draft, length, pool)
    sections |= _filter_keys(draft)
    by_hash = np.argsort(draft.id_hash, kind="stable")
    sections |= {"id_hash": draft.id_hash[by_hash], "id_doc": by_hash.astype(np.uint32)}
    stored = draft.stored
    sections |= {"stored_data": stored.data, "stored_block_start": stored.block_start, "stored_block": stored.block, "stored_start": stored.start, "stored_length": stored.length}
    return sections


def at_once(pool: Executor | None, *calls: Callable[[], T]) -> list[T]:
    """The results of some calls, made in the threads of `pool` or one after the other."""
    if pool is None or len(calls) == 1:
        return [call() for call in calls]
    futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]


def _terms_and_postings(draft: Draft, length: Array, pool: Executor | None) -> Mapping[str, Array]:
    """Documents name their terms by ordinals of the file from here on, ascending, and the draft says so."""
    used = np.zeros(len(draft.terms), bool)
    used[draft.term] = True
    ordinal = np.cumsum(used, dtype=np.int32) - np.int32(1)
    terms = draft.terms = take_strings(draft.terms, np.flatnonzero(used))
    doc_start = draft.doc_start
    at_once(pool, *[partial(invert.rename_terms, doc_start, first, end, ordinal, draft.term, draft.tf) for first, end in _spans(len(doc_start) - 1)])
    postings, forward = at_once(pool, partial(_postings, draft, length), partial(_forward, draft))
    return {"term_hash": hashes(terms), "term_start": terms.start, "term_data": terms.data, **postings, **forward}


def _spans(documents: int) -> list[tuple[int, int]]:
    return [(first, min(first + SPAN, documents)) for first in range(0, documents, SPAN)]


def _postings(draft: Draft, length: Array) -> Mapping[str, Array]:
    doc_start, term, tf = draft.doc_start, draft.term, draft.tf
    if len(term) > MAX_POSTINGS:
        raise ValueError(f"{len(term):,} postings do not fit into one segment, which holds {MAX_POSTINGS:,}; build several")
    classes = choose_classes(doc_start, tf, length)
    term_block, block_window, block_posting = invert.list_blocks(doc_start, term, len(draft.terms))
    posting_doc, posting_class = np.empty(len(term), np.uint16), np.empty(len(term), np.uint8)
    overflown = np.count_nonzero(tf >= TFS)
    overflow_posting, overflow_tf = np.empty(overflown, np.int64), np.empty(overflown, np.uint32)
    invert.invert(doc_start, term, tf, length, classes.of, term_block, block_posting, posting_doc, posting_class, overflow_posting, overflow_tf)
    ascending = np.argsort(overflow_posting)
    block_skyline = np.empty(len(block_posting), np.int64)
    skyline = np.empty(int(np.minimum(np.diff(block_posting), TFS).sum()), np.uint8)
    worth = classes.least_worth(*sealed_scoring(length))
    best = np.zeros(3 * (len(term_block) - 1), np.uint8)
    best_worth(term_block, block_posting, posting_class, np.argsort(worth)[::-1].astype(np.uint8), worth, best)
    members = invert.skylines(block_posting, posting_class, classes.tf, classes.shortest, block_skyline, skyline)
    return {
        "term_block": term_block,
        "block_window": block_window,
        "block_posting": block_posting.astype(np.uint32),
        "block_skyline": block_skyline.astype(np.uint32),
        "skyline": skyline[:members],
        "posting_doc": posting_doc,
        "posting_class": posting_class,
        "class_tf": classes.tf,
        "class_shortest": classes.shortest,
        "best_worth": best,
        "overflow_posting": overflow_posting[ascending].astype(np.uint32),
        "overflow_tf": overflow_tf[ascending],
        **dense_bitmaps(term_block, block_window, block_posting, posting_doc, posting_class, classes.weak, len(doc_start) - 1),
    }


def sealed_scoring(length: Array) -> tuple[float, float]:
    """(base, slope) of the default BM25 at the average length of the segment: `best_worth` holds at these."""
    bm25, average = Bm25(), float(length.mean()) if length.any() else 1.0
    return bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / average


def dense_bitmaps(term_block: Array, block_window: Array, block_posting: Array, posting_doc: Array, posting_class: Array, weak_classes: int, documents: int) -> dict[str, Array]:
    """Bitmaps of the terms in more than one document of 64, none in a segment of few documents: a search among few postings is as fast.

    A bitmap says of each document whether it has the term, and whether its posting's class is among the first `weak_classes`, which bounds it better than the block does.
    """
    dense = np.flatnonzero(np.diff(block_posting[term_block]) * 64 > documents) if documents >= MIN_BITMAP_DOCUMENTS else np.empty(0, np.int64)
    words = -(-documents // 512) * 8
    bitmap, rank = np.zeros(2 * len(dense) * words, np.uint64), np.zeros(len(dense) * words // 8, np.uint16)
    invert.fill_bitmaps(dense, term_block, block_window, block_posting, posting_doc, posting_class, weak_classes, words, bitmap, rank)
    return {"bitmap_term": dense.astype(np.uint32), "bitmap": bitmap, "bitmap_rank": rank, "weak_classes": np.array([weak_classes], np.uint32)}


def _forward(draft: Draft) -> Mapping[str, Array]:
    start = np.empty(len(draft.doc_start), np.int64)
    forward = np.empty(invert.measure_forward(draft.doc_start, draft.term, draft.tf), np.uint8)
    invert.pack_forward(draft.doc_start, draft.term, draft.tf, start, forward)
    return {"forward_start": start, "forward": forward}


def _filter_keys(draft: Draft) -> Mapping[str, Array]:
    """Keys without a document are left out."""
    posting, docs = invert.group_pairs(draft.key_number, draft.key_doc, len(draft.keys), len(draft.columns["seq"]))
    used = np.flatnonzero(np.diff(posting))
    keys = take_strings(draft.keys, used)
    return {"key_start": keys.start.astype(np.uint64), "key_data": keys.data, "key_posting": posting[np.append(used, len(draft.keys))], "key_doc": docs}
