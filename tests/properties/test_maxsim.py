"""MaxSim by one product is MaxSim token by token. The vectors' numbers are such that products of float32 are exact, whatever their order."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.retrieval.maxsim import maxsim
from tests import naive_maxsim

seeds = st.integers(0, 2**32 - 1).map(Random)


@given(seeds)
def test_one_product_is_token_by_token(random: Random) -> None:
    dim, numbers = random.choice([1, 3, 16]), random.choice([[0.5], [0.0, 0.5, -0.25, 1.0]])

    def tokens(most: int) -> list[list[float]]:
        return [[random.choice(numbers) for _ in range(dim)] for _ in range(random.randrange(most + 1))]

    query = tokens(random.choice([1, 6]))
    texts = [None if random.random() < 0.1 else tokens(random.choice([1, 8])) for _ in range(random.randrange(9))]
    given = [None if text is None else np.array(text, np.float32).reshape(-1, dim) for text in texts]
    np.testing.assert_allclose(maxsim(np.array(query, np.float32).reshape(-1, dim), given), naive_maxsim.maxsim(query, texts), rtol=1e-12, atol=1e-12)
