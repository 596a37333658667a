"""What is kept of the ages of answers: sufficient statistics of the last thousand or so complete observations, in blocks, the oldest forgotten first.

An observation is one answer: its age (how many non-empty partitions are newer than its own: 0 is the newest) and its horizon (how many partitions were searched, so that
age < horizon). It is complete when everything was searched: nothing kept the answer from being older. Else it is truncated: it tells how ages are spread below its horizon, and
nothing of what lies beyond. What is done with them (`temporal.prior`) is not known here, nor is any clock: time passes with each complete observation.

Forgetting is by whole blocks, not by weights that decay: what is remembered counts 1 and what is forgotten 0, so that a sample is a number of real answers and the binomial bounds
computed from it are what they say. Decayed sums are no such numbers. To be on the safe side one would take a sum of weights for as many answers, and with a memory of 64 it would
take 160 of them to come to the first 59.

Invariants: blocks are newest first, at least one, at most BLOCKS; only the newest grows; in each block the ages are those of the complete observations, and can be dealt to their
horizons. Merging adds block to block, newest to newest, as of two places that observe one namespace at the same time: it is associative and commutative, and as long as nothing was
forgotten it holds what one place would have observed. Encoding is exact and canonical. Not thread-safe.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

LIMIT = 1_024  # ages from LIMIT - 1 on share a cell, and so do horizons from LIMIT on: 20 years of weeks; a prior that needed so many partitions would save little
BLOCK = 16  # complete observations; samples are cut between blocks, so that they hold at most 15 more than they were asked for
BLOCKS = 64  # at least 1,009 complete observations: .3% of misses is the least that they can promise; where 3% of searches are complete, they come from 34,000
FORMAT = 1
MAX_BYTES = 1 << 21  # more than any statistics encode to: every cell of every block in use, with the largest counts
_MAX_COUNT = 1 << 48


@dataclass(slots=True)
class Sample:
    """Counts of observations. `ages` and `complete` (by horizon) count the same ones; of the truncated ones a likelihood needs only the number by horizon and the sum of ages."""

    ages: Counter[int] = field(default_factory=Counter)
    complete: Counter[int] = field(default_factory=Counter)
    truncated: Counter[int] = field(default_factory=Counter)
    truncated_ages: int = 0

    def add(self, other: "Sample") -> None:
        self.ages.update(other.ages)
        self.complete.update(other.complete)
        self.truncated.update(other.truncated)
        self.truncated_ages += other.truncated_ages


class AgeStatistics:
    def __init__(self, blocks: Iterable[Sample] = ()) -> None:
        """Takes the blocks over, newest first; none is a life without observations."""
        self._blocks = list(blocks) or [Sample()]

    def observe(self, age: int, horizon: int, complete: bool) -> None:
        """An answer of this age was found in a search of `horizon` partitions; `complete` if these were all there were. Raises ValueError unless 0 <= age < horizon."""
        if not 0 <= age < horizon:
            raise ValueError(f"an answer of age {age} does not lie in {horizon} partitions: ages go from 0 to one less than the partitions searched")
        if complete and self._blocks[0].complete.total() >= BLOCK:
            self._blocks.insert(0, Sample())
            del self._blocks[BLOCKS:]
        block = self._blocks[0]
        cell, reach = min(age, LIMIT - 1), min(horizon, LIMIT)
        if complete:
            block.ages[cell] += 1
            block.complete[reach] += 1
        else:
            block.truncated[reach] += 1
            block.truncated_ages += cell

    def merge(self, other: "AgeStatistics") -> "AgeStatistics":
        merged = [Sample() for _ in range(max(len(self._blocks), len(other._blocks)))]
        for blocks in (self._blocks, other._blocks):
            for into, block in zip(merged, blocks, strict=False):
                into.add(block)
        return AgeStatistics(merged)

    def sample(self, complete: int | None = None) -> Sample:
        """The latest observations: the fewest blocks that hold `complete` complete ones, or everything that is remembered."""
        found = Sample()
        for block in self._blocks:
            if complete is not None and found.complete.total() >= complete:
                break
            found.add(block)
        return found

    def encode(self) -> bytes:
        """A few hundred bytes to a few thousand: version, then each block's counts, then a checksum."""
        body = bytes([FORMAT]) + b"".join(map(_encode_block, self._blocks))
        return body + zlib.crc32(body).to_bytes(4, "little")

    @staticmethod
    def decode(data: bytes) -> "AgeStatistics":
        """Raises ValueError for bytes that are damaged, impossible as counts of observations, or of another format; what it allocates is in proportion to `data`."""
        if not 5 < len(data) <= MAX_BYTES or zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise ValueError("statistics of ages are damaged: their length or their checksum is wrong")
        if data[0] != FORMAT:
            raise ValueError(f"statistics of ages have format {data[0]}; this version of agentir_ray reads {FORMAT}")
        numbers = _numbers(data[1:-4])
        blocks: list[Sample] = []
        while (ages := next(numbers, None)) is not None:
            if len(blocks) == BLOCKS:
                raise ValueError("statistics of ages are damaged: too many blocks")
            blocks.append(_decode_block(ages, numbers))
        return AgeStatistics(blocks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgeStatistics) and self._blocks == other._blocks

    __hash__ = None  # type: ignore[assignment]  # it changes


