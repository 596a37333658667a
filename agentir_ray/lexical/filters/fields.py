"""What the operators mean for each kind of field: operands are checked here and become ranges of keys, ranges of columns, or ids.

A field answers three questions (is it one of these? how does it compare to that? is it there?); what negates them (ne, nin, exists False) is the parser's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NoReturn, Protocol

from agentir_ray.errors import InvalidFilterError, InvalidInputError
from agentir_ray.lexical.filters import keys
from agentir_ray.lexical.filters.expression import EVERYTHING, Expression, HasId, HasKey, HasText, InRange, Not, Or
from agentir_ray.lexical.filters.metadata import check_text, check_value, shown
from agentir_ray.lexical.filters.ranges import KeyRange, prefix_range, single, successor
from agentir_ray.types import NEVER_US, to_time_us

EQUALITY = ("eq", "ne", "in", "nin")
ORDER = ("gt", "gte", "lt", "lte")
FIELDS = ("id", "session", "role", "supersedes", "timestamp", "created_at", "expires_at", "importance", "metadata.<path>")


class Field(Protocol):
    """One field that a filter may name. `operator` is what the filter says, for messages and, in `compare`, for its meaning."""

    @property
    def name(self) -> str: ...

    @property
    def operators(self) -> tuple[str, ...]:
        """Those that this field knows; it is asked for no other."""
        ...

    def equals(self, operator: str, operands: Sequence[Any]) -> Expression:
        """The value is one of `operands`."""
        ...

    def compare(self, operator: str, operand: Any) -> Expression:
        """The value is gt, gte, lt or lte `operand`, or contains it."""
        ...

    def exists(self) -> Expression:
        """There is a value."""
        ...


def find_field(name: str) -> Field:
    """The field called `name`; InvalidFilterError, listing them all, if there is none."""
    match name:
        case "id":
            return IdField()
        case "session" | "role" | "supersedes":
            return KeyField(name, text_only=True)
        case "timestamp" | "created_at":
            return TimeField(name)
        case "expires_at":
            return TimeField(name, may_be_missing=True)
        case "importance":
            return ImportanceField()
    if name.startswith(keys.METADATA_PREFIX):
        try:
            check_text(name, f"the field {name!r}")
        except InvalidInputError as error:
            raise InvalidFilterError(str(error)) from None
        return KeyField(name)
    raise InvalidFilterError(f'{shown(name)} is not a field; fields are {", ".join(FIELDS)}, and "and", "or", "not" join filters')


@dataclass(frozen=True, slots=True)
class KeyField:
    """session, role, supersedes (`text_only`) and metadata: every question is one about the record's keys."""

    name: str
    text_only: bool = False
    operators: tuple[str, ...] = (*EQUALITY, *ORDER, "exists", "contains")

    def equals(self, operator: str, operands: Sequence[Any]) -> Expression:
        field = keys.field_key(self.name)
        ranges: list[KeyRange] = []
        for operand in operands:
            self._check(operator, operand, (str, int, float, list, NoneType), "a string, number, bool, None or list")
            ranges.append(single(field + (keys.list_key(operand) if isinstance(operand, list) else keys.scalar_key(operand))))
        found = HasKey(tuple(ranges))
        return Or((found, Not(self.exists()))) if None in operands else found

    def compare(self, operator: str, operand: Any) -> Expression:
        return self._contains(operand) if operator == "contains" else self._ordered(operator, operand)

    def exists(self) -> Expression:
        return HasKey((single(keys.field_key(self.name) + keys.EXISTS),))

    def _ordered(self, operator: str, operand: Any) -> Expression:
        self._check(operator, operand, (str, int, float), "a string or number")
        if isinstance(operand, bool):
            _refuse(self.name, operator, operand, "a string or number")
        field = keys.field_key(self.name)
        key = field + keys.scalar_key(operand)
        # Only values of the operand's own type, which share its tag, stand in an order to it.
        lowest, beyond = prefix_range(field + (keys.STRING if isinstance(operand, str) else keys.NUMBER))
        match operator:
            case "gt":
                return HasKey(((successor(key), beyond),))
            case "gte":
                return HasKey(((key, beyond),))
            case "lt":
                return HasKey(((lowest, key),))
        return HasKey(((lowest, successor(key)),))

    def _contains(self, operand: Any) -> Expression:
        self._check("contains", operand, (str, int, float, NoneType), "a string, number, bool or None")
        field = keys.field_key(self.name)
        is_element = HasKey((single(field + keys.ELEMENT + keys.scalar_key(operand)),))
        if not isinstance(operand, str):
            return is_element
        # A text within another is bytes within bytes: no character's UTF-8 begins inside another's.
        in_string = HasText(field + keys.STRING, operand.encode())
        return in_string if self.text_only else Or((is_element, in_string))

    def _check(self, operator: str, operand: Any, allowed: tuple[type, ...], wanted: str) -> None:
        if self.text_only:
            nullable = NoneType in allowed and operator != "contains"
            allowed, wanted = ((str, NoneType), "a string or None") if nullable else ((str,), "a string")
        elif isinstance(operand, dict):
            wanted = f"{wanted}; the members of a dict are fields of their own, {self.name:.200}.<member>"
        if not isinstance(operand, allowed):
            _refuse(self.name, operator, operand, wanted)
        _check_operand(self.name, operator, operand)


