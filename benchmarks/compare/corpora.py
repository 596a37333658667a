"""What the engines are compared on: documents and queries as numbers of terms, so that every engine sees the same tokens (as words `t123`, between spaces).

`synthetic` is seeded (`benchmarks.synthetic`); the judged collections and `passages` (the shared collections and BEAM, cut into passages of 56 tokens, with their real
questions) are tokenised once by our `english` analyzer. A term counts once in a query, for engines differ in what a repeated one means, and a query has at least two terms. A
collection is saved as arrays in a folder, which the builders, processes of their own, read.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import synthetic

Array = npt.NDArray[Any]
CHUNK_DOCUMENTS = 250_000  # counted at a time: sorting all tokens at once would take gigabytes


@dataclass(frozen=True)
class Counted:
    """The terms of document d, ascending, and how often it has each, lie at doc_start[d]:doc_start[d + 1] of `term` and `tf`."""

    doc_start: Array
    term: Array
    tf: Array


@dataclass(frozen=True)
class Collection:
    folder: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "meta.json").read_text())
        return found

    @property
    def name(self) -> str:
        return str(self.meta["name"])

    @property
    def documents(self) -> int:
        return int(self.meta["documents"])

    @property
    def vocabulary(self) -> int:
        return int(self.meta["vocabulary"])

    @cached_property
    def length(self) -> Array:
        return np.load(self.folder / "length.npy")

    @cached_property
    def tokens(self) -> Array:
        """The terms of all documents in the order of the text."""
        return np.load(self.folder / "tokens.npy", mmap_mode="r")

    @cached_property
    def counted(self) -> Counted:
        return Counted(*(np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in ("doc_start", "counted_term", "counted_tf")))

    @cached_property
    def queries(self) -> list[Array]:
        """Distinct terms, in the order of the question."""
        flat, start = np.load(self.folder / "query_term.npy"), np.load(self.folder / "query_start.npy")
        return [flat[a:b] for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]

    @cached_property
    def texts(self) -> list[str]:
        """The raw texts of a real collection, one a document."""
        return _read_lines(self.folder / "texts.jsonl")

    @cached_property
    def questions(self) -> list[str]:
        """The raw text of each query of a real collection."""
        return _read_lines(self.folder / "questions.jsonl")

    @cached_property
    def words(self) -> list[str]:
        return [f"t{term}" for term in range(self.vocabulary)]

    def query_texts(self, queries: Iterable[Array]) -> list[str]:
        return [" ".join(f"t{term}" for term in query) for query in queries]

    def document_texts(self) -> Iterable[str]:
        """Each document's words between spaces."""
        words, start = self.words, 0
        for length in self.length.tolist():
            yield " ".join([words[term] for term in self.tokens[start : start + length].tolist()])
            start += length


def save(
    folder: Path,
    name: str,
    tokens: Array,
    length: Array,
    queries: Sequence[Array],
    vocabulary: int,
    texts: Sequence[str] = (),
    questions: Sequence[str] = (),
    counted: Counted | None = None,
) -> Collection:
    """Queries of fewer than two terms must have been left out by the caller. `meta.json` comes last: a folder without it is no collection."""
    folder.mkdir(parents=True, exist_ok=True)
    counted = counted or count(tokens, length)
    arrays = {"tokens": tokens.astype(np.uint32), "length": length, "doc_start": counted.doc_start, "counted_term": counted.term, "counted_tf": counted.tf}
    arrays["query_start"] = np.cumsum([0, *map(len, queries)])
    arrays["query_term"] = np.concatenate([*queries, np.empty(0, np.int64)]).astype(np.int64)
    for key, values in arrays.items():
        np.save(folder / f"{key}.npy", values)
    for key, lines in (("texts", texts), ("questions", questions)):
        (folder / f"{key}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    meta = {"name": name, "documents": len(length), "tokens": len(tokens), "postings": len(counted.term), "vocabulary": vocabulary, "queries": len(queries)}
    (folder / "meta.json").write_text(json.dumps(meta))
    return Collection(folder)


def count(tokens: Array, length: Array) -> Counted:
    """From the documents' tokens, end to end, to their distinct terms and frequencies."""
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    size, terms, tfs = np.zeros(len(length), np.int64), [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for first in range(0, len(length), CHUNK_DOCUMENTS):
        end = min(first + CHUNK_DOCUMENTS, len(length))
        key = np.repeat(np.arange(end - first, dtype=np.int64), length[first:end]) << 32 | tokens[start[first] : start[end]]
        key.sort()
        at = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
        terms.append((key[at] & 0xFFFFFFFF).astype(np.int32))
        tfs.append(np.diff(np.append(at, len(key))).astype(np.int32))
        size[first:end] = np.bincount(key[at] >> 32, minlength=end - first)
    return Counted(np.concatenate([[0], np.cumsum(size)]).astype(np.int64), np.concatenate(terms), np.concatenate(tfs))


def open_collection(name: str, cache: Path, *, documents: int, bursty: bool, queries: int) -> Collection:
    """`synthetic`, `passages` or a judged collection, from the cache or made now."""
    if name == "synthetic":
        folder = cache / f"synthetic-{documents}-{'bursty' if bursty else 'random'}-{queries}"
        return Collection(folder) if (folder / "meta.json").exists() else _synthetic(folder, documents, bursty, queries)
    from benchmarks.compare import real

    folder = cache / f"{name}-{queries}"
    return Collection(folder) if (folder / "meta.json").exists() else real.make(folder, name, queries)


def _synthetic(folder: Path, documents: int, bursty: bool, queries: int) -> Collection:
    docs = synthetic.corpus(documents, bursty=bursty)
    counted = count(docs.term, docs.length)
    asked = synthetic.queries(docs, queries, frequency=np.bincount(counted.term, minlength=synthetic.VOCABULARY))
    return save(folder, "synthetic", docs.term, docs.length, asked, synthetic.VOCABULARY, counted=counted)


def _read_lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
