"""The words of the public interface: a record, a hit, an answer and what it covered.

Times are UTC microseconds (`*_us`), importance lies in [0, 1]. These are plain immutable values: they know no store, no index and no file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from agentir_ray.errors import InvalidInputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIN_TIME_US = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
MAX_TIME_US = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
NEVER_US = 2**63 - 1  # stands for "no expiry" and "not superseded" in columns: later than any time

Metadata = Mapping[str, Any]
Time = datetime | str | int


def kind_of(value: object) -> str:
    """What messages call the type of a value: "a str", "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def to_time_us(value: Time, name: str = "time") -> int:
    """UTC microseconds of a datetime (naive ones are taken as UTC), an ISO 8601 string, or an int of microseconds.

    Raises InvalidInputError for anything else, and outside the years 1 to 9999.
    """
    if isinstance(value, bool):
        raise InvalidInputError(f"{name} is {value!r}; give a datetime, an ISO 8601 string or microseconds since 1970")
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidInputError(f"{name} is {value!r}, which is not an ISO 8601 date or time such as 2026-01-31T12:00:00Z") from None
    if isinstance(value, datetime):
        offset = value.utcoffset() or timedelta()
        # Subtracted on integers: datetime arithmetic overflows near the years 1 and 9999.
        value = (value.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) - offset // timedelta(microseconds=1)
    if not isinstance(value, int):
        raise InvalidInputError(f"{name} is {kind_of(value)}; give a datetime, an ISO 8601 string or microseconds since 1970")
    if not MIN_TIME_US <= value <= MAX_TIME_US:
        raise InvalidInputError(f"{name} lies outside the years 1 to 9999")
    return value


def utc_offset_us(value: Time) -> int:
    """How far the clock of a time that `to_time_us` takes is ahead of UTC; 0 for naive times and microseconds."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    offset = value.utcoffset() if isinstance(value, datetime) else None
    return 0 if offset is None else offset // timedelta(microseconds=1)


def to_datetime(time_us: int) -> datetime:
    """The UTC datetime of `time_us`."""
    return EPOCH + timedelta(microseconds=time_us)


class Record(NamedTuple):
    """One memory. A named tuple, because a search makes ten of them: it is made in a quarter of the time of a frozen dataclass.

    `timestamp_us` is when it happened, `created_at_us` when this version was written. `seq` is its place in the namespace's log, newer is larger; it breaks ties of score.
    """

    id: str
    text: str
    timestamp_us: int
    created_at_us: int
    importance: float = 0.0
    session: str | None = None
    role: str | None = None
    expires_at_us: int | None = None
    supersedes: str | None = None
    metadata: Metadata = MappingProxyType({})
    seq: int = 0

    @property
    def timestamp(self) -> datetime:
        return to_datetime(self.timestamp_us)

    @property
    def created_at(self) -> datetime:
        return to_datetime(self.created_at_us)

    @property
    def expires_at(self) -> datetime | None:
        return None if self.expires_at_us is None else to_datetime(self.expires_at_us)


@dataclass(frozen=True, slots=True)
class TermScore:
    """What one query term adds: `weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average_length))`."""

    term: str
    weight: float
    tf: int
    df: int
    idf: float
    score: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit has its score: `score == sum of terms (in order) + recency + importance`, to the last bit."""

    terms: tuple[TermScore, ...]
    length: int
    average_length: float
    documents: int
    bm25: float
    recency: float
    importance: float
    score: float


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """What one channel says of a record: its raw `score` (None: it has none of it), its `rank` in the channel's list (None: not in it), and what it `adds` at this `weight`.

    `normalised` is the score between the least possible and the list's maximum, where the mode normalises.
    """

    channel: str
    weight: float
    score: float | None
    rank: int | None
    normalised: float | None
    adds: float


@dataclass(frozen=True, slots=True)
class FusedExplanation:
    """Why a hit of another mode than bm25 has its score.

    `own` is the sum of what the channels add, in order, less `passages` (the passage penalty). With a context weight w and neighbours it becomes (1 - w) * own + w * context, where
    `context` is the mean of the neighbours' own scores (None: there are none, or they do not count); then recency is added, then importance (in the mode dense: their sum), which
    gives `fused`. `reranked` is what the reranker gave, normalised (None: it was not asked, or did not come so far), and `score` what became of all that.
    """

    channels: tuple[ChannelScore, ...]
    passages: float
    own: float
    context: float | None
    recency: float
    importance: float
    fused: float
    reranked: float | None
    score: float


class Hit(NamedTuple):
    record: Record
    score: float
    explanation: Explanation | FusedExplanation | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an answer searched.

    `mode` is what was asked for, `exact` whether the answer equals one that searched everything. Counted are the time partitions that hold records (docs/partitions.md), also
    those after the question's `as_of`; of a question about a range of time, those in the range. `mass` is the share of the recency prior that was covered (1.0 when everything
    was, None when it is not known). `reason` says why the answer is exact, or what was left out.
    """

    mode: str
    searched: int
    skipped_by_bound: int = 0
    not_searched: int = 0
    mass: float | None = 1.0
    exact: bool = True
    reason: str = ""


class TimeRange(NamedTuple):
    """What a question says of time: the words, and the inclusive range of timestamps that they were taken for (MIN_TIME_US, MAX_TIME_US: open)."""

    phrase: str
    since_us: int
    until_us: int

    @property
    def since(self) -> datetime | None:
        """None: open."""
        return None if self.since_us == MIN_TIME_US else to_datetime(self.since_us)

    @property
    def until(self) -> datetime | None:
        """None: open."""
        return None if self.until_us == MAX_TIME_US else to_datetime(self.until_us)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, with what they cost and cover. `timings_us` is wall time per step, `stages` the channels that ran, `time_range` what `temporal="parse"` understood."""

    hits: tuple[Hit, ...]
    coverage: Coverage
    stages: tuple[str, ...]
    timings_us: Mapping[str, float]
    query_id: str
    time_range: TimeRange | None = None

    def __iter__(self) -> Any:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class Page:
    """Records in time order, newest first; pass `cursor` to get the next page, None at the end."""

    records: tuple[Record, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """What a `forget` did: `hidden` at once; `purged` when no file that we write holds the texts any more. A dry run has neither."""

    ids: tuple[str, ...]
    hidden: bool
    purged: bool
    not_ours: str = ""


@dataclass(frozen=True, slots=True)
class RetentionReceipt:
    """What a `retain` erased, or would erase where it is a dry run: `count` records that happened from `oldest` to `newest`.

    `pinned`: how many would have gone but are pinned; `kept`: how many records stay, those included. `plan` names exactly these records to a later call. `hidden` and `purged` as
    in a `ForgetReceipt`.
    """

    count: int
    oldest_us: int | None
    newest_us: int | None
    pinned: int
    kept: int
    plan: str
    hidden: bool
    purged: bool
    not_ours: str = ""

    @property
    def oldest(self) -> datetime | None:
        return None if self.oldest_us is None else to_datetime(self.oldest_us)

    @property
    def newest(self) -> datetime | None:
        return None if self.newest_us is None else to_datetime(self.newest_us)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that `verify` found wrong, and the way out."""

    file: str
    what: str
    remedy: str
