"""Many documents at once into segments: analysed in batches on every core, then built by the same path as a seal.

The work on a batch (tokenising, counting, hashing ids, compressing stored bytes) goes to threads: nearly all of it gives the GIL away. What a segment holds depends on the
documents and on how they were divided into batches, not on the number of threads: batches are put together in their order, and terms and keys are numbered by what they are.

Memory is bounded by one segment under construction (`Limits`) and the few batches in flight, however many documents come.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.analysis import Analyzer
from agentir_ray.kernels.invert import place_documents
from agentir_ray.lexical.batch import MAX_WORDS, Counted, Vocabulary
from agentir_ray.lexical.builder import OVERLAY, Draft, at_once, build_sections
from agentir_ray.lexical.stored import StoredFields, join_stored, pack_stored
from agentir_ray.lexical.strings import hashes, pack_strings, pack_texts, take_strings
from agentir_ray.sections import encode_sections
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]
BATCH = 2_048  # documents that a batch should have: some milliseconds of work


class Documents(NamedTuple):
    """A batch: entry i of each is document i. `texts` are analysed, `stored` is what a hit is decoded from, `keys` are the filter keys; times in microseconds, int64."""

    texts: Sequence[str]
    ids: Sequence[str]
    stored: Sequence[bytes]
    seq: Array
    timestamp: Array
    created_at: Array
    expires_at: Array | None = None
    importance: Array | None = None
    keys: Sequence[Sequence[bytes]] | None = None


class Progress(NamedTuple):
    """What has been done: documents analysed, documents in finished drafts, and those drafts."""

    analysed: int
    drafted: int
    drafts: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a segment may hold: it is closed before the batch that would exceed one of these. Two million documents of 45 distinct terms take some 2 GB to build."""

    documents: int = 2_000_000
    text_characters: int = 2**30


DEFAULT_LIMITS = Limits()


class _Analysed(NamedTuple):
    counted: Counted
    columns: dict[str, Array]
    id_hash: Array
    key_number: Array
    key_doc: Array
    stored: StoredFields


