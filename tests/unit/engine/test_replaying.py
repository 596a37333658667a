"""Reading the log ahead: what may go straight into segments, and in what pieces."""

from collections.abc import Iterator

import pytest

from agentir_ray.engine import replaying
from agentir_ray.engine.replaying import EntriesAhead
from agentir_ray.storage.codec import encode_body
from agentir_ray.storage.protocol import Entry, EntryKind
from agentir_ray.types import Record


def entry(seq: int, kind: EntryKind = EntryKind.ADD, text: str = "rain", supersedes: str | None = None, erased: bool = False) -> Entry:
    body = encode_body(Record(f"r{seq}", text, seq, seq, supersedes=supersedes), b"")
    return Entry(seq, kind, f"r{seq}", 0, 1, seq, seq, b"", None if erased else body)


def test_a_row_ends_before_the_first_entry_that_is_something_else() -> None:
    for other in (entry(5, EntryKind.UPDATE), entry(5, EntryKind.FORGET), entry(5, supersedes="r1")):
        ahead = EntriesAhead([entry(1), entry(2, erased=True), entry(3), entry(4, erased=True), other, entry(6)], 0)
        assert ahead.only_new(4) and not ahead.only_new(5)
        assert [batch.ids for batch in ahead.new_documents()] == [["r1", "r3"]]
        assert (ahead.seq, ahead.erased) == (4, [2, 4])
        assert not ahead.only_new(1)
        assert [taken.seq for taken in ahead.take(5)] == [5, 6]
        assert (ahead.seq, ahead.more()) == (6, False)
        assert not list(ahead.new_documents())


def test_too_few_are_no_row() -> None:
    assert not EntriesAhead([entry(1)], 0).only_new(2)


def test_long_texts_are_not_held_by_the_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "AHEAD_BYTES", 3_000)
    monkeypatch.setattr(replaying, "BATCH_CHARACTERS", 2_000)
    read = []

    def entries() -> Iterator[Entry]:
        for seq in range(1, 11):
            read.append(seq)
            yield entry(seq, text="rain " * 200)

    ahead = EntriesAhead(entries(), 0)
    assert ahead.only_new(1_000)
    assert len(read) == 3
    batches = ahead.new_documents()
    assert [len(batch.texts) for batch in batches] == [2] * 5
    assert ahead.seq == 10 and not ahead.only_new(1)
