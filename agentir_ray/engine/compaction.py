"""Rewriting a namespace's files: sealing, merging, purging, rebuilding, and leaving the remainder of what was spilled.

One pattern: build a draft without any lock, write its file durably, swap the manifest, then put the segment in the place of what it was built from, and only then remove the
replaced files. A crash between any two steps leaves either the old manifest with its files, or the new one with its own (F05); files that no manifest names are
removed at the next load.

All of it runs under the namespace's `maintenance` lock; readers and writers are never held up, except for the moments under the index's lock.
"""

import logging
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from agentir_ray.analysis import ANALYZERS, DEFAULT_ANALYZER, Analyzer, get_analyzer
from agentir_ray.engine.channel import Channel
from agentir_ray.engine.manifest import ChannelEntry, Manifest, SegmentEntry, manifest_of
from agentir_ray.engine.namespace import Namespace, bodies, channels_of, map_segments, replay
from agentir_ray.engine.policy import DEFAULT_LIMITS, Extent, Limits, at_once, choose_cuts, choose_merge, choose_rewrite, closed
from agentir_ray.engine.recency import Recency
from agentir_ray.engine.replaying import EntriesAhead
from agentir_ray.engine.sidecars import SUFFIX as SIDECAR_SUFFIX
from agentir_ray.engine.sidecars import Beside, Sidecars, due_for_folding, files_of
from agentir_ray.engine.vectors import Vectors, prune, settled_seq
from agentir_ray.errors import AgentIRError, ConflictError, DamagedError, StorageFullError, UnknownOutcomeError
from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.builder import Draft, build_sections
from agentir_ray.lexical.bulk import BulkBuilder
from agentir_ray.lexical.bulk import Limits as BulkLimits
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.cut import cut
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.merge import draft_segments
from agentir_ray.lexical.seal import draft_buffer
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.spilled import remainder_sections
from agentir_ray.sections import Array, SectionFile, encode_sections
from agentir_ray.storage.codec import decode_id
from agentir_ray.storage.files import SYSTEM_FILES, FileOps, clean_temporary, make_folder, write_file
from agentir_ray.storage.protocol import NamespaceState, RecordLog
from agentir_ray.temporal.partitions import PARTITION_WIDTH_US, partitions_of

SUFFIX = ".segment"
SUFFIXES = (SUFFIX, *SIDECAR_SUFFIX.values())
logger = logging.getLogger("agentir_ray")


