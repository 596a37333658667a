"""A record as byte keys, so that equality, order, existence, substrings and membership are all ranges of one sorted dictionary.

A key is a field's path in UTF-8, a NUL, a tag of one byte, and a value whose bytes sort as the value does:

| tag | value | one key per |
|---|---|---|
| `?` | nothing | field that is there, whatever it holds |
| `0` | nothing | null |
| `b` | 0 or 1 | bool |
| `n` | 8 bytes: float64, big end first, its sign bit flipped, or all bits if negative; -0.0 is stored as 0.0 | number |
| `s` | UTF-8, which sorts as code points do | string |
| `l` | canonical JSON: numbers as floats, members sorted | list, whole |
| `e` | tag and value as above | distinct null, bool, number or string in a list |

No path holds a NUL and a value is the last thing in its key, so no key can be read in two ways, and no prefix (`acme`) is taken for a longer value (`acme-corp`). A string is
stored whole however long it is: the dictionary holds each distinct value once, and the limit on metadata bounds it. Knows nothing of filters; the layout is part of the segment
format.
"""

import json
import struct
from collections.abc import Iterator

from agentir_ray.types import Metadata

Scalar = str | float | bool | None

EXISTS = b"?"
NULL = b"0"
BOOL = b"b"
NUMBER = b"n"
STRING = b"s"
LIST = b"l"
ELEMENT = b"e"

METADATA_PREFIX = "metadata."

_SIGN = 1 << 63
_SESSION, _ROLE, _SUPERSEDES = b"session\0", b"role\0", b"supersedes\0"
SESSION_IS = _SESSION + STRING  # then follows its name


def document_keys(*, session: str | None, role: str | None, supersedes: str | None, metadata: Metadata) -> list[bytes]:
    """The distinct keys of one record. `metadata` has passed `check_metadata`."""
    keys: list[bytes] = []
    if session is not None:
        keys += (_SESSION + EXISTS, _SESSION + STRING + session.encode())
    if role is not None:
        keys += (_ROLE + EXISTS, _ROLE + STRING + role.encode())
    if supersedes is not None:
        keys += (_SUPERSEDES + EXISTS, _SUPERSEDES + STRING + supersedes.encode())
    for path, value in _members(METADATA_PREFIX, metadata):
        keys += _value_keys(field_key(path), value)
    return list(dict.fromkeys(keys)) if metadata else keys


def field_key(path: str) -> bytes:
    """What all keys of the field at `path` start with."""
    return path.encode() + b"\0"


def scalar_key(value: Scalar) -> bytes:
    """Tag and value of a null, bool, number or string."""
    if isinstance(value, str):
        return STRING + value.encode()
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL + (b"1" if value else b"0")
    # Adding 0.0 turns -0.0 into 0.0.
    bits = int.from_bytes(struct.pack(">d", float(value) + 0.0), "big")
    return NUMBER + (bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN).to_bytes(8, "big")


def list_key(elements: list[object]) -> bytes:
    """Tag and value of a whole list: two lists have the same one exactly when they are equal."""
    return LIST + json.dumps(_with_floats(elements), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def _value_keys(field: bytes, value: object) -> list[bytes]:
    if isinstance(value, dict):
        return [field + EXISTS]
    if isinstance(value, list):
        elements = [field + ELEMENT + scalar_key(element) for element in value if not isinstance(element, list | dict)]
        return [field + EXISTS, field + list_key(value), *elements]
    assert value is None or isinstance(value, str | int | float)
    return [field + EXISTS, field + scalar_key(value)]


def _members(prefix: str, members: Metadata) -> Iterator[tuple[str, object]]:
    """Every member, dicts among them, with its path."""
    for key, value in members.items():
        yield prefix + key, value
        if isinstance(value, dict):
            yield from _members(f"{prefix}{key}.", value)


def _with_floats(value: object) -> object:
    if isinstance(value, list):
        return [_with_floats(element) for element in value]
    if isinstance(value, dict):
        return {key: _with_floats(member) for key, member in value.items()}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0
    return value
