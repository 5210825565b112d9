"""`hardware.dtypes` is the one table of element types; NumPy dtypes follow from it."""

from __future__ import annotations

import numpy as np

from lego_mlir.hardware import dtypes as table
from lego_mlir.runtime import dtypes


def test_numpy_dtypes_have_the_sizes_of_the_element_types() -> None:
    assert {n: dtypes.numpy_dtype(n).itemsize for n in dtypes.names()} == table.ELEMENT_BYTES
    assert {n for n in dtypes.names() if dtypes.is_float(n)} == table.FLOATS


def test_numpy_dtypes_have_the_kind_of_the_element_types() -> None:
    found = {n: dtypes.numpy_dtype(n) for n in ("i1", "i8", "si16", "ui32", "index", "f16", "bf16")}
    kinds = [np.bool_, np.int8, np.int16, np.uint32, np.int64, np.float16, np.uint16]
    assert list(found.values()) == [np.dtype(kind) for kind in kinds]


def test_integer_range_includes_both_ends() -> None:
    assert table.integer_range("i8") == table.integer_range("si8") == (-128, 127)
    assert table.integer_range("ui8") == (0, 255)
    assert table.integer_range("index") == (-(2**63), 2**63 - 1)
