"""What a store consists of, and whether it is sound."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.analysis import DEFAULT_ANALYZER
from agentir_ray.engine.channel import DENSE
from agentir_ray.engine.graphs import graphed
from agentir_ray.engine.manifest import manifest_of
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.sidecars import open_sidecar
from agentir_ray.engine.store import DATABASE, Store
from agentir_ray.engine.temperature import temperature_of
from agentir_ray.engine.temperature_policy import Temperature
from agentir_ray.errors import AgentIRError, NotFoundError, SpilledError
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.lexical.part import Part
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.codec import decode_id
from agentir_ray.storage.protocol import EntryKind, NamespaceState
from agentir_ray.storage.sqlite_reader import CHUNK_ROWS
from agentir_ray.types import Problem, to_datetime

SAVE = "save what can be read with `agentir export --salvage`, or restore a backup"
ENCODE = "nothing but vectors is lost: close the store and remove this file with its -wal and -shm; what no sidecar holds is encoded again (`agentir encode`)"
ATTEMPTS = 5  # at comparing a namespace that is being written to with its log


def verify(store: Store) -> list[Problem]:
    """Check every row of the log, every byte of every segment of every namespace, and that each index holds what its log does; empty when sound."""
    database = str(store.path / DATABASE)
    problems = [Problem(database, what, SAVE) for what in store.log.verify()]
    vectors = [Problem(str(store.vectors.path), what, ENCODE) for what in store.vectors.verify()]
    try:
        names = store.log.namespaces()
    except AgentIRError as error:
        return [*problems, *vectors, Problem(database, str(error), "restore a backup, or `agentir export --salvage`")]
    sound = not problems
    problems += vectors
    for name in names:
        try:
            state = store.log.state(name)
            if state is None:
                continue
            damaged = _damaged_segments(store, state)
            problems += damaged
            if sound and not damaged:
                problems += _compare_with_log(store, name)
        except NotFoundError:
            continue  # it was dropped while we looked
        except AgentIRError as error:
            problems.append(Problem(database, f"namespace {name}: {error}", SAVE))
    return problems


def _damaged_segments(store: Store, state: NamespaceState) -> list[Problem]:
    problems = []
    for entry in manifest_of(state, DEFAULT_ANALYZER).segments:
        path = store.folder(state.number) / entry.file
        try:
            segment = Segment(path, store.cache, decode_id)
            segment.verify()
            for channel, file in entry.sidecars.items():
                path = store.folder(state.number) / file
                open_sidecar(channel, path, segment).verify()
            if entry.spilled:
                store.spiller.check(entry.spilled, segment)
        except SpilledError as error:
            problems.append(Problem(entry.spilled, str(error), "nothing is lost: records can be read, and searches go on without this segment; see that the target answers"))
        except AgentIRError as error:
            now = store.log.state(state.name)
            if now is not None and now.generation == state.generation:  # else it was merged away while we looked
                problems.append(Problem(str(path), str(error), "open the store for writing: it is built again, from the log or from the kept vectors"))
    return problems


def _compare_with_log(store: Store, name: str) -> list[Problem]:
    """Whether the index holds every version of the log that was not erased, nothing else, and one live version a record. Takes 8 bytes a version."""
    with store.namespace(name) as namespace:
        for _ in range(ATTEMPTS):
            index = namespace.index
            with index.lock:
                until, live = index.seq, index.live_documents
                held = np.concatenate([part.column("seq")[_kept(part)] for part in index.parts])
            held.sort()
            versions = records = found = after = 0
            while after < until:
                entries = list(store.log.read(namespace.number, after, min(CHUNK_ROWS, until - after)))
                logged = [entry for entry in entries if entry.kind is not EntryKind.FORGET and entry.body is not None]
                versions += len(logged)
                records += sum(entry.kind is EntryKind.ADD for entry in logged)
                found += int(np.isin([entry.seq for entry in logged], held).sum())
                after = entries[-1].seq if entries else until
            state = store.log.state(name)
            if state is None or state.number != namespace.number or state.next_seq - 1 != until:
                continue  # something was written meanwhile, or is not yet in a follower's index
            if found == versions == len(held) and records == live:
                return []
            differs = f"lacks {versions - found} of the {versions} versions in the log, has {len(held) - found} others, and counts {live} of {records} records"
            remedy = f"close the store and remove {store.folder(namespace.number)}: the index is rebuilt from the log when it is opened for writing"
            return [Problem(str(store.folder(namespace.number)), f"the index of namespace {name} {differs}", remedy)]
    return []


def _kept(part: Part) -> npt.NDArray[np.bool_]:
    """Which documents were not erased."""
    deleted_at = part.overlay.deleted_at
    return np.ones(part.documents, bool) if len(deleted_at) == 0 else deleted_at[: part.documents] != ERASED_AT


def namespace_stats(store: Store, namespace: Namespace) -> Mapping[str, Any]:
    index = namespace.index
    with index.lock:
        parts = index.parts
        documents, length = sum(part.live_documents for part in parts), sum(part.live_length for part in parts)
        spans = [segment.span_us for segment in index.segments if segment.documents] + [
            (int(buffer.column("timestamp").min()), int(buffer.column("timestamp").max())) for buffer in index.buffers if buffer.documents
        ]
        told = {
            "namespace": namespace.name,
            "records": documents,
            "tokens": length,
            "analyzer": namespace.analyzer.name,
            "oldest": to_datetime(min(span[0] for span in spans)).isoformat() if spans else None,
            "newest": to_datetime(max(span[1] for span in spans)).isoformat() if spans else None,
            "last_seq": index.seq,
            "unsealed_entries": index.seq - namespace.applied_seq,
            "segments": len(index.segments),
            "segment_bytes": sum(segment.bytes for segment in index.segments),
            "memory_bytes": namespace.memory_bytes(),
            "temperature": _temperatures(index.segments),
        }
    told["channels"] = _channels(store, namespace)
    return told | _partitions(namespace, store.clock.now_us())  # which takes a snapshot


def _partitions(namespace: Namespace, now_us: int) -> dict[str, Any]:
    """How many time partitions there are, how wide, and how many of the newest are known to hold 95% of the answers."""
    snapshot = namespace.index.snapshot(())
    recency = namespace.recency
    partitions = namespace.partition_table(snapshot, recency.width_us).at(snapshot.buffers, now_us)
    decision = recency.decide(partitions.total, 0.05)
    newest = f"the {decision.partitions} newest hold 95% of the answers" if decision.supported else f"not known: {decision.reason}"
    return {"partitions": len(partitions.buckets), "partition_width": str(timedelta(microseconds=recency.width_us)), "recency": newest}


def _channels(store: Store, namespace: Namespace) -> dict[str, Any]:
    """What each neural channel has: how many of the versions of records have vectors, how far its encoder is behind the log, and what it refused."""
    found: dict[str, Any] = {}
    index, now_us = namespace.index, store.clock.now_us()
    with index.lock:
        last_seq, seqs = index.seq, [part.column("seq") for part in index.parts]
    total = sum(map(len, seqs))
    for name, channel in namespace.channels.items():
        cursor = channel.encoded_seq
        following = next(iter(store.log.read(namespace.number, cursor, 1)), None) if cursor < last_seq else None
        sidecars = [segment.sidecars[name] for segment in index.segments if name in segment.sidecars]
        in_use = store.encoders.wanted().get(name)
        found[name] = {
            "encoder": channel.encoder,
            "encoder_in_use": in_use,
            "encoded_records": sum(int((seq <= cursor).sum()) for seq in seqs) - channel.failed,
            "records": total,
            "lag_entries": last_seq - cursor,
            "lag_seconds": 0.0 if following is None else max(0, now_us - following.created_at_us) / 1e6,
            "young_records": 0 if channel.young is None else len(channel.young),
            "sidecar_bytes": sum(sidecar.bytes for sidecar in sidecars),
            "graph_vectors": graphed(namespace) if name == DENSE else 0,
            "refused": channel.failed,
            "refused_entries": {str(seq): reason for seq, reason in channel.failures.items()},
            "trouble": None if store.read_only else store.encoding.trouble(name),
            "texts_per_second": 0.0 if store.read_only else store.encoding.rate(name),
        }
    return found


def _temperatures(segments: Sequence[Segment]) -> Mapping[str, Any]:
    """How many segments are hot, warm and cold, with the bytes of their files; and how many bytes of postings and texts are here, which spilling would free."""
    found: dict[str, Any] = {}
    for temperature in Temperature:
        those = [segment for segment in segments if temperature_of(segment) is temperature]
        found |= {f"{temperature.value}_segments": len(those), f"{temperature.value}_bytes": sum(segment.bytes for segment in those)}
    return found | {"spilled_segments": sum(bool(segment.spilled) for segment in segments), "heavy_bytes": sum(segment.heavy_bytes for segment in segments)}


def store_stats(store: Store) -> Mapping[str, Any]:
    database = store.path / DATABASE
    return {
        "path": str(store.path),
        "namespaces": len(store.log.namespaces()),
        "loaded_namespaces": store.loaded_namespaces(),
        "database_bytes": database.stat().st_size,
        "memory_bytes": store.memory_bytes(),
        "memory_budget_bytes": store.memory_budget_bytes,
        "spill": None if store.spiller.target is None else str(store.spiller.target),
    }
