"""What channels have beside a segment: built from the ledger, opened, and asked which documents they cover. Files that can be built again at any time.

A sidecar has every vector that the ledger holds of its segment's documents when it is built. What a sidecar of a source holds already is taken from there; so a merge reads little
of the ledger, and a ledger that was lost does not take with it what the sidecars have. Erased documents are in no new segment, and so in no new sidecar.
"""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.dense.sidecar import DenseSidecar, build_sidecar
from agentir_ray.dense.vectors import RecordVectors
from agentir_ray.engine.channel import DENSE, SPARSE, Channel
from agentir_ray.engine.vector_codec import unpack_dense, unpack_sparse
from agentir_ray.errors import AgentIRError, DamagedError
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.weight_sidecar import WeightedPostings
from agentir_ray.lexical.weights import build_weights, pack_vectors, stamp
from agentir_ray.sections import encode_sections
from agentir_ray.storage.files import FileOps, write_file

Array = npt.NDArray[Any]
SUFFIX = {DENSE: ".dense", SPARSE: ".sparse"}  # "tokens" are only looked up, in the ledger
Beside = Mapping[Segment, Mapping[str, Any]]  # sidecars by channel, of segments
Values = Callable[[str, str, Sequence[int]], Mapping[int, bytes]]  # (channel, encoder, sequence numbers) -> what the ledger has, by sequence number
logger = logging.getLogger("agentir_ray")


def open_sidecar(channel: str, path: Path, segment: Segment) -> Any:
    """Raises DamagedError, FormatError."""
    return DenseSidecar(path, stamp(segment)) if channel == DENSE else WeightedPostings(path, stamp(segment))


def attach(segment: Segment, named: Mapping[str, str], channels: Mapping[str, Channel]) -> list[str]:
    """Open what the manifest names beside a segment; the channels of which it could not be had, and is to be built again."""
    found, broken = {}, []
    for name, file in named.items():
        if name not in channels or name not in SUFFIX:
            continue
        try:
            sidecar = open_sidecar(name, segment.path.with_name(file), segment)
            if sidecar.encoder != channels[name].encoder:  # a search would wait for ever for one that fits
                raise DamagedError(f"{sidecar.path} is of {sidecar.encoder}, and the channel of {channels[name].encoder}; it is built again from the ledger")
            found[name] = sidecar
        except AgentIRError as error:
            logger.warning("%s", error)
            broken.append(name)
    segment.sidecars = found
    return broken


def files_of(segment: Segment) -> list[Path]:
    """Of a segment and what channels have beside it."""
    return [segment.path, *(sidecar.path for sidecar in segment.sidecars.values())]


def remove_damaged(segments: Sequence[Segment], discard: Callable[[Sequence[Path]], None]) -> bool:
    """Remove the sidecars that do not hold what their checksums say, so that the next load builds them again; False when all are sound."""
    damaged = []
    for segment in segments:
        for sidecar in segment.sidecars.values():
            try:
                sidecar.verify()
            except DamagedError as error:
                logger.warning("%s", error)
                damaged.append(sidecar.path)
    discard(damaged)
    return bool(damaged)


