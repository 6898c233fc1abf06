"""Convert between NumPy and Arrow arrays, buffer to buffer.

`pa.array` and `to_numpy` import pandas wherever it is installed: more than a second, in which Ctrl-C can get lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["from_arrow_array", "scalar_of", "to_arrow_array", "to_text_array"]

_DTYPES = {
    str(pa.from_numpy_dtype(name)): np.dtype(name) for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f8")
}


def to_arrow_array(values: NDArray[Any]) -> pa.Array:
    """Return an array of numbers or booleans as an Arrow array; numbers are not copied.

    >>> to_arrow_array(np.array([3, 1])).to_pylist(), to_arrow_array(np.array([True, False])).to_pylist()
    ([3, 1], [True, False])
    """
    if values.dtype == bool:
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def to_text_array(text: str) -> pa.Array:
    """Return an Arrow array (large strings) of one text.

    >>> to_text_array("ann").to_pylist()
    ['ann']
    """
    data = text.encode()
    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    return pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(data)])


def scalar_of(value: float | str) -> pa.Scalar:
    """Return a boolean, number or text as an Arrow scalar; `pa.scalar` would import pandas.

    >>> scalar_of(7), scalar_of("x")
    (<pyarrow.Int64Scalar: 7>, <pyarrow.LargeStringScalar: 'x'>)
    """
    return (to_text_array(value) if isinstance(value, str) else to_arrow_array(np.array([value])))[0]


def from_arrow_array(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return an Arrow array of numbers or booleans without nulls as a NumPy array: a read-only view where it can be.

    >>> from_arrow_array(to_arrow_array(np.array([3, 1, 2])).slice(1)).tolist()
    [1, 2]
    >>> from_arrow_array(to_arrow_array(np.array([True, False, True])).slice(1)).tolist()
    [False, True]
    """
    if isinstance(array, pa.ChunkedArray):
        return from_arrow_array(array.combine_chunks())
    if pa.types.is_boolean(array.type):
        return from_arrow_array(array.cast(pa.uint8())).view(bool)
    dtype = _DTYPES[str(array.type)]
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype.itemsize)
