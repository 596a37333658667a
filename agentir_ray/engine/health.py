"""What a store consists of, and whether it is sound."""

from collections.abc import Mapping
from typing import Any

from agentir_ray.engine.manifest import decode_manifest
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.store import DATABASE, Store
from agentir_ray.errors import AgentIRError
from agentir_ray.lexical.segment import Segment
from agentir_ray.storage.codec import decode_id
from agentir_ray.types import Problem, to_datetime


def verify(store: Store) -> list[Problem]:
    """Check every row of the log and every byte of every segment of every namespace; empty when sound."""
    problems = [Problem(str(store.path / DATABASE), what, "save what can be read with `agentir export --salvage`, or restore a backup") for what in store.log.verify()]
    try:
        names = store.log.namespaces()
    except AgentIRError as error:
        return [*problems, Problem(str(store.path / DATABASE), str(error), "restore a backup, or `agentir export --salvage`")]
    for name in names:
        try:
            state = store.log.state(name)
            if state is None or not state.manifest:
                continue
            for entry in decode_manifest(state.manifest, name).segments:
                path = store.folder(state.number) / entry.file
                try:
                    Segment(path, store.cache, decode_id).verify()
                except AgentIRError as error:
                    now = store.log.state(name)
                    if now is not None and now.generation == state.generation:  # else it was merged away while we looked
                        problems.append(Problem(str(path), str(error), "open the store for writing: the segment is rebuilt from the log"))
        except AgentIRError as error:
            problems.append(Problem(str(store.path / DATABASE), f"namespace {name}: {error}", "save what can be read with `agentir export --salvage`, or restore a backup"))
    return problems


def namespace_stats(store: Store, namespace: Namespace) -> Mapping[str, Any]:
    index = namespace.index
    with index.lock:
        parts = index.parts
        documents, length = sum(part.live_documents for part in parts), sum(part.live_length for part in parts)
        spans = [segment.span_us for segment in index.segments if segment.documents] + [
            (int(buffer.column("timestamp").min()), int(buffer.column("timestamp").max())) for buffer in index.buffers if buffer.documents
        ]
        return {
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
        }


def store_stats(store: Store) -> Mapping[str, Any]:
    database = store.path / DATABASE
    return {
        "path": str(store.path),
        "namespaces": len(store.log.namespaces()),
        "loaded_namespaces": store.loaded_namespaces(),
        "database_bytes": database.stat().st_size,
        "memory_bytes": store.memory_bytes(),
        "memory_budget_bytes": store.memory_budget_bytes,
    }
