"""F13, F14, F15, F17, F18: whose time it is, what a word is, and how long an answer may take."""

import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from agentir_ray import EncoderMismatchError, EncoderMissingError, InvalidInputError, Memory
from agentir_ray.analysis import get_analyzer
from agentir_ray.clock import ManualClock, SystemClock
from agentir_ray.encoders.hashing import HashingEncoder
from agentir_ray.encoders.protocol import Floats, LateVectors
from agentir_ray.engine.policy import Limits
from agentir_ray.retrieval.reranker import Candidate
from tests.field_reports.conftest import Open

KOLKATA = timezone(timedelta(hours=5, minutes=30))


def ids(memory: Memory, query: str = "rain", **parameters: Any) -> list[str]:
    return [hit.record.id for hit in memory.search(query, **parameters)]


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def server_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("server_zone")
def test_f13_times_are_utc_and_bounds_inclusive(memory: Memory) -> None:
    memory.add("rain", id="before", timestamp=datetime(2026, 3, 1, 23, 59, 59, 999_999))
    memory.add("rain", id="first", timestamp=datetime(2026, 3, 2))
    memory.add("rain", id="zone", timestamp=datetime(2026, 3, 2, 5, 30, tzinfo=KOLKATA))
    memory.add("rain", id="last", timestamp="2026-03-02T23:59:59.999999Z")
    memory.add("rain", id="after", timestamp="2026-03-03")
    day = {"since": "2026-03-02", "until": "2026-03-02T23:59:59.999999"}
    assert ids(memory, **day) == ["last", "zone", "first"]
    assert [record.id for record in memory.recent(**day).records] == ["last", "zone", "first"]
    assert ids(memory, where={"timestamp": {"gte": day["since"], "lte": day["until"]}}) == ["last", "zone", "first"]
    assert ids(memory, where={"timestamp": {"gt": day["since"], "lt": day["until"]}}) == []
    assert ids(memory, since=datetime(2026, 3, 2, 5, 30, tzinfo=KOLKATA), until=datetime(2026, 3, 2, tzinfo=UTC)) == ["zone", "first"]
    assert memory.get("zone").timestamp == datetime(2026, 3, 2, tzinfo=UTC)


def test_f13_ranges_are_of_the_event_not_of_its_writing(memory: Memory, clock: ManualClock) -> None:
    memory.add("rain", id="old", timestamp="2001-01-01")
    memory.add("rain", id="new", timestamp="2030-01-01")
    assert ids(memory, until="2010-01-01") == ["old"]
    assert ids(memory, since="2010-01-01") == ["new"]
    now = datetime.fromtimestamp(clock.now_us() / 1e6, UTC)
    assert ids(memory, since=now - timedelta(days=1), until=now + timedelta(days=1)) == []
    assert ids(memory, where={"created_at": {"gte": now - timedelta(days=1), "lte": now}}) == ["new", "old"]


@pytest.mark.usefixtures("server_zone")
def test_f14_now_is_the_callers(memory: Memory, clock: ManualClock) -> None:
    """A replay: what was known then, as recent as it was then, whatever the server's clock says now."""
    written = datetime(2023, 5, 2, tzinfo=UTC)
    replay = memory.use("replay")
    replay.import_({"text": "rain", "id": id, "timestamp": datetime(2023, 5, day), "created_at": written, "expires_at": "2023-06-01"} for day, id in ((1, "a"), (2, "b")))
    assert ids(replay) == []  # expired by the server's clock
    assert ids(replay, as_of=written - timedelta(microseconds=1)) == []  # not yet written
    asked = {"as_of": datetime(2023, 5, 3), "recency": (1.0, "1d"), "explain": True}
    hits = replay.search("rain", **asked).hits
    assert [hit.record.id for hit in hits] == ["b", "a"]
    assert [hit.explanation.recency for hit in hits if hit.explanation] == [math.exp(-1.0), math.exp(-2.0)]
    clock.advance(86_400 * 365)
    assert replay.search("rain", **asked).hits == hits
    assert replay.search("rain", **asked | {"as_of": "2023-05-03T05:30+05:30"}).hits == hits


@pytest.mark.usefixtures("server_zone")
def test_f14_yesterday_is_the_callers(memory: Memory, clock: ManualClock) -> None:
    """The day before the caller's `as_of`, in the offset in which they give it; UTC where they give none, and never the server's day or zone."""
    for hour in range(0, 72, 6):
        memory.import_([{"text": "rain", "id": f"{hour:02}", "timestamp": datetime(2023, 5, 1) + timedelta(hours=hour), "created_at": datetime(2023, 5, 1)}])

    def yesterday(as_of: Any) -> list[str]:
        return sorted(ids(memory, "rain yesterday", as_of=as_of, temporal="parse"))

    assert yesterday("2023-05-03T01:00") == yesterday(datetime(2023, 5, 3, 23, 59)) == ["24", "30", "36", "42"]
    assert yesterday("2023-05-03T01:00+10:00") == ["18", "24", "30", "36"]  # 15:00 of the 2nd in UTC; their 2nd began at 14:00 of the 1st
    assert yesterday(datetime(2023, 5, 2, 20, tzinfo=timezone(timedelta(hours=-8)))) == ["12", "18", "24", "30"]
    clock.advance(86_400 * 365)
    assert yesterday("2023-05-03T01:00") == ["24", "30", "36", "42"]


