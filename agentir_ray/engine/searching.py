"""A search: the way of a query through a loaded namespace. No statement reaches the log's database.

analyse the query, and encode it where the mode asks for vectors (`modes`) -> rank (`covering`: snapshot, score, top k), again where spilled segments had to be loaded -> rerank, if
asked for -> read the hits' stored fields -> leave out what exceeds a token budget -> learn from it (`observing`).
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import uuid_utils

from agentir_ray.engine.asker import Asker, EncoderExchangedError
from agentir_ray.engine.covering import Ranked, coverage_of, rank
from agentir_ray.engine.modes import LeftS, asker_for
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.query_encoding import TooLateError
from agentir_ray.engine.request import BM25, MAXSIM, PLAIN, Request
from agentir_ray.engine.reranking import Reranked, rerank
from agentir_ray.engine.store import Store
from agentir_ray.errors import EncoderMismatchError
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Bm25, Query, parse_query
from agentir_ray.lexical.search import Expired, Found
from agentir_ray.storage.codec import decode_body
from agentir_ray.types import ChannelScore, Explanation, FusedExplanation, Hit, Record, SearchResult

BYTES_A_TOKEN = 4  # the usual estimate for language models' tokens; `max_tokens` is a budget, not a count
LOOKS = 8  # an exchange of encoders costs a search one or two


def search(store: Store, namespace: Namespace, request: Request, bm25: Bm25) -> SearchResult:
    """The caller has acquired the namespace."""
    clock = store.clock
    started = clock.monotonic_ns()
    query = parse_query(namespace.analyzer, request.query)
    analysed = clock.monotonic_ns()
    deadline_ns = None if request.deadline_ns is None else started + request.deadline_ns
    expired: Expired | None = None
    if deadline_ns is not None:
        expired = lambda: clock.monotonic_ns() > deadline_ns  # noqa: E731
    left_s = None if deadline_ns is None else lambda: (deadline_ns - clock.monotonic_ns()) / 1e9
    answer, why_left, encoded, late = _rank(store, namespace, query, request, bm25, analysed, deadline_ns, expired, left_s)
    snapshot, best = answer.snapshot, answer.best
    ranked = clock.monotonic_ns()
    reranked = None
    if request.reranking is not None and not (expired is not None and expired()):
        with suppress(TooLateError):
            reranked = rerank(store, namespace, request, answer, lambda part, doc, seq: read_record(snapshot, part, doc, seq), deadline_ns)
            best = reranked.best
    again = clock.monotonic_ns()
    hits: list[Hit] = []
    tokens = 0
    for found in best.listed(request.offset)[: request.k]:
        score, seq, part, doc = found
        record = read_record(snapshot, part, doc, seq)
        if request.max_tokens is not None:
            needed = -(-len(record.text.encode()) // BYTES_A_TOKEN)
            if tokens + needed > request.max_tokens:
                continue  # one long text must not keep out the shorter ones behind it
            tokens += needed
        hits.append(Hit(record, score, _explained(answer, reranked, Found(*found), record) if request.explain else None))
    read = clock.monotonic_ns()
    timings = {"analyse": (analysed - started) / 1e3}
    if request.mode not in PLAIN:
        timings["encode"] = (encoded - analysed) / 1e3
    timings["rank"] = (ranked - encoded) / 1e3
    if reranked is not None:
        timings["rerank"] = (again - ranked) / 1e3
    timings |= {"read": (read - again) / 1e3, "total": (read - started) / 1e3}
    stages = answer.answers.stages + (() if reranked is None else (_name_of(request),))
    coverage = coverage_of(answer, request, why_left)
    short = _what_was_short(request, late, reranked)
    if short:
        coverage = replace(coverage, exact=False, reason=f"{coverage.reason}; {short}")
    result = SearchResult(tuple(hits), coverage, stages, timings, str(uuid_utils.uuid7()), request.time_range)
    if store.observer is not None:
        if request.mode in PLAIN and reranked is None:
            store.observer.searched(namespace, result.query_id, query, request, bm25, answer)
        else:
            store.observer.remember(namespace, result.query_id, answer)
    return result


def _rank(
    store: Store, namespace: Namespace, query: Query, request: Request, bm25: Bm25, began: int, deadline_ns: int | None, expired: Expired | None, left_s: LeftS | None
) -> tuple[Ranked, str, int, tuple[str, ...]]:
    """The answer, why spilled segments that it needs could not be loaded, when the query was encoded, and the channels that there was no time for."""
    for _ in range(LOOKS):
        asker, late = asker_for(store, namespace, query, request, bm25, left_s)
        encoded = began if request.mode in PLAIN else store.clock.monotonic_ns()
        try:
            answer, why_left = _rank_by(store, namespace, asker, request, deadline_ns, expired)
            return answer, why_left, encoded, late
        except EncoderExchangedError:
            continue  # `reembed` is over: the next look finds all of the new encoder
    raise EncoderMismatchError(
        f"a sidecar of namespace {namespace.name} is of another encoder than its channel, however often one looks; call again if encoders are being exchanged, and else "
        "open the store anew, which builds it again; mode='bm25' serves meanwhile"
    )


def _rank_by(store: Store, namespace: Namespace, asker: Asker, request: Request, deadline_ns: int | None, expired: Expired | None) -> tuple[Ranked, str]:
    answer = rank(namespace, asker, request, expired)
    why_left = ""
    loaded: set[Path] = set()
    while answer.missing and not why_left:
        why_left = store.load_cold(namespace, answer.missing, deadline_ns)
        loaded.update(segment.path for segment in answer.missing)
        answer = rank(namespace, asker, request, expired)
        if not why_left and any(segment.path in loaded for segment in answer.missing):
            why_left = "they were spilled again at once: the memory budget is too small for what is asked"
    return answer, why_left


def _what_was_short(request: Request, late: tuple[str, ...], reranked: Reranked | None) -> str:
    """What there was no time for."""
    reasons = [f"there was no time to encode the query for {', '.join(late)}"] if late else []
    if request.reranking is not None and reranked is None:
        reasons.append("there was no time to rerank")
    elif reranked is not None and reranked.unreached:
        reasons.append(f"there was no time to rerank {reranked.unreached} of the best")
    return "; ".join(reasons)


def _name_of(request: Request) -> str:
    assert request.reranking is not None
    reranker = request.reranking.reranker
    return MAXSIM if reranker == MAXSIM else type(reranker).__name__


def _explained(answer: Ranked, reranked: Reranked | None, found: Found, record: Record) -> Explanation | FusedExplanation:
    explanation = answer.answers.explain(found, record)
    if reranked is None:
        return explanation
    if isinstance(explanation, Explanation):
        channel = ChannelScore(BM25, 1.0, explanation.bm25, None, None, explanation.bm25)
        own, first = explanation.bm25, explanation.score
        explanation = FusedExplanation((channel,), 0.0, own, None, explanation.recency, explanation.importance, first, None, first)
    return replace(explanation, reranked=reranked.second.get(found.seq), score=found.score)


def read_record(snapshot: Snapshot, part: int, doc: int, seq: int) -> Record:
    segments = snapshot.segments
    if part < len(segments):
        segments[part].answers += 1.0
        return decode_body(segments[part].stored(doc), seq)
    return decode_body(snapshot.buffers[part - len(segments)].stored(doc), seq)
