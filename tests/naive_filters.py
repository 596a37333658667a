"""The oracle of filters: whether one record passes a valid `where`, by looking at the record. No keys, no columns, no shared code."""

from collections.abc import Mapping
from typing import Any

from agentir_ray.types import Record, to_time_us

TIMES = ("timestamp", "created_at", "expires_at")


def matches(where: Mapping[str, Any], record: Record) -> bool:
    for key, value in where.items():
        if key == "and":
            passes = all(matches(part, record) for part in value)
        elif key == "or":
            passes = any(matches(part, record) for part in value)
        elif key == "not":
            passes = not matches(value, record)
        else:
            passes = all(_passes(values_of(record, key), operator, operand, key in TIMES) for operator, operand in value.items())
        if not passes:
            return False
    return True


def values_of(record: Record, field: str) -> list[Any]:
    """The values at a field: none if it is missing, several if the metadata spells one path in several ways."""
    if field in TIMES:
        value = getattr(record, f"{field}_us")
    elif field.startswith("metadata."):
        return list(_at(record.metadata, field.removeprefix("metadata.")))
    else:
        value = getattr(record, field)
    return [] if value is None else [value]


def _at(members: Mapping[str, Any], path: str) -> Any:
    for key, value in members.items():
        if key == path:
            yield value
        if isinstance(value, dict) and path.startswith(key + "."):
            yield from _at(value, path[len(key) + 1 :])


def _passes(values: list[Any], operator: str, operand: Any, is_time: bool) -> bool:
    if operator == "exists":
        return bool(values) is bool(operand)
    if operator == "ne":
        return not _passes(values, "eq", operand, is_time)
    if operator == "in":
        return any(_passes(values, "eq", each, is_time) for each in operand)
    if operator == "nin":
        return not any(_passes(values, "eq", each, is_time) for each in operand)
    if operator == "eq" and operand is None and not values:
        return True
    if is_time:
        if operand is None:
            return False
        operand = to_time_us(operand)
        return any(_compare(value, operator, operand) for value in values)
    return any(_test(value, operator, operand) for value in values)


def _test(value: Any, operator: str, operand: Any) -> bool:
    if operator == "contains":
        if isinstance(value, str):
            return isinstance(operand, str) and operand in value
        return isinstance(value, list) and any(not isinstance(element, list | dict) and equal(element, operand) for element in value)
    if operator == "eq":
        return equal(value, operand)
    if is_number(value) and is_number(operand):
        return _compare(float(value), operator, float(operand))
    return isinstance(value, str) and isinstance(operand, str) and _compare([ord(c) for c in value], operator, [ord(c) for c in operand])


def _compare(a: Any, operator: str, b: Any) -> bool:
    return bool({"eq": a == b, "gt": a > b, "gte": a >= b, "lt": a < b, "lte": a <= b}[operator])


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values: by type, numbers as floats, lists element by element. Dicts are equal inside lists only."""
    if is_number(a) and is_number(b):
        return float(a) == float(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(_equal_inside(x, y) for x, y in zip(a, b, strict=True))
    return not isinstance(a, dict) and bool(a == b)


def _equal_inside(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal_inside(a[key], b[key]) for key in a)
    return equal(a, b)