def due_for_folding(channel: Channel, segments: Sequence[Segment], many: int) -> list[Segment]:
    """The segments whose sidecar is to be built again for what is young: those that the encoder has passed, and those of which many are young and it pays."""
    if channel.name not in SUFFIX or channel.young is None or not len(channel.young):
        return []
    young = np.array(channel.young.view().seq, np.int64)
    due = []
    for segment in segments:
        docs = documents_of(segment, young)
        docs = docs[docs >= 0]
        sidecar = segment.sidecars.get(channel.name)
        count = len(docs) if sidecar is None else int((~covered(sidecar)[docs]).sum())
        if count and (segment.seq_span[1] <= channel.encoded_seq or count >= max(many, segment.documents // 8)):
            due.append(segment)
    return due


def covered(sidecar: Any) -> Array:
    """bool (documents): which of them the sidecar has something of."""
    if isinstance(sidecar, DenseSidecar):
        there: Array = np.diff(sidecar.row_start) > 0
        return there
    encoded: Array = sidecar.encoded
    return encoded


def covered_seqs(segments: Sequence[Segment], channel: str, seqs: Array, beside: Beside = MappingProxyType({})) -> Array:
    """bool: which of these entries (int64) are documents of which a sidecar has something. `beside`: the sidecars that some segments are going to have."""
    found = np.zeros(len(seqs), bool)
    for segment in segments:
        sidecar = beside.get(segment, segment.sidecars).get(channel)
        if sidecar is not None:
            docs = documents_of(segment, seqs)
            there = docs >= 0
            found[there] |= covered(sidecar)[docs[there]]
    return found


def documents_of(segment: Segment, seqs: Array) -> Array:
    """int64: the document of each entry, -1 for those that are none of this segment."""
    first, last = segment.seq_span
    out = np.full(len(seqs), -1, np.int64)
    inside = np.flatnonzero((seqs >= first) & (seqs <= last))
    if len(inside):
        seq, by_seq = segment.array("seq"), segment.by_seq
        at = np.minimum(np.searchsorted(seq, seqs[inside], sorter=by_seq), len(seq) - 1)
        same = seq[by_seq[at]] == seqs[inside]
        out[inside[same]] = by_seq[at[same]]
    return out


class Sidecars:
    """Builds them for one store."""

    def __init__(self, files: FileOps) -> None:
        self._files = files

    def build(self, channel: Channel, segment: Segment, sources: Sequence[Segment], values: Values, lost: Callable[[int], None]) -> Any | None:
        """The sidecar of a segment, durable and open; None where there is nothing to put into it.

        `lost` is told the first entry, if any, that the channel's encoder has seen and of which nothing is left.
        """
        if channel.name not in SUFFIX:
            return None
        sections = self._dense(channel, segment, sources, values, lost) if channel.name == DENSE else self._sparse(channel, segment, values, lost)
        if sections is None:
            return None
        path = segment.path.with_name(f"{segment.path.stem}-{secrets.token_hex(4)}{SUFFIX[channel.name]}")  # the random part: no attempt overwrites another's file
        write_file(str(path), encode_sections(sections), self._files)
        return open_sidecar(channel.name, path, segment)

    def _dense(self, channel: Channel, segment: Segment, sources: Sequence[Segment], values: Values, lost: Callable[[int], None]) -> Mapping[str, Array] | None:
        seq = segment.array("seq")
        rows: dict[int, Array] = {}  # by document
        largest: DenseSidecar | None = None
        for source in sources:
            sidecar = source.sidecars.get(DENSE)
            if sidecar is None or sidecar.encoder != channel.encoder:
                continue
            docs = documents_of(source, seq)
            here = np.flatnonzero(docs >= 0)
            try:
                here = here[covered(sidecar)[docs[here]]]
                start, vectors = sidecar.vectors_of(docs[here])
            except DamagedError as error:
                logger.warning("%s", error)
                continue
            largest = sidecar if largest is None or sidecar.rows > largest.rows else largest
            rows |= {doc: vectors[start[i] : start[i + 1]] for i, doc in enumerate(here.tolist())}
        rows |= {doc: unpack_dense(data) for doc, data in self._held(channel, segment, [doc for doc in range(len(seq)) if doc not in rows], values, lost).items()}
        some = next((each for each in rows.values() if len(each)), None)
        if some is None:
            return None
        nothing = np.empty((0, some.shape[1]), np.float32)
        each = [rows.get(doc, nothing) for doc in range(len(seq))]
        start = np.zeros(len(seq) + 1, np.int64)
        np.cumsum([len(one) for one in each], out=start[1:])
        return build_sidecar(RecordVectors(start, np.concatenate(each)), channel.encoder, stamp(segment), None if largest is None else largest.rotation)

    def _sparse(self, channel: Channel, segment: Segment, values: Values, lost: Callable[[int], None]) -> Mapping[str, Array] | None:
        held = self._held(channel, segment, list(range(segment.documents)), values, lost)
        if not held:
            return None
        vectors = {doc: unpack_sparse(data) for doc, data in held.items()}
        weights = [dict(zip(vectors[doc].terms, vectors[doc].weights.tolist(), strict=True)) if doc in vectors else {} for doc in range(segment.documents)]
        encoded = np.array([doc in vectors for doc in range(segment.documents)])
        return build_weights(pack_vectors(weights), "f32", stamp(segment), encoder=channel.encoder, encoded=encoded)

    @staticmethod
    def _held(channel: Channel, segment: Segment, docs: list[int], values: Values, lost: Callable[[int], None]) -> dict[int, bytes]:
        """What the ledger has of some documents, by document, without those that the encoder refused."""
        if not docs:
            return {}
        seqs = segment.array("seq")[docs].tolist()
        encoded = channel.encoded_seq  # before the ledger is asked: what is encoded meanwhile is not missing
        held = values(channel.name, channel.encoder, seqs)
        erased = segment.overlay.deleted_at
        missing = [seq for doc, seq in zip(docs, seqs, strict=True) if seq not in held and seq <= encoded and not (len(erased) and erased[doc] == ERASED_AT)]
        if missing:
            lost(min(missing))
        return {doc: held[seq] for doc, seq in zip(docs, seqs, strict=True) if held.get(seq)}
