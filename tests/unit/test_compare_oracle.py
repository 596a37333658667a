"""The oracles that the compared engines are held to, on 200 documents: that they find their own answers right and wrong ones wrong, and that each formula is its own."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.compare import oracle
from benchmarks.compare.corpora import Collection, open_collection
from benchmarks.compare.oracle import BM25S, BYTE_LENGTHS, LUCENE, OURS, PISA, TANTIVY, Formula, Oracle


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return open_collection("synthetic", tmp_path_factory.mktemp("cache"), documents=200, bursty=False, queries=20)


def _naive(collection: Collection, query: list[int], formula: Formula, document: int) -> float:
    lengths = collection.length.tolist()
    starts = np.cumsum([0, *lengths])
    texts = [collection.tokens[a:b].tolist() for a, b in pairwise(starts.tolist())]
    average = sum(lengths) / len(lengths)
    length = max(value for value in BYTE_LENGTHS if value <= lengths[document]) if formula.byte_lengths else lengths[document]
    total = 0.0
    for term in query:
        df, tf = sum(term in text for text in texts), texts[document].count(term)
        odds = (len(texts) - df + 0.5) / (df + 0.5)
        idf = np.log(1 + odds) if formula.idf == "positive" else max(1e-6, np.log(odds))
        total += idf * tf / (tf + formula.k1 * (1 - formula.b + formula.b * length / average)) * (formula.k1 + 1 if formula.times_k1_plus_1 else 1)
    return total


@pytest.mark.parametrize("formula", [OURS, PISA, LUCENE, TANTIVY, BM25S])
def test_scores_are_the_formula(collection: Collection, formula: Formula) -> None:
    expected = Oracle(collection, collection.queries)
    for query in collection.queries[:5]:
        scores = expected.scores(query, formula)
        for document in (int(scores.argmax()), 7):
            assert scores[document] == pytest.approx(_naive(collection, query.tolist(), formula, document))


def test_a_right_answer_passes_and_wrong_ones_do_not(collection: Collection) -> None:
    expected = Oracle(collection, collection.queries[:1])
    scores = expected.scores(collection.queries[0], OURS)
    best = np.argsort(-scores)[:10]
    assert expected.faults([(best, scores[best])], 10, OURS) == []
    assert expected.faults([(best[:9], scores[best[:9]])], 10, OURS)
    assert expected.faults([(best, scores[best] * 1.001)], 10, OURS)
    assert expected.faults([(np.repeat(best[:1], 10), np.repeat(scores[best[:1]], 10))], 10, OURS)
    assert expected.faults([(best[::-1], scores[best])], 10, OURS)


def test_lengths_of_a_byte() -> None:
    assert BYTE_LENGTHS[:41].tolist() == list(range(41))
    assert BYTE_LENGTHS[41:50].tolist() == [42, 44, 46, 48, 50, 52, 54, 56, 60]
    assert len(BYTE_LENGTHS) == 256


def test_overlap() -> None:
    one, other = (np.array([1, 2, 3]), np.ones(3)), (np.array([3, 4, 1]), np.ones(3))
    assert oracle.overlap([one], [other], 3) == pytest.approx(2 / 3)
    assert oracle.overlap([one], [one], 10) == 1


def test_the_collection_is_what_the_cache_holds(collection: Collection) -> None:
    again = Collection(Path(collection.folder))
    assert again.documents == 200
    assert again.meta["postings"] == len(again.counted.term)
    assert np.array_equal(np.bincount(again.counted.term, again.counted.tf), np.bincount(again.tokens))
    assert [text.split() for text in again.document_texts()][3] == [f"t{term}" for term in again.tokens[again.length[:3].sum() : again.length[:4].sum()]]
