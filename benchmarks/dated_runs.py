"""The runs over the chats of one dated data set: their records in a temporary store, a namespace a chat, every question asked through `Memory` under each setting.

What is fitted for a chat is fitted on the other chats: the recency term by a small grid, the recency prior from the ages of their gold, which is put where the log keeps it.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agentir_ray import Memory
from agentir_ray.engine.recency import Recency
from agentir_ray.temporal.partitions import DAY_US, PARTITION_WIDTH_US
from agentir_ray.temporal.prior import Decision, Fit, decide, fit, partitions_for
from agentir_ray.temporal.statistics import AgeStatistics
from agentir_ray.types import TimeRange
from benchmarks.dated import Chat
from benchmarks.paired import Array, best_elsewhere, measured
from benchmarks.temporal_ages import PAPER_LAMBDA, ages_of, buckets_of, statistics_of

K = 10
EPS = 0.05
GRID = tuple((weight, tau) for weight in (0.1, 0.3, 1.0, 3.0) for tau in ("7d", "30d", "120d"))  # weights in units of BM25, whose best hit has some 5 to 15 here
WIDTHS = {"7 days": PARTITION_WIDTH_US, "1 day": DAY_US}


class Answers(NamedTuple):
    """What the questions of a chat got: an array (questions, MEASURES), the gold that was found, how many answers said that they are exact, and the times read in a question."""

    scores: Array
    found: list[frozenset[str]]
    exact: int
    ranges: dict[int, TimeRange]


class Prior(NamedTuple):
    """What the other chats' ages say about a chat, and the time at which the partitions begin that the paper's lambda would have searched."""

    statistics: AgeStatistics
    partitions: int
    decision: Decision
    fitted: Fit
    paper_since_us: int


class Run(NamedTuple):
    """The answers of each run, chat by chat. `grid` has, for each chat, the mean of the measures of each question without a recency term and under each of GRID; `fitted` is the
    term that was best on the other chats."""

    answers: dict[str, list[Answers]]
    grid: list[Array]
    fitted: list[tuple[float, str]]


def run(chats: Sequence[Chat], priors: Sequence[Prior]) -> Run:
    """`priors` are those of partitions of 7 days, which is what a new namespace has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        grid = []
        for chat in chats:
            with opened(path, chat) as memory:
                failed = memory.import_(chat.records).failed
                if failed:
                    raise ValueError(f"{chat.name}: {failed[0][0]}: {failed[0][1]}")
                cells = [ask(memory, chat, coverage="exact", recency=cell) for cell in (None, *GRID)]
                grid.append(np.stack([each.scores.mean(axis=1) for each in cells], axis=1))
        fitted = [GRID[cell] for cell in best_elsewhere([scores[:, 1:] for scores in grid])]
        answers: dict[str, list[Answers]] = {}
        for chat, term, prior in zip(chats, fitted, priors, strict=True):
            keep_prior(path, chat, prior)
            settings: dict[str, dict[str, Any]] = {}
            for coverage in (1 - EPS, "auto", "exact"):
                settings[f"{coverage}"] = {"coverage": coverage}
                settings[f"{coverage} + recency"] = {"coverage": coverage, "recency": term}
            settings["parsed"] = {"coverage": "exact", "temporal": "parse"}
            settings["paper"] = {"coverage": "exact", "since": prior.paper_since_us}
            with opened(path, chat) as memory:
                for name, options in settings.items():
                    answers.setdefault(name, []).append(ask(memory, chat, **options))
    return Run(answers, grid, fitted)


@contextmanager
def opened(path: Path, chat: Chat) -> Iterator[Memory]:
    with Memory.open(path, namespace=f"dated/{chat.name}") as memory:
        yield memory


def ask(memory: Memory, chat: Chat, **options: Any) -> Answers:
    scores, found, exact, ranges = [], [], 0, {}
    for place, question in enumerate(chat.questions):
        result = memory.search(question.text, k=K, as_of=chat.asked_us, **options)
        ranked = [hit.record.id for hit in result.hits]
        scores.append(measured(ranked, question.gold))
        found.append(question.gold & set(ranked))
        exact += result.coverage.exact
        if result.time_range is not None:
            ranges[place] = result.time_range
    return Answers(np.array(scores), found, exact, ranges)


def keep_prior(path: Path, chat: Chat, prior: Prior) -> None:
    """Put the prior where the namespace will find it when it is loaded next."""
    with opened(path, chat) as memory:
        store = memory._store
        with store.namespace(memory.namespace) as namespace:
            store.writer.save_prior(namespace.number, namespace.epoch, Recency(namespace.partition_width_us, prior.statistics).encode())


def priors_of(chats: Sequence[Chat], width_us: int) -> list[Prior]:
    """For each chat, from the ages of the gold of all other chats."""
    ages = [ages_of(chat, width_us) for chat in chats]
    priors = []
    for scored, chat in enumerate(chats):
        statistics = statistics_of([aged for other, observed in enumerate(ages) if other != scored for aged in observed])
        buckets = buckets_of(chat, width_us)
        oldest = buckets[partitions_for(PAPER_LAMBDA, EPS, len(buckets)) - 1]
        priors.append(Prior(statistics, len(buckets), decide(statistics, len(buckets), EPS), fit(statistics), oldest * width_us))
    return priors
