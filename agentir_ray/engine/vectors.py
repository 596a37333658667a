"""The vector ledger of one open store: opened when there is one or somebody encodes, read by whoever builds or searches, begun anew when it is damaged.

It knows which key of the ledger belongs to a channel of an encoder, and what a namespace's channels have when it is loaded. It encodes nothing (`encoding`) and builds nothing
(`sidecars`). A ledger that is damaged or missing keeps nobody from searching by words: what sidecars hold stays, and what is lost is encoded again.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from agentir_ray.dense.young import YoungVectors
from agentir_ray.engine.channel import CHANNELS, DENSE, SPARSE, Channel
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.sidecars import SUFFIX, Beside, covered_seqs
from agentir_ray.engine.vector_codec import unpack_dense, unpack_sparse
from agentir_ray.errors import DamagedError, NotFoundError, StoreError
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.young_weights import YoungWeights
from agentir_ray.storage.files import SYSTEM_FILES, FileOps, remove
from agentir_ray.storage.sqlite_schema import Durability
from agentir_ray.storage.vector_ledger import VectorLedger, VectorReader

LEDGER = "vectors.sqlite3"
T = TypeVar("T")
logger = logging.getLogger("agentir_ray")


def key_of(channel: str, encoder: str) -> str:
    """By what the ledger keeps what a channel's encoder made: one encoder may serve several channels."""
    return f"{channel}:{encoder}"


class Vectors:
    def __init__(self, folder: Path, *, read_only: bool, wanted: bool, durability: Durability = "power", vfs: str | None = None, files: FileOps = SYSTEM_FILES) -> None:
        """`wanted`: somebody will encode, so that a ledger is made if there is none. Raises FormatError for one of a newer version."""
        self.path = folder / LEDGER
        self._read_only = read_only
        self._durability: Durability = durability
        self._vfs = vfs
        self._files = files
        self._lock = threading.Lock()
        self._reader: VectorReader | None = None
        self._closed = False
        wal = Path(f"{self.path}-wal")
        self.left_wal = wal.exists() and wal.stat().st_size > 0  # by a crash; it may hold what was erased since
        if not read_only and (wanted or self.path.exists()):
            self._open()

    def _open(self) -> None:
        try:
            self._reader = VectorLedger(self.path, durability=self._durability, vfs=self._vfs, files=self._files)
        except DamagedError as error:
            self._begin_anew(error)

    def _begin_anew(self, error: DamagedError) -> None:
        logger.warning("%s; it is begun anew: what the sidecars hold is taken from there, and the rest is encoded again", error)
        self._reader = None
        for suffix in ("-wal", "-shm", ""):
            remove(f"{self.path}{suffix}", self._files)
        self._reader = VectorLedger(self.path, durability=self._durability, vfs=self._vfs, files=self._files)

    @property
    def ledger(self) -> VectorLedger | None:
        """For writing; None where nobody encodes and nobody did."""
        ledger = self._reader
        return ledger if isinstance(ledger, VectorLedger) else None

    def make(self) -> VectorLedger:
        """The ledger, made if there is none yet."""
        with self._lock:
            if self._reader is None:
                self._open()
        ledger = self.ledger
        assert ledger is not None
        return ledger

    @property
    def reader(self) -> VectorReader | None:
        """For reading; a follower opens it when the writer has made it."""
        if self._reader is None and self._read_only and not self._closed and self.path.exists():
            with self._lock:
                try:
                    self._reader = self._reader or VectorReader(self.path, vfs=self._vfs)
                except (NotFoundError, StoreError) as error:
                    logger.warning("%s; what is in no sidecar yet is not searched by vectors", error)
        return self._reader

    def attempt(self, work: Callable[[VectorReader], T], otherwise: T) -> T:
        """Use the ledger; `otherwise` where there is none, or where it turned out to be damaged, and was begun anew by who may write it."""
        reader = self.reader
        if reader is None:
            return otherwise
        try:
            return work(reader)
        except DamagedError as error:
            if not isinstance(reader, VectorLedger):
                logger.warning("%s", error)
                return otherwise
            with self._lock:
                if self._reader is reader:  # the first who met it
                    try:
                        reader.close()
                    except DamagedError as again:
                        logger.debug("%s", again)
                    self._begin_anew(error)
            return otherwise

    def values(self, number: int) -> Callable[[str, str, Sequence[int]], Mapping[int, bytes]]:
        """What the ledger has of records of a namespace: (channel, encoder, sequence numbers) -> values by sequence number, checked."""
        return lambda channel, encoder, seqs: self.attempt(lambda ledger: ledger.get(number, key_of(channel, encoder), seqs, check=True), {})

    # A namespace's channels.

    def restore(self, namespace: Namespace) -> None:
        """Give the channels of a namespace that was just loaded what the ledger has of them and no sidecar holds."""
        ledger = self.ledger
        if ledger is not None:
            self.attempt(lambda _: ledger.truncate(namespace.number, namespace.index.seq), None)
        for channel in namespace.channels.values():
            settled = channel.encoded_seq
            cursor = self.attempt(lambda ledger, channel=channel: ledger.cursor(namespace.number, key_of(channel.name, channel.encoder)), None)  # type: ignore[misc]
            self._take(namespace, channel, settled)
            if not self._read_only:
                channel.encoded_seq = cursor or 0  # that of a ledger that was begun anew: what sidecars hold goes into it again
            elif cursor is not None:
                channel.encoded_seq = cursor

    def refresh(self, namespace: Namespace) -> None:
        """A follower takes what was encoded since it looked last."""
        for channel in namespace.channels.values():
            cursor = self.attempt(lambda ledger, channel=channel: ledger.cursor(namespace.number, key_of(channel.name, channel.encoder)), None)  # type: ignore[misc]
            if cursor is not None and cursor > channel.encoded_seq:
                self._take(namespace, channel, channel.encoded_seq)
                channel.encoded_seq = cursor

    def _take(self, namespace: Namespace, channel: Channel, after_seq: int) -> None:
        if channel.name not in SUFFIX:
            return
        nothing: list[tuple[int, bytes]] = []
        held = self.attempt(lambda ledger: list(ledger.held(namespace.number, key_of(channel.name, channel.encoder), after_seq)), nothing)
        if held:
            settled = covered_seqs(namespace.index.segments, channel.name, np.array([seq for seq, _ in held], np.int64))
            for (seq, data), there in zip(held, settled.tolist(), strict=True):
                if data and not there:
                    add_young(channel, seq, data)

    def found_channels(self, number: int) -> dict[str, Channel]:
        """The channels of a namespace whose manifest is lost: those that have a cursor; of several encoders the one that saw most."""
        none: dict[tuple[int, str], int] = {}
        cursors = self.attempt(lambda ledger: ledger.cursors(), none)
        found: dict[str, Channel] = {}
        for (owner, key), seq in sorted(cursors.items(), key=lambda one: one[1]):
            name, _, encoder = key.partition(":")
            if owner == number and name in CHANNELS:
                found[name] = Channel(name, encoder, seq)
        return found

    def rewind(self, number: int, channel: Channel, seq: int) -> None:
        """What the channel's encoder made of entries after this one is lost: it is to see them again."""
        channel.encoded_seq = min(channel.encoded_seq, seq)
        ledger = self.ledger
        if ledger is not None:
            self.attempt(lambda _: ledger.rewind(number, key_of(channel.name, channel.encoder), seq), None)

    # What is gone.

    def erase(self, number: int, erased: Callable[[Sequence[int]], Iterable[int]]) -> list[int]:
        """Leave no row of the records that the log has erased (`erased` tells which of some); returns them."""

        def work(ledger: VectorReader) -> list[int]:
            assert isinstance(ledger, VectorLedger)
            gone = list(erased(ledger.seqs(number)))
            ledger.erase(number, gone)
            return gone

        return self.attempt(work, [])

    def drop(self, number: int) -> None:
        self.attempt(lambda ledger: ledger.drop(number), None)  # type: ignore[attr-defined]

    def clean(self, known: Iterable[int]) -> None:
        """Remove what is left of namespaces that were dropped just before a crash."""
        none: set[int] = set()
        for number in self.attempt(lambda ledger: ledger.numbers(), none).difference(known):
            self.drop(number)

    def purge(self) -> bool:
        return self.attempt(lambda ledger: ledger.purge(), True)  # type: ignore[attr-defined]

    def verify(self) -> list[str]:
        reader = self.reader
        return [] if reader is None else reader.verify()

    def backup(self, folder: Path) -> None:
        ledger = self.ledger
        if ledger is not None:
            ledger.backup(os.fspath(folder / LEDGER))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._reader is not None:
                self._reader.close()


