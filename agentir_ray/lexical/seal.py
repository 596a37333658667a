"""From a frozen buffer to a draft of a segment. Erased documents do not come along, nor do the terms and keys that only they had."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agentir_ray.lexical.buffer import Buffer
from agentir_ray.lexical.builder import OVERLAY, Draft
from agentir_ray.lexical.overlay import ERASED_AT
from agentir_ray.lexical.stored import pack_stored
from agentir_ray.lexical.strings import hashes, pack_strings, pack_texts, take_strings

Array = npt.NDArray[Any]
COLUMNS = ("seq", "timestamp", "created_at", "expires_at", "importance", "length")


def draft_buffer(buffer: Buffer, namespace: str, fingerprint: str) -> Draft:
    """The content of `buffer`, documents in time order (newest sequence number last among equals)."""
    overlay = buffer.overlay.columns()
    kept = np.flatnonzero(overlay["deleted_at"][: buffer.documents] != ERASED_AT)
    order = kept[np.lexsort((buffer.seq[kept], buffer.timestamp[kept]))]
    columns = {name: getattr(buffer, name)[order] for name in COLUMNS} | {name: overlay[name][order] for name in OVERLAY}

    size = buffer.doc_posting[order + 1] - buffer.doc_posting[order]
    doc_start = np.zeros(len(order) + 1, np.int64)
    np.cumsum(size, out=doc_start[1:])
    source = np.repeat(buffer.doc_posting[order] - doc_start[:-1], size) + np.arange(doc_start[-1])

    strings = pack_texts(list(buffer.term_number))
    by_hash = np.argsort(hashes(strings))
    ordinal = np.empty(len(strings), np.int32)
    ordinal[by_hash] = np.arange(len(strings), dtype=np.int32)

    place = np.full(buffer.documents, -1, np.int64)
    place[order] = np.arange(len(order))
    lists = [np.array(buffer.key_docs[key], np.int64) for key in buffer.sorted_keys]
    key_doc = place[np.concatenate([*lists, np.empty(0, np.int64)])]
    key_number = np.repeat(np.arange(len(lists)), [len(docs) for docs in lists])
    alive = key_doc >= 0
    return Draft(
        columns=columns,
        id_hash=hashes(pack_texts([buffer.doc_ids[doc] for doc in order])),
        doc_start=doc_start,
        term=ordinal[buffer.posting_term[source]],
        tf=buffer.posting_tf[source],
        terms=take_strings(strings, by_hash),
        keys=pack_strings(buffer.sorted_keys),
        key_number=key_number[alive],
        key_doc=key_doc[alive],
        stored=pack_stored(buffer.bodies[doc] for doc in order),
        namespace=namespace,
        fingerprint=fingerprint,
    )
