"""From sparse vectors to the sections of a weight sidecar: stored-weight postings over the documents of one segment.

A learned sparse encoder gives each document some terms with weights; the score of a document is the sum of q_t * w over the query's terms. That is a posting list like any other,
so it has the blocks, windows, bitmaps and term dictionary of a segment (`lexical/builder.py`), and the same kernel reads it. Only what a posting adds is stored, not computed.

Sections (T terms by ascending hash, B blocks, P postings):

    meta                JSON: format, encoding, scale, the identity of the encoder, and the stamp of the segment: namespace, documents, seq_crc = CRC-32 of its `seq`
    encoded uint8       (documents) 1 where the document has a vector, be it an empty one
    term_hash uint64 (T) | term_start int64 (T+1) | term_data uint8 | term_block int64 (T+1)
    block_window uint16 (B) | block_posting uint32 (B+1) | block_skyline uint32 (B+1) | skyline uint8 (B): per block the class of its largest weight
    posting_doc uint16 (P) | posting_class uint8 (P) | class_weight float32 (256): no weight of the class is larger | posting_u16 uint16 (P) or posting_f32 float32 (P)
    bitmap_term uint32 | bitmap uint64 | bitmap_rank uint16 | weak_classes uint32 (1): as in a segment

Classes ascend with the weight. In u8 a posting's class is its code, and there is nothing beside it.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.errors import InvalidInputError
from agentir_ray.kernels.invert import list_blocks, place_postings
from agentir_ray.lexical.builder import MAX_POSTINGS, dense_bitmaps
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.strings import Strings, hashes, pack_strings, take_strings

Array = npt.NDArray[Any]
Encoding = Literal["u8", "u16", "f32"]
FORMAT_VERSION = 1
LARGEST_CODE = {"u8": 255, "u16": 65_535}
CLASSES = 256
SMALLEST_WEIGHT, LARGEST_WEIGHT = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)  # of a scale and of a query; the kernel adds up bounds in float32


class SparseVectors(NamedTuple):
    """One vector a document: term[doc_start[d]:doc_start[d + 1]] (numbers of `terms`, no number twice) and as many weights, in any order.

    doc_start int64 (N + 1), term int32 (P), weight float (P); `terms` are distinct UTF-8 strings in any order, used or not. An entry of weight 0 is as good as none.
    """

    doc_start: Array
    term: Array
    weight: Array
    terms: Strings


def pack_vectors(documents: Iterable[Mapping[str, float]]) -> SparseVectors:
    """From the weights by term of each document, in the segment's order."""
    number: dict[str, int] = {}
    start, term = [0], list[int]()
    weight: list[float] = []
    for vector in documents:
        term += [number.setdefault(name, len(number)) for name in vector]
        weight += vector.values()
        start.append(len(term))
    terms = pack_strings([name.encode(errors="surrogatepass") for name in number])
    return SparseVectors(np.array(start, np.int64), np.array(term, np.int32), np.array(weight, np.float64), terms)


def quantise(weight: Array, encoding: Literal["u8", "u16"]) -> tuple[Array, float]:
    """(weights float64, scale): each weight as the nearest multiple of a scale at which the largest one is the largest code; what is below half the scale becomes 0."""
    largest = float(np.max(weight, initial=0.0))
    scale = largest / LARGEST_CODE[encoding] if largest > 0.0 else 1.0
    return np.rint(np.asarray(weight, np.float64) / scale) * scale, scale


def stamp(segment: Segment) -> dict[str, Any]:
    """What tells a segment's documents from those of any other."""
    return {"namespace": segment.namespace, "documents": segment.documents, "seq_crc": zlib.crc32(np.ascontiguousarray(segment.array("seq")).data)}


