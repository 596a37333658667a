"""The k best documents, kept as a search keeps them, against sorting all of them: more than a heap holds, ties everywhere, and fewer documents than places."""

import numpy as np
import numpy.typing as npt
import pytest

from agentir_ray.kernels.heap import FEW, FEW_TIES, late_room, merge_late, offer, order_ties, sort_late
from agentir_ray.lexical.search import best_first
from tests.conftest import LONG

Results = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]  # score, seq, ref


def some_documents(rng: np.random.Generator, count: int) -> Results:
    """Of so few scores that most tie, or one above all others; distinct sequence numbers, in any order."""
    score = rng.choice([-1.5, 0.0, 1.0, 2.0, 1e300], count) if rng.random() < 0.5 else rng.integers(0, rng.choice([1, 2, 20, 10_000]), count).astype(np.float64)
    seq = rng.permutation(3 * count + 1)[:count].astype(np.int64)
    return score, seq, np.arange(count, dtype=np.int64) << 32 | 7


def sorted_best(documents: Results, k: int) -> list[tuple[float, int, int]]:
    return sorted(zip(*(column.tolist() for column in documents), strict=True), key=lambda one: (-one[0], -one[1]))[:k]


def rows(documents: Results) -> list[tuple[float, int, int]]:
    return list(zip(*(column.tolist() for column in documents), strict=True))


@pytest.mark.parametrize("seed", range(5_000 if LONG else 200))
def test_many_results(seed: int) -> None:
    """The first come to a heap, as from the buffers, the others late, in lots of any size up to the room there is. After each lot the best are there, the worst of k in front."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(FEW + 1, 401))
    documents = some_documents(rng, int(rng.choice([1, k - 1, k, k + 1, int(rng.integers(1, 8 * k))])))
    count = len(documents[0])
    best: Results = np.empty(k, np.float64), np.empty(k, np.int64), np.empty(k, np.int64)
    size, done = 0, min(count, int(rng.choice([0, 1, k // 2, k, k + 50])))
    for score, seq, ref in rows(documents)[:done]:
        size = offer(score, seq, ref, size, *best)
    while done < count:
        late = min(count - done, int(rng.choice([1, late_room(k), rng.integers(1, late_room(k) + 1)])))
        lot = tuple(column[done : done + late] for column in documents)
        room: Results = np.full(late_room(k), np.inf), np.full(late_room(k), 2**62), np.full(late_room(k), -1)  # beyond the lot there is nothing to be taken
        for column, values in zip(room, lot, strict=True):
            column[:late] = values
        size = merge_late(size, *best, late, *room)
        done += late
        expected = sorted_best((documents[0][:done], documents[1][:done], documents[2][:done]), k)
        assert sorted(rows((best[0][:size], best[1][:size], best[2][:size]))) == sorted(expected)
        assert size < k or rows(best)[0] == expected[-1]
    expected = sorted_best(documents, k)
    assert rows(best_first(size, best[0].copy(), best[1].copy(), best[2].copy())) == expected
    sort_late(size, *best)
    assert rows((best[0][:size], best[1][:size], best[2][:size])) == expected


@pytest.mark.parametrize("seed", range(1_000 if LONG else 100))
def test_ties(seed: int) -> None:
    """Runs of equal scores, shorter and longer than are sorted by insertion, wherever the sort by score left them."""
    rng = np.random.default_rng(seed)
    runs = rng.choice([1, 2, FEW_TIES - 1, FEW_TIES, FEW_TIES + 1, 200], int(rng.integers(0, 8)))
    score = rng.permutation(np.repeat(rng.permutation(len(runs)).astype(np.float64), runs))
    seq = rng.permutation(2 * len(score) + 1)[: len(score)].astype(np.int64)
    order = np.lexsort((rng.random(len(score)), -score)).astype(np.int64)
    order_ties(score, seq, order)
    assert order.tolist() == sorted(range(len(score)), key=lambda i: (-score[i], -seq[i]))
