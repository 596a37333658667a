"""Search by learned sparse weights: the segments' sidecars, and what is young.

A sidecar is `segment.sidecars["sparse"]`; a segment without one has nothing to be found by, and cold ones are searched as any other. A young record whose segment's sidecar has it
by now counts once, by the sidecar. Whoever calls takes the young view before the snapshot, and sees to it that all vectors are of the encoder that made the query's.

Exact: a score is the sum of q_t * w in float64 in the order of the query's terms, plus the priors; the order is by score, then newer first. A record that no term matches is in no
list.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels.scores import add_priors
from agentir_ray.lexical import asking
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Priors, Query
from agentir_ray.lexical.search import TopK, Visibility, top_k
from agentir_ray.lexical.visible import check_ref, column_of, refs_of, refs_seen
from agentir_ray.lexical.weight_sidecar import WeightedPostings, weight_scoring, weighted_snapshot
from agentir_ray.lexical.young_weights import YoungWeightsView

Array = npt.NDArray[Any]
SPARSE = "sparse"


def sidecars_of(snapshot: Snapshot) -> list[WeightedPostings | None]:
    """What the segments have now: the engine replaces it, so that one search is to look once."""
    return [segment.sidecars.get(SPARSE) for segment in snapshot.segments]


def weighted_top_k(
    snapshot: Snapshot,
    sidecars: Sequence[WeightedPostings | None],
    young: YoungWeightsView | None,
    terms: Sequence[str],
    weights: Array,
    k: int,
    visibility: Visibility,
    expression: Expression = EVERYTHING,
    priors: Priors = Priors(),
    min_score: float = -np.inf,
    expired: Callable[[], bool] | None = None,
) -> TopK:
    """The k best visible documents by these distinct terms and their weights, float (terms); as `search.top_k`, but for segments that have no sidecar, which count as searched.

    Raises InvalidInputError for a weight that is negative or no number that float32 can hold.
    """
    scoring = weight_scoring(Query(tuple(terms), tuple(weights.tolist())))
    found = top_k(weighted_snapshot(snapshot, sidecars, terms), scoring, k, visibility, expression, priors, min_score, expired)
    if young is None or not len(young.seq):
        return found
    which, ref = _uncovered(snapshot, sidecars, young)
    seen = refs_seen(snapshot, ref, visibility, expression)
    which, ref = which[seen], ref[seen]
    score = young.scores(which, terms, scoring.gain)
    matched = score > 0.0
    which, ref, score = which[matched], ref[matched], score[matched]
    asked = visibility.as_of_us, priors.recency_weight, priors.tau_us, priors.importance_weight
    add_priors(column_of(snapshot, "timestamp", ref), column_of(snapshot, "importance", ref), *asked, score)
    enough = score >= min_score
    score, seq, ref = (np.concatenate(both) for both in ((found.score, score[enough]), (found.seq, young.seq[which[enough]]), (found.ref, ref[enough])))
    order = np.lexsort((-seq, -score))[:k]
    return found._replace(score=score[order], seq=seq[order], ref=ref[order])


def weighted_scores(
    snapshot: Snapshot, sidecars: Sequence[WeightedPostings | None], young: YoungWeightsView | None, terms: Sequence[str], weights: Array, refs: Array
) -> npt.NDArray[np.float64]:
    """float64: the sum of q_t * w of each document of `refs` (int64), in any order; 0 where no term matches, NaN where it has no vector. Whether it may be seen is not asked.

    Raises IndexError for a ref of nothing, InvalidInputError as `weighted_top_k` does.
    """
    scoring = weight_scoring(Query(tuple(terms), tuple(weights.tolist())))
    refs = np.ascontiguousarray(refs, np.int64)
    out = np.full(len(refs), np.nan)
    part, docs = refs >> 32, refs & 0xFFFFFFFF
    there = np.zeros(len(refs), bool)
    for i in np.unique(part).tolist():
        here = np.flatnonzero(part == i)
        check_ref(snapshot, i, int(docs[here].max()))
        sidecar = sidecars[i] if i < len(sidecars) else None
        if sidecar is not None:
            there[here] = sidecar.has(docs[here])
    if there.any():
        out[there] = asking.scores(weighted_snapshot(snapshot, sidecars, terms), scoring, refs[there], Visibility(0))
    if young is not None and len(young.seq) and not there.all():
        which, ref = _uncovered(snapshot, sidecars, young)
        order = np.argsort(ref)
        at = np.searchsorted(ref, refs, sorter=order)
        inside = np.flatnonzero(at < len(ref))
        same = inside[ref[order[at[inside]]] == refs[inside]]
        out[same] = young.scores(which[order[at[same]]], terms, scoring.gain)
    return out


def _uncovered(snapshot: Snapshot, sidecars: Sequence[WeightedPostings | None], young: YoungWeightsView) -> tuple[Array, Array]:
    """(which, ref): the young records whose documents the snapshot has and no sidecar does, and their refs."""
    ref = refs_of(snapshot, young.seq)
    left = ref >= 0
    for i, sidecar in enumerate(sidecars):
        if sidecar is not None:
            here = np.flatnonzero(ref >> 32 == i)
            left[here] &= ~sidecar.has(ref[here] & 0xFFFFFFFF)
    which = np.flatnonzero(left)
    return which, ref[which]
