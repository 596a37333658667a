"""Products of integers in place of products of widened int8 weights."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.encoders import Encoder
from agentir_ray.encoders.onnx import OnnxEncoder
from agentir_ray.encoders.onnx_integers import Field, _as_varint, _encoded, _fields, _varints, integer_products

TOKENS = 9


@pytest.fixture(scope="module")
def graph(dense: Callable[[str], Encoder]) -> bytes:
    encoder = dense("minilm-int8")
    assert isinstance(encoder, OnnxEncoder)
    return encoder._graph.read_bytes()


def states(graph: bytes) -> npt.NDArray[np.float32]:
    onnxruntime = pytest.importorskip("onnxruntime")
    ids = np.arange(2_000, 2_000 + TOKENS, dtype=np.int64)[None]
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    found: npt.NDArray[np.float32] = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})[0][0]
    return found


def test_every_product_with_weights_is_exchanged(graph: bytes) -> None:
    signed = integer_products(graph, signed=True)
    assert signed is not None
    assert signed.count(b"DynamicQuantizeMatMul") == 6 * 6  # of 6 layers: query, key, value, output, and two more
    assert integer_products(signed, signed=True) is None


def test_they_are_near_the_products_of_floats_whatever_the_sign(graph: bytes) -> None:
    signed, unsigned = integer_products(graph, signed=True), integer_products(graph, signed=False)
    assert signed is not None and unsigned is not None
    plain, integer = states(graph), states(unsigned)
    cosine = np.sum(plain * integer, axis=1) / np.linalg.norm(plain, axis=1) / np.linalg.norm(integer, axis=1)
    assert (cosine > 0.98).all()
    assert not np.array_equal(plain, integer)
    from agentir_ray.encoders.onnx_integers import counts_signed

    if counts_signed():
        np.testing.assert_array_equal(states(signed), integer)


@pytest.mark.parametrize("damage", [b"", b"\x3a\xff", b"not a graph at all", b"\x00" * 40])
def test_what_is_no_graph_is_left_to_the_runtime(damage: bytes) -> None:
    assert integer_products(damage, signed=True) is None


def test_a_graph_that_is_cut_off(graph: bytes) -> None:
    for size in (10, 1_000, len(graph) // 2):
        integer_products(graph[:size], signed=True)


def test_what_is_not_exchanged_stays_byte_for_byte(graph: bytes) -> None:
    assert _encoded(list(_fields(graph))) == graph


VALUES = st.one_of(
    st.builds(lambda number, value: Field(number, 0, value), st.integers(1, 2_000), st.integers(0, (1 << 64) - 1)),
    st.builds(lambda number, value: Field(number, 2, value), st.integers(1, 2_000), st.binary(max_size=300)),
    st.builds(lambda number, value: Field(number, 1, value), st.integers(1, 2_000), st.binary(min_size=8, max_size=8)),
    st.builds(lambda number, value: Field(number, 5, value), st.integers(1, 2_000), st.binary(min_size=4, max_size=4)),
)


@given(st.lists(VALUES))
def test_messages_come_back(fields: list[Field]) -> None:
    assert list(_fields(_encoded(fields))) == fields


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_packed_numbers_come_back(numbers: list[int]) -> None:
    assert _varints(b"".join(map(_as_varint, numbers))) == numbers


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_left(data: bytes) -> None:
    assert integer_products(data, signed=False) is None