# A block is three lists of cells, each its length and then (cell - the one before, count) ascending, and the sum of the truncated ages. Every number is a varint: seven bits a
# byte, the least first, no byte more than it takes.


def _encode_block(block: Sample) -> bytes:
    out = bytearray()
    for cells in (block.ages, block.complete, block.truncated):
        out += _varint(len(cells))
        before = 0
        for cell, count in sorted(cells.items()):
            out += _varint(cell - before) + _varint(count)
            before = cell
    return bytes(out + _varint(block.truncated_ages))


def _decode_block(ages: int, numbers: Iterator[int]) -> Sample:
    try:
        block = Sample(_decode_cells(ages, 0, numbers), _decode_cells(next(numbers), 1, numbers), _decode_cells(next(numbers), 1, numbers), next(numbers))
    except StopIteration:
        raise ValueError("statistics of ages are damaged: they end within a block") from None
    if block.truncated_ages > sum(count * (horizon - 1) for horizon, count in block.truncated.items()) or not _fits(block.ages, block.complete):
        raise ValueError("statistics of ages are damaged: some age is beyond its horizon")
    return block


def _decode_cells(length: int, first: int, numbers: Iterator[int]) -> Counter[int]:
    cells: Counter[int] = Counter()
    cell = -1
    for _ in range(length):
        step, count = next(numbers), next(numbers)
        cell = max(cell, 0) + step
        if not first <= cell < first + LIMIT or (cells and not step) or not 0 < count <= _MAX_COUNT:
            raise ValueError("statistics of ages are damaged: a cell is out of order, out of range or empty")
        cells[cell] = count
    return cells


def _fits(ages: Counter[int], horizons: Counter[int]) -> bool:
    """Whether these ages can be dealt to these horizons, each below its own: as many of either, and for no age more answers that old than horizons beyond it."""
    left = sorted(horizons.items())
    beyond = 0
    for age, count in sorted(ages.items(), reverse=True):
        while left and left[-1][0] > age:
            beyond += left.pop()[1]
        beyond -= count
        if beyond < 0:
            return False
    return beyond == 0 and not left


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _numbers(data: bytes) -> Iterator[int]:
    """The varints that fill `data`. Raises ValueError for one that is too long, or longer than it need be, or cut off."""
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if shift > 7 and not byte:
                break
            yield number
            number = shift = 0
        elif shift > 63:
            break
    if shift:
        raise ValueError("statistics of ages are damaged: a number is cut off or too long")
