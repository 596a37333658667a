"""Records out of a store: export in the order of the log, salvage around damage, backup while open."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

from agentir_ray.engine.manifest import decode_manifest
from agentir_ray.engine.store import DATABASE, Store
from agentir_ray.errors import DamagedError, InvalidInputError, NotFoundError
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.stored import BlockCache
from agentir_ray.storage.codec import decode_body, decode_id
from agentir_ray.storage.protocol import EntryKind
from agentir_ray.storage.sqlite_reader import SqliteReader
from agentir_ray.types import NEVER_US, Record

logger = logging.getLogger("agentir_ray")


def export_records(store: Store, name: str) -> Iterator[Record]:
    """Every record that is not deleted, in its newest version, in the order of the log."""
    with store.namespace(name) as namespace:
        index = namespace.index
        until = index.seq
        for entry in store.log.read(namespace.number):
            if entry.seq > until:
                return
            if entry.kind is EntryKind.FORGET or entry.body is None or entry.id is None:
                continue
            with index.lock:
                place = index.current(entry.id)
                newest = place is not None and int(place.part.column("seq")[place.doc]) == entry.seq
            if newest:
                yield decode_body(entry.body, entry.seq)


def salvage_records(path: Path, name: str) -> Iterator[Record]:
    """What can still be read of a damaged store: the log row by row as far as it goes, then the segments for what is missing.

    A segment does not know what was updated or erased after it was last written, if the log cannot say so either; each such record is named in a warning.
    """
    seen: set[str] = set()
    erased: set[str] = set()
    complete = False
    newest: dict[str, Record] = {}
    number: int | None = None
    try:
        log = SqliteReader(path / DATABASE)
        try:
            state = log.state(name)
            if state is None:
                raise NotFoundError(f"there is no namespace {name!r} in {path}")
            number = state.number
            after, complete = 0, True
            while after < state.next_seq - 1:
                try:
                    for entry in log.read(number, after):
                        after = entry.seq
                        if entry.id is not None:
                            seen.add(entry.id)
                            if entry.body is None:
                                erased.add(entry.id)
                                newest.pop(entry.id, None)
                            else:
                                newest[entry.id] = decode_body(entry.body, entry.seq)
                    break
                except DamagedError as error:
                    logger.warning("skipped: %s", error)
                    complete = False
                    after += 1
        finally:
            log.close()
    except DamagedError as error:
        logger.warning("%s", error)
    yield from newest.values()
    if complete:
        return
    for file in sorted((path / "segments").glob("*/*.segment" if number is None else f"{number}/*.segment")):
        for record in _segment_records(file, name):
            if record.id not in seen and record.id not in erased:
                seen.add(record.id)
                logger.warning("record %s comes from %s alone; updates and deletions since may be missing", record.id, file.name)
                yield record


def _segment_records(file: Path, name: str) -> Iterator[Record]:
    """The live documents of a segment file, as far as they can be read, newest first."""
    try:
        segment = Segment(file, BlockCache(), decode_id)
        if segment.namespace != name:
            return
        deleted = segment.overlay.deleted_at
        seqs = segment.array("seq")
    except DamagedError as error:
        logger.warning("skipped: %s", error)
        return
    for doc in range(segment.documents - 1, -1, -1):
        if len(deleted) and deleted[doc] != NEVER_US:
            continue
        try:
            yield decode_body(segment.stored(doc), int(seqs[doc]))
        except DamagedError as error:
            logger.warning("skipped: %s", error)


def backup(store: Store, target: Path) -> None:
    """A complete, sound copy of the store in the new folder `target`, while the store goes on. Segments that cannot be copied are rebuilt from the log when the copy is opened."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInputError(f"{target} exists and is not an empty folder; give a new one")
    target.mkdir(parents=True, exist_ok=True)
    with store.keep_files():
        store.writer.backup(str(target / DATABASE))
        copy = SqliteReader(target / DATABASE)
        try:
            for name in copy.namespaces():
                state = copy.state(name)
                if state is None or not state.manifest:
                    continue
                folder = target / "segments" / str(state.number)
                folder.mkdir(parents=True)
                for entry in decode_manifest(state.manifest, name).segments:
                    shutil.copyfile(store.folder(state.number) / entry.file, folder / entry.file)
        finally:
            copy.close()