class BulkBuilder:
    """Builds the segments of one namespace. Owns its threads: use it in a `with` statement. `progress` is called by the thread that takes the drafts."""

    def __init__(
        self,
        analyzer: Analyzer,
        namespace: str,
        *,
        workers: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._analyzer = analyzer
        self._namespace = namespace
        self._workers = workers or os.cpu_count() or 1
        self._limits = limits
        self._progress = progress
        self._pool = ThreadPoolExecutor(self._workers, "agentir-bulk")

    def __enter__(self) -> "BulkBuilder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)

    def drafts(self, batches: Iterable[Documents]) -> Iterator[Draft]:
        """One draft after the other. Batches are read ahead of the work by twice as many as there are threads."""
        vocabulary, keys = Vocabulary(self._analyzer), _Keys()
        pending: deque[Future[_Analysed]] = deque()
        parts: list[_Analysed] = []
        documents = characters = done = drafted = drafts = 0

        def take(left: int) -> None:
            nonlocal done
            while len(pending) > left:
                parts.append(pending.popleft().result())
                done += len(parts[-1].id_hash)
                self._progress(Progress(done, drafted, drafts))

        def draft() -> Draft:
            nonlocal drafted, drafts, vocabulary, keys, documents, characters
            take(0)
            made = _assemble(parts, vocabulary, keys, self._namespace, self._pool)
            drafted, drafts, documents, characters = drafted + documents, drafts + 1, 0, 0
            vocabulary, keys = vocabulary if len(vocabulary.terms) < MAX_WORDS else Vocabulary(self._analyzer), _Keys()
            return made

        for batch in batches:
            size = sum(map(len, batch.texts))
            if documents and (documents + len(batch.texts) > self._limits.documents or characters + size > self._limits.text_characters):
                yield draft()
            documents, characters = documents + len(batch.texts), characters + size
            pending.append(self._pool.submit(_analyse, batch, vocabulary, keys))
            take(2 * self._workers)
        if documents:
            yield draft()
        self._progress(Progress(done, drafted, drafts))

    def sections(self, draft: Draft) -> dict[str, Array]:
        """The sections of a draft's file."""
        return build_sections(draft, self._pool)

    def write(self, batches: Iterable[Documents], folder: Path) -> list[Path]:
        """The segments as files in a folder, not synced: for an index that can be made again."""
        paths = []
        for number, draft in enumerate(self.drafts(batches)):
            paths.append(folder / f"{number}.segment")
            with open(paths[-1], "wb") as file:
                file.writelines(encode_sections(self.sections(draft)))
        return paths


class _Keys:
    """The filter keys of a segment, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def number(self, keys: Iterable[bytes]) -> list[int]:
        known = self.numbers
        with self._lock:
            return [known.setdefault(key, len(known)) for key in keys]


def _analyse(batch: Documents, vocabulary: Vocabulary, keys: _Keys) -> _Analysed:
    counted = vocabulary.count(batch.texts)
    documents = len(batch.texts)
    columns = {
        "seq": batch.seq,
        "timestamp": batch.timestamp,
        "created_at": batch.created_at,
        "expires_at": np.full(documents, NEVER_US, np.int64) if batch.expires_at is None else batch.expires_at,
        "importance": np.zeros(documents) if batch.importance is None else batch.importance,
        "length": counted.length,
    }
    of_each = batch.keys or [()] * documents
    key_number = np.array(keys.number(key for own in of_each for key in own), np.int64)
    key_doc = np.repeat(np.arange(documents), np.fromiter(map(len, of_each), np.int64, documents))
    return _Analysed(counted, columns, hashes(pack_texts(batch.ids)), key_number, key_doc, pack_stored(batch.stored))


def _assemble(parts: list[_Analysed], vocabulary: Vocabulary, keys: _Keys, namespace: str, pool: ThreadPoolExecutor) -> Draft:
    """The draft of all parts, which are taken off the list as they are copied."""
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    documents = len(columns["seq"])
    order = np.arange(documents)
    if (np.diff(columns["timestamp"]) <= 0).any() or (np.diff(columns["seq"]) <= 0).any():
        order = np.lexsort((columns["seq"], columns["timestamp"]))
        columns = {name: values[order] for name, values in columns.items()}
    place = np.empty(documents, np.int64)
    place[order] = np.arange(documents)
    bounds = np.cumsum([0, *(len(part.id_hash) for part in parts)])

    doc_start = np.zeros(documents + 1, np.int64)
    doc_start[1 + place] = np.concatenate([np.diff(part.counted.doc_start) for part in parts])
    np.cumsum(doc_start, out=doc_start)
    id_hash = np.concatenate([part.id_hash for part in parts])[order]
    key_number, key_doc = np.concatenate([part.key_number for part in parts]), np.concatenate([place[bounds[i] + part.key_doc] for i, part in enumerate(parts)])
    stored = join_stored([part.stored for part in parts], order)

    strings = pack_texts(vocabulary.terms)
    by_hash = _by_hash(hashes(strings), vocabulary.terms)
    ordinal = np.empty(len(by_hash), np.int32)
    ordinal[by_hash] = np.arange(len(by_hash), dtype=np.int32)
    term, tf = np.empty(doc_start[-1], np.int32), np.empty(doc_start[-1], np.int32)
    counted = [part.counted for part in parts]
    parts.clear()
    at_once(pool, *[partial(place_documents, own.doc_start, own.term, own.tf, ordinal, place[bounds[i] : bounds[i + 1]], doc_start, term, tf) for i, own in enumerate(counted)])

    ascending = sorted(keys.numbers)
    new_number = np.empty(len(ascending), np.int64)
    new_number[[keys.numbers[key] for key in ascending]] = np.arange(len(ascending))
    return Draft(
        columns=columns | {name: np.full(documents, NEVER_US, np.int64) for name in OVERLAY},
        id_hash=id_hash,
        doc_start=doc_start,
        term=term,
        tf=tf,
        terms=take_strings(strings, by_hash),
        keys=pack_strings(ascending),
        key_number=new_number[key_number],
        key_doc=key_doc,
        stored=stored,
        namespace=namespace,
        fingerprint=vocabulary.analyzer.fingerprint,
    )


def _by_hash(term_hash: Array, terms: Sequence[str]) -> Array:
    """The order by hash; where two terms have one hash, by the term, whichever was numbered first."""
    order = np.argsort(term_hash)
    if (term_hash[order[1:]] == term_hash[order[:-1]]).any():
        order = np.array(sorted(range(len(terms)), key=lambda i: (int(term_hash[i]), terms[i])), np.int64)
    return order
