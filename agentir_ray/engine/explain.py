"""Why a hit has its score: the canonical function of `kernels.bm25`, term by term, in plain Python. The parts add up to the score to the last bit."""

import math

from agentir_ray.engine.request import Request
from agentir_ray.lexical.index import Snapshot
from agentir_ray.lexical.query import Bm25, Query, Scoring, inverse_document_frequency
from agentir_ray.lexical.search import Found
from agentir_ray.types import Explanation, Record, TermScore


def explain(query: Query, snapshot: Snapshot, scores: Scoring, bm25: Bm25, request: Request, found: Found, record: Record) -> Explanation:
    segments = len(snapshot.segments)
    statistics = snapshot.statistics
    if found.part < segments:
        segment = snapshot.segments[found.part]
        length = int(segment.array("length")[found.doc])
        tfs = [segment.tf(int(ordinal), found.doc) for ordinal in snapshot.ordinals[:, found.part]]
    else:
        view = snapshot.buffers[found.part - segments]
        length = int(view.length[found.doc])
        tfs = [view.tf(i, found.doc) for i in range(len(query.terms))]
    terms = []
    score = 0.0
    for i, tf in enumerate(tfs):
        if tf:
            part = float(scores.gain[i]) * (tf / (tf + (scores.base + scores.slope * length)))
            score += part
            df = statistics.df[i]
            terms.append(TermScore(query.terms[i], query.weights[i], tf, df, inverse_document_frequency(statistics.documents, df), part))
    bm25_part = score
    recency = importance = 0.0
    priors = request.priors
    if priors.recency_weight > 0.0:
        recency = priors.recency_weight * math.exp(-max(0.0, float(request.visibility.as_of_us - record.timestamp_us)) / priors.tau_us)
        score += recency
    if priors.importance_weight > 0.0:
        importance = priors.importance_weight * record.importance
        score += importance
    return Explanation(tuple(terms), length, statistics.average_length, statistics.documents, bm25_part, recency, importance, score)
