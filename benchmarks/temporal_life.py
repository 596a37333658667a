"""One long life as the temporal experiments need it: synthetic records, one every six seconds, and questions whose answers have a known age.

Whatever its length, a life ends at the same moment, in the middle of a partition, and its newest record was written just now: so lives of different lengths differ in nothing but
how far back they go. Documents keep a topic for 64 records in a row, as conversations do. A question is 3-8 tokens of one record (terms with idf <= 0.5 left out, at least two
terms), which is its gold; how old that record is says a law:

- `geometric(1.7)`: the age in partitions is geometric, every record of a partition equally likely. What the paper measures.
- `eighty_twenty`: 80% of the questions are about the newest 20% of the records.
- `flat`: every record is equally likely. What no recency prior fits.

It knows no store; `temporal_stores` makes one of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import synthetic

Array = npt.NDArray[Any]
Law = Callable[["Life", np.random.Generator], int]  # the place of the record that a question is about

RECORDS_A_DAY = 14_400
STEP_US = 86_400_000_000 // RECORDS_A_DAY
WIDTH_US = 7 * 86_400_000_000  # of a partition, the namespace's default
NEWEST = 2_811  # the partition in which a life ends (November 2023)
NOW_US = NEWEST * WIDTH_US + WIDTH_US // 2
LAMBDA = 1.7
CHUNK_DOCUMENTS = 250_000
IDF_AT_LEAST = 0.5


class Question(NamedTuple):
    """`terms` ascending, as in the text; `gold` is the place of the record that they were drawn from."""

    text: str
    terms: Array
    gold: int

    @property
    def id(self) -> str:
        return id_of(self.gold)


@dataclass(frozen=True)
class Life:
    """Record i holds terms[start[i] : start[i + 1]], ascending (BM25 asks for no order); `document_frequency` of each term of the vocabulary."""

    terms: Array
    start: Array
    document_frequency: Array

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def partition_start(self) -> Array:
        """The first record of each partition, the oldest first, and after the last one the number of records."""
        first, last = self.timestamp(0) // WIDTH_US, self.timestamp(len(self) - 1) // WIDTH_US
        begins = np.arange(first, last + 1) * WIDTH_US
        return np.append(np.maximum(0, -(-(begins - self.timestamp(0)) // STEP_US)), len(self))

    @property
    def partitions(self) -> int:
        return len(self.partition_start) - 1

    def timestamp(self, record: int) -> int:
        """The newest record was written a microsecond ago."""
        return NOW_US - 1 - (len(self) - 1 - record) * STEP_US

    def age(self, record: int) -> int:
        """In partitions, the newest one being 0."""
        return (NOW_US - 1) // WIDTH_US - self.timestamp(record) // WIDTH_US

    def items(self) -> Iterator[dict[str, Any]]:
        """The records as arguments of `Memory.add`, with the time they were written at."""
        words = [f"t{term}" for term in range(synthetic.VOCABULARY)]
        for first in range(0, len(self), 1_000):
            end = min(first + 1_000, len(self))
            own, begin = self.terms[self.start[first] : self.start[end]].tolist(), (self.start[first : end + 1] - self.start[first]).tolist()
            for i in range(end - first):
                when = self.timestamp(first + i)
                yield {"id": id_of(first + i), "text": " ".join([words[term] for term in own[begin[i] : begin[i + 1]]]), "timestamp": when, "created_at": when}

    def questions(self, law: Law, count: int, seed: int) -> list[Question]:
        rng = np.random.default_rng(seed)
        found: list[Question] = []
        while len(found) < count:
            gold = law(self, rng)
            terms = self.draw_terms(self.terms[self.start[gold] : self.start[gold + 1]], rng)
            if terms is not None:
                found.append(Question(" ".join(f"t{term}" for term in terms), terms, gold))
        return found

    def draw_terms(self, tokens: Array, rng: np.random.Generator) -> Array | None:
        """3-8 of the tokens as distinct terms that tell something, or None where fewer than two are left."""
        drawn = np.unique(rng.choice(tokens, min(int(rng.integers(3, 9)), len(tokens)), replace=False).astype(np.int64))
        df = self.document_frequency[drawn]
        drawn = drawn[np.log(1 + (len(self) - df + 0.5) / (df + 0.5)) > IDF_AT_LEAST]
        return drawn if len(drawn) >= 2 else None


def id_of(record: int) -> str:
    """Ascending, as the ids that `Memory.add` makes are."""
    return f"r{record:08}"


def geometric(lambda_: float) -> Law:
    def law(life: Life, rng: np.random.Generator) -> int:
        weight = np.exp(-lambda_ * np.arange(life.partitions))
        age = int(rng.choice(life.partitions, p=weight / weight.sum()))
        first, end = life.partition_start[life.partitions - 1 - age : life.partitions + 1 - age]
        return int(rng.integers(first, end))

    return law


def eighty_twenty(life: Life, rng: np.random.Generator) -> int:
    border = len(life) - len(life) // 5
    return int(rng.integers(border, len(life)) if rng.random() < 0.8 else rng.integers(0, border))


def flat(life: Life, rng: np.random.Generator) -> int:
    return int(rng.integers(0, len(life)))


def open_life(cache: Path, records: int) -> Life:
    """The life of so many records, from the cache or made now."""
    folder = cache / f"life-{records}"
    if not (folder / "frequency.npy").exists():
        _make(folder, records)
    return Life(*(np.load(folder / f"{name}.npy", mmap_mode=mode) for name, mode in (("terms", "r"), ("start", None), ("frequency", None))))


def _make(folder: Path, records: int) -> None:
    """The document frequencies come last: a folder without them is no life."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus = synthetic.corpus(records, bursty=True)
    start, frequency = corpus.offset, np.zeros(synthetic.VOCABULARY, np.int64)
    for first in range(0, records, CHUNK_DOCUMENTS):
        end = min(first + CHUNK_DOCUMENTS, records)
        own = slice(start[first], start[end])
        key = np.repeat(np.arange(end - first, dtype=np.int64), corpus.length[first:end]) << 32 | corpus.term[own]
        key.sort()
        corpus.term[own] = key & 0xFFFFFFFF
        frequency += np.bincount(key[np.concatenate([[True], key[1:] != key[:-1]])] & 0xFFFFFFFF, minlength=synthetic.VOCABULARY)
    for name, values in (("terms", corpus.term), ("start", start), ("frequency", frequency)):
        np.save(folder / f"{name}.npy", values)
