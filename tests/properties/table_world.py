"""Documents as a table of term frequencies, for tests that need many of them: what a segment of them is made from."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.builder import OVERLAY, Draft
from agentir_ray.lexical.stored import pack_stored
from agentir_ray.lexical.strings import hashes, pack_strings, take_strings
from agentir_ray.types import NEVER_US

Array = npt.NDArray[Any]


def word(term: int) -> str:
    return f"t{term}"


def draft_of_table(tf: Array, length: Array, seq: Array, timestamp: Array, importance: Array, expires_at: Array | None = None) -> Draft:
    """Row d of `tf` is document d, in time order, and column t the term `word(t)`; a document is created at its timestamp."""
    documents = len(tf)
    strings = pack_strings([word(t).encode() for t in range(tf.shape[1])])
    by_hash = np.argsort(hashes(strings))
    tf = tf[:, by_hash]
    doc, term = np.nonzero(tf)
    never, nothing = np.full(documents, NEVER_US), np.empty(0, np.int64)
    columns = {"seq": seq, "timestamp": timestamp, "created_at": timestamp, "expires_at": never if expires_at is None else expires_at, "importance": importance, "length": length}
    return Draft(
        columns={**columns, **dict.fromkeys(OVERLAY, never)},
        id_hash=hashes(pack_strings([b"%d" % number for number in seq])),
        doc_start=np.searchsorted(doc, np.arange(documents + 1)).astype(np.int64),
        term=term.astype(np.int32),
        tf=tf[doc, term],
        terms=take_strings(strings, by_hash),
        keys=pack_strings([]),
        key_number=nothing,
        key_doc=nothing,
        stored=pack_stored(b"%d\0" % number for number in seq),
        namespace="n",
        fingerprint="f",
    )
