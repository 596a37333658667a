"""One loaded namespace: its index, and how the log's entries become part of it.

The log is the truth. Loading maps the manifest's segments and replays the rest; afterwards every committed batch is applied in commit order. Only this process writes the
namespace, so the state in memory is the log's. What rewrites files is in `compaction`.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentir_ray.analysis import Analyzer, get_analyzer
from agentir_ray.engine.channel import Channel
from agentir_ray.engine.manifest import Manifest, manifest_of
from agentir_ray.engine.partitions import PartitionTable
from agentir_ray.engine.prepare import Prepared, index_document
from agentir_ray.engine.recency import Recency
from agentir_ray.engine.sidecars import attach
from agentir_ray.errors import DamagedError
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.index import Array, Index, Located, Snapshot
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.codec import decode_body, decode_id
from agentir_ray.storage.protocol import Appended, Batch, Entry, EntryKind, NamespaceState, ReadableLog, Status
from agentir_ray.temporal.partitions import PARTITION_WIDTH_US


class StaleSegmentError(DamagedError):
    """A segment's terms are not those that today's analyzer makes. It is rebuilt from the log."""


@dataclass(frozen=True, slots=True)
class WriteBatch(Batch):
    """A batch that knows what to index once it is committed: `prepared` holds one item per entry, for a FORGET where its records lie."""

    prepared: Sequence[Prepared | Located] = ()
    namespace: "Namespace | None" = None


@dataclass(eq=False)
class Namespace:
    """`maintenance` is held by whoever rewrites files, `updating` by who lost a race to update a record (see writing.update_record), `crowded` by the writer that
    seals for all of them.

    `damaged`: the index may lack what was committed, or a segment's file is damaged; the next use loads it anew. `pins` and what follows is kept by `residents`: `pins` counts the
    calls that use this object, which is evicted only at 0.
    """

    name: str
    number: int
    epoch: int
    generation: int
    folder: Path
    analyzer: Analyzer
    index: Index
    applied_seq: int
    recency: Recency = field(default_factory=lambda: Recency(PARTITION_WIDTH_US))  # with the width of the partitions, so that both change in one step
    maintenance: threading.Lock = field(default_factory=threading.Lock)
    updating: threading.Lock = field(default_factory=threading.Lock)
    crowded: threading.Lock = field(default_factory=threading.Lock)
    channels: Mapping[str, Channel] = field(default_factory=dict)  # neural ones that have, or are to have, vectors, by name; replaced whole
    broken: list[tuple[Segment, str]] = field(default_factory=list)  # sidecars, by channel, that are named and could not be opened
    sealing_seq: int = 0  # the last entry in index.sealing
    damaged: bool = False
    due: bool = False  # maintenance was asked to look after it, and has not begun
    pins: int = 0
    uses: int = 0
    accounted_bytes: int = 0
    accounted_files: int = 0
    checked_ns: int = 0  # when a follower last asked the log for more
    saved_prior: bytes = b""  # what the log had of it when it was last read
    _table: tuple[Array, PartitionTable] | None = None

    @property
    def partition_width_us(self) -> int:
        return self.recency.width_us

    def partition_table(self, snapshot: Snapshot, width_us: int) -> PartitionTable:
        """Of the segments of a snapshot; made anew when these or the width have changed."""
        present = self._table
        if present is not None and present[0] is snapshot.rows and present[1].width_us == width_us:
            return present[1]
        table = PartitionTable(snapshot.segments, width_us, None if present is None else present[1])
        self._table = snapshot.rows, table  # which are made once for a list of segments
        return table

    def apply(self, batch: WriteBatch, appended: Sequence[Appended]) -> None:
        """Make a committed batch searchable.

        When the index lacks an entry before it (an interrupt came between commit and apply), nothing may jump over the gap, else the next seal makes it last: the namespace is
        marked damaged, so that its next use loads it anew from the log, with this batch.
        """
        index = self.index
        with index.lock:
            for entry, prepared, outcome in zip(batch.entries, batch.prepared, appended, strict=True):
                if outcome.status is not Status.APPENDED:
                    continue
                if outcome.seq != index.seq + 1:
                    self.damaged = True
                    return
                if isinstance(prepared, Located):
                    index.erase(outcome.seq, prepared)
                elif entry.kind is EntryKind.ADD:
                    index.add(outcome.seq, prepared.document)
                else:
                    index.replace(outcome.seq, prepared.document)
                index.seq = outcome.seq

    def catch_up(self, log: ReadableLog) -> None:
        """For a follower: apply what the log holds beyond the index."""
        entries = list(log.read(self.number, self.index.seq))
        with self.index.lock:
            try:
                deque(replay(self.index, entries, self.analyzer), maxlen=0)
            except BaseException:
                self.damaged = True  # an entry may be there by half
                raise

    @property
    def unsealed(self) -> int:
        """Entries that a restart would have to replay."""
        return self.index.seq - self.applied_seq

    @property
    def files(self) -> int:
        """How many it has open."""
        return sum(1 + len(segment.sidecars) for segment in self.index.segments)

    def memory_bytes(self) -> int:
        """What the process would have again if this were evicted; the files' pages are the kernel's."""
        return 4_096 + self.index.memory_bytes() + self._beside_bytes()

    def _beside_bytes(self) -> int:
        sidecars: int = sum(sidecar.memory_bytes() for segment in self.index.segments for sidecar in segment.sidecars.values())
        return sidecars + sum(channel.memory_bytes() for channel in self.channels.values())


def replay(index: Index, entries: Iterable[Entry], analyzer: Analyzer) -> Iterator[int]:
    """Apply entries of the log to an index that nobody else writes; yields the sequence number of each, once it is applied."""
    for entry in entries:
        if entry.kind is EntryKind.FORGET:
            index.erase(entry.seq, index.locate(json.loads(entry.body or b"[]")))
        elif entry.body is not None:
            document = index_document(decode_body(entry.body, entry.seq), entry.body, analyzer)
            if entry.kind is EntryKind.ADD:
                index.add(entry.seq, document)
            else:
                index.replace(entry.seq, document)
        index.seq = entry.seq
        yield entry.seq


def bodies(log: ReadableLog, number: int) -> Callable[[int], bytes | None]:
    """What a cold segment asks for stored bytes: the log has them, too. None where they were erased."""

    def body_of(seq: int) -> bytes | None:
        return next((entry.body for entry in log.read(number, seq - 1, 1) if entry.seq == seq), None)

    return body_of


def channels_of(manifest: Manifest) -> dict[str, Channel]:
    """As the manifest has them; what was encoded since, the ledger knows."""
    return {name: Channel(name, entry.encoder, entry.settled_seq) for name, entry in manifest.channels.items()}


def map_segments(log: ReadableLog, state: NamespaceState, folder: Path, cache: SegmentCache, default_analyzer: str) -> Namespace:
    """The namespace as its manifest has it, which is up to `applied_seq`. Raises DamagedError when the manifest or a segment is damaged."""
    manifest = manifest_of(state, default_analyzer)
    analyzer = get_analyzer(manifest.analyzer)
    channels = channels_of(manifest)
    segments: list[Segment] = []
    broken: list[tuple[Segment, str]] = []
    for entry in manifest.segments:
        segment = Segment(folder / entry.file, cache, decode_id, entry.spilled, bodies(log, state.number))
        if segment.cold != bool(entry.spilled):
            raise DamagedError(f"{segment.path} is {'a remainder' if segment.cold else 'complete'}, which its manifest does not say; it is rebuilt from the log")
        if segment.fingerprint != analyzer.fingerprint:
            raise StaleSegmentError(f"{segment.path} was written by another version of the analyzer {analyzer.name}")
        segment.replay(entry.changes)
        broken += [(segment, name) for name in attach(segment, entry.sidecars, channels)]
        segments.append(segment)
    index = Index(segments, manifest.applied_seq)
    recency = Recency(manifest.partition_width_us)
    return Namespace(
        state.name, state.number, state.epoch, state.generation, folder, analyzer, index, manifest.applied_seq, recency, channels=channels, broken=broken
    )  # fmt: skip


def replay_log(log: ReadableLog, namespace: Namespace) -> None:
    """Apply what the log holds beyond the index of a namespace that nobody else uses."""
    index = namespace.index
    erased: list[int] = []

    def unapplied() -> Iterator[Entry]:
        for entry in log.read(namespace.number, index.seq):
            if entry.body is None:
                erased.append(entry.seq)
            yield entry

    deque(replay(index, unapplied(), namespace.analyzer), maxlen=0)
    index.withdraw(erased)  # the manifest may tell what they did after `applied_seq`


def load(log: ReadableLog, state: NamespaceState, folder: Path, cache: SegmentCache, default_analyzer: str) -> Namespace:
    """The namespace as the log has it, for who only reads. Raises DamagedError when the manifest, a segment or the log is damaged."""
    namespace = map_segments(log, state, folder, cache, default_analyzer)
    replay_log(log, namespace)
    return namespace
