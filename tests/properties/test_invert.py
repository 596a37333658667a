"""The kernels that build a segment equal their naive twins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentir_ray.kernels import invert
from agentir_ray.kernels.classes import ESCAPE, LENGTHS, TFS
from agentir_ray.lexical.classes import choose_classes
from tests import naive

# Few documents have terms, but they lie in several windows of postings.
windows = st.dictionaries(
    st.one_of(st.integers(0, 3), st.integers(invert.WINDOW - 2, invert.WINDOW + 2), st.integers(2 * invert.WINDOW, 2 * invert.WINDOW + 2)),
    st.dictionaries(st.integers(0, 140), st.one_of(st.integers(1, 4), st.integers(250, 70_000)), max_size=120),
    max_size=8,
)


@settings(max_examples=60)
@given(windows, st.randoms(use_true_random=False))
def test_postings_and_skylines(documents: dict[int, dict[int, int]], random: naive.Shuffler) -> None:
    count = max(documents, default=0) + 1
    size = np.zeros(count + 1, np.int64)
    lists = []
    for doc in sorted(documents):
        pairs = list(documents[doc].items())
        random.shuffle(pairs)
        lists += pairs
        size[doc + 1] = len(pairs)
    doc_start = np.cumsum(size)
    names = list(range(141))
    random.shuffle(names)
    term = np.array([names.index(t) for t, _ in lists], np.int32)
    tf = np.array([f for _, f in lists], np.int32)
    invert.rename_terms(doc_start, 0, count, np.array(names, np.int32), term, tf)
    for doc, own in documents.items():
        assert list(zip(term[doc_start[doc] : doc_start[doc + 1]].tolist(), tf[doc_start[doc] : doc_start[doc + 1]].tolist(), strict=True)) == sorted(own.items())

    length = np.full(count, 1, np.uint32)
    length[list(documents)] = [sum(own.values()) % 1_000 for own in documents.values()]
    chosen = choose_classes(doc_start, tf, length)
    term_block, block_window, block_posting = invert.list_blocks(doc_start, term, 141)
    posting_doc, posting_class = np.empty(len(term), np.uint16), np.empty(len(term), np.uint8)
    overflown = int((tf >= TFS).sum())
    overflow_posting, overflow_tf = np.empty(overflown, np.int64), np.empty(overflown, np.uint32)
    invert.invert(doc_start, term, tf, length, chosen.of, term_block, block_posting, posting_doc, posting_class, overflow_posting, overflow_tf)
    block_skyline, skyline = np.empty(len(block_posting), np.int64), np.empty(len(term), np.uint8)
    written = invert.skylines(block_posting, posting_class, chosen.tf, chosen.shortest, block_skyline, skyline)
    assert block_skyline[-1] == written

    exact = chosen.tf[posting_class].astype(np.int64)
    exact[overflow_posting] = overflow_tf
    assert (posting_class[overflow_posting] == ESCAPE).all() and (posting_class == ESCAPE).sum() == overflown
    found = []
    for t in range(141):
        for b in range(term_block[t], term_block[t + 1]):
            own = range(block_posting[b], block_posting[b + 1])
            pairs = [(int(posting_doc[p]), int(exact[p])) for p in own]
            found.append((t, int(block_window[b]), pairs))
            worth = [(int(chosen.tf[posting_class[p]]), int(chosen.shortest[posting_class[p]])) for p in own]
            for (tf_at_most, shortest), (doc, f) in zip(worth, pairs, strict=True):
                assert f <= tf_at_most and shortest <= length[int(block_window[b]) * invert.WINDOW + doc]
            line = skyline[block_skyline[b] : block_skyline[b + 1]]
            assert list(zip(chosen.tf[line].tolist(), chosen.shortest[line].tolist(), strict=True)) == naive.skyline(worth)
    assert found == naive.blocks(documents, invert.WINDOW)

    forward, forward_start = np.empty(invert.measure_forward(doc_start, term, tf), np.uint8), np.empty(count + 1, np.int64)
    assert invert.pack_forward(doc_start, term, tf, forward_start, forward) == len(forward)
    for doc, own in documents.items():
        terms, tfs = np.empty(len(own), np.int32), np.empty(len(own), np.int32)
        assert invert.unpack_forward(forward_start, forward, doc, terms, tfs, 0) == len(own)
        assert dict(zip(terms.tolist(), tfs.tolist(), strict=True)) == own


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), unique=True))
def test_pairs_are_grouped(pairs: list[tuple[int, int]]) -> None:
    start, docs = invert.group_pairs(np.array([g for g, _ in pairs], np.int64), np.array([d for _, d in pairs], np.int64), 5, 10)
    assert [docs[start[g] : start[g + 1]].tolist() for g in range(5)] == [sorted(d for group, d in pairs if group == g) for g in range(5)]


@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(1, 9)), max_size=6), st.randoms(use_true_random=False))
def test_documents_are_placed(own: list[dict[int, int]], random: naive.Shuffler) -> None:
    place = list(range(len(own)))
    random.shuffle(place)
    starts = np.cumsum([0, *map(len, own)])
    size = np.zeros(len(own) + 1, np.int64)
    size[1 + np.array(place, np.int64)] = np.diff(starts)
    doc_start = np.cumsum(size)
    term, tf = np.empty(doc_start[-1], np.int32), np.empty(doc_start[-1], np.int32)
    terms, tfs = (np.array([pair[i] for each in own for pair in each.items()], np.int32) for i in (0, 1))
    invert.place_documents(starts, terms, tfs, np.array([5, 4, 3, 2, 1, 0], np.int32), np.array(place, np.int64), doc_start, term, tf)
    for i, where in enumerate(place):
        at = slice(doc_start[where], doc_start[where + 1])
        assert list(zip(term[at].tolist(), tf[at].tolist(), strict=True)) == [(5 - t, f) for t, f in own[i].items()]


@given(st.lists(st.tuples(st.integers(1, 3 * TFS), st.integers(1, 2 * LENGTHS)), min_size=1, max_size=60), st.integers(1, 40))
def test_classes_bound_what_they_hold(pairs: list[tuple[int, int]], repeats: int) -> None:
    """Exact where there are few distinct pairs; otherwise a class has the postings' tf and a length that is not above theirs."""
    spread = [(tf, length + shift * 7) for tf, length in pairs for shift in range(repeats)]
    tf, length = np.array([f for f, _ in spread], np.int32), np.array([n for _, n in spread], np.uint32)
    chosen = choose_classes(np.arange(len(spread) + 1), tf, length)
    classed = [(f, n) for f, n in spread if f < TFS]
    few = len({(f, min(n, LENGTHS - 1)) for f, n in classed}) <= ESCAPE
    for f, n in classed:
        c = chosen.of[f * LENGTHS + min(n, LENGTHS - 1)]
        assert c != ESCAPE and chosen.tf[c] == f and chosen.shortest[c] <= n
        assert not few or chosen.shortest[c] == min(n, LENGTHS - 1)
    if len(classed) < len(spread):
        assert chosen.tf[ESCAPE] == tf.max() and chosen.shortest[ESCAPE] <= length.min()
