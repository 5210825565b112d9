"""Small integers as elements of any type, for GEMMs whose sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from lego_mlir.runtime import dtypes

Array = np.ndarray[Any, Any]


def encoded(values: Array, element: str) -> Array:
    """Return small integers as elements of a type, as raw bits if NumPy has no such type."""
    if element == "bf16" or element.startswith("f8"):
        return dtypes.encode(values.astype(np.float64), element)
    return values.astype(dtypes.numpy_dtype(element))
