"""A search: the way of a query through a loaded namespace. No statement reaches the database.

analyse the query -> rank (`covering`: snapshot, score, top k), again where spilled segments had to be loaded -> read the hits' stored fields -> leave out what exceeds a token
budget -> learn from it (`observing`).
"""

from collections.abc import Callable
from pathlib import Path

import uuid_utils

from agentir_ray.engine.covering import Ranked, coverage_of, rank
from agentir_ray.engine.explain import explain
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.request import Request
from agentir_ray.engine.store import Store
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Bm25, Query, parse_query
from agentir_ray.lexical.search import Found
from agentir_ray.storage.codec import decode_body
from agentir_ray.types import Hit, Record, SearchResult

BYTES_A_TOKEN = 4  # the usual estimate for language models' tokens; `max_tokens` is a budget, not a count


def search(store: Store, namespace: Namespace, request: Request, bm25: Bm25) -> SearchResult:
    """The caller has acquired the namespace."""
    clock = store.clock
    started = clock.monotonic_ns()
    query = parse_query(namespace.analyzer, request.query)
    analysed = clock.monotonic_ns()
    deadline_ns = None if request.deadline_ns is None else started + request.deadline_ns
    answer, why_left = _rank(store, namespace, query, request, bm25, deadline_ns)
    snapshot, scores = answer.snapshot, answer.scoring
    ranked = clock.monotonic_ns()
    hits: list[Hit] = []
    tokens = 0
    for found in answer.best.listed(request.offset):
        score, seq, part, doc = found
        record = read_record(snapshot, part, doc, seq)
        if request.max_tokens is not None:
            needed = -(-len(record.text.encode()) // BYTES_A_TOKEN)
            if tokens + needed > request.max_tokens:
                continue  # one long text must not keep out the shorter ones behind it
            tokens += needed
        hits.append(Hit(record, score, explain(query, snapshot, scores, bm25, request, Found(*found), record) if request.explain else None))
    read = clock.monotonic_ns()
    timings = {"analyse": (analysed - started) / 1e3, "rank": (ranked - analysed) / 1e3, "read": (read - ranked) / 1e3, "total": (read - started) / 1e3}
    result = SearchResult(tuple(hits), coverage_of(answer, request, why_left), ("bm25",), timings, str(uuid_utils.uuid7()), request.time_range)
    if store.observer is not None:
        store.observer.searched(namespace, result.query_id, query, request, bm25, answer)
    return result


def _rank(store: Store, namespace: Namespace, query: Query, request: Request, bm25: Bm25, deadline_ns: int | None) -> tuple[Ranked, str]:
    """The answer, and why spilled segments that it needs could not be loaded."""
    expired: Callable[[], bool] | None = None
    if deadline_ns is not None:
        expired = lambda: store.clock.monotonic_ns() > deadline_ns  # noqa: E731
    answer = rank(namespace, query, request, bm25, expired)
    why_left = ""
    loaded: set[Path] = set()
    while answer.missing and not why_left:
        why_left = store.load_cold(namespace, answer.missing, deadline_ns)
        loaded.update(segment.path for segment in answer.missing)
        answer = rank(namespace, query, request, bm25, expired)
        if not why_left and any(segment.path in loaded for segment in answer.missing):
            why_left = "they were spilled again at once: the memory budget is too small for what is asked"
    return answer, why_left


def read_record(snapshot: Snapshot, part: int, doc: int, seq: int) -> Record:
    segments = snapshot.segments
    if part < len(segments):
        segments[part].answers += 1.0
        return decode_body(segments[part].stored(doc), seq)
    return decode_body(snapshot.buffers[part - len(segments)].stored(doc), seq)
