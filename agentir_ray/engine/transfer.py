"""Records out of a store: export in the order of the log, salvage around damage, backup while open."""

import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from agentir_ray.analysis import DEFAULT_ANALYZER
from agentir_ray.engine.manifest import Manifest, SegmentEntry, decode_manifest, manifest_of
from agentir_ray.engine.policy import DEFAULT_LIMITS
from agentir_ray.engine.spilling import Spiller
from agentir_ray.engine.store import DATABASE, SEGMENTS, Store
from agentir_ray.engine.vectors import LEDGER
from agentir_ray.errors import DamagedError, InvalidInputError, NotFoundError, SpilledError
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.codec import decode_body, decode_id
from agentir_ray.storage.files import make_folder, publish, refused, write_file
from agentir_ray.storage.protocol import Entry, EntryKind
from agentir_ray.storage.sqlite_reader import CHUNK_ROWS, SqliteReader
from agentir_ray.storage.vector_ledger import VectorLedger
from agentir_ray.types import NEVER_US, Record

COPY_BYTES = 2**20
logger = logging.getLogger("agentir_ray")


def export_records(store: Store, name: str) -> Iterator[Record]:
    """Every record that was not deleted when the export began, in the version of then, in the order of the log. What is erased meanwhile is left out.

    The namespace is let go while the caller works: who reads slowly, or writes between two records, holds up nobody and not himself.
    """
    with store.namespace(name) as namespace:
        number, until = namespace.number, namespace.index.seq
    after = 0
    while after < until:
        records: list[Record] = []
        damage: DamagedError | None = None
        with store.namespace(name) as namespace:
            if namespace.number != number:
                raise NotFoundError(f"namespace {name!r} was dropped during the export")
            end = min(after + CHUNK_ROWS, until)
            try:
                for entry in store.log.read(number, after, end - after):
                    if entry.seq != after + 1:
                        break
                    after = entry.seq
                    if entry.id is not None and entry.body is not None and _was_current(namespace.index, entry.id, entry.seq, until):
                        records.append(decode_body(entry.body, entry.seq))
                if after < end:
                    state = store.log.state(name)
                    if state is None or state.number != number:  # by the process that writes, which does not wait for us
                        raise NotFoundError(f"namespace {name!r} was dropped during the export")
                    missing = f"{store.path / DATABASE} lacks entry {after + 1} of namespace {name}"
                    raise DamagedError(f"{missing}; `agentir verify` shows the rest, `agentir export --salvage` saves what can be read")
            except DamagedError as error:
                damage = error
        yield from records
        if damage is not None:
            raise damage


def _was_current(index: Index, id: str, seq: int, until: int) -> bool:
    """Whether this version of the record was not deleted at `until`, and was not erased since."""
    with index.lock:
        for part, doc in index.find(id):
            if part.column("seq")[doc] == seq:
                deleted_seq = part.overlay.deleted_seq
                return len(deleted_seq) == 0 or bool(deleted_seq[doc] > until)
    return False


def salvage_records(path: Path, name: str, spiller: Spiller | None = None) -> Iterator[Record]:
    """What can still be read of a damaged store: the log row by row, around what is damaged, then the segments for what is missing, spilled ones through `spiller` (F07).

    A segment does not know what was updated or erased after it was last written, if the log cannot say so either; each record that comes from one is named in a warning.
    """
    saved = _Saved({}, set())
    number: int | None = None
    manifest: Manifest | None = None
    complete = False
    try:
        with closing(SqliteReader(path / DATABASE)) as log:
            try:
                state = log.state(name)
                if state is None:
                    raise UnknownNamespaceError(f"there is no namespace {name!r} in {path}")
                number, until = state.number, state.next_seq - 1
                manifest = decode_manifest(state.manifest, name) if state.manifest else None
            except DamagedError as error:
                logger.warning("%s", error)
                if number is None:  # its row cannot be read, but its segments lie in a folder of its number
                    number, until = _number_of(path, name)
            if number is not None:
                complete = _salvage_log(log, number, until, saved) and manifest is not None
    except UnknownNamespaceError:
        raise
    except (DamagedError, NotFoundError) as error:
        logger.warning("%s", error)
    if not complete:
        entries = {} if manifest is None else {entry.file: entry for entry in manifest.segments}
        for file in sorted((path / SEGMENTS).glob("*/*.segment" if number is None else f"{number}/*.segment")):
            for record in _segment_records(file, name, entries.get(file.name, SegmentEntry(file.name, [])), spiller):
                known = saved.records.get(record.id)
                if record.id not in saved.erased and (known is None or known.seq < record.seq):
                    logger.warning("record %s comes from %s alone; updates and deletions since may be missing", record.id, file.name)
                    saved.records[record.id] = record
    yield from sorted(saved.records.values(), key=lambda record: record.seq)


class UnknownNamespaceError(NotFoundError):
    """The log can be read, and has no such namespace."""


class _Saved(NamedTuple):
    records: dict[str, Record]  # the newest version of each
    erased: set[str]

    def take(self, entry: Entry) -> None:
        if entry.kind is EntryKind.FORGET:
            gone = json.loads(entry.body or b"[]")
        elif entry.body is None:
            gone = [entry.id]
        else:
            record = decode_body(entry.body, entry.seq)
            self.records[record.id] = record
            gone = []
        self.erased.update(gone)
        for id in gone:
            self.records.pop(id, None)


