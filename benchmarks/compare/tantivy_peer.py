"""tantivy through its Python binding: one thread, one segment, no positions, the query built term by term."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.compare import oracle
from benchmarks.compare.corpora import Collection
from benchmarks.compare.engine import Round, Unavailable, singly

Array = npt.NDArray[Any]
HEAP_BYTES = 1_000_000_000


class Tantivy:
    formula = oracle.TANTIVY

    def __init__(self) -> None:
        try:
            import tantivy
        except ImportError as error:
            raise Unavailable("tantivy: pip install agentir-ray[bench]") from error
        self._tantivy = tantivy
        self.name = self.index_name = "tantivy"
        self.version = version("tantivy")
        self.parameters = {**oracle.TANTIVY._asdict(), "arithmetic": "float32", "segments": 1}
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="freq")
        builder.add_integer_field("number", stored=False, indexed=False, fast=True)
        self._schema = builder.build()

    def build(self, collection: Collection, folder: Path) -> None:
        index = self._tantivy.Index(self._schema, path=str(folder))
        index.register_tokenizer("whitespace", self._tantivy.TextAnalyzerBuilder(self._tantivy.Tokenizer.whitespace()).build())
        writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
        for number, text in enumerate(collection.document_texts()):
            writer.add_document(self._tantivy.Document(text=text, number=number))
        writer.commit()
        writer.wait_merging_threads()

    def open(self, collection: Collection, folder: Path) -> None:
        index = self._tantivy.Index.open(str(folder))
        index.reload()
        self._searcher = index.searcher()

    def run(self, queries: Sequence[Array], k: int, want_hits: bool = False) -> Round:
        make = self._tantivy.Query
        should = self._tantivy.Occur.Should
        asked = [make.boolean_query([(should, make.term_query(self._schema, "text", f"t{term}", "freq")) for term in query.tolist()]) for query in queries]
        return singly(self._search, asked, k, self._to_hits if want_hits else None)

    def _search(self, query: Any, k: int) -> Any:
        return self._searcher.search(query, k, count=False).hits

    def _to_hits(self, hits: Any) -> tuple[Array, Array]:
        numbers = self._searcher.fast_field_values("number", [address for _, address in hits]) if hits else []
        return np.array(numbers, np.int64), np.array([score for score, _ in hits], np.float64)

    def close(self) -> None:
        self._searcher = None
