"""Postings that grow while they are read: the buffer's.

Postings of a document lie together, in the order of arrival, so they are a forward index as they stand; each also points to the previous posting of its term. Nothing that a
reader can reach from the heads it copied is ever changed, so readers need no lock.
"""

from typing import Any

import numba

from agentir_ray.kernels.signatures import INT, READ_I32, WRITE_I32


@numba.njit([numba.void(INT, READ_I32, READ_I32, INT, *[WRITE_I32] * 7)], cache=True)
def append_postings(doc: Any, term: Any, tf: Any, at: Any, head: Any, df: Any, most_tf: Any, posting_doc: Any, posting_term: Any, posting_tf: Any, posting_next: Any) -> None:
    """Append the postings of one document at position `at`; term int32 and tf int32, distinct terms."""
    for i in range(len(term)):
        t = term[i]
        p = at + i
        posting_doc[p] = doc
        posting_term[p] = t
        posting_tf[p] = tf[i]
        posting_next[p] = head[t]
        head[t] = p
        df[t] += 1
        most_tf[t] = max(most_tf[t], tf[i])


@numba.njit([INT(INT, INT, READ_I32, READ_I32, READ_I32)], cache=True)
def find_tf(head: Any, doc: Any, posting_doc: Any, posting_tf: Any, posting_next: Any) -> Any:
    """tf of the term whose newest posting is `head` in `doc`, 0 if it is not there."""
    p = head
    while p >= 0 and posting_doc[p] > doc:
        p = posting_next[p]
    if p >= 0 and posting_doc[p] == doc:
        return int(posting_tf[p])
    return 0
