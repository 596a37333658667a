"""What recency costs and gains on dated data (experiment 4): LoCoMo with its audited labels, BEAM, and MADial-Bench, through `Memory` as a user would.

    python -m benchmarks.temporal_quality [--json] [--quick] [--plots FOLDER]

Each chat is a namespace, its records written when they happened, each question asked a second after the last of them. recall_any@k: some gold record is among the k best.
recall_all@k: all of them are. Whatever is fitted (weight and tau of the recency term; the recency prior behind `coverage=0.95`) is fitted on the other chats of the data set,
never on the one that is scored. A difference has a paired bootstrap interval (95%; over chats, or over questions where a set has few chats), and the mean of the four measures
decides whether a term is said to help or to cost.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray.errors import AgentIRError
from benchmarks.bars import Report
from benchmarks.datasets import shared
from benchmarks.dated import Chat, beam_chats, locomo_chats, madial_chats
from benchmarks.dated_runs import EPS, GRID, WIDTHS, Answers, Prior, Run, priors_of, run
from benchmarks.paired import MEASURES, Array, best_elsewhere, difference
from benchmarks.temporal_ages import Ages, ages_found, draw, panel

DATA_SETS: Mapping[str, Callable[[Path], list[Chat]]] = {
    "LoCoMo": locomo_chats,
    "BEAM 100K": lambda folder: beam_chats(folder, "100K"),
    "BEAM 1M": lambda folder: beam_chats(folder, "1M"),
    "MADial en": lambda folder: madial_chats(folder, "en"),
    "MADial zh": lambda folder: madial_chats(folder, "zh"),
}
SLOW = ("BEAM 1M",)  # left out by --quick, which also takes three chats of each other set
QUICK_CHATS = 3
PLOTS = Path(__file__).resolve().parent / "plots"
ALL = "all data sets"  # each counting the same
TERMS = {  # what is judged: one run against another
    "recency term": ("exact + recency", "exact"),
    "coverage .95": ("0.95", "exact"),
    "coverage .95, both with recency": ("0.95 + recency", "exact + recency"),
    "coverage auto": ("auto", "exact"),
    "coverage auto, both with recency": ("auto + recency", "exact + recency"),
    "times in the question parsed": ("parsed", "exact"),
    "the 2 newest weeks, as lambda = 1.7 has it": ("paper", "exact"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="recall on dated data: coverage modes and the recency term")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="three chats of each data set, without BEAM 1M")
    parser.add_argument("--plots", type=Path, default=PLOTS, help="folder of the picture")
    arguments = parser.parse_args()
    report = Report("Recall on dated data")
    quality(report, arguments.quick, arguments.plots)
    if not arguments.json and report.figures["dated data"]:
        print(*tables(report.figures["dated data"]), sep="\n")
    return report.end(arguments.json)


def quality(report: Report, quick: bool = False, plots: Path = PLOTS) -> None:
    """Measure every data set that is there and add the findings as one figure, `dated data`; a data set that is absent is said to be skipped."""
    folder = shared()
    sets: dict[str, list[Chat]] = {}
    findings: dict[str, Any] = {}
    for name, load in DATA_SETS.items():
        if quick and name in SLOW:
            continue
        try:
            if folder is None:
                raise FileNotFoundError("no data folder; set AGENTIR_SHARED")
            sets[name] = load(folder)[: QUICK_CHATS if quick else None]
        except (FileNotFoundError, AgentIRError) as error:
            report.figure(f"{name} skipped", str(error))
    runs: dict[str, Run] = {}
    panels: dict[str, list[Ages]] = {width: [] for width in WIDTHS}
    for name, chats in sets.items():
        priors = {width: priors_of(chats, width_us) for width, width_us in WIDTHS.items()}
        runs[name] = run(chats, priors["7 days"])
        report.figure(f"{name} done", f"{len(chats)} chats")
        findings[name] = {
            "chats": len(chats), "records": sum(len(chat.records) for chat in chats), "questions": sum(len(chat.questions) for chat in chats),
            "ages": ages_found(chats), "priors": {width: prior_found(chats, several) for width, several in priors.items()},
            "recency": recency_found(chats, runs[name]), "times": times_found(chats, runs[name]),
            "coverage .95": {
                "gold lost": gold_lost(runs[name].answers["exact"], runs[name].answers["0.95"]),
                "answers that say exact": sum(answers.exact for answers in runs[name].answers["0.95"]) / sum(len(chat.questions) for chat in chats),
            }, **recalls({name: runs[name]}),
        }  # fmt: skip
        for width, width_us in WIDTHS.items():
            panels[width].append(panel(name, chats, width_us, EPS))
    if sets:
        findings[ALL] = recalls(runs)
        draw(panels, plots / "gold_ages.png")
    report.figures["dated data"] = findings


def values(runs: Mapping[str, Run], name: str, measure: int | None) -> list[list[Array]]:
    """Of each data set and chat, a value a question: one measure, or the mean of all."""
    return [[answers.scores.mean(axis=1) if measure is None else answers.scores[:, measure] for answers in found.answers[name]] for found in runs.values()]


def recalls(runs: Mapping[str, Run]) -> dict[str, Any]:
    """The recalls of every run, and what each term makes of them: means over questions, then over data sets."""
    names = next(iter(runs.values())).answers
    recall = {name: {measure: float(np.mean([np.concatenate(each).mean() for each in values(runs, name, n)])) for n, measure in enumerate(MEASURES)} for name in names}
    terms = {}
    for term, (changed, base) in TERMS.items():
        found = {measure: difference(values(runs, base, n), values(runs, changed, n)) for n, measure in [(None, "mean"), *enumerate(MEASURES)]}
        terms[term] = {measure: {**each._asdict(), "says": each.words} for measure, each in found.items()}
    return {"recall": recall, "terms": terms}


def prior_found(chats: Sequence[Chat], priors: Sequence[Prior]) -> dict[str, Any]:
    """What the priors of the chats decided."""
    lambdas = [prior.fitted.lambda_ for prior in priors]
    gold = [chat.times_us[record] < prior.paper_since_us for chat, prior in zip(chats, priors, strict=True) for question in chat.questions for record in question.gold]
    return {
        "supported": sum(prior.decision.supported for prior in priors),
        "reasons": dict(Counter(prior.decision.reason.partition(":")[0] for prior in priors)),
        "partitions": float(np.mean([prior.partitions for prior in priors])),
        "k": float(np.mean([prior.decision.partitions for prior in priors])),
        "mass": float(np.mean([prior.decision.mass for prior in priors])),
        "lambda of the others": [min(lambdas), max(lambdas)],
        "gold outside k* of lambda = 1.7": sum(gold) / len(gold),
    }


def times_found(chats: Sequence[Chat], found: Run) -> dict[str, Any]:
    """What `temporal="parse"` read: in how many questions, how much of their gold lies outside, and what the narrower search does to these and to all questions about time."""
    parsed = found.answers["parsed"]
    read = [(chat, place, times) for chat, answers in zip(chats, parsed, strict=True) for place, times in answers.ranges.items()]
    golden = [times.since_us <= chat.times_us[record] <= times.until_us for chat, place, times in read for record in chat.questions[place].gold]
    kinds = {}
    for name, chosen in (
        ("questions with a time that was read", [np.isin(np.arange(len(chat.questions)), list(answers.ranges)) for chat, answers in zip(chats, parsed, strict=True)]),
        ("questions about time", [np.array([question.kind.startswith("temporal") for question in chat.questions]) for chat in chats]),
    ):
        pairs = [[run[chat].scores[rows].mean(axis=1) for chat, rows in enumerate(chosen) if rows.any()] for run in (found.answers["exact"], parsed)]
        if pairs[0]:
            judged = difference(pairs[:1], pairs[1:])
            kinds[name] = {"questions": int(sum(map(np.sum, chosen))), **judged._asdict(), "says": judged.words}
    return {"kinds": kinds, "gold outside": 1 - sum(golden) / len(golden) if golden else 0.0, "phrases": dict(Counter(times.phrase.lower() for _, _, times in read).most_common(8))}


def gold_lost(exact: Sequence[Answers], other: Sequence[Answers]) -> float:
    """Of the gold among the ten best of the first, the share that is not among the ten best of the second."""
    pairs = [(a, b) for one, two in zip(exact, other, strict=True) for a, b in zip(one.found, two.found, strict=True)]
    return sum(len(a - b) for a, b in pairs) / max(sum(len(a) for a, _ in pairs), 1)


def recency_found(chats: Sequence[Chat], found: Run) -> dict[str, Any]:
    """How often each (weight, tau) was the best on the other chats, for how many chats none at all would have been, and what the term does to each kind of question.

    `fitted to the kind` is fitted on the questions of that kind alone, of the other chats; the paper reports that the best decay differs by kind.
    """
    kinds = {}
    for kind in sorted({question.kind for chat in chats for question in chat.questions}):
        rows = [np.array([question.kind == kind for question in chat.questions]) for chat in chats]
        grid = [scores[row] for scores, row in zip(found.grid, rows, strict=True)]
        without = [scores[:, 0] for scores in grid]
        own = [scores[:, 1 + cell] for scores, cell in zip(grid, best_elsewhere([scores[:, 1:] for scores in grid]), strict=True)]
        common = [scores[:, 1 + GRID.index(term)] for scores, term in zip(grid, found.fitted, strict=True)]
        kinds[kind] = {"questions": sum(map(len, grid))} | {
            name: {**judged._asdict(), "says": judged.words}
            for name, judged in (("fitted to all", difference([without], [common])), ("fitted to the kind", difference([without], [own])))
        }
    off, *terms = np.concatenate(found.grid).mean(axis=0).tolist()
    fitted = {f"{weight:g} x exp(-age / {tau})": times for (weight, tau), times in Counter(found.fitted).most_common()}
    return {"fitted": fitted, "none is best on the others": best_elsewhere(found.grid).count(0), "best in hindsight": max(terms) - off, "worst": min(terms) - off, "kinds": kinds}


def tables(findings: Mapping[str, Any]) -> list[str]:
    """The findings as Markdown."""
    sets = {name: found for name, found in findings.items() if name != ALL}
    lines = _table("| | chats | records | questions | exact: any@5 | any@10 | all@5 | all@10 |")
    for name, found in findings.items():
        sizes = [f"{found[part]:,}" if part in found else "" for part in ("chats", "records", "questions")]
        lines.append(_row(name, *sizes, *(_share(found["recall"]["exact"][measure]) for measure in MEASURES)))
    lines += _table("| term | data set | any@5 | any@10 | all@5 | all@10 | mean of the four [95%] | it |")
    for term in TERMS:
        judged = {name: found["terms"][term] for name, found in findings.items()}
        if all(each["says"] == "no difference" for found in judged.values() for each in found.values()):
            lines.append(_row(term, "each", *["0"] * (len(MEASURES) + 1), "makes no difference: every recall is the same"))
            continue
        for name, found in judged.items():
            lines.append(
                _row(term, name, *(_signed(found[measure]["mean"]) + MARKS[found[measure]["says"]] for measure in MEASURES), _interval(found["mean"]), found["mean"]["says"])
            )
    lines += _table("| recency term by kind | questions | fitted to all kinds | fitted to the kind |")
    for name, found in sets.items():
        for kind, judged in found["recency"]["kinds"].items():
            texts = [f"{_interval(judged[fitted])} {judged[fitted]['says']}" for fitted in ("fitted to all", "fitted to the kind")]
            lines.append(_row(f"{name}: {kind}", judged["questions"], *texts))
    lines += _table("| recency term fitted on the other chats | chats x term | none is best | the grid in hindsight, worst to best |")
    for name, found in sets.items():
        recency = found["recency"]
        fitted = ", ".join(f"{times} x {term}" for term, times in recency["fitted"].items())
        none, hindsight = f"{recency['none is best on the others']} of {found['chats']}", f"{_signed(recency['worst'])} to {_signed(recency['best in hindsight'])}"
        lines.append(_row(name, fitted, none, hindsight))
    lines += _table("| times in the question parsed | | questions | mean of the four [95%] | it | gold outside what was read | most read |")
    for name, found in sets.items():
        times = found["times"]
        told = [_share(times["gold outside"]), ", ".join(f"{phrase} ({count})" for phrase, count in times["phrases"].items())]
        for kind, judged in times["kinds"].items():
            lines.append(_row(name, kind, judged["questions"], _interval(judged), judged["says"], *(told if "read" in kind else ["", ""])))
    lines += _table(
        "| prior | partitions of | supported | because | lambda of the others | partitions | k | mass | answers that say exact | gold lost by .95 | gold outside lambda = 1.7 |"
    )
    for name, found in sets.items():
        for width, prior in found["priors"].items():
            low, high = prior["lambda of the others"]
            reasons = "; ".join(f"{reason} ({times})" for reason, times in prior["reasons"].items())
            asked = [_share(found["coverage .95"][part]) if width == "7 days" else "not asked" for part in ("answers that say exact", "gold lost")]
            numbers = [f"{prior['partitions']:.1f}", f"{prior['k']:.1f}", f"{prior['mass']:.3f}", *asked, _share(prior["gold outside k* of lambda = 1.7"])]
            lines.append(_row(name, width, f"{prior['supported']} of {found['chats']}", reasons, f"{low:.3f} to {high:.3f}", *numbers))
    lines += _table("| ages | median rank of gold sessions | of a blind pick | mean rank of gold records [95%] | they are |")
    for name, found in sets.items():
        ages = found["ages"]
        rank = ages["record rank"]
        lines.append(
            _row(
                name, _share(ages["median session rank"]), _share(ages["of a blind pick"]), f"{_share(rank['mean'])} [{_share(rank['low'])}, {_share(rank['high'])}]", ages["says"]
            )
        )
    return lines


MARKS = {"helps": " (+)", "costs": " (-)", "no difference": "", "no difference shown": ""}


def _table(head: str) -> list[str]:
    return ["", head, "|" + "---|" * (head.count("|") - 1)]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _interval(judged: Mapping[str, Any]) -> str:
    return f"{_signed(judged['mean'])} [{_signed(judged['low'])}, {_signed(judged['high'])}]"


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if abs(value) < 1 else f"{value:.0f}"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1)


if __name__ == "__main__":
    sys.exit(main())
