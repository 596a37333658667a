"""Encoders: texts to dense and to learned sparse vectors, with models that are real and need no network."""

from agentir_ray.encoders.protocol import Encoder, LateVectors, SparseEncoder, SparseVector, TokenEncoder, identity

__all__ = ["Encoder", "LateVectors", "SparseEncoder", "SparseVector", "TokenEncoder", "identity"]
