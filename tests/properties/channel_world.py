"""A random index beside its oracle, for what reads a snapshot otherwise than by words: segments in time order or not, some cold, buffers, deletions, updates, supersessions."""

from pathlib import Path
from random import Random

from agentir_ray.lexical.filters import EVERYTHING, Expression, parse_filter
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.search import Visibility
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.spilled import remainder_sections
from agentir_ray.sections import SectionFile, encode_sections
from agentir_ray.types import MAX_TIME_US, MIN_TIME_US, NEVER_US, Record
from tests.naive import FOREVER, NaiveIndex, Question
from tests.properties.index_world import document_of, write_segment
from tests.properties.test_index import NAMES, WHERES, some_record


class ChannelWorld:
    """`index` and `oracle` hold the same records; files go to `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index, self.oracle = Index([], 0), NaiveIndex()
        self.files = 0

    def path(self, kind: str) -> Path:
        self.files += 1
        return self.folder / f"{self.files}.{kind}"

    def write(self, random: Random) -> None:
        """A new record, or a new version of one."""
        id = random.choice(NAMES) if random.random() < 0.2 else f"n{self.index.seq + 1}"
        if any(version.erased for version in self.oracle.versions if version.record.id == id):
            id = f"n{self.index.seq + 1}"
        self.add(some_record(random, id))

    def add(self, record: Record) -> None:
        """A record, or a new version of it."""
        seq, current = self.index.seq + 1, self.oracle.current(record.id)
        if current is None:
            self.index.add(seq, document_of(record, seq))
            self.oracle.add(seq, record, record.text.split())
        else:
            record = record._replace(created_at_us=max(record.created_at_us, current.record.created_at_us))  # the engine sees to it
            self.index.replace(seq, document_of(record, seq))
            self.oracle.replace(seq, record, record.text.split())
        self.index.seq = seq

    def erase(self, random: Random) -> None:
        erased = [random.choice(self.oracle.versions).record.id]
        with self.index.lock:
            self.index.seq += 1
            self.index.erase(self.index.seq, self.index.locate(erased))
        self.oracle.erase(erased)

    def seal(self) -> Segment | None:
        """The buffer's new segment, before it is installed; None when nothing is left in it. Then `install`."""
        return write_segment(draft_buffer(self.index.freeze(), "n", "f"), self.path("segment"))

    def merge(self, sources: list[Segment]) -> Segment | None:
        return write_segment(draft_segments(sources, "n", "f"), self.path("segment"))

    def install(self, replaced: list[Segment] | None, segment: Segment | None) -> None:
        """In the place of `replaced`, None: the buffer being sealed."""
        parts = [self.index.sealing] if replaced is None else replaced
        with self.index.lock:
            self.index.install([part for part in parts if part is not None], *([] if segment is None else [segment]))

    def chill(self, segment: Segment) -> Segment:
        """The segment that takes its place, cold."""
        path = self.path("remainder")
        path.write_bytes(b"".join(map(bytes, encode_sections(remainder_sections(segment)))))
        cold = segment.over(SectionFile(path), spilled="elsewhere")
        with self.index.lock:
            assert self.index.exchange(segment, cold)
        return cold


def some_question(random: Random, terms: list[str]) -> Question:
    """What a query may see, at random; all terms weigh 1."""
    return Question(
        terms,
        [1.0] * len(terms),
        k=1_000,
        now_us=random.randrange(15),
        as_of_us=random.choice([None, None, random.randrange(13)]),
        since_us=random.choice([-FOREVER, -FOREVER, random.randrange(13)]),
        until_us=random.choice([FOREVER, FOREVER, random.randrange(13)]),
        where=random.choice([{}, {}, random.choice(WHERES)]),
    )


def visibility_of(question: Question) -> Visibility:
    return Visibility(
        question.now_us if question.as_of_us is None else question.as_of_us,
        NEVER_US - 1 if question.as_of_us is None else question.as_of_us,
        MIN_TIME_US if question.since_us == -FOREVER else int(question.since_us),
        MAX_TIME_US if question.until_us == FOREVER else int(question.until_us),
    )


def expression_of(question: Question) -> Expression:
    return parse_filter(question.where) if question.where else EVERYTHING
