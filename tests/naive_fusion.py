"""The oracle of fusion: one record at a time, as the formulas are written. Lists are (seq, score) pairs, best first."""

import math
from collections.abc import Callable, Mapping, Sequence

Listed = Sequence[tuple[int, float]]


def rank_of(listed: Listed, seq: int) -> int | None:
    return next((place for place, (other, _) in enumerate(listed, start=1) if other == seq), None)


def ordered(scores: Mapping[int, float]) -> list[tuple[int, float]]:
    return sorted(scores.items(), key=lambda one: (-one[1], -one[0]))


def _fused(lists: Sequence[Listed], part: Callable[[int, Listed, int], float]) -> dict[int, float]:
    scores = {}
    for seq in {seq for listed in lists for seq, _ in listed}:
        total = 0.0
        for number, listed in enumerate(lists):
            total += part(number, listed, seq)
        scores[seq] = total
    return scores


def rrf(lists: Sequence[Listed], weights: Sequence[float], kappa: float = 60.0) -> dict[int, float]:
    def part(number: int, listed: Listed, seq: int) -> float:
        rank = rank_of(listed, seq)
        return 0.0 if rank is None else weights[number] / (kappa + rank)

    return _fused(lists, part)


def agent_rrf(
    lists: Sequence[Listed], weights: Sequence[float], ages_us: Mapping[int, int], importances: Mapping[int, float],
    alpha: float = 0.002, tau_us: float = 30 * 86_400e6, beta: float = 0.001, kappa: float = 60.0,
) -> dict[int, float]:  # fmt: skip
    plain = rrf(lists, weights, kappa)
    return {seq: score + alpha * math.exp(-max(0.0, float(ages_us[seq])) / tau_us) + beta * importances[seq] for seq, score in plain.items()}


def convex(lists: Sequence[Listed], weights: Sequence[float], lowest: Sequence[float], known: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """`known`: the score of every record that a channel scores, in its list or not."""

    def part(number: int, listed: Listed, seq: int) -> float:
        if seq not in known[number] or not listed or listed[0][1] <= lowest[number]:
            return 0.0
        return weights[number] * max((known[number][seq] - lowest[number]) / (listed[0][1] - lowest[number]), 0.0)

    return _fused(lists, part)