def build_weights(vectors: SparseVectors, encoding: Encoding, stamped: Mapping[str, Any], scale: float = 1.0, encoder: str = "", encoded: Array | None = None) -> dict[str, Array]:
    """The sections of a sidecar, for `sections.encode_sections`. `stamped` is the segment's `stamp`, `encoder` the identity of what made the vectors.

    `encoded`, bool (documents), tells a document whose vector is empty from one that has none; by default all have one.

    u8 and u16 keep weight / scale, which must be whole and at most 255 or 65,535, and give back exactly code * scale (float64); f32 keeps the nearest float32, without a scale.
    Entries of weight 0 are left out. Raises InvalidInputError, naming the first entry that cannot be kept: negative, not finite, out of range, no multiple, a term twice.
    """
    documents = int(stamped["documents"])
    _check_shape(vectors, documents)
    value = _encode(vectors, encoding, scale)
    entries = np.flatnonzero(value)
    value = value[entries]
    doc_start = np.searchsorted(entries, vectors.doc_start).astype(np.int64)
    if len(entries) > MAX_POSTINGS:
        raise InvalidInputError(f"{len(entries):,} weights do not fit into one sidecar, which holds {MAX_POSTINGS:,}; build smaller segments")
    term, terms, term_hash = _by_hash(vectors, entries)

    term_block, block_window, block_posting = list_blocks(doc_start, term, len(terms))
    posting_doc, source = np.empty(len(term), np.uint16), np.empty(len(term), np.int64)
    place_postings(doc_start, term, term_block, block_posting, posting_doc, source)
    _check_distinct(vectors, entries, posting_doc, block_posting, source)
    value = value[source]
    posting_class, largest = (value.astype(np.uint8), np.arange(CLASSES)) if encoding == "u8" else _classes(value)
    weak = int(np.median(posting_class)) + 1 if len(value) else 0  # the bitmaps tell the lower half of the weights from the upper
    class_weight = np.zeros(CLASSES, np.float32)
    class_weight[: len(largest)] = _round_up(largest.astype(np.float64) * (1.0 if encoding == "f32" else scale))
    meta = {"format": FORMAT_VERSION, "encoding": encoding, "scale": 1.0 if encoding == "f32" else float(scale), "encoder": encoder, **stamped}
    return {
        "meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8),
        "encoded": np.ones(documents, np.uint8) if encoded is None else encoded.astype(np.uint8),
        "term_hash": term_hash,
        "term_start": terms.start,
        "term_data": terms.data,
        "term_block": term_block,
        "block_window": block_window,
        "block_posting": block_posting.astype(np.uint32),
        "block_skyline": np.arange(len(block_posting), dtype=np.uint32),
        "skyline": np.maximum.reduceat(posting_class, block_posting[:-1]) if len(value) else np.empty(0, np.uint8),
        "posting_doc": posting_doc,
        "posting_class": posting_class,
        "class_weight": class_weight,
        **({} if encoding == "u8" else {f"posting_{encoding}": value}),
        **dense_bitmaps(term_block, block_window, block_posting, posting_doc, posting_class, weak, documents),
    }


def _check_shape(vectors: SparseVectors, documents: int) -> None:
    doc_start, term = vectors.doc_start, vectors.term
    if len(doc_start) != documents + 1:
        raise InvalidInputError(f"{len(doc_start) - 1:,} vectors do not fit a segment of {documents:,} documents; give one each, empty where there is none")
    if len(term) != len(vectors.weight) or doc_start[0] != 0 or doc_start[-1] != len(term) or (np.diff(doc_start) < 0).any():
        raise InvalidInputError(f"doc_start must ascend from 0 to the number of terms ({len(term):,}) and of weights ({len(vectors.weight):,})")
    outside = np.flatnonzero((term < 0) | (term >= len(vectors.terms)))
    if len(outside):
        raise InvalidInputError(f"entry {outside[0]:,} has the term number {term[outside[0]]}; there are {len(vectors.terms):,} terms, counted from 0")


