"""Soft preferences of some documents, where no kernel adds them: recency_weight * exp(-age / tau) and importance_weight * importance (`lexical.query.Priors`)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Priors
from agentir_ray.lexical.visible import column_of
from agentir_ray.retrieval.fusion import recency

Array = npt.NDArray[Any]
Float64s = npt.NDArray[np.float64]


def priors_of(snapshot: Snapshot, refs: Array, as_of_us: int, priors: Priors) -> Float64s:
    """float64: recency and then importance of documents (int64 refs, any order)."""
    out: Float64s = np.zeros(len(refs), np.float64)
    if priors.recency_weight > 0.0:
        out += recency_of(snapshot, refs, as_of_us, priors)
    if priors.importance_weight > 0.0:
        out += importance_of(snapshot, refs, priors)
    return out


def recency_of(snapshot: Snapshot, refs: Array, as_of_us: int, priors: Priors) -> Float64s:
    return recency(as_of_us - column_of(snapshot, "timestamp", refs), priors.recency_weight, priors.tau_us)


def importance_of(snapshot: Snapshot, refs: Array, priors: Priors) -> Float64s:
    weighted: Float64s = priors.importance_weight * column_of(snapshot, "importance", refs)
    return weighted
