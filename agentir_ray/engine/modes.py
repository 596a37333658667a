"""From a search's mode to what is asked: which channels, by which encoders, with which weights."""

from collections.abc import Callable
from typing import Any

from agentir_ray.engine.asker import Asker, Channelled
from agentir_ray.engine.by_vectors import ByVectors
from agentir_ray.engine.by_weights import ByWeights
from agentir_ray.engine.by_words import ByWords
from agentir_ray.engine.channel import DENSE, SPARSE, Channel
from agentir_ray.engine.fusing import ByChannels
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.query_encoding import TooLateError
from agentir_ray.engine.request import BM25, CHANNELS, MAXSIM, PLAIN, Request
from agentir_ray.engine.store import Store
from agentir_ray.errors import EncoderMismatchError, EncoderMissingError
from agentir_ray.lexical.query import Bm25, Query

LeftS = Callable[[], float]  # the seconds until the deadline
PATIENCE = 0.8  # of what is left is given to an encoder, so that what others gave in time can still be searched by


def asker_for(store: Store, namespace: Namespace, query: Query, request: Request, bm25: Bm25, left_s: LeftS | None) -> tuple[Asker, tuple[str, ...]]:
    """What to ask, and the channels that there was no time to encode the query for. Where that is all of them, the words are asked: they always answer.

    Raises EncoderMissingError where a channel that was asked for has no encoder, EncoderMismatchError where its vectors are another one's.
    """
    if request.mode in PLAIN:
        return ByWords(query, bm25, request), ()
    words = ByWords(query, bm25, request, always=True)
    make: dict[str, Callable[[], Channelled]] = {
        BM25: lambda: words,
        SPARSE: lambda: _by_weights(store, namespace, request, left_s),
        DENSE: lambda: _by_vectors(store, namespace, request, left_s),
    }
    if request.mode in (DENSE, SPARSE):
        try:
            alone: Asker = make[request.mode]()  # type: ignore[assignment]
        except TooLateError:
            return words, (request.mode,)
        return alone, ()
    weights = _weights(store, namespace, request)
    channels: list[Channelled] = []
    late = []
    for name in weights:
        try:
            channels.append(make[name]())
        except TooLateError:
            late.append(name)
    if not channels:
        return ByChannels([words], [1.0], request), tuple(late)
    return ByChannels(channels, [weights[channel.name] for channel in channels], request), tuple(late)


def _weights(store: Store, namespace: Namespace, request: Request) -> dict[str, float]:
    """By channel, the cheapest first; those of weight 0 are not asked."""
    given = request.fusion.weights
    if given is not None:
        return {name: given[name] for name in CHANNELS if given.get(name)}
    there = [name for name in CHANNELS if name == BM25 or name in namespace.channels or store.encoders.of(name) is not None]
    if len(there) == 1:
        raise EncoderMissingError(
            f"mode {request.mode!r} fuses channels, and there is bm25 alone: open the store with encoder= or sparse_encoder= (`agentir doctor` shows which are installed), "
            "or search with mode='bm25'"
        )
    return dict.fromkeys(there, 1.0)


def channel_and_encoder(store: Store, namespace: Namespace, name: str) -> tuple[Channel | None, Any]:
    """A channel, None where nothing has vectors yet, and the encoder to search it by, None where there is none. Raises EncoderMismatchError."""
    while True:
        channel = namespace.channels.get(name)
        try:
            return channel, store.encoders.of(name) if channel is None else store.encoders.for_identity(name, channel.encoder)
        except EncoderMismatchError:
            if namespace.channels.get(name) is channel:  # else `reembed` ended between the two looks
                raise


def _by_vectors(store: Store, namespace: Namespace, request: Request, left_s: LeftS | None) -> ByVectors:
    channel, encoder = channel_and_encoder(store, namespace, DENSE)
    if encoder is None:
        raise store.encoders.missing(DENSE)
    late = request.reranking is not None and request.reranking.reranker == MAXSIM and store.encoders.gives_tokens
    return ByVectors(store.query_encodings.dense(encoder, request.query, late, _patience_s(left_s)), channel, request)


def _by_weights(store: Store, namespace: Namespace, request: Request, left_s: LeftS | None) -> ByWeights:
    channel, encoder = channel_and_encoder(store, namespace, SPARSE)
    if encoder is None:
        raise store.encoders.missing(SPARSE)
    return ByWeights(store.query_encodings.sparse(encoder, request.query, _patience_s(left_s)), channel, request)


def _patience_s(left_s: LeftS | None) -> float | None:
    return None if left_s is None else PATIENCE * left_s()
