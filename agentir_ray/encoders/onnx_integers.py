"""An ONNX graph whose weights are kept as int8, but multiplied as floats, made one that multiplies integers: twice as fast on a CPU, where a short text costs what reading the
weights costs.

Such a graph widens its weights first, W = Cast(int8) * scale, which onnxruntime does once, at loading: what then runs is float32, four times the bytes. `integer_products` has
each of these products done by `DynamicQuantizeMatMul` (com.microsoft), which takes the activations to 8 bits as it runs. It knows no model and no runtime, and reads of the
protobuf format (onnx.proto) what it needs: no package is needed for that. Whatever it does not recognise stays as it is.

Invariant: signed and unsigned weights (the same numbers, shifted by 128) give the same products. Processors that have no instruction for signed ones (VNNI) add them up in 16 bits,
which may not suffice; there the weights are to be unsigned.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

Bytes = bytes | memoryview
FLOAT, UINT8, INT8 = 1, 2, 3  # TensorProto.DataType
MODEL_GRAPH, MODEL_OPSETS = 7, 8
GRAPH_NODE, GRAPH_INITIALIZER = 1, 5
NODE_INPUT, NODE_OUTPUT, NODE_NAME, NODE_OPERATOR, NODE_DOMAIN = 1, 2, 3, 4, 7
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW = 1, 2, 8, 9
DOMAIN = "com.microsoft"


class Field(NamedTuple):
    """Of a message: its number, its wire type (0: varint, 2: bytes, 1 and 5: fixed), and what it holds."""

    number: int
    wire: int
    value: int | Bytes


class Tensor(NamedTuple):
    shape: tuple[int, ...]
    kind: int
    raw: Bytes


class Node(NamedTuple):
    operator: str
    inputs: list[str]
    outputs: list[str]
    name: str


def counts_signed() -> bool:
    """Whether this processor multiplies unsigned by signed bytes without losing any."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "vnni" in flags


def integer_products(model: bytes, signed: bool) -> bytes | None:
    """The graph with products of integers, or None where it has none to exchange, or is no graph: what is wrong with it is for the runtime to say."""
    try:
        return _exchanged(model, signed)
    except (IndexError, KeyError, ValueError):
        return None


def _exchanged(model: bytes, signed: bool) -> bytes | None:
    fields = list(_fields(model))
    at, graph = next(((at, list(_fields(field.value))) for at, field in enumerate(fields) if field.number == MODEL_GRAPH and not isinstance(field.value, int)), (0, []))
    nodes = {place: _node(field.value) for place, field in enumerate(graph) if field.number == GRAPH_NODE and not isinstance(field.value, int)}
    tensors = dict(_tensor(field.value) for field in graph if field.number == GRAPH_INITIALIZER and not isinstance(field.value, int))
    made_by = {output: node for node in nodes.values() for output in node.outputs}
    added = 0
    for place, node in nodes.items():
        found = _weights(node, made_by, tensors) if node.operator == "MatMul" else None
        if found is None:
            continue
        weights, scale = found
        name = f"integers_{added}"
        columns = weights.shape[1:]
        inputs = [node.inputs[0], f"{name}_weights", f"{name}_scale"]
        raw = bytes(weights.raw)
        graph.append(_initializer(f"{name}_scale", columns, FLOAT, np.broadcast_to(np.frombuffer(scale.raw, "<f4"), columns).tobytes()))
        if not signed:
            raw = (np.frombuffer(raw, np.int8).astype(np.int16) + 128).astype(np.uint8).tobytes()
            graph.append(_initializer(f"{name}_zero", columns, UINT8, b"\x80" * columns[0]))
            inputs.append(f"{name}_zero")
        graph.append(_initializer(f"{name}_weights", weights.shape, INT8 if signed else UINT8, raw))
        graph[place] = Field(GRAPH_NODE, 2, _message(node, inputs))
        added += 1
    if not added:
        return None
    fields[at] = Field(MODEL_GRAPH, 2, _encoded(graph))
    fields.append(Field(MODEL_OPSETS, 2, _encoded([Field(1, 2, DOMAIN.encode()), Field(2, 0, 1)])))
    return _encoded(fields)


