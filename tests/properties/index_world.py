"""What the tests of the index share: records as documents, segments as files, questions put to the index and to the oracle."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray.lexical.builder import Draft, build_sections
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.document import IndexedDocument
from agentir_ray.lexical.filters import EVERYTHING, document_keys, parse_filter
from agentir_ray.lexical.index import Index, Snapshot
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.lexical.query import Bm25, Priors, Query, scoring
from agentir_ray.lexical.search import Found, TopK, Visibility, top_k
from agentir_ray.lexical.segment import Segment
from agentir_ray.sections import encode_sections
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US, Record
from tests.naive import FOREVER, NaiveIndex, Question


def id_of(stored: bytes) -> str:
    return stored.split(b"\0")[0].decode()


def stored_of(record: Record, seq: int) -> bytes:
    return b"%s\0%d\0%s" % (record.id.encode(), seq, record.text.encode())


def document_of(record: Record, seq: int) -> IndexedDocument:
    counted = Counter(record.text.split())
    return IndexedDocument(
        record.id,
        record.timestamp_us,
        record.created_at_us,
        NEVER_US if record.expires_at_us is None else record.expires_at_us,
        record.importance,
        record.supersedes,
        sum(counted.values()),
        tuple(counted),
        np.fromiter(counted.values(), np.int32, len(counted)),
        document_keys(session=record.session, role=record.role, supersedes=record.supersedes, metadata=record.metadata),
        stored_of(record, seq),
    )


def write_segment(draft: Draft, path: Path, cache: SegmentCache | None = None) -> Segment | None:
    """The draft through a file; None when nothing is left in it."""
    if not len(draft.columns["seq"]):
        return None
    path.write_bytes(b"".join(encode_sections(build_sections(draft))))
    return Segment(path, SegmentCache() if cache is None else cache, id_of)


def ask(snapshot: Snapshot, question: Question) -> TopK:
    query = Query(tuple(question.terms), tuple(question.weights))
    now = question.now_us if question.as_of_us is None else question.as_of_us
    visibility = Visibility(
        now,
        NEVER_US - 1 if question.as_of_us is None else question.as_of_us,
        MIN_TIME_US if question.since_us == -FOREVER else int(question.since_us),
        MAX_TIME_US if question.until_us == FOREVER else int(question.until_us),
    )
    priors = Priors(question.recency_weight, question.tau_us, question.importance_weight)
    expression = parse_filter(question.where) if question.where else EVERYTHING
    return top_k(
        snapshot, scoring(query, snapshot.statistics, Bm25(question.k1, question.b)), question.k, visibility, expression=expression, priors=priors, min_score=question.min_score
    )


def search(index: Index, question: Question) -> tuple[Snapshot, list[Found]]:
    snapshot = index.snapshot(tuple(question.terms), parse_filter(question.where) if question.where else EVERYTHING)
    return snapshot, ask(snapshot, question).found


def check_answer(index: Index, oracle: NaiveIndex, question: Question) -> None:
    """Same records, same scores to the last bit, same order, same statistics, and the stored bytes of each hit."""
    snapshot, found = search(index, question)
    assert tuple(snapshot.statistics) == oracle.statistics(question.terms)
    assert [(hit.seq, hit.score) for hit in found] == oracle.search(question)
    by_seq = {version.seq: version.record for version in oracle.versions}
    for hit in found:
        segments = len(snapshot.segments)
        stored = snapshot.segments[hit.part].stored(hit.doc) if hit.part < segments else snapshot.buffers[hit.part - segments].stored(hit.doc)
        assert stored == stored_of(by_seq[hit.seq], hit.seq)


def check_records(index: Index, oracle: NaiveIndex, ids: Sequence[str]) -> None:
    for id in ids:
        assert [int(place.part.column("seq")[place.doc]) for place in index.find(id)] == [version.seq for version in oracle.find(id)]
        current, expected = index.current(id), oracle.current(id)
        assert (current is None) == (expected is None)
        if current is not None and expected is not None:
            assert int(current.part.column("seq")[current.doc]) == expected.seq


def fates(index: Index) -> dict[int, tuple[int, ...]]:
    """By sequence number, of every version that was not erased: when it was deleted, and when superseded."""
    found = {}
    for part in index.parts:
        for doc, seq in enumerate(part.column("seq").tolist()):
            fate = tuple(int(column[doc]) if len(column) else NEVER_US for column in part.overlay.now)
            if fate[1] != ERASED_AT:
                assert seq not in found, "a version came twice"
                found[seq] = fate
    return found


def through_json(changes: Any) -> list[Any]:
    """As the manifest keeps them."""
    return [tuple(change) for change in json.loads(json.dumps(changes))]
