"""MaxSim as it is written: one token after the other, in Python's floats."""

import math
from collections.abc import Sequence

Tokens = Sequence[Sequence[float]]


def maxsim(query: Tokens, texts: Sequence[Tokens | None]) -> list[float]:
    """The score of each text; NaN of one whose tokens are not known, -1 of one that has none (or all, where the query has none)."""
    closest = [[max(sum(a * b for a, b in zip(q, token, strict=True)) for token in tokens) for tokens in texts if tokens] for q in query]
    telling = [max(row) - sum(row) / len(row) if row else 0.0 for row in closest]
    scores, place = [], 0
    for tokens in texts:
        if tokens is None:
            scores.append(math.nan)
        elif not tokens or not query:
            scores.append(-1.0)
        else:
            of_text = [row[place] for row in closest]
            if sum(telling) > 0.0:
                scores.append(sum(g * m for g, m in zip(telling, of_text, strict=True)) / sum(telling))
            else:
                scores.append(sum(of_text) / len(of_text))
            place += 1
    return scores
