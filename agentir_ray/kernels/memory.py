"""What Numba lacks for memory: arrays by their addresses, and asking for a cache line ahead of its use.

An array as a kernel's argument costs a tenth of a microsecond, and a segment has dozens; a table of addresses is one argument, whatever the number of segments. Whoever makes
such a table keeps the arrays alive while it is used.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined]
from numba.core import cgutils, types
from numba.extending import intrinsic

_BYTE = ir.IntType(8)
_NUMBER = ir.IntType(32)


def _type_pointer(_: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


def _type_prefetch(_: Any, values: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), _BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _NUMBER, _NUMBER, _NUMBER])
        function = builder.module.declare_intrinsic("llvm.prefetch", (_BYTE.as_pointer(),), kind)
        builder.call(function, [place, _NUMBER(0), _NUMBER(3), _NUMBER(1)])  # for reading, to be kept, as data
        return context.get_dummy_value()

    return types.void(values, at), generate


_pointer: Any = intrinsic(_type_pointer)
# prefetch(values, at): ask for the cache line of values[at], which will be read soon.
prefetch: Any = intrinsic(_type_prefetch)


def _reader(dtype: Any) -> Any:
    @numba.njit(nogil=True, inline="always")
    def array_at(row: Any, field: Any) -> Any:
        return carray(_pointer(row[field]), row[field + 1], dtype)

    return array_at


# The array whose address and length are row[field] and row[field + 1].
u8_at, u16_at, u32_at, u64_at = _reader(np.uint8), _reader(np.uint16), _reader(np.uint32), _reader(np.uint64)
i32_at, i64_at, f32_at, f64_at = _reader(np.int32), _reader(np.int64), _reader(np.float32), _reader(np.float64)


@numba.njit(nogil=True, inline="always")
def ones(word: Any) -> Any:
    """Ones in a word, by adding neighbours; the compiler knows the idiom and emits the machine's popcount."""
    one = np.uint64(1)
    word -= (word >> one) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
