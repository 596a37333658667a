"""What a snapshot is asked beside its top k: what a segment can reach, the scores of given documents, and how many documents come before one.

The answers agree with `search.top_k` of the same snapshot to the last bit: a bound is exceeded by no document, a score is the one that the document has there, and the number of
documents before a document is its place. A document is named by its ref, part << 32 | document, as in `TopK`. The terms are those of the snapshot, in its order.

A bound is told of a cold segment as of any other. The rest needs its postings, and raises ColdSegmentError.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.kernels import scores as kernel
from agentir_ray.kernels import topk
from agentir_ray.kernels.rows import END, FIRST
from agentir_ray.lexical.buffer import BufferView
from agentir_ray.lexical.filters import EVERYTHING, Expression
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Priors, Scoring
from agentir_ray.lexical.search import Visibility, look_at, scoring_arguments, scratch
from agentir_ray.lexical.segment import ColdSegmentError

Array = npt.NDArray[Any]
ABOVE = 1.0 + 1e-12  # what sums of float64 may be rounded by
_NOTHING = np.empty(0, np.float64)


def bounds(snapshot: Snapshot, scoring: Scoring, visibility: Visibility, priors: Priors = Priors()) -> Array:
    """float64 (segments): what no document of a segment, within the query's time range, scores more than; -inf where none has a term of the query.

    It holds at any statistics and whatever is filtered or deleted. Buffers have no bound but their scores: they are small, and searched first.
    """
    rows = look_at(snapshot, visibility, segments=np.arange(len(snapshot.segments))).rows
    reach = np.empty(len(rows), np.float64)
    topk.reach_of_segments(rows, snapshot.ordinals, scoring.gain, scoring.base, scoring.slope, reach)
    for i, segment in enumerate(snapshot.segments):
        if reach[i] <= 0.0 or rows[i, FIRST] >= rows[i, END]:
            reach[i] = -np.inf
            continue
        if priors.recency_weight > 0.0:
            age_us = max(0, visibility.as_of_us - int(segment.array("timestamp")[rows[i, END] - 1]))
            reach[i] += priors.recency_weight * math.exp(-age_us / priors.tau_us)
        if priors.importance_weight > 0.0:
            reach[i] += priors.importance_weight * segment.largest_importance
    return reach * ABOVE


def scores(snapshot: Snapshot, scoring: Scoring, refs: Array, visibility: Visibility, priors: Priors = Priors()) -> Array:
    """float64: the score of each document of `refs` (int64), in any order; 0 where no term matches. Whether it may be seen is not asked. Raises IndexError for a ref of nothing."""
    refs = np.ascontiguousarray(refs, np.int64)
    part, doc = refs >> 32, refs & 0xFFFFFFFF
    out = np.empty(len(refs), np.float64)
    segments = len(snapshot.segments)
    sizes = [*(segment.documents for segment in snapshot.segments), *(view.documents for view in snapshot.buffers)]
    gain = np.maximum(scoring.gain, 0.0)  # terms of no weight match nothing
    for which in np.unique(part).tolist():
        chosen = np.flatnonzero(part == which)
        docs = doc[chosen]
        if not 0 <= which < len(sizes) or docs.max() >= sizes[which]:
            raise IndexError(f"a ref names document {docs.max()} of part {which}, but the snapshot's parts have {sizes} documents")
        if which < segments:
            if snapshot.cold[which]:
                raise ColdSegmentError(snapshot.segments[which])
            found = np.empty(len(docs), np.float64)
            topk.score_documents(snapshot.rows, which, snapshot.ordinals, gain, scoring.base, scoring.slope, docs, found)
            of_part = snapshot.segments[which].array
            timestamp, importance = of_part("timestamp")[docs], of_part("importance")
            importance = importance[docs] if len(importance) else _NOTHING
        else:
            view = snapshot.buffers[which - segments]
            found = _buffer_scores(view, scoring)[docs]
            timestamp, importance = view.timestamp[docs], view.importance[docs]
        kernel.add_priors(timestamp, importance, visibility.as_of_us, priors.recency_weight, priors.tau_us, priors.importance_weight, found)
        out[chosen] = found
    return out


def count_before(snapshot: Snapshot, scoring: Scoring, score: float, seq: int, visibility: Visibility, expression: Expression = EVERYTHING, priors: Priors = Priors()) -> int:
    """How many documents that the query may see, and a term of it matches, come before (score, seq): those of a larger score, or of an equal one and newer.

    So of a document of the answer it is the place, counted from 0. The cost grows with the number of documents before.
    """
    if math.isnan(score):
        raise ValueError("score is NaN, which comes neither before nor after anything")
    times = snapshot.seq, visibility.as_of_us, visibility.written_until_us
    cold = [segment for i, segment in enumerate(snapshot.segments) if snapshot.cold[i] and snapshot.ordinals[:, i].max(initial=-1) >= 0]
    if cold:
        raise ColdSegmentError(*cold)
    count = 0
    for view, words in zip(snapshot.buffers, snapshot.buffer_filters, strict=True):
        found = _buffer_scores(view, scoring)
        asked = visibility.as_of_us, priors.recency_weight, priors.tau_us, priors.importance_weight
        kernel.add_priors(view.timestamp, view.importance, *asked, found)
        seen = visibility.since_us, visibility.until_us, words, *times
        count += kernel.count_before(found, view.seq, score, seq, *seen, view.timestamp, view.created_at, view.expires_at, *view.changes)
    if snapshot.segments:
        look = look_at(snapshot, visibility, expression)
        query = scoring_arguments(scoring, priors, visibility, score)
        arguments: tuple[Any, ...] = look.rows, look.order, look.ordinals, *query, *times, seq, *scratch()
        count += topk.count_before(*arguments)
    return count


def _buffer_scores(view: BufferView, scoring: Scoring) -> Array:
    """What the terms give each document of a buffer."""
    out = np.zeros(view.documents, np.float64)
    kernel.score_buffer(view.head, scoring.gain, scoring.base, scoring.slope, view.posting_doc, view.posting_tf, view.posting_next, view.length, out)
    return out