class Compactor:
    """Rewrites the files of any namespace of a store. `discard` is given the paths, and `discard_spilled` the objects, that no manifest names any more (None: to be looked for).

    A namespace that is marked damaged is left alone: its index may lack what was committed, and what is written would say otherwise. It is to be loaded anew.
    """

    def __init__(
        self,
        log: RecordLog,
        vectors: Vectors,
        cache: SegmentCache,
        discard: Callable[[Sequence[Path]], None],
        discard_spilled: Callable[[Sequence[str] | None], None],
        files: FileOps = SYSTEM_FILES,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._log = log
        self._vectors = vectors
        self._sidecars = Sidecars(files)
        self._cache = cache
        self._discard = discard
        self._discard_spilled = discard_spilled
        self._files = files
        self._limits = limits

    def seal(self, namespace: Namespace) -> None:
        """Turn the buffer into a segment; afterwards a restart replays only what came meanwhile."""
        with namespace.maintenance:
            index = namespace.index
            with index.lock:
                if namespace.damaged:
                    return
                if index.sealing is None:
                    if index.seq == namespace.applied_seq:
                        return
                    index.freeze()
                    namespace.sealing_seq = index.seq
                buffer = index.sealing
            assert buffer is not None
            draft = draft_buffer(buffer, namespace.name, namespace.analyzer.fingerprint)
            self._replace(namespace, [buffer], draft, namespace.sealing_seq)

    def merge(self, namespace: Namespace) -> bool:
        """Merge what the policy names; False when there is nothing to merge."""
        with namespace.maintenance:
            segments = namespace.index.segments
            extents = [Extent(segment.documents, segment.span_us[1] // namespace.partition_width_us) for segment in segments]
            newest = max((extent.newest for extent in extents), default=0)
            growing = [i for i, extent in enumerate(extents) if not segments[i].cold and not closed(extent, newest, self._limits)]
            sizes = [segments[i].documents for i in growing]
            chosen = [growing[i] for i in at_once(choose_merge(sizes, self._limits.seal_at), sizes, self._limits)] or choose_rewrite(
                [(segment.documents, 0 if segment.cold else len(segment.overlay.since_written())) for segment in segments]
            )
            if not chosen or namespace.damaged:
                return False
            self._merge(namespace, [segments[i] for i in chosen])
            return True

    def purge(self, namespace: Namespace) -> None:
        """Rewrite every segment that still holds erased documents. The buffer holds none in any file; the texts of a cold segment come from the log."""
        with namespace.maintenance:
            for segment in namespace.index.segments:
                if len(segment.overlay.erased()) and not namespace.damaged:
                    self._merge(namespace, [segment])
            state = self._log.state(namespace.name)
            if state is not None:
                self.clean(namespace.folder, state)  # what an attempt of unknown outcome may have left

    def repartition(self, namespace: Namespace, width_us: int) -> bool:
        """Count partitions of another width from now on, and learn anew; no segment changes. False when the namespace is to be loaded anew first."""
        with namespace.maintenance:
            before, namespace.recency = namespace.recency, Recency(width_us)
            done = False
            try:
                done = not namespace.damaged and self._swap(namespace, [], [], namespace.applied_seq)
            finally:
                if not done:
                    namespace.recency = before
            return done

    def _merge(self, namespace: Namespace, segments: Sequence[Segment]) -> None:
        self._replace(namespace, segments, draft_segments(segments, namespace.name, namespace.analyzer.fingerprint), namespace.applied_seq)

    def _replace(
        self, namespace: Namespace, sources: Sequence[Segment | Buffer], draft: Draft, applied_seq: int, build: Callable[[Draft], dict[str, Array]] = build_sections
    ) -> None:
        segments = self._write(namespace, draft, build, [part for part in sources if isinstance(part, Segment)])
        if self._swap(namespace, sources, segments, applied_seq):
            for part in sources:
                if isinstance(part, Segment):
                    part.release()
                    if part.spilled:
                        self._discard_spilled([part.spilled])

    def leave_remainder(self, namespace: Namespace, segment: Segment, spilled: str) -> bool:
        """Leave of a segment only the remainder, now that the object `spilled` holds the rest. False when the segment is not there any more."""
        with namespace.maintenance:
            if namespace.damaged or segment not in namespace.index.segments:
                return False
            path = self._new_path(namespace)
            write_file(str(path), encode_sections(remainder_sections(segment)), self._files)
            cold = segment.over(SectionFile(path), spilled=spilled)
            cold.body_of = bodies(self._log, namespace.number)
            cold.touch()
            return self._swap(namespace, [segment], [cold], namespace.applied_seq, exchange=True)

    # What channels have beside segments.

    def begin_channels(self, namespace: Namespace, channels: Sequence[Channel]) -> bool:
        """From now on the namespace has these channels, too; before anything is encoded for them it is known whose vectors they have. False when it is to be loaded anew first."""
        with namespace.maintenance:
            return not namespace.damaged and self._swap(
                namespace, [], [], namespace.applied_seq, channels={**namespace.channels, **{channel.name: channel for channel in channels}}
            )

    def fold(self, namespace: Namespace, many: int) -> None:
        """Put what is young into sidecars, of segments that the encoder has passed or of which there are many."""
        with namespace.maintenance:
            due = [(segment, channel) for channel in namespace.channels.values() for segment in due_for_folding(channel, namespace.index.segments, many)]
            self._build_beside(namespace, due)

    def mend(self, namespace: Namespace) -> None:
        """Build again the sidecars that could not be opened."""
        with namespace.maintenance:
            broken, namespace.broken = namespace.broken, []
            self._build_beside(namespace, [(segment, namespace.channels[name]) for segment, name in broken if segment in namespace.index.segments])

    def exchange_channels(self, namespace: Namespace, channels: Mapping[str, Channel]) -> bool:
        """Give channels other encoders, whose vectors the ledger has of all that is in segments: all sidecars in one swap. False when the namespace is to be loaded anew first.

        The caller holds the namespace's maintenance lock.
        """
        pairs = [(segment, channel) for segment in namespace.index.segments for channel in channels.values()]
        return self._build_beside(namespace, pairs, {**namespace.channels, **channels})

    def _build_beside(self, namespace: Namespace, pairs: Sequence[tuple[Segment, Channel]], channels: Mapping[str, Channel] | None = None) -> bool:
        if namespace.damaged or not (pairs or channels):
            return False
        beside: dict[Segment, dict[str, Any]] = {}
        built: list[Path] = []
        try:
            for segment, channel in pairs:
                mine = beside.setdefault(segment, dict(segment.sidecars))
                mine.pop(channel.name, None)
                sidecar = self._sidecar(namespace, channel, segment, [segment])
                if sidecar is not None:
                    mine[channel.name] = sidecar
                    built.append(sidecar.path)
        except BaseException:
            self._discard(built)
            raise
        return self._swap(namespace, [], [], namespace.applied_seq, beside=beside, channels=channels)

    def _sidecar(self, namespace: Namespace, channel: Channel, segment: Segment, sources: Sequence[Segment]) -> Any:
        def lost(seq: int) -> None:
            logger.warning("namespace %s: the vectors of channel %s from entry %d on are lost, and made again", namespace.name, channel.name, seq)
            self._vectors.rewind(namespace.number, channel, seq - 1)

        return self._sidecars.build(channel, segment, sources, self._vectors.values(namespace.number), lost)

    def _swap(
        self,
        namespace: Namespace,
        sources: Sequence[Segment | Buffer],
        segments: list[Segment],
        applied_seq: int,
        exchange: bool = False,
        beside: Beside = MappingProxyType({}),
        channels: Mapping[str, Channel] | None = None,
    ) -> bool:
        """Swap the manifest and then the parts; with `exchange` a segment for itself over other bytes. False, the namespace marked damaged, when another manifest came first.

        `beside` are the sidecars that segments which stay are to have, `channels` those of the namespace, if they change.

        An interrupt on the way, or a manifest that is newer than ours because an earlier interrupt kept its success from us, leaves the namespace marked damaged.
        """
        index = namespace.index
        try:
            with index.lock:
                if not exchange:
                    index.carry_over(sources, *segments)  # what happened meanwhile and belongs together is saved together
                kept = index.without(sources) + segments
                named = [{name: sidecar.path.name for name, sidecar in beside.get(part, part.sidecars).items()} for part in kept]
                entries = tuple(SegmentEntry(part.path.name, part.overlay.since_written(), part.spilled, files) for part, files in zip(kept, named, strict=True))
            wanted = namespace.channels if channels is None else channels
            told = {name: ChannelEntry(channel.encoder, settled_seq(channel, kept, beside)) for name, channel in wanted.items()}
            manifest = Manifest(namespace.analyzer.name, applied_seq, entries, namespace.partition_width_us, told)
            generation = self._log.swap_manifest(namespace.number, namespace.epoch, namespace.generation, manifest.encode())
        except AgentIRError as error:
            # After an unknown outcome the manifest may name the files; if it does not, the next load removes them.
            if not isinstance(error, UnknownOutcomeError):
                self._discard([segment.path for segment in segments] if exchange else [path for segment in segments for path in files_of(segment)])
                self._discard(_new_files(beside))
            if isinstance(error, ConflictError):
                namespace.damaged = True
                logger.warning("namespace %s: %s; loading it anew", namespace.name, error)
                return False
            raise
        except BaseException:
            namespace.damaged = True
            raise
        try:
            namespace.generation = generation
            namespace.applied_seq = applied_seq
            with index.lock:
                if exchange:
                    index.exchange(*sources, *segments)  # type: ignore[arg-type]
                else:
                    index.install(sources, *segments)
                replaced = [sidecar.path for segment, new in beside.items() for name, sidecar in segment.sidecars.items() if new.get(name) is not sidecar]
                for segment, new in beside.items():
                    segment.sidecars = new
                namespace.channels = wanted
        except BaseException:
            namespace.damaged = True
            raise
        self._discard([path for part in sources if isinstance(part, Segment) for path in ([part.path] if exchange else files_of(part))] + replaced)
        prune(namespace)
        return True

    def _new_path(self, namespace: Namespace) -> Path:
        return namespace.folder / f"{namespace.generation + 1}-{secrets.token_hex(4)}{SUFFIX}"  # the random part: no attempt ever overwrites another's file

    def _write(self, namespace: Namespace, draft: Draft, build: Callable[[Draft], dict[str, Array]], sources: Sequence[Segment]) -> list[Segment]:
        """The draft as files: one, none if it is empty, or several where it is large enough to be cut."""
        timestamp = draft.columns["timestamp"]
        if not len(timestamp):
            return []
        _, first = partitions_of(timestamp, namespace.partition_width_us)
        sizes = choose_cuts(np.diff(first, append=len(timestamp)).tolist(), self._limits)
        segments: list[Segment] = []
        make_folder(str(namespace.folder), self._files)
        try:
            for piece in cut(draft, sizes):
                path = self._new_path(namespace)
                write_file(str(path), encode_sections(build(piece)), self._files)
                segments.append(Segment(path, self._cache, decode_id))
                segments[-1].touch()
                for channel in namespace.channels.values():
                    sidecar = self._sidecar(namespace, channel, segments[-1], sources)
                    if sidecar is not None:
                        segments[-1].sidecars = {**segments[-1].sidecars, channel.name: sidecar}
        except BaseException:
            self._discard([path for segment in segments for path in files_of(segment)])
            raise
        return segments

    def open(self, state: NamespaceState, folder: Path, analyzer: str | None, rebuild: bool = False) -> Namespace:
        """The namespace as the log has it: from its segments where they are sound and of the analyzer (None: the present one), else, and with `rebuild`, from the log alone.

        Nobody else may use the namespace meanwhile. Raises DamagedError when the log is damaged.
        """
        try:
            manifest = manifest_of(state, DEFAULT_ANALYZER)
            present, width_us, channels = manifest.analyzer, manifest.partition_width_us, channels_of(manifest)
        except DamagedError as error:
            present, width_us, channels = self._analyzer_of(folder) or DEFAULT_ANALYZER, PARTITION_WIDTH_US, self._vectors.found_channels(state.number)
            logger.warning("%s; rebuilding namespace %s from the log with the analyzer %s", error, state.name, analyzer or present)
            rebuild = True
        wanted = analyzer or present
        if not rebuild and wanted == present:
            try:
                self.clean(folder, state)
                namespace = map_segments(self._log, state, folder, self._cache, DEFAULT_ANALYZER)
                self._replay(namespace)
                self._vectors.restore(namespace)
                if namespace.broken:
                    self._attempt_to_mend(namespace)
                return namespace
            except DamagedError as error:
                logger.warning("%s; rebuilding namespace %s from the log", error, state.name)
                now = self._log.state(state.name)  # the replay may have sealed
                state = state if now is None else now
        return self._rebuild(state, folder, get_analyzer(wanted), width_us, channels)

    def _attempt_to_mend(self, namespace: Namespace) -> None:
        try:
            self.mend(namespace)
        except StorageFullError as error:
            logger.warning("namespace %s: its sidecars could not be built again: %s", namespace.name, error)

    def _rebuild(self, state: NamespaceState, folder: Path, analyzer: Analyzer, width_us: int, channels: dict[str, Channel]) -> Namespace:
        """Begins with a manifest that names no file; who is interrupted then goes on at the next load. Vectors come from the ledger."""
        deque(self._log.read(state.number), maxlen=0)  # the old segments are all that is left of some records if the log is damaged too: then nothing is touched
        namespace = Namespace(state.name, state.number, state.epoch, state.generation, folder, analyzer, Index([], 0), 0, Recency(width_us), channels=channels)
        for channel in channels.values():
            channel.encoded_seq = 0  # of what sidecars hold
        told = {name: ChannelEntry(channel.encoder, 0) for name, channel in channels.items()}
        empty = Manifest(analyzer.name, partition_width_us=width_us, channels=told)
        namespace.generation = self._log.swap_manifest(state.number, state.epoch, state.generation, empty.encode())
        self._discard([path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}")])
        self._discard_spilled(None)
        self._replay(namespace)
        self._vectors.restore(namespace)
        return namespace

    def _replay(self, namespace: Namespace) -> None:
        """Apply what the log holds beyond the index, and seal on the way, so that neither memory nor what the next load replays grows with the log."""
        index, every = namespace.index, self._limits.max_unsealed
        entries = EntriesAhead(self._log.read(namespace.number, index.seq), index.seq)
        in_bulk = True
        while entries.more():
            # A new record that an earlier one supersedes, or an update of one in the buffer, is for the index to sort out.
            if in_bulk and entries.only_new(every) and not any(part.supersedes_some for part in index.parts):
                self._tidy(namespace)
                in_bulk = not index.buffer.documents and not namespace.damaged and self._build(namespace, entries)
                if not in_bulk:  # one by one, in memory if need be
                    entries = EntriesAhead(self._log.read(namespace.number, index.seq), index.seq)
                continue
            deque(replay(index, entries.take(every), namespace.analyzer), maxlen=0)
            index.withdraw(entries.erased)  # the manifest may tell what they did after `applied_seq`
            entries.erased.clear()
            if namespace.unsealed >= every:
                self._tidy(namespace)

    def _tidy(self, namespace: Namespace) -> None:
        """Seal and merge while a namespace is loaded, or say why not."""
        try:
            self.seal(namespace)
            while self.merge(namespace):
                pass
        except StorageFullError as error:  # it can still be read
            logger.warning("namespace %s could not be sealed: %s", namespace.name, error)

    def _build(self, namespace: Namespace, entries: EntriesAhead) -> bool:
        """Make segments of the new records that follow in the log. False when one could not be had: what comes after the index's last entry is then to be read again."""
        index = namespace.index
        try:
            with namespace.maintenance, BulkBuilder(namespace.analyzer, namespace.name, limits=BulkLimits(documents=self._limits.largest)) as builder:
                for draft in builder.drafts(entries.new_documents()):
                    seq = int(draft.columns["seq"].max())
                    self._replace(namespace, [], draft, seq, builder.sections)
                    if namespace.damaged:
                        return False
                    index.seq = seq
        except StorageFullError as error:
            logger.warning("namespace %s could not be built in bulk: %s", namespace.name, error)
            return False
        index.seq = entries.seq
        index.withdraw(entries.erased)
        entries.erased.clear()
        return True

    def _analyzer_of(self, folder: Path) -> str | None:
        """The analyzer that wrote the newest readable segment in the folder, if this version has it."""
        for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns, reverse=True):
            with suppress(DamagedError):
                fingerprint = Segment(path, self._cache, decode_id).fingerprint
                return next((name for name in ANALYZERS if get_analyzer(name).fingerprint == fingerprint), None)
        return None

    def clean(self, folder: Path, state: NamespaceState) -> None:
        """Remove what an interrupted rewrite left: files in the namespace's folder that its manifest does not name."""
        if not folder.is_dir():
            return
        clean_temporary(str(folder), self._files)
        entries = manifest_of(state, DEFAULT_ANALYZER).segments
        named = {entry.file for entry in entries}.union(*(entry.sidecars.values() for entry in entries))
        self._discard([path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}") if path.name not in named])


def _new_files(beside: Beside) -> list[Path]:
    """The files of sidecars that segments were to have and do not have yet."""
    return [sidecar.path for segment, new in beside.items() for name, sidecar in new.items() if segment.sidecars.get(name) is not sidecar]


def has_damaged_segment(namespace: Namespace) -> bool:
    """Whether damage that somebody met lies in a segment, which can be rebuilt, and not in the log. Reads every segment, as far as it is here."""
    for segment in namespace.index.segments:
        if segment.lost:
            return True
        try:
            segment.verify()
        except DamagedError:
            return True
    return False


def has_erased(namespace: Namespace) -> bool:
    """Whether some file of the namespace still holds an erased document."""
    return any(len(segment.overlay.erased()) for segment in namespace.index.segments)