def _weights(product: Node, made_by: dict[str, Node], tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor] | None:
    """The int8 weights of a product and their scales, one a column or one for all, where it has such."""
    widened = made_by.get(product.inputs[1])
    if widened is None or widened.operator != "Mul":
        return None
    cast, scale = (made_by.get(widened.inputs[0]), tensors.get(widened.inputs[1]))
    weights = tensors.get(cast.inputs[0]) if cast is not None and cast.operator == "Cast" else None
    if weights is None or scale is None or weights.kind != INT8 or scale.kind != FLOAT or len(weights.shape) != 2:
        return None
    columns = weights.shape[1]
    complete = len(weights.raw) == weights.shape[0] * columns and len(scale.raw) == 4 * int(np.prod(scale.shape))
    return (weights, scale) if complete and scale.shape in ((), (1,), (1, 1), (columns,), (1, columns)) else None


def _node(data: Bytes) -> Node:
    fields = list(_fields(data))
    numbers = (NODE_INPUT, NODE_OUTPUT, NODE_NAME, NODE_OPERATOR)
    text = {number: [bytes(field.value).decode() for field in fields if field.number == number and not isinstance(field.value, int)] for number in numbers}
    return Node("".join(text[NODE_OPERATOR]), text[NODE_INPUT], text[NODE_OUTPUT], "".join(text[NODE_NAME]))


def _message(node: Node, inputs: list[str]) -> bytes:
    texts = [(NODE_INPUT, each) for each in inputs] + [(NODE_OUTPUT, each) for each in node.outputs]
    texts += [(NODE_NAME, node.name), (NODE_OPERATOR, "DynamicQuantizeMatMul"), (NODE_DOMAIN, DOMAIN)]
    return _encoded([Field(number, 2, text.encode()) for number, text in texts])


def _tensor(data: Bytes) -> tuple[str, Tensor]:
    shape: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for field in _fields(data):
        if field.number == TENSOR_DIMS:
            shape += [field.value] if isinstance(field.value, int) else _varints(field.value)
        elif field.number == TENSOR_TYPE and isinstance(field.value, int):
            kind = field.value
        elif field.number == TENSOR_NAME and not isinstance(field.value, int):
            name = bytes(field.value).decode()
        elif field.number == TENSOR_RAW and not isinstance(field.value, int):
            raw = memoryview(field.value)
    return name, Tensor(tuple(shape), kind, raw)


def _initializer(name: str, shape: tuple[int, ...], kind: int, raw: bytes) -> Field:
    dims = [Field(TENSOR_DIMS, 0, size) for size in shape]
    return Field(GRAPH_INITIALIZER, 2, _encoded([*dims, Field(TENSOR_TYPE, 0, kind), Field(TENSOR_NAME, 2, name.encode()), Field(TENSOR_RAW, 2, raw)]))


# The wire format: https://protobuf.dev/programming-guides/encoding


def _fields(data: Bytes) -> Iterator[Field]:
    view, at = memoryview(data), 0
    while at < len(view):
        key, at = _varint(view, at)
        wire = key & 7
        if wire == 0:
            value: int | Bytes
            value, at = _varint(view, at)
        else:
            size, at = _varint(view, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = view[at : at + size], at + size
        yield Field(key >> 3, wire, value)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _varints(data: Bytes) -> list[int]:
    view, at, found = memoryview(data), 0, []
    while at < len(view):
        value, at = _varint(view, at)
        found.append(value)
    return found


def _encoded(fields: list[Field]) -> bytes:
    parts: list[Bytes] = []
    for number, wire, value in fields:
        parts.append(_as_varint(number << 3 | wire))
        if isinstance(value, int):
            parts.append(_as_varint(value))
        else:
            parts += [_as_varint(len(value)), value] if wire == 2 else [value]
    return b"".join(parts)


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
