"""The walk of `recent`: the last documents that pass and are visible, as the naive loop finds them."""

from random import Random

import numpy as np
import pytest

from agentir_ray.kernels.bitmap import nothing, scatter
from agentir_ray.kernels.visible import last_visible
from agentir_ray.types import NEVER_US


@pytest.mark.parametrize("seed", range(60))
def test_last_visible_equals_the_naive_loop(seed: int) -> None:
    random = Random(seed)
    n = random.choice([1, 63, 64, 65, 300])

    def column(low: int, high: int) -> np.ndarray:
        return np.array([random.choice([NEVER_US, random.randrange(low, high)]) for _ in range(n)], np.int64)

    created, expires = np.array([random.randrange(20) for _ in range(n)], np.int64), column(0, 20) if seed % 2 else np.empty(0, np.int64)
    overlay = [column(0, 20) for _ in range(4)] if seed % 3 else [np.empty(0, np.int64)] * 4
    chosen = None if seed % 4 == 0 else sorted(random.sample(range(n), random.choice([0, 1, n // 20, n // 2, n])))
    words = nothing(0)
    if chosen is not None:
        words = nothing(n)
        scatter(np.array(chosen, np.int64), words)
    seq, now, until = random.randrange(20), random.randrange(20), random.randrange(20)

    def shown(d: int) -> bool:
        if (chosen is not None and d not in chosen) or created[d] > until or (len(expires) and expires[d] <= now):
            return False
        changes = [(overlay[0], overlay[1]), (overlay[2], overlay[3])] if len(overlay[0]) else []
        return not any(at_seq[d] <= seq and at_us[d] <= until for at_seq, at_us in changes)

    for _ in range(20):
        first = random.randrange(n + 1)
        end = random.randrange(n + 1)
        out = np.empty(random.choice([0, 1, 5, n]), np.int64)
        found = last_visible(first, end, words, seq, now, until, created, expires, *overlay, out)
        assert out[:found].tolist() == [d for d in range(end - 1, first - 1, -1) if shown(d)][: len(out)]
