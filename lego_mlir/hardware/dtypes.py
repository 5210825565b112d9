"""The element types of tensors and scalars, by the names that MLIR gives them."""

from __future__ import annotations

ELEMENT_BYTES: dict[str, int] = {
    "f16": 2,
    "f32": 4,
    "f64": 8,
    "i1": 1,
    **{f"{sign}i{bits}": bits // 8 for sign in ("", "s", "u") for bits in (8, 16, 32, 64)},
    "index": 8,
    "bf16": 2,
    "f8E4M3FN": 1,
    "f8E5M2": 1,
}
"""The bytes of an element in a buffer; `index` as a kernel's parameter may have 4."""

TENSOR_MAP_TYPES = {
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
    "i8": "u8",
    "f8E4M3FN": "u8",
    "f8E5M2": "u8",
    "i16": "u16",
    "i32": "s32",
    "i64": "s64",
}
"""The element type of a tensor map, by PTX's name, for each element type that one can describe."""

FLOATS = frozenset({"f16", "f32", "f64", "bf16", "f8E4M3FN", "f8E5M2"})


def integer_range(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if dtype == "i1":
        return -1, 1  # true is either, as MLIR reads it
    bits = 8 * ELEMENT_BYTES[dtype]
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
