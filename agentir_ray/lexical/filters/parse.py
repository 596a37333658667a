"""From a `where` to an expression, or to an error that names what is wrong and lists what is allowed.

Only the shape is checked here: names, nesting, emptiness, sizes. What an operand may be is the field's business.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agentir_ray.errors import InvalidFilterError
from agentir_ray.lexical.filters.expression import EVERYTHING, And, Expression, Not, Or
from agentir_ray.lexical.filters.fields import FIELDS, Field, find_field
from agentir_ray.lexical.filters.metadata import shown

MAX_DEPTH = 16  # of and, or, not within each other
MAX_NODES = 1_000  # wheres and comparisons
MAX_IN_VALUES = 10_000

_JOINS = ("and", "or", "not")


def parse_filter(where: object) -> Expression:
    """The expression that `where` stands for; `EVERYTHING` for an empty one. Raises InvalidFilterError."""
    if isinstance(where, Mapping) and not where:
        return EVERYTHING
    return _Parser().where(where, "the filter", 0)


class _Parser:
    """One parse, which counts its nodes."""

    def __init__(self) -> None:
        self._nodes = 0

    def where(self, where: Any, name: str, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            raise InvalidFilterError(f"the filter nests and, or, not more than {MAX_DEPTH} deep; flatten it")
        self._count()
        if not isinstance(where, Mapping):
            raise InvalidFilterError(f'{name} is {shown(where)}; give a dict such as {{"session": {{"eq": "s12"}}}}')
        if not where:
            raise InvalidFilterError(f"{name} is an empty dict; name a field, or leave it out")
        parts: list[Expression] = []
        for key, value in where.items():
            if not isinstance(key, str):
                raise InvalidFilterError(f"{shown(key)} is not a field; fields are {', '.join(FIELDS)}")
            if key in _JOINS:
                parts.append(self._join(key, value, depth))
            else:
                parts.extend(self._comparisons(find_field(key), value))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _join(self, join: str, value: Any, depth: int) -> Expression:
        if join == "not":
            return Not(self.where(value, 'the filter of "not"', depth + 1))
        if not isinstance(value, list | tuple):
            raise InvalidFilterError(f'"{join}" is {shown(value)}; give a list of filters')
        if not value:
            raise InvalidFilterError(f'"{join}" is an empty list; give at least one filter, or leave it out')
        parts = tuple(self.where(part, f'a filter of "{join}"', depth + 1) for part in value)
        return And(parts) if join == "and" else Or(parts)

    def _comparisons(self, field: Field, tests: Any) -> list[Expression]:
        allowed = f"operators of {field.name:.200} are {', '.join(field.operators)}"
        if not isinstance(tests, Mapping):
            raise InvalidFilterError(f'{field.name:.200} is given {shown(tests)}; give a dict of operators such as {{"eq": "s12"}}; {allowed}')
        if not tests:
            raise InvalidFilterError(f"{field.name:.200} has no operator; {allowed}")
        parts: list[Expression] = []
        for operator, operand in tests.items():
            if operator not in field.operators:
                raise InvalidFilterError(f"{shown(operator)} is not an operator of {field.name:.200}; {allowed}")
            self._count()
            parts.append(_MEANINGS[operator](field, operator, operand))
        return parts

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidFilterError(f'the filter has more than {MAX_NODES:,} parts; use "in" for many values of one field')


def _in(field: Field, operator: str, operand: Any) -> Expression:
    if not isinstance(operand, list | tuple | set | frozenset):
        raise InvalidFilterError(f"the operand of {operator} on {field.name:.200} is {shown(operand)}; give a list of values")
    if not operand:
        raise InvalidFilterError(f"the operand of {operator} on {field.name:.200} is an empty list; give at least one value")
    if len(operand) > MAX_IN_VALUES:
        raise InvalidFilterError(f"the operand of {operator} on {field.name:.200} has {len(operand):,} values; at most {MAX_IN_VALUES:,} are allowed")
    return field.equals(operator, list(operand))


def _exists(field: Field, operator: str, operand: Any) -> Expression:
    if not isinstance(operand, bool):
        raise InvalidFilterError(f"the operand of {operator} on {field.name:.200} is {shown(operand)}; give True or False")
    return field.exists() if operand else Not(field.exists())


def _compare(field: Field, operator: str, operand: Any) -> Expression:
    return field.compare(operator, operand)


_MEANINGS: dict[str, Callable[[Field, str, Any], Expression]] = {
    "eq": lambda field, operator, operand: field.equals(operator, [operand]),
    "ne": lambda field, operator, operand: Not(field.equals(operator, [operand])),
    "in": _in,
    "nin": lambda field, operator, operand: Not(_in(field, operator, operand)),
    "gt": _compare,
    "gte": _compare,
    "lt": _compare,
    "lte": _compare,
    "exists": _exists,
    "contains": _compare,
}