@dataclass(frozen=True, slots=True)
class TimeField:
    """A column of microseconds. Of the three, only expires_at may be missing; its column then holds `NEVER_US`, which is later than any operand."""

    name: str
    may_be_missing: bool = False
    operators: tuple[str, ...] = (*EQUALITY, *ORDER, "exists")

    def equals(self, operator: str, operands: Sequence[Any]) -> Expression:
        times = [NEVER_US if operand is None and self.may_be_missing else self._time(operator, operand) for operand in operands]
        return _any_of([InRange(self.name, time, time) for time in times])

    def compare(self, operator: str, operand: Any) -> Expression:
        time = self._time(operator, operand)
        match operator:
            case "gt":
                return InRange(self.name, time + 1, NEVER_US - 1)
            case "gte":
                return InRange(self.name, time, NEVER_US - 1)
            case "lt":
                return InRange(self.name, -NEVER_US, time - 1)
        return InRange(self.name, -NEVER_US, time)

    def exists(self) -> Expression:
        return Not(InRange(self.name, NEVER_US, NEVER_US)) if self.may_be_missing else EVERYTHING

    def _time(self, operator: str, operand: Any) -> int:
        try:
            return to_time_us(operand, f"the operand of {operator} on {self.name}")
        except InvalidInputError as error:
            raise InvalidFilterError(str(error)) from None


@dataclass(frozen=True, slots=True)
class ImportanceField:
    """A column of float64, never missing."""

    name: str = "importance"
    operators: tuple[str, ...] = (*EQUALITY, *ORDER, "exists")

    def equals(self, operator: str, operands: Sequence[Any]) -> Expression:
        numbers = [self._number(operator, operand) for operand in operands]
        return _any_of([InRange(self.name, number, number) for number in numbers])

    def compare(self, operator: str, operand: Any) -> Expression:
        number = self._number(operator, operand)
        match operator:
            case "gt":
                return InRange(self.name, math.nextafter(number, math.inf), math.inf)
            case "gte":
                return InRange(self.name, number, math.inf)
            case "lt":
                return InRange(self.name, -math.inf, math.nextafter(number, -math.inf))
        return InRange(self.name, -math.inf, number)

    def exists(self) -> Expression:
        return EVERYTHING

    def _number(self, operator: str, operand: Any) -> float:
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            _refuse(self.name, operator, operand, "a number")
        _check_operand(self.name, operator, operand)
        return float(operand)


@dataclass(frozen=True, slots=True)
class IdField:
    """The id, never missing. Ids are found by hash, so they have no order here."""

    name: str = "id"
    operators: tuple[str, ...] = (*EQUALITY, "exists")

    def equals(self, operator: str, operands: Sequence[Any]) -> Expression:
        for operand in operands:
            if not isinstance(operand, str):
                _refuse(self.name, operator, operand, "a string")
            _check_operand(self.name, operator, operand)
        return HasId(tuple(operands))

    def compare(self, operator: str, operand: Any) -> Expression:
        raise AssertionError(f"{operator} is not an operator of {self.name}")

    def exists(self) -> Expression:
        return EVERYTHING


def _any_of(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _check_operand(field: str, operator: str, operand: Any) -> None:
    try:
        check_value(operand, f"the operand of {operator} on {field:.100}")
    except InvalidInputError as error:
        raise InvalidFilterError(str(error)) from None


def _refuse(field: str, operator: str, operand: Any, wanted: str) -> NoReturn:
    raise InvalidFilterError(f"the operand of {operator} on {field:.200} is {shown(operand)}; give {wanted}")