def _encode(vectors: SparseVectors, encoding: Encoding, scale: float) -> Array:
    """The codes (uint8, uint16) or float32 weights, 0 where the weight is."""
    weight = np.asarray(vectors.weight, np.float64)
    _refuse(vectors, ~np.isfinite(weight), "is not finite")
    _refuse(vectors, weight < 0.0, "is negative")
    if encoding == "f32":
        with np.errstate(over="ignore", under="ignore"):
            single = weight.astype(np.float32)
        _refuse(vectors, np.isinf(single) | ((single == 0.0) & (weight != 0.0)), "is outside the range of float32")
        return single
    if encoding not in LARGEST_CODE:
        raise InvalidInputError(f"there is no encoding {encoding!r} of weights; choose one of u8, u16, f32")
    most = LARGEST_CODE[encoding]
    if not SMALLEST_WEIGHT <= scale <= LARGEST_WEIGHT / most:
        raise InvalidInputError(f"the scale of {encoding} must lie between {SMALLEST_WEIGHT:.3g} and {LARGEST_WEIGHT / most:.3g}, not {scale}")
    _refuse(vectors, weight > most * scale, f"is more than {most:,} times the scale {scale}: choose a larger scale, or u16 or f32")
    code = np.rint(weight / scale)
    _refuse(vectors, code * scale != weight, f"is no multiple of the scale {scale}: `quantise` rounds weights to multiples")
    return code.astype(np.uint8 if encoding == "u8" else np.uint16)


def _refuse(vectors: SparseVectors, bad: Array, why: str) -> None:
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidInputError(f"the weight {vectors.weight[i]} of {_entry(vectors, i)} {why}")


def _entry(vectors: SparseVectors, i: int) -> str:
    document = int(np.searchsorted(vectors.doc_start, i, "right")) - 1
    return f"the term {vectors.terms.get(int(vectors.term[i])).decode(errors='replace')!r} in document {document:,}"


def _by_hash(vectors: SparseVectors, entries: Array) -> tuple[Array, Strings, Array]:
    """(the entries' terms renamed, the terms that have entries by ascending hash, their hashes); terms of one hash in the order of their bytes."""
    used = np.zeros(len(vectors.terms), bool)
    term = vectors.term[entries]
    used[term] = True
    chosen = np.flatnonzero(used)
    term_hash = hashes(take_strings(vectors.terms, chosen))
    order = np.argsort(term_hash, kind="stable")
    if (term_hash[order[1:]] == term_hash[order[:-1]]).any():
        order = np.array(sorted(order.tolist(), key=lambda i: (int(term_hash[i]), vectors.terms.get(int(chosen[i])))), np.int64)
    terms, term_hash = take_strings(vectors.terms, chosen[order]), term_hash[order]
    for i in np.flatnonzero(term_hash[1:] == term_hash[:-1]).tolist():
        if terms.get(i) == terms.get(i + 1):
            raise InvalidInputError(f"the term {terms.get(i).decode(errors='replace')!r} has several numbers; give each term one")
    ordinal = np.empty(len(vectors.terms), np.int32)
    ordinal[chosen[order]] = np.arange(len(order), dtype=np.int32)
    return ordinal[term], terms, term_hash


def _check_distinct(vectors: SparseVectors, entries: Array, posting_doc: Array, block_posting: Array, source: Array) -> None:
    """A document has a term once: in a block no document follows itself."""
    same = np.zeros(len(posting_doc), bool)
    same[1:] = posting_doc[1:] == posting_doc[:-1]
    same[block_posting[:-1]] = False
    if same.any():
        raise InvalidInputError(f"{_entry(vectors, int(entries[source[same].min()]))} has several weights; add them up, or keep the largest")


def _classes(value: Array) -> tuple[Array, Array]:
    """(uint8: the class of each value, the largest value of each class): ranges of about as many postings each, or of one value where there are no more values than classes."""
    largest, count = np.unique(value, return_counts=True)
    if len(largest) > CLASSES:
        up_to = np.cumsum(count)
        largest = largest[np.unique(np.searchsorted(up_to, np.arange(1, CLASSES + 1) * up_to[-1] // CLASSES))]
    return np.searchsorted(largest, value).astype(np.uint8), largest


def _round_up(value: Array) -> Array:
    """float64 to the next float32 that is not below."""
    nearest = value.astype(np.float32)
    return np.where(nearest < value, np.nextafter(nearest, np.float32(np.inf)), nearest)
