"""A second look at the best of an answer, by a `Reranker`, within the deadline.

The final score is (1 - weight) * first + weight * second, each divided by its largest above the least that it can be, so that both lie in [0, 1]. What the reranker did not reach
keeps its first part alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.engine.channel import TOKENS
from agentir_ray.engine.covering import Ranked
from agentir_ray.engine.modes import channel_and_encoder
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.request import DENSE, MAXSIM, Request
from agentir_ray.engine.store import Store
from agentir_ray.engine.vector_codec import unpack_tokens
from agentir_ray.errors import EncoderMissingError, InvalidInputError
from agentir_ray.lexical.search import TopK
from agentir_ray.retrieval.fusion import best_first, normalised
from agentir_ray.retrieval.maxsim import MaxSim
from agentir_ray.retrieval.reranker import Candidate, Reranker
from agentir_ray.types import Record

Float64s = npt.NDArray[np.float64]
ReadText = Callable[[int, int, int], Record]  # (part, document, sequence number)


class Reranked(NamedTuple):
    """The answer in its new order; by sequence number what the reranker gave, normalised; and how many it did not reach in time."""

    best: TopK
    second: dict[int, float]
    unreached: int


def rerank(store: Store, namespace: Namespace, request: Request, ranked: Ranked, read: ReadText, deadline_ns: int | None) -> Reranked:
    """Raises EncoderMissingError where MaxSim is asked for and no encoder gives the vectors of tokens, TooLateError where it does not give those of the query in time, and
    InvalidInputError where a caller's reranker gives what are no scores.
    """
    reranking = request.reranking
    assert reranking is not None
    best = ranked.best
    found = best.listed()[: reranking.depth]
    reranker, tokens = _reranker(store, namespace, request, [seq for _, seq, _, _ in found], deadline_ns)
    candidates = [Candidate(read(part, doc, seq).text, tokens.get(seq)) for _, seq, part, doc in found]
    scores = _checked(reranker, reranker.rerank(request.query, candidates, deadline_ns, store.clock.monotonic_ns), len(candidates)) if candidates else np.empty(0)
    known = ~np.isnan(scores)
    lowest = reranker.lowest if reranker.lowest is not None else float(np.min(scores[known], initial=np.inf))
    second = normalised(scores, lowest, float(np.max(scores[known], initial=-np.inf)))
    floor = -1.0 if ranked.answers.stages == (DENSE,) else 0.0  # the words may have answered in its place
    first = normalised(best.score, floor, float(best.score[0]) if len(best.score) else -np.inf)
    mixed: Float64s = (1.0 - reranking.weight) * first
    mixed[: len(second)] += reranking.weight * second
    order = best_first(mixed, best.seq)
    kept = TopK(mixed[order], best.seq[order], best.ref[order], best.skipped, best.left)
    return Reranked(kept, {seq: float(value) for (_, seq, _, _), value, there in zip(found, second, known, strict=True) if there}, int((~known).sum()))


def _checked(reranker: Reranker, given: Any, candidates: int) -> Float64s:
    """What a caller's reranker gave is not trusted: a number that is not finite would be in every score."""
    try:
        scores: Float64s = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        scores = np.empty((0, 0))
    if scores.shape != (candidates,) or np.isinf(scores).any():
        raise InvalidInputError(f"the reranker {type(reranker).__name__} did not give one number for each of {candidates} candidates; give NaN for those that it did not come to")
    return scores


def _reranker(store: Store, namespace: Namespace, request: Request, seqs: Sequence[int], deadline_ns: int | None) -> tuple[Reranker, dict[int, npt.NDArray[np.float32]]]:
    """The reranker, and of the records the vectors of their tokens, as far as they are kept."""
    assert request.reranking is not None
    if request.reranking.reranker != MAXSIM:
        given: Reranker = request.reranking.reranker
        return given, {}
    if not store.encoders.gives_tokens:
        raise EncoderMissingError("rerank='maxsim' needs an encoder that gives the vectors of tokens; open the store with encoder='minilm-int8', say, or leave rerank out")
    channel, encoder = channel_and_encoder(store, namespace, TOKENS)
    if channel is None:
        encoder = store.encoders.dense
    patience_s = None if deadline_ns is None else (deadline_ns - store.clock.monotonic_ns()) / 1e9
    query = store.query_encodings.late(encoder, request.query, patience_s).tokens[0]
    held = {} if channel is None else store.vectors.values(namespace.number)(TOKENS, channel.encoder, seqs)
    return MaxSim(encoder, query), {seq: unpack_tokens(data) for seq, data in held.items() if data}
