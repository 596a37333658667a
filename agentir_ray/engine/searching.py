"""A search: the way of a query through a loaded namespace. No statement reaches the database.

analyse the query -> snapshot (terms' statistics and places, under the one short lock) -> score -> top k -> read the hits' stored fields -> leave out what exceeds a token budget.
"""

from collections.abc import Callable

import uuid_utils

from agentir_ray.clock import Clock
from agentir_ray.engine.explain import explain
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.request import Request
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Bm25, parse_query, scoring
from agentir_ray.lexical.search import TopK, top_k
from agentir_ray.storage.codec import decode_body
from agentir_ray.types import Coverage, Hit, Record, SearchResult

BYTES_A_TOKEN = 4  # the usual estimate for language models' tokens; `max_tokens` is a budget, not a count


def search(namespace: Namespace, request: Request, bm25: Bm25, clock: Clock) -> SearchResult:
    started = clock.monotonic_ns()
    query = parse_query(namespace.analyzer, request.query)
    analysed = clock.monotonic_ns()
    snapshot = namespace.index.snapshot(query.terms, request.expression)
    scores = scoring(query, snapshot.statistics, bm25)
    expired: Callable[[], bool] | None = None
    if request.deadline_ns is not None:
        deadline = started + request.deadline_ns
        expired = lambda: clock.monotonic_ns() > deadline  # noqa: E731
    best = top_k(snapshot, scores, request.k + request.offset, request.visibility, request.expression, request.priors, request.min_score, expired)
    ranked = clock.monotonic_ns()
    hits: list[Hit] = []
    tokens = 0
    for found in best.found[request.offset :]:
        record = read_record(snapshot, found.part, found.doc, found.seq)
        if request.max_tokens is not None:
            needed = -(-len(record.text.encode()) // BYTES_A_TOKEN)
            if tokens + needed > request.max_tokens:
                continue  # one long text must not keep out the shorter ones behind it
            tokens += needed
        hits.append(Hit(record, found.score, explain(query, snapshot, scores, bm25, request, found, record) if request.explain else None))
    read = clock.monotonic_ns()
    timings = {"analyse": (analysed - started) / 1e3, "rank": (ranked - analysed) / 1e3, "read": (read - ranked) / 1e3, "total": (read - started) / 1e3}
    return SearchResult(tuple(hits), _coverage(request, best), ("bm25",), timings, str(uuid_utils.uuid7()), request.time_range)


def read_record(snapshot: Snapshot, part: int, doc: int, seq: int) -> Record:
    segments = len(snapshot.segments)
    body = snapshot.segments[part].stored(doc) if part < segments else snapshot.buffers[part - segments].stored(doc)
    return decode_body(body, seq)


def _coverage(request: Request, best: TopK) -> Coverage:
    if best.not_searched:
        return Coverage(request.coverage, best.searched, best.skipped_by_bound, best.not_searched, mass=None, exact=False, reason="the deadline cut the search short")
    reason = "everything was searched, or skipped because it could not reach the answer"
    if request.coverage not in ("exact", "auto"):
        reason = f"{reason}; no recency prior is supported by observations yet"
    return Coverage(request.coverage, best.searched, best.skipped_by_bound, reason=reason)
