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
NOTHING: Final = Or(())

MAX_SMALL = 64


def is_small(expression: Expression) -> bool:
    """Whether the expression has at most `MAX_SMALL` operands: small enough to be kept as a key."""
    return _operands(expression) <= MAX_SMALL


def _operands(expression: Expression) -> int:
    match expression:
        case HasKey(ranges):
            return len(ranges)
        case HasId(ids):
            return len(ids)
        case Not(part):
            return _operands(part)
        case And(parts) | Or(parts):
            return sum(map(_operands, parts))
    return 1
