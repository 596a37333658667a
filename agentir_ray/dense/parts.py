"""One part of a search: its best records, and how many come before a score. By its codes, or by its vectors alone where it has no codes or where few of its records are visible.

**Nothing is dropped wrongly.** A row is left out where its bound (`codes.py`) is strictly below the threshold: the caller's, or what the k best records so far have. What is left
after the last stage is scored by the canonical function, the most promising first, until no bound reaches the threshold. Bounds are those of rows; a prior is added in float64,
which rounds the bound's sum to no less than the score's.

The first threshold of a part comes from its leaders: the rows of the largest estimates after the first stage go through the others, and the most promising records are scored.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.codes import Codes, QueryRotations
from agentir_ray.dense.sidecar import DenseSidecar
from agentir_ray.dense.vectors import rows_of
from agentir_ray.kernels import flat_scan
from agentir_ray.kernels.bitmap import count, members
from agentir_ray.kernels.flat import offer_documents, score_documents

Array = npt.NDArray[Any]
Heap = tuple[Array, Array, Array]
NO_PRIOR = np.empty(0, np.float64)
NO_BOUNDS = np.empty(0, np.float32)
NO_CODE, NO_QUERY = np.empty(0, np.int8), np.empty(0, np.int16)
LEADERS = 4  # times k, as far as that is no more than one row of LEADERS_OF
LEADERS_OF = 16
FEW = 1_024  # documents that are scored before codes are made ready to be read
SCORED_TO_READ = 32  # scoring a row takes as long as reading the codes of so many
_local = threading.local()


class DensePart(NamedTuple):
    """What of a segment is searched: the documents first..end - 1 that `visible` has (uint64 words; none: all of them).

    `number` is what refs call the part, seq int64 (documents), prior float64 (documents), or empty where there is none.
    """

    sidecar: DenseSidecar
    number: int
    first: int
    end: int
    visible: Array
    seq: Array
    prior: Array = NO_PRIOR


class Candidates(NamedTuple):
    """Rows that are left, ascending: int64, their estimates and what they reach at most (float32), and whether they are above the threshold for certain (uint8)."""

    rows: Array
    value: Array
    bound: Array
    sure: Array


class ScoredDocuments:
    """Documents that are all scored: `docs` int64, each with a row at least."""

    def __init__(self, start: Array, vectors: Array, docs: Array, seq: Array, prior: Array, number: int, query: Array) -> None:
        self._start, self._vectors, self._docs, self._seq, self._prior, self._number, self._query = start, vectors, docs, seq, prior, number, query

    def best(self, floor: float, size: int, heap: Heap) -> int:
        """Offer the documents of score >= floor to the heap; returns its new size."""
        found: int = offer_documents(self._start, self._vectors, self._docs, NO_BOUNDS, 1.0, self._query, self._prior, self._seq, self._number, floor, size, *heap)
        return found

    def count_before(self, score: float, seq: int) -> int:
        return count_scored(self._start, self._vectors, self._docs, self._seq, self._prior, self._query, score, seq)

    def interval_before(self, score: float, seq: int) -> tuple[int, int]:
        """The count itself, twice."""
        found = self.count_before(score, seq)
        return found, found


class CodedRows:
    """The rows of a sidecar that has codes. What the first stage says of them is read once, for any number of questions."""

    def __init__(self, part: DensePart, codes: Codes, query: Array, rotations: QueryRotations, value: Array) -> None:
        """`value` float32 (rows of the sidecar) takes the estimates after the first stage; it belongs to this object while that is asked."""
        self._part, self._codes, self._query = part, codes, query
        self._stages, self._unit = rotations.stages(codes)
        start = part.sidecar.row_start
        self._first, self._end = int(start[part.first]), int(start[part.end])
        self._largest_prior = float(part.prior[part.first : part.end].max(initial=-np.inf)) if len(part.prior) else 0.0
        self._value = value
        first = self._stages[0]
        flat_scan.estimate(codes.code[0], codes.scale, first.code, first.scale, self._first, self._end, value)

    def best(self, floor: float, size: int, heap: Heap) -> int:
        """Offer the records of score >= floor to the heap; returns its new size."""
        wanted = min(LEADERS * len(heap[0]), (self._end - self._first) // LEADERS_OF)
        rows = np.empty(4 * wanted, np.int64)
        if wanted:
            rows = np.sort(rows[: flat_scan.leaders(self._value, self._first, self._end, self._unit, *self._seen, self._largest_prior, wanted, rows)])
        docs, bound = self._documents(self._through_stages(_candidates(rows, self._value[rows]), _threshold(floor, size, heap), False))
        if len(docs) > len(heap[0]):
            docs = docs[np.argpartition(-bound, len(heap[0]))[: len(heap[0])]]
        size = self._offer(docs, NO_BOUNDS, floor, size, heap)  # without bounds: those of a record's other rows are not known

        scored = rows_of(self._part.sidecar.row_start, docs)[0]
        before = self._value[scored]
        self._value[scored] = flat_scan.DONE
        left = self._refined(_threshold(floor, size, heap), False)
        self._value[scored] = before
        docs, bound = self._documents(left)
        order = np.argsort(-bound)
        return self._offer(docs[order], bound[order], floor, size, heap)

    def count_before(self, score: float, seq: int) -> int:
        certain, docs = self._sure_and_open(score)
        part = self._part
        return certain + count_scored(part.sidecar.row_start, part.sidecar.vectors, docs, part.seq, part.prior, self._query, score, seq)

    def interval_before(self, score: float, seq: int) -> tuple[int, int]:
        """From codes alone: (no more than the count, no less)."""
        certain, docs = self._sure_and_open(score)
        return certain, certain + len(docs)

    @property
    def _seen(self) -> tuple[Array, Array, Array]:
        return self._part.sidecar.row_doc, self._part.visible, self._part.prior

    def _refined(self, threshold: float, judging: bool) -> Candidates:
        """The visible rows, ascending, of which no stage says that they are below the threshold. When `judging`, those that are above it need no bound."""
        stage, first, end = self._stages[0], self._first, self._end
        rows, value = scratch("rows", np.int64, end - first), scratch("left", np.float32, end - first)
        of_stage = self._codes.error[0], self._codes.tail[0], stage.known, stage.unknown, stage.spare
        found = flat_scan.survivors(self._value, *of_stage, first, end, self._unit, *self._seen, self._largest_prior, threshold, rows, value)
        return self._through_stages(_candidates(rows[:found], value[:found]), threshold, judging)

    def _through_stages(self, those: Candidates, threshold: float, judging: bool) -> Candidates:
        """What is left of some rows, ascending, of which the first stage's estimates are known."""
        if judging or len(self._stages) == 1:
            those = self._bounded(those, 0, NO_CODE, threshold, judging)
        for s in range(1, len(self._stages)):
            those = self._bounded(those, s, self._codes.code[s], threshold, judging)
        return those

    def _bounded(self, those: Candidates, s: int, code: Array, threshold: float, judging: bool) -> Candidates:
        """What is left of some rows after stage s, whose codes are taken in, unless there are none to be taken."""
        stage, codes = self._stages[s], self._codes
        query = stage.code if len(code) else NO_QUERY
        left = flat_scan.refine(
            len(those.rows), *those, code, codes.scale, codes.error[s], codes.tail[s], query, stage.scale, stage.known, stage.unknown, stage.spare,
            self._unit, self._part.sidecar.row_doc, self._part.prior, threshold, judging,
        )  # fmt: skip
        return Candidates(*(values[:left] for values in those))

    def _documents(self, those: Candidates) -> tuple[Array, Array]:
        """(the documents of some rows, the largest bound of each one's)."""
        docs, bound = np.empty(len(those.rows), np.int64), np.empty(len(those.rows), np.float32)
        found = flat_scan.by_document(len(those.rows), those.rows, those.bound, self._part.sidecar.row_doc, docs, bound)
        return docs[:found], bound[:found]

    def _offer(self, docs: Array, bound: Array, floor: float, size: int, heap: Heap) -> int:
        part, sidecar = self._part, self._part.sidecar
        found: int = offer_documents(sidecar.row_start, sidecar.vectors, docs, bound, self._unit, self._query, part.prior, part.seq, part.number, floor, size, *heap)
        return found

    def _sure_and_open(self, score: float) -> tuple[int, Array]:
        """(how many records come before the score for certain, the documents that may come before it)."""
        left = self._refined(score, True)
        docs = np.empty(len(left.rows), np.int64)
        certain, undecided = flat_scan.sure_and_open(len(left.rows), left.rows, left.sure, self._part.sidecar.row_doc, docs)
        return certain, docs[:undecided]