def test_f14_what_happened_later_is_as_if_not_yet_done(memory: Memory, clock: ManualClock) -> None:
    def now() -> int:
        clock.advance(10)
        return clock.now_us()

    memory.add("rain in Lisbon", id="a")
    after_add = now()
    clock.advance(1)
    memory.update("a", text="rain in Porto")
    after_update = now()
    clock.advance(1)
    memory.add("rain in Faro", id="b", supersedes="a")
    after_supersession = now()

    def texts(as_of: int | None) -> list[str]:
        return [hit.record.text for hit in memory.search("rain", as_of=as_of)]

    assert texts(after_add) == ["rain in Lisbon"]
    assert texts(after_update) == ["rain in Porto"]
    assert texts(after_supersession) == texts(None) == ["rain in Faro"]
    memory.forget(ids=["b"])  # an erasure holds for every time, and what it superseded stands again
    assert texts(after_add) == ["rain in Lisbon"]
    assert texts(after_supersession) == texts(None) == ["rain in Porto"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我昨天在东京见了朋友", "东京"),
        ("昨日、東京タワーに行きました", "東京タワー"),
        ("어제 서울에서 친구를 만났다", "서울"),
        ("เมื่อวานฉันไปกรุงเทพ", "กรุงเทพ"),
        ("سافرت أمس إلى القاهرة", "القاهرة"),
        ("נסעתי אתמול לתל אביב", "אביב"),
        ("вчера мы были в Москве", "москве"),
        ("我买了iPhone手机和MacBook", "iphone"),
        ("meeting 在 café 🎉 tomorrow", "café"),
        ("party 🎉 tonight", "🎉"),
        ("Ｆｕｌｌｗｉｄｔｈ letters", "fullwidth"),
    ],
)
def test_f15_every_script_is_found_by_default(memory: Memory, text: str, query: str) -> None:
    memory.add("nothing of the kind", id="other")
    memory.add(text, id="it")
    assert ids(memory, query) == ["it"]


def test_f17_another_analyzer_rebuilds_the_index(open_memory: Open) -> None:
    memory = open_memory(limits=Limits(seal_at=4))
    for i in range(6):
        memory.add(f"raining {i}", id=str(i))
    memory.close()
    memory = open_memory(analyzer="standard")
    assert ids(memory, "rain") == []
    assert len(ids(memory, "raining")) == 6
    assert memory.stats()["namespace"]["analyzer"] == "standard"
    memory.close()
    memory = open_memory()  # it stays what it is
    assert (ids(memory, "rain"), memory.stats()["namespace"]["analyzer"]) == ([], "standard")
    memory.close()
    with open_memory(read_only=True, analyzer="english") as reader, pytest.raises(InvalidInputError, match="indexed by the analyzer standard; open it for writing"):
        ids(reader, "rain")
    assert len(ids(open_memory(analyzer="english"), "rain")) == 6