def _salvage_log(log: SqliteReader, number: int, until: int, saved: _Saved) -> bool:
    """Take every entry that can be read; False when some cannot."""
    after = 0
    complete = True
    damaged_from = 0
    single = 0  # rows to be read one at a time, so that damage costs no row but its own
    while after < until:
        try:
            for entry in log.read(number, after, limit=1 if single else None):
                if damaged_from:
                    logger.warning("skipped: seq %d to %d of namespace number %d are damaged", damaged_from, entry.seq - 1, number)
                    damaged_from = 0
                saved.take(entry)
                after = entry.seq
            single -= 1
            if single < 0:
                break
        except DamagedError as error:
            if complete:
                logger.warning("%s", error)
            complete = False
            if single:
                damaged_from, after = damaged_from or after + 1, after + 1
            single = CHUNK_ROWS
    if damaged_from:
        logger.warning("skipped: seq %d to %d of namespace number %d are damaged", damaged_from, after, number)
    return complete


def _number_of(path: Path, name: str) -> tuple[int | None, int]:
    """A namespace's number and the last sequence number, as its segments tell them; (None, 0) if there are none."""
    number, last = None, 0
    for file in (path / SEGMENTS).glob("*/*.segment"):
        try:
            segment = Segment(file, SegmentCache(), decode_id)
            if segment.namespace == name:
                number, last = int(file.parent.name), max(last, int(segment.array("seq").max()) + DEFAULT_LIMITS.max_unsealed)
        except (DamagedError, ValueError):
            continue
    return number, last


def _segment_records(file: Path, name: str, entry: SegmentEntry, spiller: Spiller | None) -> Iterator[Record]:
    """The live documents of a segment file, as far as they can be read."""
    try:
        segment = Segment(file, SegmentCache(), decode_id, entry.spilled)
        if segment.namespace != name:
            return
        if segment.cold and spiller is not None and entry.spilled:
            segment = segment.over(heavy=spiller.fetch(segment))
        with suppress(DamagedError):  # of the terms' statistics, which nobody asks for here
            segment.replay(entry.changes)
        deleted = segment.overlay.deleted_at
        seqs = segment.array("seq")
    except (DamagedError, SpilledError) as error:
        logger.warning("skipped: %s", error)
        return
    for doc in range(segment.documents):
        if len(deleted) and deleted[doc] != NEVER_US:
            continue
        try:
            yield decode_body(segment.stored(doc), int(seqs[doc]))
        except (DamagedError, SpilledError) as error:
            logger.warning("skipped: %s", error)
            return


def backup(store: Store, target: Path) -> None:
    """A complete, sound, durable copy of the store in the new folder `target`, while the store goes on; a failure leaves nothing there.

    Namespaces of which a segment cannot be copied, or was spilled, are rebuilt from the log when the copy is opened: the copy needs no spill target, and shares none.
    """
    writer = store.writer  # raises ReadOnlyError before anything is made
    copy = None
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InvalidInputError(f"{target} exists and is not an empty folder; give a new one")
        make_folder(str(target.absolute().parent))
        copy = Path(mkdtemp(prefix=f"{target.name}.", suffix=".partial", dir=target.absolute().parent))
        with store.keep_files():
            store.vectors.backup(copy)  # before the log, so that it holds nothing of entries that the log lacks
            writer.backup(str(copy / DATABASE))
            with closing(SqliteReader(copy / DATABASE)) as log:
                for name in log.namespaces():
                    _copy_segments(store, log, name, copy / SEGMENTS)
                _erase_vectors(log, copy)
        publish(str(copy), str(target.absolute()))
    except BaseException as error:
        if copy is not None:
            shutil.rmtree(copy, ignore_errors=True)
        if isinstance(error, OSError):
            raise refused(str(target), error) from error
        raise


def _erase_vectors(log: SqliteReader, copy: Path) -> None:
    """Of what was erased between the copy of the ledger and that of the log."""
    if not (copy / LEDGER).exists():
        return
    with closing(VectorLedger(copy / LEDGER)) as ledger:
        for number in ledger.numbers():
            ledger.erase(number, log.erased(number, ledger.seqs(number)))
        ledger.purge()


def _copy_segments(store: Store, log: SqliteReader, name: str, target: Path) -> None:
    state = log.state(name)
    if state is None:
        return
    source, folder = store.folder(state.number), target / str(state.number)
    try:
        segments = manifest_of(state, DEFAULT_ANALYZER).segments
        if any(entry.spilled for entry in segments):
            logger.info("segments of namespace %s were spilled; it is rebuilt when the copy is opened", name)
            return
        files = [file for entry in segments for file in (entry.file, *entry.sidecars.values())]
    except DamagedError as error:
        logger.warning("%s", error)
        files = [path.name for path in source.glob("*.segment")]  # they tell the rebuild which analyzer it was
    if files:
        make_folder(str(folder))
    for file in files:
        try:
            content = open(source / file, "rb")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            logger.warning("%s is missing; it is rebuilt when the copy is opened", file)
            continue
        with content:
            write_file(str(folder / file), iter(partial(content.read, COPY_BYTES), b""))
