"""`Memory`: one namespace of a store, as a caller sees it. Every verb delegates to the engine; there is no logic here but the order of calls.

Threads may share a `Memory`. `use` gives other namespaces of the same open store; the store closes when the `Memory` that opened it does.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from agentir_ray.analysis import ANALYZERS
from agentir_ray.clock import Clock, SystemClock
from agentir_ray.encoders.protocol import Encoder, SparseEncoder
from agentir_ray.engine import health, listing, retention, transfer, writing
from agentir_ray.engine.encoders_in_use import EncodersInUse, check_encoder, check_sparse_encoder
from agentir_ray.engine.graphs import LEAST_ROWS, MAX_THREADS, build_graphs
from agentir_ray.engine.importing import ImportReport, import_records
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.policy import DEFAULT_LIMITS, Limits
from agentir_ray.engine.prepare import check_encodable, check_name, check_namespace
from agentir_ray.engine.reading import get_record
from agentir_ray.engine.reembedding import reembed
from agentir_ray.engine.request import Duration, Recency, check_bm25, check_width, expression_of, make_request, visibility_of, whole_number
from agentir_ray.engine.searching import search
from agentir_ray.engine.store import MAX_UNENCODED, MEMORY_BUDGET_BYTES, Durability, Store
from agentir_ray.errors import AgentIRError, DamagedError, InvalidInputError, NotFoundError, SpilledError
from agentir_ray.lexical.filters import EVERYTHING
from agentir_ray.lexical.filters.metadata import shown
from agentir_ray.lexical.query import Bm25
from agentir_ray.lexical.segment import ColdSegmentError
from agentir_ray.retrieval.reranker import Reranker
from agentir_ray.types import ForgetReceipt, Page, Problem, Record, RetentionReceipt, SearchResult, Time

PURGE_WAIT_S = 60.0
T = TypeVar("T")


class Memory:
    """One namespace of a store. Open it with `Memory.open`; close it, or use it as a context manager."""

    def __init__(self, store: Store, namespace: str, analyzer: str | None, bm25: Bm25, owns_store: bool) -> None:
        self._store = store
        self._analyzer = analyzer
        self._bm25 = bm25
        self._owns_store = owns_store
        self.namespace = check_namespace(namespace)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        namespace: str = "default",
        *,
        read_only: bool = False,
        create: bool = True,
        analyzer: str | None = None,
        durability: Durability = "full",
        memory_budget_bytes: int = MEMORY_BUDGET_BYTES,
        bm25: Bm25 = Bm25(),
        clock: Clock | None = None,
        background: bool = True,
        limits: Limits = DEFAULT_LIMITS,
        spill: str | os.PathLike[str] | None = None,
        encoder: str | os.PathLike[str] | Encoder | None = None,
        sparse_encoder: str | os.PathLike[str] | SparseEncoder | None = None,
        token_vectors: bool = False,
        max_unencoded: int = MAX_UNENCODED,
    ) -> Self:
        """Open, or create, the store in the folder `path`.

        One process at a time opens a store for writing; any number may open it `read_only` and follow within a second. `analyzer` (default: the namespace's own, "multilingual"
        for a new one) rebuilds the index when it differs from the namespace's. `durability="process"` skips the sync of each commit: a power cut may lose the last records, a
        crash of the process does not. `background=False` leaves sealing and merging to the calls that write, and `limits` says when these are due.

        `spill` is a folder, or a URL that fsspec opens (s3://bucket/prefix; `pip install 'agentir-ray[spill]'`), for the oldest postings and texts that do not fit into the memory
        budget. They are loaded when a search needs them; the store is to be opened with the same `spill` from then on.

        `encoder` and `sparse_encoder` give the records of every namespace their vectors, in the background, after they were stored: an encoder, the name of one, or a model's
        folder (`agentir doctor` shows which are installed). `token_vectors` keeps the vectors of single tokens as well, for `rerank="maxsim"`. A writer waits while more than
        `max_unencoded` records of its namespace have no vectors yet and the encoder works.

        Raises StoreLockedError, ReadOnlyError, UnsupportedFileSystemError, DamagedError, FormatError, NotFoundError, EncoderMissingError.
        """
        if not isinstance(durability, str) or durability not in ("full", "process"):
            raise InvalidInputError(f"durability is {shown(durability)}; give 'full' or 'process'")
        check_namespace(namespace)
        if analyzer is not None and (not isinstance(analyzer, str) or analyzer not in ANALYZERS):
            raise InvalidInputError(f"analyzer is {shown(analyzer)}; give one of {', '.join(ANALYZERS)}")
        whole_number(memory_budget_bytes, "memory_budget_bytes", 1)
        whole_number(max_unencoded, "max_unencoded", 1)
        encoders = EncodersInUse(check_encoder(encoder), check_sparse_encoder(sparse_encoder), bool(token_vectors))
        bm25 = check_bm25(bm25)
        store = Store(
            _path(path), clock=clock or SystemClock(), read_only=read_only, create=create, durability=durability, memory_budget_bytes=memory_budget_bytes, background=background,
            limits=limits, spill=None if spill is None else check_spill(spill), encoders=encoders, max_unencoded=max_unencoded,
        )  # fmt: skip
        return cls(store, namespace, analyzer, bm25, owns_store=True)

    def use(self, namespace: str) -> "Memory":
        """Another namespace of the same open store. Closing it closes nothing."""
        return Memory(self._store, namespace, self._analyzer, self._bm25, owns_store=False)

    def close(self) -> None:
        if self._owns_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({str(self._store.path)!r}, namespace={self.namespace!r})"

    # Writing.

    def add(
        self,
        text: str,
        *,
        id: str | None = None,
        timestamp: Time | None = None,
        importance: float = 0.0,
        session: str | None = None,
        role: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: Time | None = None,
        supersedes: str | None = None,
    ) -> Record:
        """Store one record: durable and searchable when this returns.

        `id` makes retries safe: the same id with the same content stores nothing twice and returns the record as it is now (updates included), with other content it raises
        ConflictError. Without an `id` one is made; an UnknownOutcomeError names it in its `ids`. `supersedes` names a record that this one replaces as knowledge: the old one
        leaves the results from now on, and stays visible to an `as_of` before. An update that names another record, or None, gives it back.
        """
        fields = {
            "text": text, "id": id, "timestamp": timestamp, "importance": importance, "session": session, "role": role, "metadata": metadata, "expires_at": expires_at,
            "supersedes": supersedes,
        }  # fmt: skip
        (outcome,) = writing.add_chunk(self._store, self.namespace, [fields], analyzer=self._analyzer)
        if isinstance(outcome.result, AgentIRError):
            raise outcome.result
        return outcome.result

    def add_many(self, items: Iterable[Mapping[str, Any]]) -> list[Record | AgentIRError]:
        """Store many records, given as the arguments of `add`; one outcome an item, in order: the record, or why it was not stored.

        A bad item keeps no other out. Each commit holds up to 1,000 records; one that fails is the outcome of its records alone. `items` may use the store itself.
        """
        writing.check_items(items)
        return [outcome.result for outcome in writing.add_records(self._store, self.namespace, items, analyzer=self._analyzer)]

    def import_(self, items: Iterable[Mapping[str, Any]], progress: Callable[[int], None] | None = None) -> ImportReport:
        """Store records as `add_many` does, `created_at` included, and count them. What one supersedes need not be there: an export holds no forgotten records.

        `progress` is told how many were seen so far.
        """
        writing.check_items(items)
        return import_records(self._store, self.namespace, items, self._analyzer, progress)

    def update(self, id: str, *, operation_id: str | None = None, **changes: Any) -> Record:
        """Write a new version of a record: `changes` are arguments of `add`, None clears an optional one. An `as_of` before sees the old version."""
        with self._store.namespace(self.namespace, analyzer=self._analyzer) as namespace:
            return writing.update_record(self._store, namespace, id, changes, operation_id)

    def forget(
        self, where: Mapping[str, Any] | None = None, *, ids: Sequence[str] | None = None, dry_run: bool = False, wait: bool = False, operation_id: str | None = None
    ) -> ForgetReceipt:
        """Erase the records that `where` or `ids` name: out of every result when this returns, out of every file within 15 minutes, or before it returns with `wait`.

        An empty filter is refused: `drop` is the verb for leaving. An id that was erased never comes back.
        """
        if (where is None) == (ids is None):
            raise InvalidInputError("give either where or ids; to erase a whole namespace call drop")
        if where is not None:
            expression = expression_of(where, None, None)
            if expression == EVERYTHING:
                raise InvalidInputError("an empty filter would erase everything; name what to forget, or call drop to erase the namespace")
            found = self._read(lambda namespace: listing.matching_ids(namespace, expression))
        else:
            named = writing.check_ids(ids)
            found = self._read(lambda namespace: listing.known_ids(namespace, named))
        if dry_run:
            return ForgetReceipt(tuple(found), hidden=False, purged=False)
        self._store.writer  # noqa: B018 - raises ReadOnlyError
        with self._store.namespace(self.namespace, analyzer=self._wanted) as namespace:
            forgotten = writing.forget_ids(self._store, namespace, found, operation_id)
            if forgotten:
                self._store.look_after(namespace, purge=True)
        purged = self._store.wait_purged(PURGE_WAIT_S if wait else 0, self.namespace)
        return ForgetReceipt(tuple(forgotten), hidden=True, purged=purged)

    def retain(
        self,
        *,
        keep_last: int | None = None,
        max_age: Duration | None = None,
        pinned: Mapping[str, Any] | None = None,
        as_of: Time | None = None,
        plan: str | None = None,
        dry_run: bool = True,
        wait: bool = False,
        operation_id: str | None = None,
    ) -> RetentionReceipt:
        """Erase, as `forget` does, the records beyond the newest `keep_last`, and those whose timestamp is more than `max_age` ("90d") before `as_of` (default: now).

        Records that pass the filter `pinned` stay whatever their age, and count among the newest. The newest come last by (timestamp, sequence number). The call shows what would
        go and erases nothing, unless `dry_run=False`; to erase exactly what a dry run showed, give its receipt's `plan` (and the same `pinned`) in the place of the rules: what was
        added or updated since stays. A call that ended early is finished by the same plan, or by the same `operation_id` (kept for 7 days), which repeats the first call's plan.
        Replaced versions of records that stay are not touched.
        """
        now_us = self._store.clock.now_us()
        expression, pins = retention.check_pinned(pinned), retention.pins_of(pinned)
        if plan is None:
            rules = retention.check_rules(keep_last, max_age, pinned, now_us, as_of)
            choice = self._read(lambda namespace: retention.choose(namespace, rules, pins))
        elif keep_last is not None or max_age is not None or as_of is not None:
            raise InvalidInputError("give either a plan or keep_last, max_age and as_of: a plan has what these came to")
        else:
            given = retention.parse_plan(plan, pinned)
            choice = self._read(lambda namespace: retention.describe(namespace, given, expression))
        if dry_run:
            return RetentionReceipt(choice.records, choice.oldest_us, choice.newest_us, choice.pinned, choice.kept, str(choice.plan), hidden=False, purged=False)
        self._store.writer  # noqa: B018 - raises ReadOnlyError
        with self._store.namespace(self.namespace, analyzer=self._wanted) as namespace:
            settled = retention.settle(self._store, namespace, choice.plan, operation_id)
            if settled != choice.plan:
                choice = retention.describe(namespace, settled, expression)
            count = retention.carry_out(self._store, namespace, settled, expression)
            if count:
                self._store.look_after(namespace, purge=True)
        purged = self._store.wait_purged(PURGE_WAIT_S if wait else 0, self.namespace)
        kept = choice.kept + choice.records - count
        return RetentionReceipt(count, choice.oldest_us, choice.newest_us, choice.pinned, kept, str(settled), hidden=True, purged=purged)

    def drop(self, namespace: str | None = None) -> bool:
        """Delete a whole namespace (default: this one) with all its files; False when there was none."""
        self._store.check()
        return self._store.drop(self.namespace if namespace is None else check_namespace(namespace))

    # Reading.

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: str = "auto",
        since: Time | None = None,
        until: Time | None = None,
        where: Mapping[str, Any] | None = None,
        session: str | None = None,
        role: str | None = None,
        coverage: str | float = "auto",
        as_of: Time | None = None,
        recency: Recency | None = None,
        importance: float | None = None,
        min_score: float | None = None,
        deadline_ms: float | None = None,
        offset: int = 0,
        max_tokens: int | None = None,
        explain: bool = False,
        temporal: str | None = None,
        weights: Mapping[str, float] | None = None,
        depth: int | None = None,
        context_weight: float | None = None,
        passage_penalty: float | None = None,
        rerank: Literal["maxsim"] | Reranker | None = None,
        rerank_weight: float | None = None,
        rerank_depth: int | None = None,
        approximate: bool = False,
    ) -> SearchResult:
        """The `k` best records for `query`, best first, equal scores newer first.

        `since` and `until` are inclusive bounds of `timestamp`; `where`, `session` and `role` filter (see `agentir_ray.lexical.filters`). `recency=(weight, tau)` adds
        weight * exp(-age / tau) to a hit's score, `importance=weight` adds weight * importance. `as_of` is the query's now: what was written, deleted or superseded later is as
        if not yet done. `deadline_ms` cuts the search short, and the coverage says so. `max_tokens` is a budget for the texts (4 bytes a token): a hit that does
        not fit into what is left of it is passed over.

        `temporal="parse"` reads English times in `query` ("yesterday", "last March", "between March and May 2022") and searches only what happened then, within `since` and
        `until`; the result's `time_range` says which words were taken for which range. Days are those of `as_of`'s UTC offset (default: UTC). What is not certainly a time of
        the past changes nothing. It is for timestamps that say when something happened: where they say when it was told, "two years ago" names another time.

        `mode` says which channels are asked (docs/channels.md): "bm25" (and "auto" for now), "dense" and "sparse" alone, or several as one: "rrf" by their ranks, "agent_rrf" with
        some recency and importance, "convex" by their scores. For those, `weights` maps channels to numbers, 0 leaves one out (default: 1 each), and `depth` says how many of the
        best of each channel are looked at. `context_weight` w gives a record (1 - w) of its own score and w of the mean of its neighbours', which are up to two records before and
        after it in its session; `passage_penalty` takes that much from the score of a record for each doubling of its passages.

        `rerank="maxsim"`, or any `Reranker`, looks again at the `rerank_depth` best (default 50); `rerank_weight` (default 0.6) is the part of the final score that it gives.

        `approximate` lets the graphs of `build_graphs` give the list by dense, where there are some; the scores are exact, records may be missing, and the coverage says so.

        Raises EncoderMissingError, EncoderMismatchError: "bm25" goes on serving.
        """
        request = make_request(
            query, self._store.clock.now_us(), k=k, offset=offset, mode=mode, since=since, until=until, where=where, session=session, role=role, coverage=coverage, as_of=as_of,
            recency=recency, importance=importance, min_score=min_score, deadline_ms=deadline_ms, max_tokens=max_tokens, explain=explain,
            temporal=temporal, weights=weights, depth=depth, context_weight=context_weight, passage_penalty=passage_penalty, rerank=rerank, rerank_weight=rerank_weight,
            rerank_depth=rerank_depth, approximate=approximate,
        )  # fmt: skip
        return self._read(lambda namespace: search(self._store, namespace, request, self._bm25))

    def repartition(self, width: Duration) -> None:
        """Give the namespace time partitions of another width ("1d", a timedelta, or seconds; "7d" at first). Rewrites nothing; how old what is asked for is gets learnt anew."""
        width_us = check_width(width)
        self._store.writer  # noqa: B018 - raises ReadOnlyError
        with self._store.namespace(self.namespace, create=True, analyzer=self._analyzer) as namespace:
            self._store.repartition(namespace, width_us)

    def feedback(self, record_ids: Sequence[str], query_id: str) -> None:
        """Say which records the search `query_id` was after, in its result or not: so the namespace learns how old what is asked for is, and which partitions may be left out.

        Saved when this returns. Raises NotFoundError for a search that is not among the last ones of this process, and for records that are not there.
        """
        self._store.check()
        observer = self._store.learning
        ids = writing.check_ids(record_ids)
        self._read(lambda namespace: observer.feedback(namespace, ids, check_name(query_id, "query_id")))

    def get(self, id: str) -> Record:
        """The newest version of a record, also when it has expired or was superseded. Raises NotFoundError."""
        check_name(id, "id")
        return self._read(lambda namespace: get_record(namespace, id))

    def recent(
        self,
        limit: int = 20,
        *,
        cursor: str | None = None,
        where: Mapping[str, Any] | None = None,
        session: str | None = None,
        role: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        as_of: Time | None = None,
    ) -> Page:
        """Records in time order, newest first."""
        visibility = visibility_of(self._store.clock.now_us(), since, until, as_of)
        expression = expression_of(where, session, role)
        return self._read(lambda namespace: listing.recent(namespace, limit, cursor, visibility, expression))

    def namespaces(self, prefix: str = "") -> list[str]:
        """Names in the store, in order; `prefix` counts whole segments: "acme" gives "acme" and "acme/x", never "acme-corp"."""
        self._store.check()
        return self._store.log.namespaces("" if isinstance(prefix, str) and not prefix else check_namespace(prefix, "prefix"))

    def export(self, *, salvage: bool = False) -> Iterator[Record]:
        """Every record that is not deleted, in the order of the log. `salvage` reads around damage, with a warning for all that it skips."""
        self._store.check()
        return transfer.salvage_records(self._store.path, self.namespace, self._store.spiller) if salvage else transfer.export_records(self._store, self.namespace)

    # Vectors.

    def wait_encoded(self, timeout_s: float | None = None) -> bool:
        """Wait until every record that is stored now has its vectors, or its encoder refused it (`stats` names those); False when that took longer.

        With `background=False` this call does the work. Without encoders there is nothing to wait for. Raises EncoderMismatchError where the namespace's vectors were made by
        another encoder, EncodingError or EncoderMissingError where the encoder does not work.
        """
        self._store.check()
        self._store.writer  # noqa: B018 - raises ReadOnlyError
        return self._store.encoding.wait(self.namespace, timeout_s)

    def reembed(
        self,
        encoder: str | os.PathLike[str] | Encoder | None = None,
        sparse_encoder: str | os.PathLike[str] | SparseEncoder | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Encode all records of this namespace anew, with these encoders (default: those that the store was opened with), while it is written to and searched.

        The old vectors serve until the new ones are complete. A call that was interrupted goes on where it was. What an encoder refused is tried again. `progress` is told how much
        was done of how much.
        """
        self._store.check()
        present = self._store.encoders
        dense, sparse = check_encoder(encoder) or present.dense, check_sparse_encoder(sparse_encoder) or present.sparse
        reembed(self._store, self.namespace, EncodersInUse(dense, sparse, present.token_vectors), progress)

    def build_graphs(self, least_rows: int = LEAST_ROWS, threads: int = 1) -> int:
        """Build graphs (FAISS's HNSW) for `search(..., approximate=True)`; returns how many vectors of the namespace lie in graphs now.

        A graph belongs to a segment of at least `least_rows` vectors; smaller ones are searched exactly. It takes some 0.4 ms a vector and thread, in this call; the namespace is
        read and written meanwhile. Graphs are in memory alone, vectors included, and count for `memory_budget_bytes`: what is sealed, merged or purged later, and a namespace that
        is loaded anew, is searched exactly until the next call.

        Raises EncoderMissingError where FAISS is not installed, InvalidInputError where the graphs do not fit into the budget.
        """
        whole_number(least_rows, "least_rows", 1)
        whole_number(threads, "threads", 1, MAX_THREADS)
        return self._read(lambda namespace: build_graphs(self._store, namespace, least_rows, threads))

    # Looking after.

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole store, while it is open, into the new folder `path`.

        The copy is complete without the spill target. If segments were spilled, it is to be opened for writing once, which rebuilds them from its log, before it can be read only.
        """
        self._store.check()
        transfer.backup(self._store, _path(path))

    def verify(self) -> list[Problem]:
        """Check every byte of the whole store; empty when it is sound."""
        self._store.check()
        return health.verify(self._store)

    def stats(self) -> dict[str, Any]:
        """Figures of the store and, where it exists, of this namespace."""
        self._store.check()
        stats: dict[str, Any] = {"store": health.store_stats(self._store)}
        try:
            stats["namespace"] = self._read(lambda namespace: health.namespace_stats(self._store, namespace))
        except NotFoundError:
            stats["namespace"] = None
        return stats

    @property
    def _wanted(self) -> str | None:
        """The analyzer to load a namespace with; a reader takes it as it is."""
        return None if self._store.read_only else self._analyzer

    def _read(self, work: Callable[[Namespace], T]) -> T:
        """Run `work` on the loaded namespace; a segment found damaged is rebuilt from the log, a cold one loaded, and the work done again."""
        store = self._store
        namespace = store.acquire(self.namespace, analyzer=self._wanted)
        try:
            if self._analyzer is not None and namespace.analyzer.name != self._analyzer:
                raise InvalidInputError(
                    f"namespace {self.namespace!r} is indexed by the analyzer {namespace.analyzer.name}; open it for writing with analyzer={self._analyzer!r} to rebuild it"
                )
            return work(namespace)
        except ColdSegmentError as error:
            reason = store.load_cold(namespace, error.segments, None)
            if reason:
                raise SpilledError(f"{reason}; nothing is lost: see that the target answers, and call again") from error
        except DamagedError as error:
            store.report_damage(namespace, error)
        finally:
            store.release(namespace)
        with store.namespace(self.namespace) as namespace:
            return work(namespace)


def check_spill(spill: object) -> str:
    place = os.fspath(spill) if isinstance(spill, str | os.PathLike) else spill
    if not isinstance(place, str):
        raise InvalidInputError(f"spill is {shown(spill)}; give a folder's path or a URL")
    check_encodable(place, "spill")
    return place


def _path(path: object) -> Path:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(name, str):
        raise InvalidInputError(f"path is {shown(path)}; give a string or a pathlib.Path")
    check_encodable(name, "path")
    if not name:
        raise InvalidInputError("path is empty; name the folder of the store, '.' for the present one")
    return Path(name)


__all__ = ["ImportReport", "Memory"]
