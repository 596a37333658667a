"""Fits the parameters of the recipe to chats, and answers with them on the chats that it did not see.

It knows no engine: a chat is matrices of scores, questions by records in the order of time, as the engine's single channels gave them. The formula of the fused score is that of
`mode="convex"`, written again from its documentation, so that what it foretells is a check on the engine, too. Nothing is chosen by what is reported: for each chat the parameters
are those that are best on the other chats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
CHANNELS = {"bm25": 0.0, "sparse": 0.0, "dense": -1.0}  # and the least that their scores can be
NEIGHBOURS = (-2, -1, 1, 2)
STEPS = 10


class Recipe(NamedTuple):
    """What a user would give to `search`."""

    bm25: float
    sparse: float
    dense: float
    context_weight: float
    passage_penalty: float

    @property
    def weights(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in CHANNELS}


GRID = [
    Recipe(bm25 / STEPS, sparse / STEPS, (STEPS - bm25 - sparse) / STEPS, context, penalty)
    for bm25, sparse in product(range(STEPS + 1), repeat=2)
    if bm25 + sparse <= STEPS
    for context in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    for penalty in ((0.0, 0.05, 0.1, 0.15, 0.2) if bm25 + sparse < STEPS else (0.0,))  # it counts dense rows
]


@dataclass(frozen=True)
class Chat:
    """`scores` float32 (questions, records) by channel, NaN where the channel has none; `passages` (records); `session` of each record; `gold` of each question: records."""

    scores: Mapping[str, Floats]
    passages: npt.NDArray[np.int64]
    session: Sequence[str | None]
    gold: Sequence[Sequence[int]]


class Fitted(NamedTuple):
    """For each chat the recipe that is best on the others, and what is expected of it there: nDCG@10 and R@10 of its questions."""

    recipes: list[Recipe]
    expected: list[npt.NDArray[np.float64]]


def measured(chat: Chat, grid: Sequence[Recipe]) -> npt.NDArray[np.float64]:
    """(recipes, questions, 2): nDCG@10 and R@10."""
    channels = [_normalised(chat.scores[name], least) for name, least in CHANNELS.items()]
    penalty = np.log2(np.maximum(chat.passages, 1)).astype(np.float32)[None]
    plain, around = [[*each, penalty] for each in (channels, [_around(part, chat.session) for part in channels])]
    around[-1] = _around(penalty, chat.session)
    question = np.repeat(np.arange(len(chat.gold)), [len(gold) for gold in chat.gold])
    record = np.concatenate([np.asarray(gold, np.int64) for gold in chat.gold])
    ideal = np.array([np.sum(1 / np.log2(np.arange(min(10, len(gold))) + 2)) for gold in chat.gold])
    cited = np.array([len(gold) for gold in chat.gold])
    found = np.empty((len(grid), len(chat.gold), 2))
    for at, recipe in enumerate(grid):
        share = np.float32(recipe.context_weight)
        factors = np.array([recipe.bm25, recipe.sparse, recipe.dense, -recipe.passage_penalty], np.float32)
        fused = sum(factor * ((1 - share) * own + share * near) for factor, own, near in zip(factors, plain, around, strict=True) if factor)
        fused = np.broadcast_to(fused, chat.scores["bm25"].shape)
        rank = _before(fused, question, record)
        hit = rank < 10
        found[at, :, 0] = np.bincount(question, np.where(hit, 1 / np.log2(rank + 2.0), 0.0), len(chat.gold)) / ideal
        found[at, :, 1] = np.bincount(question, hit, len(chat.gold)) / cited
    return found


def leave_one_out(sets: Sequence[Sequence[npt.NDArray[np.float64]]], grid: Sequence[Recipe]) -> Fitted:
    """`sets` are collections of chats, measured over `grid`. With several, one recipe is to serve all: their means count alike, and chats at the same place are left out together.

    Chosen by nDCG@10 alone. `expected` is of the first set.
    """
    recipes, expected = [], []
    for left_out in range(len(sets[0])):
        others = [np.concatenate([chat[:, :, 0] for place, chat in enumerate(chats) if place != left_out], axis=1).mean(axis=1) for chats in sets]
        best = int(np.argmax(np.sum(others, axis=0)))
        recipes.append(grid[best])
        expected.append(sets[0][left_out][best])
    return Fitted(recipes, expected)


def _normalised(scores: Floats, least: float) -> Floats:
    highest = np.nanmax(scores, axis=1, keepdims=True, initial=least)
    between: Floats = np.nan_to_num((scores - least) / np.where(highest > least, highest - least, np.inf)).astype(np.float32)
    return between


def _around(scores: Floats, session: Sequence[str | None]) -> Floats:
    """The mean over the records of the same session at most two places away; the record's own where there is none."""
    total, number = np.zeros_like(scores), np.zeros(scores.shape[1], np.float32)
    for offset in NEIGHBOURS:
        here = np.array([at for at in range(len(session)) if 0 <= at + offset < len(session) and session[at] is not None and session[at + offset] == session[at]], np.int64)
        total[:, here] += scores[:, here + offset]
        number[here] += 1
    mean: Floats = np.where(number > 0, total / np.maximum(number, 1), scores)
    return mean


def _before(scores: Floats, question: npt.NDArray[np.int64], record: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many records come before each, by score, equal scores newer first."""
    rows = scores[question]
    own = scores[question, record][:, None]
    newer = np.arange(scores.shape[1])[None] > record[:, None]
    count: npt.NDArray[np.int64] = ((rows > own) | ((rows == own) & newer)).sum(axis=1)
    return count
