"""Readers beside a writer: every answer is the oracle's at the snapshot's sequence number, whatever is added, deleted, sealed or merged meanwhile."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agentir_ray.kernels import classes, growing, hashing, heap, invert, lookup, scores, tokenize, topk, topk_buffer, visible
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.types import Record
from tests.naive import NaiveIndex, Question
from tests.properties.index_world import ask, document_of, search, write_segment

WORDS = ["a", "b", "c", "d", "e"]
NAMES = [f"r{i}" for i in range(30)]


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def some_question(random: Random) -> Question:
    terms = random.sample(WORDS, k=random.randrange(1, 4))
    return Question(
        terms,
        [1.0] * len(terms),
        k=random.choice([1, 5, 40]),
        now_us=500,
        as_of_us=random.choice([None, None, random.randrange(600)]),
        where=random.choice([{}, {"session": {"eq": "s1"}}]),
        importance_weight=random.choice([0.0, 1.0]),
    )


def some_change(random: Random, oracle: NaiveIndex, seq: int) -> tuple[str, Any]:
    alive = [version.record.id for version in oracle.versions if not version.deleted]
    if alive and random.random() < 0.12:
        return "erase", random.sample(alive, k=1)
    id = random.choice(NAMES) + ("" if random.random() < 0.5 else f"-{seq}")
    if oracle.find(id) == [] and any(version.record.id == id for version in oracle.versions):
        id = f"n{seq}"  # an erased id never comes back
    text = " ".join(random.choices(WORDS, k=random.randrange(1, 5)))
    supersedes = random.choice([None, None, random.choice([*NAMES, *alive])])
    return ("add" if oracle.current(id) is None else "replace"), Record(id, text, seq, seq, random.random(), random.choice(["s1", "s2"]), supersedes=supersedes)


def apply_to_oracle(oracle: NaiveIndex, seq: int, kind: str, content: Any) -> None:
    if kind == "erase":
        oracle.erase(content)
    else:
        (oracle.add if kind == "add" else oracle.replace)(seq, content, content.text.split())


@pytest.mark.parametrize("seed", range(4))
def test_snapshots_are_isolated(seed: int, tmp_path: Path) -> None:
    index, oracle = Index([], 0), NaiveIndex()
    log: list[tuple[str, Any]] = []
    answers: list[list[tuple[int, Question, Any, Any]]] = [[], []]
    failures: list[BaseException] = []
    done = threading.Event()

    def write() -> None:
        random = Random(seed)
        for seq in range(1, 401):
            kind, content = some_change(random, oracle, seq)
            located = index.locate(content if kind == "erase" else ())
            with index.lock:
                if kind == "erase":
                    index.erase(seq, located)
                else:
                    (index.add if kind == "add" else index.replace)(seq, document_of(content, seq))
                index.seq = seq
            apply_to_oracle(oracle, seq, kind, content)
            log.append((kind, content))
            if seq % 37 == 0:
                with index.lock:
                    buffer = index.freeze()
                segment = write_segment(draft_buffer(buffer, "n", "f"), tmp_path / f"{seq}.segment")
                with index.lock:
                    index.install([buffer], segment)
            if seq % 101 == 0:
                segments = index.segments
                merged = write_segment(draft_segments(segments, "n", "f"), tmp_path / f"{seq}-merged.segment")
                with index.lock:
                    index.install(segments, merged)

    def read(number: int) -> None:
        random = Random(1_000 * seed + number)
        while not done.is_set() and len(answers[number]) < 1_500:
            question = some_question(random)
            snapshot, found = search(index, question)
            answers[number].append((snapshot.seq, question, snapshot.statistics, [(hit.seq, hit.score) for hit in found]))
            if random.random() < 0.3:  # the same snapshot later gives the same answer
                again = ask(snapshot, question).found
                assert again == found

    def run(work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failures.append(error)
        finally:
            if work is write:
                done.set()

    threads = [threading.Thread(target=run, args=arguments) for arguments in [(read, 0), (read, 1), (write,)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]

    # Replay the log and compare each answer at its own moment; the readers' answers come in order of seq.
    replayed = NaiveIndex()
    every = sorted((answer for answered in answers for answer in answered), key=lambda answer: answer[0])
    at = 0
    for seq, (kind, content) in enumerate([("erase", []), *log]):
        if seq:
            apply_to_oracle(replayed, seq, kind, content)
        while at < len(every) and every[at][0] == seq:
            _, question, statistics, found = every[at]
            if at % 3 == 0:
                assert tuple(statistics) == replayed.statistics(question.terms)
                assert found == replayed.search(question), (seq, question)
            at += 1
    assert at == len(every) and len({answer[0] for answer in every}) > 20


def test_a_view_keeps_its_moment(tmp_path: Path) -> None:
    """Changes of changes (restored, superseded earlier, erased after a deletion) do not show through to a snapshot taken before."""
    for sealed in (False, True):
        index, oracle = Index([], 0), NaiveIndex()

        def commit(kind: str, content: Any, index: Index = index, oracle: NaiveIndex = oracle) -> None:
            seq = index.seq + 1
            if kind == "erase":
                index.erase(seq, index.locate(content))
            else:
                (index.add if kind == "add" else index.replace)(seq, document_of(content, seq))
            apply_to_oracle(oracle, seq, kind, content)
            index.seq = seq

        commit("add", Record("x", "a", 1, 1))
        commit("add", Record("z", "a", 1, 1))
        commit("add", Record("y", "a b", 2, 10, supersedes="x"))
        commit("replace", Record("z", "a a", 2, 10))
        if sealed:
            buffer = index.freeze()
            index.install([buffer], write_segment(draft_buffer(buffer, "n", "f"), tmp_path / "view.segment"))
        questions = [Question(["a", "b"], [1.0, 1.0], as_of_us=as_of) for as_of in (None, 5, 9, 10, 20)]
        taken = [(index.snapshot(("a", "b")), question, oracle.search(question)) for question in questions]
        commit("add", Record("w", "a", 3, 7, supersedes="x"))
        taken += [(index.snapshot(("a", "b")), question, oracle.search(question)) for question in questions]
        commit("erase", ["y"])
        taken += [(index.snapshot(("a", "b")), question, oracle.search(question)) for question in questions]
        commit("erase", ["z", "w"])
        taken += [(index.snapshot(("a", "b")), question, oracle.search(question)) for question in questions]
        for snapshot, question, expected in taken:
            assert [(hit.seq, hit.score) for hit in ask(snapshot, question).found] == expected


def test_each_kernel_is_compiled_once() -> None:
    """A kernel that is called from Python has one declared signature: mapped or heap arrays, integers or floats, nothing is compiled at the first search."""
    called = [
        *(topk.search, topk.search_long, topk.search_many, topk.count_before, topk.score_documents, topk.reach_of_segments, topk.term_tf, topk_buffer.search_buffer),
        *(
            scores.score_buffer,
            scores.add_priors,
            scores.count_before,
            visible.last_visible,
            heap.sort_heap,
            heap.order_ties,
            lookup.look_up,
            classes.count_pairs,
            invert.fill_bitmaps,
            invert.place_postings,
        ),
        *(growing.append_postings, growing.find_tf, hashing.hash_strings, hashing.find_strings, hashing.unite_strings),
        *(invert.rename_terms, invert.list_blocks, invert.invert, invert.skylines, invert.measure_forward, invert.pack_forward, invert.place_documents, invert.group_pairs),
        *(invert.gather_forward, invert.count_each, invert.subtract_terms, tokenize.scan_texts, tokenize.place_words, tokenize.count_tokens, tokenize.count_terms),
    ]
    for kernel in called:
        assert len(kernel.signatures) == 1 and not kernel._can_compile, kernel.__name__