def add_young(channel: Channel, seq: int, data: bytes) -> None:
    """What the ledger has of a record, searchable until a sidecar has it. A record of which there is nothing to search by has no row."""
    if channel.name == DENSE:
        vectors = unpack_dense(data)
        if len(vectors):
            if channel.young is None:
                channel.young = YoungVectors(vectors.shape[1])
            channel.young.add(seq, vectors)
    elif channel.name == SPARSE:
        if channel.young is None:
            channel.young = YoungWeights()
        channel.young.add(seq, *unpack_sparse(data))


def prune(namespace: Namespace) -> None:
    """Forget of the young what sidecars have by now, and what belongs to no document any more."""
    index = namespace.index
    for channel in namespace.channels.values():
        if channel.young is None or not len(channel.young):
            continue
        seqs = np.array(channel.young.view().seq, np.int64)
        with index.lock:
            applied, parts = index.seq, index.parts
            present = np.concatenate([np.empty(0, np.int64), *(part.column("seq") for part in parts)])
        gone = covered_seqs(index.segments, channel.name, seqs) | (~np.isin(seqs, present) & (seqs <= applied))
        if gone.any():
            channel.young.remove(seqs[gone].tolist())


def settled_seq(channel: Channel, segments: Sequence[Segment], beside: Beside) -> int:
    """Up to which entry everything that was encoded is in sidecars of these segments, or in none because there is nothing to put there."""
    encoded = channel.encoded_seq  # before the young: what was encoded up to here is there, or in a sidecar
    if channel.young is None or not len(channel.young):
        return encoded
    seqs = np.array(channel.young.view().seq, np.int64)
    left = seqs[~covered_seqs(segments, channel.name, seqs, beside)]
    return min(encoded, int(left.min()) - 1) if len(left) else encoded
