"""Scores in the light of neighbours, beside the formula as it is written."""

import math
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.retrieval.context import mean_of_neighbours, smoothed


@given(st.integers(0, 2**32 - 1).map(Random), st.integers(1, 30), st.integers(0, 5))
def test_both_are_their_formulas(random: Random, records: int, width: int) -> None:
    own = [random.choice([0.0, random.uniform(-1.0, 1.0), random.random() * 1e-9]) for _ in range(records)]
    asked = random.randrange(records + 1)
    neighbours = [[random.choice([-1, random.randrange(records)]) for _ in range(width)] for _ in range(asked)]
    weight = random.choice([0.0, 0.3, 1.0])
    context = mean_of_neighbours(np.array(own), np.array(neighbours, np.int64).reshape(asked, width))
    mixed = smoothed(np.array(own[:asked]), context, weight)
    for i in range(asked):
        total, count = 0.0, 0
        for neighbour in neighbours[i]:
            if neighbour >= 0:
                total += own[neighbour]
                count += 1
        if count:
            assert context[i] == total / count and mixed[i] == (1.0 - weight) * own[i] + weight * (total / count)
        else:
            assert math.isnan(context[i]) and mixed[i] == own[i]
