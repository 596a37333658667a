"""A filter once it is understood: the tests an index can answer, joined by and, or, not.

Plain frozen values; they know neither the operators they came from nor the index they will meet, so one expression serves every segment of a namespace.
"""

from dataclasses import dataclass
from typing import Final

from agentir_ray.lexical.filters.ranges import KeyRange


@dataclass(frozen=True, slots=True)
class HasKey:
    """The document has a key in one of the ranges."""

    ranges: tuple[KeyRange, ...]


@dataclass(frozen=True, slots=True)
class HasText:
    """The document has a key that starts with `prefix` and holds `text` somewhere after it."""

    prefix: bytes
    text: bytes


@dataclass(frozen=True, slots=True)
class InRange:
    """low <= the column's value <= high."""

    column: str
    low: int | float
    high: int | float


@dataclass(frozen=True, slots=True)
class HasId:
    """The document's id is one of these."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds; with no part, everything does."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """A part holds; with no part, nothing does."""

    parts: tuple["Expression", ...]


Expression = HasKey | HasText | InRange | HasId | Not | And | Or

EVERYTHING: Final = And(())

_NODE_BYTES = 16  # so that empty operands and nested tests count, too


def operand_bytes(expression: Expression) -> int:
    """About how many bytes the operands take: whoever keeps an expression as a key keeps them."""
    match expression:
        case HasKey(ranges):
            return _NODE_BYTES + sum(_NODE_BYTES + len(low) + len(high) for low, high in ranges)
        case HasText(prefix, text):
            return _NODE_BYTES + len(prefix) + len(text)
        case HasId(ids):
            return _NODE_BYTES + sum(_NODE_BYTES + len(id) for id in ids)
        case Not(part):
            return _NODE_BYTES + operand_bytes(part)
        case And(parts) | Or(parts):
            return _NODE_BYTES + sum(map(operand_bytes, parts))
        case InRange():
            return _NODE_BYTES
