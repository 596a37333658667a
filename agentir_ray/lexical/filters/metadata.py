"""What metadata may hold: JSON that means the same after any round trip, within limits that keep a record's keys few.

Strings without NUL (it ends a path in `keys`) and without lone surrogates (they have no UTF-8), finite numbers, integers within 64 bits, string keys. Operands of filters obey
the same rules, so that whatever can be stored can be asked for.
"""

import json
import math
from collections.abc import Mapping

from agentir_ray.errors import InvalidInputError
from agentir_ray.types import kind_of

MAX_DEPTH = 16
MAX_LEAVES = 256  # each is a key in the index
MAX_ENCODED_BYTES = 64 * 1024
MAX_PLAIN_MEMBERS, MAX_PLAIN_LENGTH = 16, 256  # even if each character takes six bytes in JSON, that fits


def check_metadata(metadata: object) -> None:
    """Raise InvalidInputError unless `metadata` is a mapping that can be stored and filtered; the message names the path at fault."""
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata is {kind_of(metadata)}; give a dict with string keys")
    if _is_plain(metadata):
        return
    metadata = dict(metadata)
    if check_value(metadata, "metadata") <= MAX_ENCODED_BYTES:
        return
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_ENCODED_BYTES:
        raise InvalidInputError(f"metadata takes {size:,} bytes as JSON, at most {MAX_ENCODED_BYTES:,} are allowed; put long content into the text")


def _is_plain(metadata: Mapping[object, object]) -> bool:
    """Whether it is flat, short and sound, as nearly all are: then it needs no closer look."""
    if len(metadata) > MAX_PLAIN_MEMBERS:
        return False
    for key, value in metadata.items():
        if type(key) is not str or len(key) > MAX_PLAIN_LENGTH or not is_storable(key):
            return False
        if isinstance(value, str):
            if len(value) > MAX_PLAIN_LENGTH or not is_storable(value):
                return False
        elif isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                return False
        elif value is not None:
            return False
    return True


def check_value(value: object, name: str) -> int:
    """Raise InvalidInputError unless `value` is JSON by the rules above, with at most 16 levels and 256 leaves; returns a number of bytes that its JSON does not exceed.

    `name` is how messages call it.
    """
    leaves = most_bytes = 0
    pending = [(name, value, 0)]  # a stack, not recursion: hostile values are refused, never a RecursionError
    while pending:
        path, current, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise InvalidInputError(f"{name} is nested more than {MAX_DEPTH} levels deep")
        if isinstance(current, dict) and current:
            for key, member in current.items():
                if not isinstance(key, str):
                    raise InvalidInputError(f"{path:.200} has the key {shown(key)}; keys must be strings")
                if not is_storable(key):
                    check_text(key, f"a key of {path}")
                most_bytes += _most_bytes(key)
                pending.append((f"{path}.{key}", member, depth + 1))
        elif isinstance(current, list) and current:
            pending.extend((f"{path}[{i}]", element, depth + 1) for i, element in enumerate(current))
        else:
            leaves += 1
            if leaves > MAX_LEAVES:
                raise InvalidInputError(f"{name} holds more than {MAX_LEAVES} values")
            most_bytes += _most_bytes(current) if isinstance(current, str) else _NUMBER_BYTES
            _check_leaf(current, path)
    return most_bytes


_NUMBER_BYTES = 32  # more than any number, bool or null takes, with a comma and two brackets


def _most_bytes(text: str) -> int:
    """At most this many bytes in JSON: an escaped character takes six, and there are quotes, a colon or comma, and brackets."""
    return 6 * len(text) + 6


def is_storable(text: str) -> bool:
    """Whether `text` holds neither a NUL nor a lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(text: str, name: str) -> None:
    """Raise InvalidInputError if `text` cannot be stored, saying why."""
    if "\0" in text:
        raise InvalidInputError(f"{name:.200} holds a NUL character; remove it")
    if not is_storable(text):
        raise InvalidInputError(f"{name!a:.200} holds a lone surrogate, which is no character; remove it")


def shown(value: object) -> str:
    """What messages call a value: with its type, short, and without failing on hostile ones (the repr of a deep list or of a huge integer raises)."""
    name = kind_of(value)
    if isinstance(value, str):
        return f"{value[:60]!a}{'...' * (len(value) > 60)}, {name}"
    if isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() <= 64):
        return f"{value!r}, {name}"
    return name


def _check_leaf(value: object, name: str) -> None:
    if value is None or isinstance(value, bool) or value == {} or value == []:
        return
    if isinstance(value, str):
        check_text(value, name)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidInputError(f"{name:.200} is an integer beyond 64 bits; give a float or a string")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"{name:.200} is {value}; give a finite number")
    else:
        raise InvalidInputError(f"{name:.200} is {shown(value)}; give a string, number, bool, None, list or dict")
