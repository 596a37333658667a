"""Young vectors: what is added is there, what is removed is not, and a view stays as it was taken."""

import threading
from random import Random
from typing import Any

import numpy as np
import pytest

from agentir_ray.dense.young import YoungVectors, YoungView
from agentir_ray.errors import EncodingError


def listed(view: YoungView) -> dict[int, Any]:
    return {seq: view.vectors[view.start[i] : view.start[i + 1]].tolist() for i, seq in enumerate(view.seq.tolist())}


def test_it_is_a_dictionary_of_vectors() -> None:
    random, young, expected = Random(1), YoungVectors(2), dict[int, Any]()
    views: list[tuple[YoungView, dict[int, Any]]] = []
    for _ in range(600):
        if random.random() < 0.8:
            seq = random.randrange(300)
            vectors = np.array([[random.random(), seq] for _ in range(random.choice([0, 1, 1, 3]))], np.float32).reshape(-1, 2)
            young.add(seq, vectors)
            expected[seq] = vectors.tolist()
        else:
            gone = random.sample(range(400), random.choice([1, 50]))
            young.remove(gone)
            for seq in gone:
                expected.pop(seq, None)
        views.append((young.view(), dict(expected)))
        assert len(young) == len(expected)
    assert all(listed(view) == then for view, then in views)
    asked = [5, 1_000, 7, 5]
    got = young.get(asked)
    assert [got.vectors[got.start[i] : got.start[i + 1]].tolist() for i in range(4)] == [expected.get(seq, []) for seq in asked]


def test_what_cannot_be_searched_is_refused() -> None:
    young = YoungVectors(2)
    with pytest.raises(EncodingError, match="shape"):
        young.add(1, np.zeros((1, 3), np.float32))
    with pytest.raises(EncodingError, match="not finite"):
        young.add(1, np.array([[0.0, np.nan]], np.float32))
    assert len(young) == 0 and young.memory_bytes() > 0


def test_readers_see_whole_records_beside_writers() -> None:
    young, torn = YoungVectors(4), list[int]()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            view = young.view()
            for i, seq in enumerate(view.seq.tolist()):
                if (view.vectors[view.start[i] : view.start[i + 1]] != seq).any():
                    torn.append(seq)

    reader = threading.Thread(target=read)
    reader.start()
    for seq in range(2_000):
        young.add(seq, np.full((1 + seq % 3, 4), seq, np.float32))
        if seq % 100 == 99:
            young.remove(range(seq - 50, seq))
    done.set()
    reader.join()
    assert not torn
