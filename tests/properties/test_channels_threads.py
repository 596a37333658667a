"""Searching by channels while records are written, encoded, sealed and merged by others: what had its vector when a search began is found by it, once, with its own score."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentir_ray import Memory
from agentir_ray.encoders.hashing import HashingEncoder, HashingSparseEncoder
from agentir_ray.engine.policy import Limits
from tests.conftest import LONG

LIMITS = Limits(seal_at=8, max_unsealed=1_000, decent=16, largest=64)
RECORDS = 2_000 if LONG else 250
BOTH = {"mode": "convex", "weights": {"sparse": 1, "dense": 1}, "depth": 10_000}


def together(*works: Callable[[], None]) -> None:
    """Run them in threads; raise what any of them raised."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path, limits=LIMITS, durability="process", encoder=HashingEncoder(16), sparse_encoder=HashingSparseEncoder()) as memory:
        yield memory


def test_what_has_its_vector_is_found_while_it_moves_to_a_sidecar(memory: Memory) -> None:
    encoded = 0
    over = threading.Event()

    def write() -> None:
        nonlocal encoded
        try:
            for number in range(RECORDS):
                memory.add(f"river w{number % 7}", id=f"r{number}", session=f"s{number % 3}")
                if number % 3 == 2:
                    assert memory.wait_encoded(60)
                    encoded = number + 1
        finally:
            over.set()

    def read(options: dict[str, Any]) -> Callable[[], None]:
        def loop() -> None:
            while not over.is_set():
                before = encoded
                hits = memory.search("river w1", k=10_000, **options).hits
                ids = [hit.record.id for hit in hits]
                assert len(set(ids)) == len(ids), "nothing is found twice"
                missing = {f"r{number}" for number in range(before)} - set(ids)
                assert not missing, (options, before, missing)
                by_text: dict[str, set[float]] = {}
                for hit in hits:
                    by_text.setdefault(hit.record.text, set()).add(hit.score)
                if options["mode"] in ("dense", "sparse"):
                    assert all(len(scores) == 1 for scores in by_text.values())

        return loop

    together(write, read({"mode": "dense"}), read({"mode": "sparse"}), read(BOTH))


def test_searches_go_on_while_encoders_are_exchanged(memory: Memory) -> None:
    for number in range(100):
        memory.add(f"river w{number}", id=f"r{number}")
    assert memory.wait_encoded(60)
    over = threading.Event()

    def exchange() -> None:
        try:
            for round in range(20 if LONG else 4):
                memory.reembed(HashingEncoder(32 if round % 2 == 0 else 16))
        finally:
            over.set()

    def read(options: dict[str, Any]) -> Callable[[], None]:
        def loop() -> None:
            number = 0
            while not over.is_set():
                number = (number + 1) % 100
                hits = memory.search(f"river w{number}", k=100, **options).hits
                assert len(hits) == 100 and hits[0].record.id == f"r{number}", options

        return loop

    together(exchange, read({"mode": "dense"}), read(BOTH), read({"mode": "dense", "rerank": "maxsim"}))
