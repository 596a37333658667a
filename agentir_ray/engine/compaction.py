"""Rewriting a namespace's files: sealing, merging, purging, rebuilding, and leaving the remainder of what was spilled.

One pattern: build a draft without any lock, write its file durably, swap the manifest, then put the segment in the place of what it was built from, and only then remove the
replaced files. A crash between any two steps leaves either the old manifest with its files, or the new one with its own (F05); files that no manifest names are
removed at the next load.

All of it runs under the namespace's `maintenance` lock; readers and writers are never held up, except for the moments under the index's lock.
"""

import logging
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from agentir_ray.analysis import ANALYZERS, DEFAULT_ANALYZER, Analyzer, get_analyzer
from agentir_ray.engine.manifest import Manifest, SegmentEntry, manifest_of
from agentir_ray.engine.namespace import Namespace, bodies, map_segments, replay
from agentir_ray.engine.policy import DEFAULT_LIMITS, Extent, Limits, at_once, choose_cuts, choose_merge, choose_rewrite, closed
from agentir_ray.engine.recency import Recency
from agentir_ray.engine.replaying import EntriesAhead
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
logger = logging.getLogger("agentir_ray")


class Compactor:
    """Rewrites the files of any namespace of a store. `discard` is given the paths, and `discard_spilled` the objects, that no manifest names any more (None: to be looked for).

    A namespace that is marked damaged is left alone: its index may lack what was committed, and what is written would say otherwise. It is to be loaded anew.
    """

    def __init__(
        self,
        log: RecordLog,
        cache: SegmentCache,
        discard: Callable[[Sequence[Path]], None],
        discard_spilled: Callable[[Sequence[str] | None], None],
        files: FileOps = SYSTEM_FILES,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._log = log
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
        segments = self._write(namespace, draft, build)
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

    def _swap(self, namespace: Namespace, sources: Sequence[Segment | Buffer], segments: list[Segment], applied_seq: int, exchange: bool = False) -> bool:
        """Swap the manifest and then the parts; with `exchange` a segment for itself over other bytes. False, the namespace marked damaged, when another manifest came first.

        An interrupt on the way, or a manifest that is newer than ours because an earlier interrupt kept its success from us, leaves the namespace marked damaged.
        """
        index = namespace.index
        try:
            with index.lock:
                if not exchange:
                    index.carry_over(sources, *segments)  # what happened meanwhile and belongs together is saved together
                kept = index.without(sources) + segments
                entries = tuple(SegmentEntry(part.path.name, part.overlay.since_written(), part.spilled) for part in kept)
            manifest = Manifest(namespace.analyzer.name, applied_seq, entries, namespace.partition_width_us)
            generation = self._log.swap_manifest(namespace.number, namespace.epoch, namespace.generation, manifest.encode())
        except AgentIRError as error:
            # After an unknown outcome the manifest may name the files; if it does not, the next load removes them.
            if not isinstance(error, UnknownOutcomeError):
                self._discard([segment.path for segment in segments])
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
        except BaseException:
            namespace.damaged = True
            raise
        self._discard([part.path for part in sources if isinstance(part, Segment)])
        return True

    def _new_path(self, namespace: Namespace) -> Path:
        return namespace.folder / f"{namespace.generation + 1}-{secrets.token_hex(4)}{SUFFIX}"  # the random part: no attempt ever overwrites another's file

    def _write(self, namespace: Namespace, draft: Draft, build: Callable[[Draft], dict[str, Array]]) -> list[Segment]:
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
        except BaseException:
            self._discard([segment.path for segment in segments])
            raise
        return segments

    def open(self, state: NamespaceState, folder: Path, analyzer: str | None, rebuild: bool = False) -> Namespace:
        """The namespace as the log has it: from its segments where they are sound and of the analyzer (None: the present one), else, and with `rebuild`, from the log alone.

        Nobody else may use the namespace meanwhile. Raises DamagedError when the log is damaged.
        """
        try:
            manifest = manifest_of(state, DEFAULT_ANALYZER)
            present, width_us = manifest.analyzer, manifest.partition_width_us
        except DamagedError as error:
            present, width_us = self._analyzer_of(folder) or DEFAULT_ANALYZER, PARTITION_WIDTH_US
            logger.warning("%s; rebuilding namespace %s from the log with the analyzer %s", error, state.name, analyzer or present)
            rebuild = True
        wanted = analyzer or present
        if not rebuild and wanted == present:
            try:
                self.clean(folder, state)
                namespace = map_segments(self._log, state, folder, self._cache, DEFAULT_ANALYZER)
                self._replay(namespace)
                return namespace
            except DamagedError as error:
                logger.warning("%s; rebuilding namespace %s from the log", error, state.name)
                now = self._log.state(state.name)  # the replay may have sealed
                state = state if now is None else now
        return self._rebuild(state, folder, get_analyzer(wanted), width_us)

    def _rebuild(self, state: NamespaceState, folder: Path, analyzer: Analyzer, width_us: int) -> Namespace:
        """Begins with a manifest that names nothing; who is interrupted then goes on at the next load."""
        deque(self._log.read(state.number), maxlen=0)  # the old segments are all that is left of some records if the log is damaged too: then nothing is touched
        namespace = Namespace(state.name, state.number, state.epoch, state.generation, folder, analyzer, Index([], 0), 0, Recency(width_us))
        namespace.generation = self._log.swap_manifest(state.number, state.epoch, state.generation, Manifest(analyzer.name, partition_width_us=width_us).encode())
        self._discard(list(folder.glob(f"*{SUFFIX}")))
        self._discard_spilled(None)
        self._replay(namespace)
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
        named = {entry.file for entry in manifest_of(state, DEFAULT_ANALYZER).segments}
        self._discard([path for path in folder.glob(f"*{SUFFIX}") if path.name not in named])


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
