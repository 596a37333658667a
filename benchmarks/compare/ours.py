"""Our engine through its lexical layer: a segment built from a draft, opened, and searched as a namespace searches it (snapshot, scoring, top k).

A query is timed from its terms: what `parse_query` does with a text is the analyzer's work, which the other engines are spared as well.
"""

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import agentir_ray
from agentir_ray.lexical.builder import OVERLAY, Draft, build_sections
from agentir_ray.lexical.cache import SegmentCache
from agentir_ray.lexical.index import Index
from agentir_ray.lexical.query import Bm25, Query, scoring
from agentir_ray.lexical.search import TopK, Visibility, top_k
from agentir_ray.lexical.search_many import TopKMany, top_k_many
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.stored import pack_stored
from agentir_ray.lexical.strings import hashes, pack_strings, take_strings
from agentir_ray.sections import SectionFile, encode_sections
from agentir_ray.types import NEVER_US
from benchmarks.compare import oracle
from benchmarks.compare.corpora import Collection, Counted
from benchmarks.compare.engine import Round, singly

Array = npt.NDArray[Any]
# What an index is without columns and stored fields: the rest of the sections are counted.
_NOT_INDEX = ("meta", "seq", "timestamp", "created_at", "expires_at", "importance", *OVERLAY, "id_", "stored_", "key_")
_MINUTE_US = 60_000_000
SEGMENT_DOCUMENTS = 2**21  # so that a large index is built in bounded memory


def format_hash() -> str:
    """Changes with the code that makes a segment, so that a cached one is never of an older format."""
    root = Path(agentir_ray.__file__).parent
    named = ["sections.py", "lexical/builder.py", "lexical/classes.py", "kernels/classes.py"]
    sources = [*(root / name for name in named), *sorted((root / "kernels").glob("invert*.py")), *sorted((root / "kernels").glob("build*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:8]


class Ours:
    formula = oracle.OURS

    def __init__(self) -> None:
        self.name = "ours"
        self.index_name = f"ours-{format_hash()}"
        self.version = version("agentir-ray")
        self.parameters = {**oracle.OURS._asdict(), "arithmetic": "float64"}

    def build(self, collection: Collection, folder: Path) -> None:
        words, counted = [word.encode() for word in collection.words], collection.counted
        for first in range(0, collection.documents, SEGMENT_DOCUMENTS):
            end = min(first + SEGMENT_DOCUMENTS, collection.documents)
            a, b = int(counted.doc_start[first]), int(counted.doc_start[end])
            part = Counted(counted.doc_start[first : end + 1] - a, counted.term[a:b], counted.tf[a:b])
            write_segment(folder / f"segment-{first:09}", part, np.asarray(collection.length[first:end]), words, first=first)

    def open(self, collection: Collection, folder: Path) -> None:
        paths = sorted(folder.glob("segment-*"))
        self.index = open_index(paths)
        self._first = np.array([int(path.name.partition("-")[2]) for path in paths])

    def run(self, queries: Sequence[Array], k: int, want_hits: bool = False) -> Round:
        return singly(self.search, self.queries(queries), k, self._to_hits if want_hits else None)

    def queries(self, queries: Sequence[Array]) -> list[Query]:
        return [Query(tuple(f"t{term}" for term in query.tolist()), (1.0,) * len(query)) for query in queries]

    def search(self, query: Query, k: int) -> TopK:
        snapshot = self.index.snapshot(query.terms)
        return top_k(snapshot, scoring(query, snapshot.statistics, Bm25()), k, Visibility(NEVER_US - 1))

    def search_many(self, queries: Sequence[Query], k: int, threads: int) -> TopKMany:
        return top_k_many(self.index, queries, k, Visibility(NEVER_US - 1), threads=threads)

    def _to_hits(self, answer: TopK) -> tuple[Array, Array]:
        return self._first[answer.ref >> 32] + (answer.ref & 0xFFFFFFFF), answer.score

    def close(self) -> None:
        self.__dict__.pop("index", None)


def write_segment(path: Path, counted: Counted, length: Array, vocabulary: Sequence[bytes], namespace: str = "bench", first: int = 0) -> None:
    """A segment file of documents a minute apart, numbered from `first`, whose terms are numbers in a vocabulary, with no filter keys and empty stored fields."""
    documents = len(length)
    seq = np.arange(first + 1, first + documents + 1, dtype=np.int64)
    minute = seq * _MINUTE_US
    columns = {"seq": seq, "timestamp": minute, "created_at": minute, "length": length, "importance": np.zeros(documents)}
    columns |= {name: np.full(documents, NEVER_US) for name in ("expires_at", *OVERLAY)}
    words = pack_strings(vocabulary)
    by_hash = np.argsort(hashes(words))
    ordinal = np.empty(len(words), np.int32)
    ordinal[by_hash] = np.arange(len(words), dtype=np.int32)
    none = np.empty(0, np.int64)
    draft = Draft(
        columns=columns,
        id_hash=hashes(pack_strings([b"%d" % doc for doc in range(first, first + documents)])),
        doc_start=np.array(counted.doc_start),
        term=ordinal[counted.term],
        tf=np.array(counted.tf, np.int32),
        terms=take_strings(words, by_hash),
        keys=pack_strings([]),
        key_number=none,
        key_doc=none,
        stored=pack_stored(b"" for _ in range(documents)),
        namespace=namespace,
        fingerprint="bench",
    )
    with path.open("wb") as file:
        file.writelines(encode_sections(build_sections(draft)))


def open_index(paths: Sequence[Path]) -> Index:
    segments = [Segment(path, SegmentCache(1 << 20), lambda body: "") for path in paths]
    return Index(segments, 1 << 40)


def index_bytes(folder: Path) -> int:
    """Bytes of the segments without columns, filter keys, ids and stored fields."""
    files = [SectionFile(path) for path in folder.glob("segment-*")]
    if not files:
        raise FileNotFoundError(f"{folder} holds no segment")
    return sum(file.array(name).nbytes for file in files for name in file.names() if not name.startswith(_NOT_INDEX))
