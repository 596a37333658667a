"""The encoders that a store was opened with. They may be replaced while it is open (`reembed`); who encodes takes one once.

It knows no namespace: whether a namespace's vectors are theirs is asked by identity.
"""

import os
from inspect import getattr_static
from typing import Any

from agentir_ray.encoders.protocol import Encoder, SparseEncoder, identity
from agentir_ray.engine.channel import CHANNELS, DENSE, SPARSE, TOKENS
from agentir_ray.errors import EncoderMismatchError, EncoderMissingError, InvalidInputError

OPTION = {DENSE: "encoder", SPARSE: "sparse_encoder", TOKENS: "encoder"}
EXAMPLE = {DENSE: "minilm-int8", SPARSE: "splade-tiny", TOKENS: "minilm-int8"}  # of `encoders.catalogue`


def check_encoder(given: Any) -> Encoder | None:
    """An encoder, or one by its name in the catalogue or its folder. Raises EncoderMissingError for what is not installed."""
    found: Encoder | None = _dense(given) if isinstance(given, str | os.PathLike) else given
    if found is not None and not _has(found, "dim", "encode_queries", "encode_documents", "passages"):
        raise InvalidInputError(f"encoder is {_shown(given)}; give an Encoder, the name of one, or a model's folder")
    return found


def check_sparse_encoder(given: Any) -> SparseEncoder | None:
    """As `check_encoder`. What has a `dim` is a dense encoder, whose verbs have the same names."""
    found: SparseEncoder | None = _sparse(given) if isinstance(given, str | os.PathLike) else given
    if found is not None and (not _has(found, "encode_queries", "encode_documents", "passages") or _has(found, "dim")):
        raise InvalidInputError(f"sparse_encoder is {_shown(given)}; give a SparseEncoder, the name of one, or a model's folder")
    return found


def _dense(given: str | os.PathLike[str]) -> Encoder:
    from agentir_ray.encoders.catalogue import get_encoder  # only who asks for a model by name needs it

    return get_encoder(os.fspath(given))


def _sparse(given: str | os.PathLike[str]) -> SparseEncoder:
    from agentir_ray.encoders.catalogue import get_sparse_encoder

    return get_sparse_encoder(os.fspath(given))


def _has(found: object, *names: str) -> bool:
    """Whether it has these attributes; none is asked for its value, which may load a model."""
    return all(getattr_static(found, name, None) is not None for name in names)


def _shown(given: object) -> str:
    return repr(given) if isinstance(given, str | int | float) else type(given).__name__


class EncodersInUse:
    """`dense` and `sparse`, None where there is none. With `token_vectors` the dense one, which is then a TokenEncoder, makes the vectors of tokens as well."""

    def __init__(self, dense: Encoder | None = None, sparse: SparseEncoder | None = None, token_vectors: bool = False) -> None:
        self.dense = dense
        self.sparse = sparse
        self.token_vectors = token_vectors
        self._next: EncodersInUse | None = None
        if token_vectors and not _has(dense, "encode_documents_late"):
            raise InvalidInputError("token_vectors needs an encoder that gives the vectors of tokens (encode_documents_late); give one as encoder, or leave token_vectors out")

    def of(self, channel: str) -> Any:
        """The encoder of a channel, or None."""
        return {DENSE: self.dense, SPARSE: self.sparse, TOKENS: self.dense if self.token_vectors else None}[channel]

    @property
    def gives_tokens(self) -> bool:
        """Whether the dense encoder gives the vectors of tokens, kept or not."""
        return _has(self.dense, "encode_queries_late")

    def names(self) -> list[str]:
        """The channels that there is an encoder for."""
        return [channel for channel in CHANNELS if self.of(channel) is not None]

    def wanted(self) -> dict[str, str]:
        """The identities of the encoders by channel, as far as there are any."""
        return {channel: identity(self.of(channel)) for channel in self.names()}

    def expect(self, others: "EncodersInUse") -> None:
        """`take_over` will follow; until then vectors of either may be searched by."""
        self._next = others

    def take_over(self, others: "EncodersInUse") -> None:
        """From now on these, as far as there are any, are in use."""
        self.dense, self.sparse = others.dense or self.dense, others.sparse or self.sparse
        self.token_vectors = others.token_vectors or self.token_vectors
        self._next = None

    def for_identity(self, channel: str, encoder: str) -> Any:
        """The encoder of a channel whose vectors `encoder` (an identity) made. Raises EncoderMissingError, EncoderMismatchError."""
        following = None if (after := self._next) is None else after.of(channel)
        if following is not None and identity(following) == encoder:
            return following
        found = self.of(channel)
        if found is None:
            raise EncoderMissingError(
                f"the vectors of channel {channel!r} were made by {encoder}, and the store was opened without an encoder; open it with {OPTION[channel]}=, "
                "or search with mode='bm25'"
            )
        if identity(found) != encoder:
            raise EncoderMismatchError(
                f"the vectors of channel {channel!r} were made by {encoder}, and the store was opened with {identity(found)}; open it with the former, or call reembed() "
                "(`agentir reembed`) to encode all records with the latter; mode='bm25' goes on serving"
            )
        return found

    def missing(self, channel: str) -> EncoderMissingError:
        """What to raise where a channel is asked that has no vectors and no encoder."""
        return EncoderMissingError(
            f"there are no {channel} vectors: open the store with {OPTION[channel]}=, e.g. {EXAMPLE[channel]!r} (`agentir doctor` shows which encoders are installed), "
            "and call wait_encoded(); mode='bm25' needs no encoder"
        )