def open_part(part: DensePart, query: Array, rotations: QueryRotations, keep: bool = False) -> ScoredDocuments | CodedRows:
    """query float64 (dim). What is opened is good until this thread opens another, unless it is to be kept."""
    sidecar, first, end = part.sidecar, part.first, part.end
    if sidecar.codes is not None and end > first:
        seen = count(part.visible[first >> 6 : (end + 63) >> 6]) if len(part.visible) else end - first
        if end - first >= FEW and seen * SCORED_TO_READ > end - first:
            value = np.empty(sidecar.rows, np.float32) if keep else scratch("value", np.float32, sidecar.rows)
            return CodedRows(part, sidecar.codes, query, rotations, value)
    docs = np.arange(first, end)
    if len(part.visible):
        docs = members(part.visible).astype(np.int64)
        docs = docs[(docs >= first) & (docs < end)]
    return ScoredDocuments(sidecar.row_start, sidecar.vectors, docs[sidecar.has(docs)], part.seq, part.prior, part.number, query)


def count_scored(start: Array, vectors: Array, docs: Array, seqs: Array, prior: Array, query: Array, score: float, seq: int) -> int:
    """How many of the documents come before (score, seq)."""
    found = np.empty(len(docs), np.float64)
    score_documents(start, vectors, docs, query, prior, found)
    return int(((found > score) | ((found == score) & (seqs[docs] > seq))).sum())


def scratch(name: str, dtype: Any, size: int) -> Array:
    """An array of this thread's, used again by the next search: memory that is new to a process costs as much as reading the codes that fill it."""
    found: Array | None = getattr(_local, name, None)
    if found is None or len(found) < size:
        found = np.empty(size, dtype)
        setattr(_local, name, found)
    return found[:size]


def _candidates(rows: Array, value: Array) -> Candidates:
    return Candidates(rows, value, np.empty(len(rows), np.float32), np.zeros(len(rows), np.uint8))


def _threshold(floor: float, size: int, heap: Heap) -> float:
    return max(floor, float(heap[0][0])) if size == len(heap[0]) else floor
