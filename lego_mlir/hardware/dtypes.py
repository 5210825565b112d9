"""The sizes of element types, by the names that MLIR gives them."""

from __future__ import annotations

ELEMENT_BYTES = {
    "i1": 1,
    "i8": 1,
    "f8E4M3FN": 1,
    "f8E5M2": 1,
    "i16": 2,
    "f16": 2,
    "bf16": 2,
    "i32": 4,
    "f32": 4,
    "i64": 8,
    "f64": 8,
}
"""Bytes of an element in memory."""
