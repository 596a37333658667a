"""How old the gold of dated questions is, counted in partitions and in ranks, and a picture of it beside the geometric law that was fitted to it.

The age of a gold record is the number of partitions with records that are newer than its own (DESIGN 5). Its normalised age rank is the share of the chat's other sessions
(or records) that are newer: 0 the newest, 1 the oldest, .5 on average for a record picked blindly. AgentIR (arXiv:2605.25092) reports a median of .20 to .27 for the gold
sessions of LongMemEval.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.temporal.prior import decide, fit
from agentir_ray.temporal.statistics import AgeStatistics
from benchmarks.dated import Chat
from benchmarks.paired import SEED, difference

Array = npt.NDArray[Any]

PAPER_LAMBDA = 1.7  # of 7-day partitions: k* = 2 at eps = .05
BARS = "#8fb3d9"


class Aged(NamedTuple):
    """One gold record of one question; `partitions` is how many its chat has."""

    age: int
    partitions: int


class Ages(NamedTuple):
    """What a panel shows: the gold ages of a data set and the law fitted to them."""

    name: str
    observed: Sequence[Aged]
    lambda_: float
    note: str


def buckets_of(chat: Chat, width_us: int) -> list[int]:
    """The partitions with records, newest first: a record's age is the place of its own."""
    return sorted({time // width_us for time in chat.times_us.values()}, reverse=True)


def ages_of(chat: Chat, width_us: int) -> list[Aged]:
    """Of every gold record of every question, in the order of the questions; sorted within one, as gold is a set."""
    place = {bucket: age for age, bucket in enumerate(buckets_of(chat, width_us))}
    return [Aged(place[chat.times_us[record] // width_us], len(place)) for question in chat.questions for record in sorted(question.gold)]


def session_ranks(chat: Chat) -> tuple[list[float], list[float]]:
    """Normalised age ranks of the sessions that the gold lies in, and of those of all records, which is what a blind pick would have."""
    begun: dict[object, int] = {}
    for record, time in chat.times_us.items():
        session = chat.occasions[record]
        begun[session] = min(time, begun.get(session, time))
    ordered = sorted(begun, key=lambda session: begun[session], reverse=True)
    place = {session: age / max(len(ordered) - 1, 1) for age, session in enumerate(ordered)}
    return [place[chat.occasions[record]] for question in chat.questions for record in question.gold], [place[session] for session in chat.occasions.values()]


def record_ranks(chat: Chat) -> list[list[float]]:
    """For each question, the shares of the chat's other records that are newer than each of its gold records; those of the same time count half."""
    times = np.sort(np.fromiter(chat.times_us.values(), np.int64))
    ranks = []
    for question in chat.questions:
        gold = np.array([chat.times_us[record] for record in question.gold])
        newer, same = len(times) - np.searchsorted(times, gold, "right"), np.searchsorted(times, gold, "right") - np.searchsorted(times, gold, "left") - 1
        ranks.append(((newer + same / 2) / max(len(times) - 1, 1)).tolist())
    return ranks


def ages_found(chats: Sequence[Chat]) -> dict[str, Any]:
    """The ranks of gold sessions beside those of a blind pick, and whether gold records are newer or older than records are: the mean rank of each question's gold against .5."""
    gold, blind = (np.concatenate(column) for column in zip(*(session_ranks(chat) for chat in chats), strict=True))
    ranks = [np.array([np.mean(question) for question in record_ranks(chat)]) for chat in chats]
    tilt = difference([[np.full(len(each), 0.5) for each in ranks]], [ranks])
    says = "newer than a blind pick" if tilt.high < 0 else "older than a blind pick" if tilt.low > 0 else "as old as a blind pick, as far as can be shown"
    return {
        "median session rank": float(np.median(gold)), "of a blind pick": float(np.median(blind)),
        "record rank": {part: value + 0.5 for part, value in tilt._asdict().items()}, "says": says,
    }  # fmt: skip


def panel(name: str, chats: Sequence[Chat], width_us: int, eps: float) -> Ages:
    """The ages of all chats together, with the law fitted to them (for the picture; what is scored is fitted without the scored chat)."""
    observed = [aged for chat in chats for aged in ages_of(chat, width_us)]
    statistics = statistics_of(observed)
    found = fit(statistics)
    most = max(one.partitions for one in observed)
    decision = decide(statistics, most, eps)
    note = f"$\\lambda$ = {found.lambda_:.3f} [{found.lower:.3f}, {found.upper:.3f}]\nprior {'supported' if decision.supported else 'not supported'}"
    return Ages(name, observed, found.lambda_, note)


def statistics_of(observed: Sequence[Aged]) -> AgeStatistics:
    """Complete observations of these ages, in a seeded order, for the statistics forget."""
    statistics = AgeStatistics()
    for place in np.random.default_rng(SEED).permutation(len(observed)):
        statistics.observe(observed[place].age, observed[place].partitions, True)
    return statistics


def shares(observed: Sequence[Aged], lambda_: float | None = None) -> Array:
    """The share of each age: as observed, or as a geometric law with `lambda_` would have it, each observation among the partitions of its own chat (0: the flat law)."""
    longest = max(one.partitions for one in observed)
    total = np.zeros(longest)
    for age, partitions in observed:
        if lambda_ is None:
            total[age] += 1
        else:
            law = np.exp(-lambda_ * np.arange(partitions))
            total[:partitions] += law / law.sum()
    return total / len(observed)


def reached(observed: Sequence[Aged], parts: Array) -> Array:
    """The share of gold in the newest `parts` (of 1) of each chat's partitions, a record spread over its own: flat ages give `parts` itself."""
    ages, partitions = np.array(observed, np.float64).T
    return np.array([np.clip(part * partitions - ages, 0, 1).mean() for part in parts])


def draw(rows: Mapping[str, Sequence[Ages]], path: Path) -> None:
    """As PNG, a row for each width of partitions: the ages of each data set beside the flat law and the fitted one, then how much of the gold the newest partitions hold."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left"}
    columns = 1 + max(map(len, rows.values()))
    with plt.rc_context(style):
        figure, axes = plt.subplots(len(rows), columns, figsize=(3.5 * columns, 2.9 * len(rows) + 0.8), squeeze=False, layout="constrained")
        for (width, row), line in zip(rows.items(), axes, strict=True):
            for one, axis in zip(row, line, strict=False):
                _draw_ages(one, width, axis)
            _draw_reached(row, width, line[-1])
            line[0].set_ylabel("share of gold records")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=3, frameon=False)
        figure.suptitle("How old the answers are: partitions with records between a gold record and the question", fontsize=12, x=0.005, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _draw_ages(one: Ages, width: str, axis: Any) -> None:
    observed, flat = shares(one.observed), shares(one.observed, 0.0)
    ages = np.arange(len(observed))
    marker = "." if len(ages) < 12 else ""
    axis.bar(ages, observed, width=0.85, color=BARS, label="observed")
    axis.plot(ages, flat, color="#555555", linestyle="--", linewidth=1.2, marker=marker, label="flat over the partitions of each chat (chats have different numbers of them)")
    axis.plot(ages, shares(one.observed, one.lambda_), color="#c0392b", linewidth=1.8, marker=marker, label="fitted geometric law")
    axis.set_title(f"{one.name} (n = {len(one.observed):,})")
    axis.set_ylim(0, 1.4 * max(observed.max(), flat.max()))
    axis.text(0.99, 0.98, one.note, transform=axis.transAxes, ha="right", va="top", fontsize=8, color="#333333")
    axis.set_xlabel(f"age in partitions of {width}")
    axis.xaxis.get_major_locator().set_params(integer=True)


def _draw_reached(row: Sequence[Ages], width: str, axis: Any) -> None:
    parts = np.linspace(0, 1, 201)
    axis.plot(parts, parts, color="#555555", linestyle="--", linewidth=1.2)
    typical = 20
    law = np.exp(-PAPER_LAMBDA * np.arange(typical))
    axis.plot(parts, np.interp(parts * typical, np.arange(typical + 1), np.concatenate(([0], np.cumsum(law / law.sum())))), color="#c0392b", linewidth=1.2)
    axis.text(0.14, 0.94, f"$\\lambda$ = {PAPER_LAMBDA}, 20 partitions", fontsize=8, color="#c0392b", va="top")
    for one, color in zip(row, ("#1f6fb2", "#e08214", "#7a3b9a", "#1b9e77", "#666633"), strict=False):
        axis.plot(parts, reached(one.observed, parts), color=color, linewidth=1.6, linestyle=":" if one.name.endswith("zh") else "-", label=one.name)
    axis.set(title="gold in the newest partitions", xlim=(0, 1), ylim=(0, 1.02), xlabel=f"share of partitions of {width} searched", ylabel="share of gold reached")
    axis.legend(frameon=False, fontsize=8, loc="lower right")
