"""The element types of artifacts are those that cross to NumPy, with NumPy's sizes."""

from __future__ import annotations

from lego_mlir.artifact import elements
from lego_mlir.runtime import dtypes, simulator


def test_the_tables_agree() -> None:
    assert {n: dtypes.numpy_dtype(n).itemsize for n in dtypes.names()} == elements.BYTES
    assert {n for n in dtypes.names() if dtypes.is_float(n)} == elements.FLOATS
    assert set(elements.IN_TENSOR_MAPS) == set(simulator._ELEMENTS)


def test_ranges() -> None:
    assert elements.integer_range("i8") == elements.integer_range("si8") == (-128, 127)
    assert elements.integer_range("ui8") == (0, 255)
    assert elements.integer_range("index") == (-(2**63), 2**63 - 1)
