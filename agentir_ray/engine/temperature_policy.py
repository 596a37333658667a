"""How warm each segment is to be: facts in, decision out, no I/O.

A segment's heat is what a byte of it is worth: the recency prior's mass, or its stand-in, and what it answered lately, over its size. The hottest are copied into memory, as many
as fit. Where there is a spill target, the coldest are spilled until the rest fits; what is cold stays cold until a search loads it, and then counts with the others.

Two margins keep things from flipping: what is hot counts KEEP times as much, and what must be made room for is made somewhat more room for. So a decision that was carried out is
not changed while the facts stay (a property test).
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

DECAY = 0.1  # of the mass a partition, where no prior is known: orders the segments of a namespace as any other rate would, and weighs them against those of others
ANSWER = 0.1  # of a mass of 1: a hit lately
KEEP = 1.5
ROOM = 0.9  # of the budget, once it was exceeded
HOT_SHARE = 4  # a fourth of the memory budget is for copies
HALF_LIFE_S = 600.0  # of "lately"
WANTED_S = 5.0  # or two searches that need more than fits would take it from one another for ever


class Temperature(Enum):
    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class Facts(NamedTuple):
    """`bytes` is what a copy takes, `heavy_bytes` what spilling frees; `age` in partitions, 0 the newest. `spilled`: an object has the heavy bytes.

    `decay` is the prior's, by which an answer's probability falls with each partition. `wanted`: it was loaded a moment ago, and whoever did so may not have come to use it.
    """

    bytes: int
    heavy_bytes: int
    age: int
    answers: float
    temperature: Temperature
    spilled: bool = False
    decay: float = DECAY
    wanted: bool = False

    @property
    def heat(self) -> float:
        return (math.exp(-self.decay * self.age) + ANSWER * self.answers) / max(1, self.bytes)


def choose_temperatures(segments: Sequence[Facts], hot_budget: int, local_budget: int | None) -> list[Temperature]:
    """The temperature that each segment is to have. `local_budget` bounds the heavy bytes that are here, None: there is nowhere to spill to.

    Those of the newest partition, and those that are wanted just now, are never spilled; those that were spilled are never hot.
    """
    chosen = [Temperature.COLD if facts.temperature is Temperature.COLD else Temperature.WARM for facts in segments]
    here = [i for i, temperature in enumerate(chosen) if temperature is Temperature.WARM]
    held = sum(segments[i].heavy_bytes for i in here)
    if local_budget is not None and held > local_budget:
        for i in sorted(here, key=lambda i: segments[i].heat):
            if held <= ROOM * local_budget:
                break
            if segments[i].age > 0 and segments[i].heavy_bytes and not segments[i].wanted:
                chosen[i] = Temperature.COLD
                held -= segments[i].heavy_bytes
    room = hot_budget
    for i in sorted(here, key=lambda i: segments[i].heat * (KEEP if segments[i].temperature is Temperature.HOT else 1.0), reverse=True):
        if chosen[i] is Temperature.WARM and not segments[i].spilled and segments[i].bytes <= room:
            chosen[i] = Temperature.HOT
            room -= segments[i].bytes
    return chosen
