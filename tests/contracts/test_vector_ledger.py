"""The ledger keeps what it acknowledged, gives each text its own values and no others, and keeps nothing of what was erased."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agentir_ray.errors import DamagedError, FormatError, NotFoundError
from agentir_ray.storage.sqlite_log import SqliteLog
from agentir_ray.storage.vector_ledger import Encoded, VectorLedger, VectorReader

ONE, TWO = "dense:one@1", "dense:two@1"


def digest(text: str) -> bytes:
    return text.encode().ljust(16, b".")


def value(text: str, encoder: str = ONE) -> bytes:
    return f"{encoder} of {text} ".encode() * 40


def put(ledger: VectorLedger, number: int, records: dict[int, str], encoder: str = ONE, seen: tuple[int, int] | None = None) -> None:
    ledger.put(number, [(seq, digest(text)) for seq, text in records.items()], {encoder: Encoded({digest(text): value(text, encoder) for text in records.values()}, seen)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite3"


@pytest.fixture
def ledger(path: Path) -> Iterator[VectorLedger]:
    ledger = VectorLedger(path, durability="process")
    yield ledger
    ledger.close()


def test_values_are_found_by_text_by_record_and_in_order(ledger: VectorLedger) -> None:
    put(ledger, 1, {1: "a", 2: "b", 5: "a"}, seen=(0, 6))
    assert ledger.known(1, ONE, [digest("a"), digest("c")]) == {digest("a"): value("a")}
    assert ledger.get(1, ONE, [5, 2, 9]) == {5: value("a"), 2: value("b")}
    assert list(ledger.held(1, ONE)) == [(1, value("a")), (2, value("b")), (5, value("a"))]
    assert list(ledger.held(1, ONE, 1, 4)) == [(2, value("b"))]
    assert ledger.cursor(1, ONE) == 6 and ledger.cursors() == {(1, ONE): 6}
    assert ledger.known(1, TWO, [digest("a")]) == ledger.get(1, TWO, [1]) == {} and list(ledger.held(1, TWO)) == [] and ledger.cursor(1, TWO) is None


def test_namespaces_share_nothing(ledger: VectorLedger) -> None:
    put(ledger, 1, {1: "a"})
    assert ledger.known(2, ONE, [digest("a")]) == ledger.get(2, ONE, [1]) == {}
    put(ledger, 2, {1: "a"}, seen=(0, 1))
    ledger.drop(1)
    assert ledger.get(1, ONE, [1]) == {} and ledger.get(2, ONE, [1]) == {1: value("a")} and ledger.numbers() == {2}


def test_a_cursor_moves_on_only_from_where_it_was(ledger: VectorLedger) -> None:
    put(ledger, 1, {1: "a"}, seen=(0, 4))
    put(ledger, 1, {9: "b"}, seen=(3, 9))
    assert ledger.cursor(1, ONE) == 4
    ledger.rewind(1, ONE, 2)
    assert ledger.cursor(1, ONE) == 2


def test_a_text_stays_while_some_record_has_it(ledger: VectorLedger) -> None:
    put(ledger, 1, {1: "a", 2: "a", 3: "b"})
    put(ledger, 1, {}, TWO)
    ledger.erase(1, [1, 3, 77])
    assert ledger.get(1, ONE, [1, 2, 3]) == {2: value("a")} and ledger.seqs(1) == [2]
    ledger.erase(1, [2])
    assert ledger.known(1, ONE, [digest("a"), digest("b")]) == {} and ledger.numbers() == set()


def test_what_was_erased_meanwhile_is_left_out(ledger: VectorLedger) -> None:
    left = ledger.put(1, [(1, digest("a")), (2, digest("b"))], {ONE: Encoded({digest("a"): value("a"), digest("b"): value("b")}, (0, 2))}, gone=lambda seqs: [seqs[0]])
    assert left == [1] and list(ledger.held(1, ONE)) == [(2, value("b"))] and ledger.cursor(1, ONE) == 2


def test_texts_that_an_encoder_refused_are_known_and_can_be_tried_again(ledger: VectorLedger) -> None:
    ledger.put(1, [(3, digest("a")), (4, digest("b"))], {ONE: Encoded({digest("a"): b"", digest("b"): value("b")}, (0, 5))})
    assert ledger.known(1, ONE, [digest("a")]) == {digest("a"): b""}
    assert ledger.retry(1, ONE) == 2 and ledger.cursor(1, ONE) == 2
    assert ledger.known(1, ONE, [digest("a"), digest("b")]) == {digest("b"): value("b")}
    assert ledger.retry(1, ONE) is None


def test_other_encoders_values_go_when_they_are_not_kept(ledger: VectorLedger) -> None:
    put(ledger, 1, {1: "a"}, ONE, (0, 1))
    put(ledger, 1, {1: "a"}, TWO, (0, 1))
    put(ledger, 2, {1: "a"}, ONE, (0, 1))
    ledger.keep_only(1, [TWO])
    assert ledger.get(1, ONE, [1]) == {} and ledger.get(1, TWO, [1]) == {1: value("a", TWO)} and ledger.get(2, ONE, [1]) == {1: value("a")}
    assert ledger.cursors() == {(1, TWO): 1, (2, ONE): 1}


def test_a_log_that_lost_its_end_takes_it_from_the_ledger(ledger: VectorLedger) -> None:
    put(ledger, 1, {1: "a", 2: "b", 3: "c"}, seen=(0, 3))
    ledger.truncate(1, 1)
    assert list(ledger.held(1, ONE)) == [(1, value("a"))] and ledger.cursor(1, ONE) == 1
    put(ledger, 1, {2: "other"}, seen=(1, 2))
    assert ledger.get(1, ONE, [2]) == {2: value("other")}


@pytest.mark.parametrize("readers", [False, True])
def test_what_is_erased_is_in_no_file_after_a_purge(ledger: VectorLedger, path: Path, readers: bool) -> None:
    put(ledger, 1, {seq: f"secret{seq}" for seq in range(1, 200)})
    reader = VectorReader(path)
    if readers:
        assert len(list(reader.held(1, ONE))) == 199
    ledger.erase(1, range(1, 150))
    assert ledger.purge()
    there = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"secret150" in there and not any(f"secret{seq} ".encode() in there or digest(f"secret{seq}") in there for seq in range(1, 150))
    reader.close()


def test_damage_is_told_and_damaged_values_are_not_given(ledger: VectorLedger, path: Path) -> None:
    put(ledger, 1, {1: "a", 2: "b"})
    assert ledger.verify() == []
    ledger._transact(lambda writer: writer.execute("UPDATE vectors SET data = x'0102' WHERE rowid = (SELECT min(key) FROM vectors)"))
    assert ["checksum" in line for line in ledger.verify()] == [True]
    assert list(ledger.held(1, ONE)) == [(2, value("b"))] and ledger.get(1, ONE, [1, 2], check=True) == {2: value("b")}
    assert ledger.known(1, ONE, [digest("a")]) == {}
    put(ledger, 1, {1: "a"})
    assert ledger.verify() == [] and ledger.get(1, ONE, [1]) == {1: value("a")}


def test_a_backup_is_the_ledger(ledger: VectorLedger, tmp_path: Path) -> None:
    put(ledger, 1, {1: "a"}, seen=(0, 1))
    ledger.backup(str(tmp_path / "copy"))
    with pytest.raises(ValueError, match="exists"):
        ledger.backup(str(tmp_path / "copy"))
    copy = VectorReader(tmp_path / "copy")
    assert list(copy.held(1, ONE)) == [(1, value("a"))] and copy.cursors() == {(1, ONE): 1}
    copy.close()


def test_other_files_are_refused(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "log").close()
    with pytest.raises(FormatError):
        VectorLedger(tmp_path / "log")
    (tmp_path / "text").write_text("no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(DamagedError):
        VectorLedger(tmp_path / "text")
    with pytest.raises(NotFoundError):
        VectorReader(tmp_path / "nothing")


class LedgerModel(RuleBasedStateMachine):
    """Against dictionaries: the text of each record, and the values of each text."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = VectorLedger(Path(self.folder.name, "vectors"), durability="process")
        self.texts: dict[tuple[int, int], str] = {}
        self.values: dict[tuple[int, str, str], bytes] = {}

    numbers = st.integers(1, 2)
    encoders = st.sampled_from([ONE, TWO])

    @rule(number=numbers, encoder=encoders, records=st.dictionaries(st.integers(1, 12), st.sampled_from("abcdef"), max_size=5), refused=st.booleans())
    def put(self, number: int, encoder: str, records: dict[int, str], refused: bool) -> None:
        records = {seq: self.texts.get((number, seq), text) for seq, text in records.items()}
        made = {text: b"" if refused else value(text, encoder) for text in records.values()}
        self.ledger.put(number, [(seq, digest(text)) for seq, text in records.items()], {encoder: Encoded({digest(text): data for text, data in made.items()})})
        self.texts |= {(number, seq): text for seq, text in records.items()}
        self.values |= {(number, encoder, text): data for text, data in made.items()}

    @rule(number=numbers, seqs=st.lists(st.integers(1, 12), max_size=6))
    def erase(self, number: int, seqs: list[int]) -> None:
        self.ledger.erase(number, seqs)
        self._forget(number, seqs)

    @rule(number=numbers, last=st.integers(0, 12))
    def truncate(self, number: int, last: int) -> None:
        self.ledger.truncate(number, last)
        self._forget(number, list(range(last + 1, 13)))

    def _forget(self, number: int, seqs: list[int]) -> None:
        for seq in seqs:
            self.texts.pop((number, seq), None)
        left = {text for (owner, _), text in self.texts.items() if owner == number}
        self.values = {key: data for key, data in self.values.items() if key[0] != number or key[2] in left}

    @rule(number=numbers)
    def drop(self, number: int) -> None:
        self.ledger.drop(number)
        self._forget(number, list(range(1, 13)))

    @rule(number=numbers, encoder=encoders)
    def keep_only(self, number: int, encoder: str) -> None:
        self.ledger.keep_only(number, [encoder])
        self.values = {key: data for key, data in self.values.items() if key[0] != number or key[1] == encoder}

    @rule()
    def purge_or_reopen(self) -> None:
        assert self.ledger.purge()
        self.ledger.close()
        self.ledger = VectorLedger(Path(self.folder.name, "vectors"), durability="process")

    @invariant()
    def same(self) -> None:
        for number in (1, 2):
            texts = {seq: text for (owner, seq), text in sorted(self.texts.items()) if owner == number}
            assert self.ledger.seqs(number) == list(texts)
            for encoder in (ONE, TWO):
                expected = [(seq, self.values[number, encoder, text]) for seq, text in texts.items() if (number, encoder, text) in self.values]
                assert list(self.ledger.held(number, encoder)) == expected
                assert self.ledger.get(number, encoder, list(range(1, 13))) == dict(expected)
        assert self.ledger.verify() == []

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.ledger.close()
            self.folder.cleanup()


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