def test_f17_a_new_version_of_the_analyzer_rebuilds_the_index(open_memory: Open, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_memory(limits=Limits(seal_at=4))
    for i in range(4):
        memory.add("rain", id=str(i))
    memory.close()
    before = set(store.rglob("*.segment"))
    monkeypatch.setattr(get_analyzer("multilingual"), "fingerprint", "of a later version")
    memory = open_memory()
    assert len(ids(memory)) == 4
    assert not before & set(store.rglob("*.segment"))


def test_f17_another_encoder_is_a_clear_error_the_words_serve_and_a_command_encodes_anew(open_memory: Open) -> None:
    """A changed embedding size gave silently empty results, or no start."""
    memory = open_memory(encoder=HashingEncoder(8))
    for i in range(6):
        memory.add(f"rain {i}", id=str(i))
    memory.wait_encoded()
    memory.close()
    memory = open_memory(encoder=HashingEncoder(32))
    memory.add("rain 6", id="6")
    for mode in ("dense", "rrf", "convex"):
        with pytest.raises(EncoderMismatchError, match=r"hashing@1-8.*hashing@1-32.*reembed"):
            memory.search("rain", mode=mode)
    assert len(ids(memory, "rain")) == 7
    memory.reembed()
    assert len(memory.search("rain", mode="dense")) == 7 and memory.search("rain 3", mode="dense").hits[0].record.id == "3"


def test_f17_an_unknown_analyzer_or_channel_is_an_error_that_names_the_known(memory: Memory, open_memory: Open) -> None:
    memory.add("rain", id="a")
    with pytest.raises(InvalidInputError, match=r"mode is 'vector'.*auto, bm25, dense, sparse, rrf, convex, agent_rrf"):
        memory.search("rain", mode="vector")
    with pytest.raises(EncoderMissingError, match=r"open the store with encoder=.*mode='bm25' needs no encoder"):
        memory.search("rain", mode="dense")
    memory.close()
    with pytest.raises(InvalidInputError, match=r"analyzer is 'klingon'.*english, multilingual, nltk, standard"):
        open_memory(analyzer="klingon")
    assert ids(open_memory()) == ["a"]


class Ticking(ManualClock):
    """Every look at the stopwatch takes a millisecond."""

    def monotonic_ns(self) -> int:
        self.advance(0.001)
        return super().monotonic_ns()


def test_f18_a_deadline_holds_and_the_answer_says_what_it_lacks(open_memory: Open) -> None:
    memory = open_memory(clock=Ticking(), limits=Limits(seal_at=9, max_unsealed=1_000))
    memory.add_many([{"text": "rain", "id": f"old{i}", "timestamp": "2020-01-01"} for i in range(27)])
    memory.add_many([{"text": "rain", "id": f"middle{i}", "timestamp": "2021-01-01"} for i in range(9)])
    memory.add("rain", id="new")
    full = memory.search("rain", k=100)
    assert len(full) == 37 and full.coverage.exact and full.coverage.searched == 3
    cut = memory.search("rain", k=100, deadline_ms=2)
    assert (cut.coverage.exact, cut.coverage.mass) == (False, None)
    assert cut.coverage.searched + cut.coverage.not_searched == 3 and cut.coverage.not_searched == 1
    assert "deadline" in cut.coverage.reason
    assert cut.hits == full.hits[: len(cut)]
    assert cut.hits[0].record.id == "new"


def test_f18_an_answer_says_where_its_time_went(memory: Memory) -> None:
    memory.add("rain")
    result = memory.search("rain")
    assert result.timings_us.keys() == {"analyse", "rank", "read", "total"}
    assert all(us >= 0 for us in result.timings_us.values())
    assert result.stages == ("bm25",)


def test_f18_no_model_on_the_way_of_a_write(store: Path) -> None:
    """In a process of its own, as other tests load models."""
    code = (
        "import sys; from agentir_ray import Memory; memory = Memory.open(sys.argv[1], background=False); memory.add('rain'); assert memory.search('rain').hits; memory.close(); "
        "loaded = {'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'ray', 'openai', 'faiss'} & sys.modules.keys(); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code, str(store)], check=True)


class Stuck(HashingEncoder):
    """Takes for ever, until it is let go."""

    def __init__(self) -> None:
        super().__init__(8)
        self.go = threading.Event()

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        assert self.go.wait(60)
        return super().encode_queries(texts)

    def encode_queries_late(self, texts: Sequence[str]) -> LateVectors:
        assert self.go.wait(60)
        return super().encode_queries_late(texts)

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        assert self.go.wait(60)
        return super().encode_documents(texts)


def test_f18_a_stuck_model_blocks_no_write_and_no_answer(open_memory: Open) -> None:
    encoder = Stuck()
    memory = open_memory(clock=SystemClock(), background=True, encoder=encoder)
    for i in range(20):
        memory.add(f"rain {i}", id=str(i))
    assert len(ids(memory, "rain")) == 10
    for options in ({"mode": "rrf"}, {"mode": "dense"}, {"mode": "convex", "rerank": "maxsim"}):
        result = memory.search("rain", deadline_ms=20, **options)  # type: ignore[arg-type]
        assert len(result) == 10 and result.stages[0] == "bm25" and not result.coverage.exact
        assert "no time to encode the query for dense" in result.coverage.reason and "encode" in result.timings_us
    encoder.go.set()
    assert memory.wait_encoded() and len(memory.search("rain", mode="dense", k=50)) == 20


def test_f18_a_second_look_ends_at_the_deadline_and_counts_what_it_left(open_memory: Open) -> None:
    """A recall took 108 s in reranking on a CPU. Here every text takes its time, and what is not reached keeps its first place."""
    clock = Ticking()
    memory = open_memory(clock=clock)
    memory.add_many([{"text": f"rain {i}", "id": str(i)} for i in range(30)])

    class Slow:
        lowest = 0.0

        def rerank(self, query: str, candidates: Sequence[Candidate], deadline_ns: int | None, now_ns: Callable[[], int]) -> npt.NDArray[np.float64]:
            scores = np.full(len(candidates), np.nan)
            for i in range(len(candidates)):
                if deadline_ns is not None and now_ns() > deadline_ns:
                    break
                clock.advance(0.1)
                scores[i] = i + 1.0
            return scores

    plain = ids(memory, "rain")
    result = memory.search("rain", rerank=Slow(), deadline_ms=1_000)
    assert {hit.record.id for hit in result} <= set(plain) and result.stages == ("bm25", "Slow")
    assert not result.coverage.exact and re.search(r"no time to rerank 2\d of the best", result.coverage.reason)
    assert 1_000_000 < result.timings_us["rerank"] < 1_200_000
    assert memory.search("rain", rerank=Slow()).coverage.exact
