"""Filters: what a `where` means, and which documents pass it.

    where = {"session": {"eq": "s12"}, "metadata.topic": {"in": ["food", "travel"]}}
    where = {"or": [{"timestamp": {"gte": "2026-01-01"}}, {"not": {"metadata.done": {"eq": True}}}]}

A `where` is a dict. A key is a field, whose value is a dict of operator -> operand, or one of "and" and "or" (a list of wheres) and "not" (one where). Several keys of a where,
and several operators of a field, must all hold. `{}` means everything, at the top only: within "and", "or" and "not" an empty where is refused, and so are empty lists and a
field without an operator, so that nobody erases a namespace by a filter that came out empty.

Fields: id, session, role, supersedes, timestamp, created_at, expires_at, importance and metadata.<path>, where the path is the keys of nested dicts joined by dots. Keys may
hold dots themselves: `{"a": {"b": 1}}` and `{"a.b": 1}` both put 1 at metadata.a.b, and where one record does both, a test passes if one of the values passes.

| operator | holds when | of fields |
|---|---|---|
| eq | the value equals the operand; eq None when the value is null or missing | all; None only of those that may be missing |
| in | the value equals one of 1 to 10,000 operands | all |
| ne, nin | eq, in do not hold: so they hold for records that lack the field | all |
| gt, gte, lt, lte | value and operand are both numbers, or both strings, in that order; false for anything else | all but id |
| exists | true: the field is there (a null in the metadata is; an empty dict or list is); false: it is not | all |
| contains | the value is a string with this substring (case counts), or a list with this element | session, role, supersedes, metadata |

Values: numbers compare as 64-bit floats, so 1 equals 1.0, and 2**53 equals 2**53 + 1; a bool is no number. Strings compare by code points, nothing is folded or normalised. A
list equals a list with equal elements in the same order; dicts are compared member by member, through their paths. Times are a datetime, an ISO 8601 string or microseconds,
compared exactly and with inclusive gte and lte; of them only expires_at may be missing. Refused: NaN and infinities, integers beyond 64 bits, NUL and lone surrogates in strings.

How it works, in reading order:

- `metadata`: what metadata may hold; the same rules hold for operands.
- `keys`: a record as a list of byte keys, so that every test on session, role, supersedes and metadata is a range of keys in one sorted dictionary of posting lists.
- `ranges`: ranges of keys, and where they lie in such a dictionary.
- `expression`: the tests that are left: a key in a range, a text within keys, a column in a range, an id; joined by and, or, not.
- `fields`: what an operator means for a field. `parse`: a `where` as an expression, or an error that says what is allowed.
- `evaluate`: an expression as a bitmap of documents.
"""

from agentir_ray.lexical.filters.evaluate import FilterIndex, evaluate
from agentir_ray.lexical.filters.expression import EVERYTHING, Expression, operand_bytes
from agentir_ray.lexical.filters.keys import document_keys
from agentir_ray.lexical.filters.metadata import check_metadata
from agentir_ray.lexical.filters.parse import parse_filter

__all__ = ["parse_filter", "evaluate", "FilterIndex", "Expression", "EVERYTHING", "operand_bytes", "document_keys", "check_metadata"]
