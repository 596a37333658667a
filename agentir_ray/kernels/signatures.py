"""The argument types of kernels, compiled once and for all of them: arrays that a kernel only reads are declared read-only, so that mapped and heap arrays are one type to it.

Without declared types Numba compiles a kernel again for every mixture it meets, seconds each time.
"""

import numba

INT = numba.int64
FLOAT = numba.float64


def reads(dtype: numba.types.Type) -> numba.types.Array:
    """A one-dimensional array that is only read."""
    return numba.types.Array(dtype, 1, "C", readonly=True)


def writes(dtype: numba.types.Type) -> numba.types.Array:
    return numba.types.Array(dtype, 1, "C")


def table(dtype: numba.types.Type, readonly: bool = False) -> numba.types.Array:
    """A two-dimensional array."""
    return numba.types.Array(dtype, 2, "C", readonly=readonly)


def together(types: tuple[numba.types.Type, ...]) -> numba.types.Type:
    """A tuple of these."""
    return numba.types.Tuple(types)  # type: ignore[no-untyped-call]


READ_U8, READ_U16, READ_U32, READ_U64 = reads(numba.uint8), reads(numba.uint16), reads(numba.uint32), reads(numba.uint64)
READ_I32, READ_I64, READ_F64 = reads(numba.int32), reads(INT), reads(FLOAT)
WRITE_U8, WRITE_U16, WRITE_U32, WRITE_U64 = writes(numba.uint8), writes(numba.uint16), writes(numba.uint32), writes(numba.uint64)
WRITE_I32, WRITE_I64, WRITE_F64 = writes(numba.int32), writes(INT), writes(FLOAT)
WRITE_F32, READ_I64_2D, WRITE_I64_2D, WRITE_F64_2D = writes(numba.float32), table(INT, readonly=True), table(INT), table(FLOAT)
