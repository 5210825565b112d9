"""Scalar types of PTX, and their representation in NumPy arrays.

A register is an array of unsigned bits, one element a lane (`bool` for a predicate). An
instruction gives those bits a type: `values` reads bits as numbers, `bits` writes numbers as
bits. Every type but bf16 reads as a view of the same memory; bf16 widens to float32, which holds
each of its values exactly, and so do the 8-bit floats, which exist in pairs only (`e4m3x2`). A
packed type (`f16x2`) reads as an array of shape (lanes, 2), low half first.

Source: PTX ISA 5.2 (types), 9.4 (type information for instructions and operands).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lego_mlir.sim.numerics import fp8

Array = npt.NDArray[Any]
Kind = Literal["b", "u", "s", "f", "bf", "e4m3", "e5m2", "pred"]

UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FLOAT = {16: np.float16, 32: np.float32, 64: np.float64}


@dataclass(frozen=True, slots=True)
class Type:
    """One PTX type.

    Attributes:
        name: as PTX writes it, without the dot: `s32`, `f16x2`, `pred`.
        kind: `b` untyped bits, `u` unsigned, `s` signed, `f` IEEE float, `bf` bfloat, `e4m3` and
            `e5m2` 8-bit floats, `pred`.
        bits: of the whole register operand (32 for `f16x2`).
        lanes: elements packed in it: 1 or 2.
        dtype: of the NumPy array its values are computed in.
    """

    name: str
    kind: Kind
    bits: int
    lanes: int
    dtype: np.dtype[Any]

    @property
    def storage(self) -> np.dtype[Any]:
        """Return the dtype of a register of this type."""
        return UNSIGNED[self.bits]

    @property
    def bytes(self) -> int:
        """Return the size in memory."""
        return self.bits // 8

    @property
    def element(self) -> Type:
        """Return the type of one packed element, or the type itself."""
        return self if self.lanes == 1 else TYPES[self.name.removesuffix("x2")]

    @property
    def is_float(self) -> bool:
        return self.kind in ("f", "bf", "e4m3", "e5m2")

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"

    def __str__(self) -> str:
        return "." + self.name


def _dtype(kind: Kind, bits: int) -> np.dtype[Any]:
    match kind:
        case "s":
            return np.dtype(_SIGNED[bits])
        case "f":
            return np.dtype(_FLOAT[bits])
        case "bf":
            return np.dtype(np.float32)
        case _:
            return UNSIGNED[bits]


def _scalars(kind: Kind, *widths: int) -> list[Type]:
    return [Type(f"{kind}{n}", kind, n, 1, _dtype(kind, n)) for n in widths]


TYPES: dict[str, Type] = {
    t.name: t
    for t in [
        *_scalars("b", 8, 16, 32, 64),
        *_scalars("u", 8, 16, 32, 64),
        *_scalars("s", 8, 16, 32, 64),
        *_scalars("f", 16, 32, 64),
        *_scalars("bf", 16),
        Type("pred", "pred", 1, 1, np.dtype(np.bool_)),
        Type("f16x2", "f", 32, 2, np.dtype(np.float16)),
        Type("bf16x2", "bf", 32, 2, np.dtype(np.float32)),
        Type("e4m3x2", "e4m3", 16, 2, np.dtype(np.float32)),
        Type("e5m2x2", "e5m2", 16, 2, np.dtype(np.float32)),
        Type("u16x2", "u", 32, 2, np.dtype(np.uint16)),
        Type("s16x2", "s", 32, 2, np.dtype(np.int16)),
    ]
}
PRED = TYPES["pred"]
U32 = TYPES["u32"]
B32 = TYPES["b32"]
B64 = TYPES["b64"]


def compatible(declared: Type, used: Type) -> bool:
    """Return whether a register of one type may be an operand of another type of the same size.

    Untyped bits agree with everything but predicates, signed with unsigned, floats with floats
    of their own format (PTX ISA 9.4.1).
    """
    if "pred" in (declared.kind, used.kind):
        return declared.kind == used.kind
    if "b" in (declared.kind, used.kind):
        return True
    return declared.is_float == used.is_float


def values(kind: Type) -> Callable[[Array], Array] | None:
    """Return the function from register bits to values; None if they are the same array."""
    dtype = kind.dtype
    if kind.kind == "e4m3" or kind.kind == "e5m2":
        form: fp8.Format = kind.kind
        return lambda bits: fp8.widen(bits.view(np.uint8), form).reshape(-1, 2)
    if kind.lanes == 2:
        if kind.kind == "bf":
            return lambda bits: widen_bf16(bits.view(np.uint16).reshape(-1, 2))
        return lambda bits: bits.view(dtype).reshape(-1, 2)
    if kind.kind == "bf":
        return widen_bf16
    if dtype == kind.storage:
        return None
    return lambda bits: bits.view(dtype)


def bits(kind: Type) -> Callable[[Array], Array] | None:
    """Return the function from values to register bits; None if they are the same array."""
    storage = kind.storage
    if kind.kind == "e4m3" or kind.kind == "e5m2":
        form: fp8.Format = kind.kind
        return lambda v: fp8.narrow(v, form).view(storage).reshape(-1)
    if kind.lanes == 2:
        if kind.kind == "bf":
            return lambda v: np.ascontiguousarray(narrow_bf16(v)).view(storage).reshape(-1)
        return lambda v: np.ascontiguousarray(v).view(storage).reshape(-1)
    if kind.kind == "bf":
        return narrow_bf16
    if kind.dtype == storage:
        return None
    return lambda v: v.view(storage)


def widen_bf16(half: Array) -> Array:
    """Convert bf16 bits (uint16) to float32, exactly."""
    return (half.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow_bf16(x: Array) -> Array:
    """Convert float32 to bf16 bits, rounded to nearest even; a NaN becomes 0x7fff."""
    word = x.view(np.uint32)
    odd = (word >> np.uint32(16)) & np.uint32(1)
    rounded = ((word + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    lost = np.isnan(x)
    return np.where(lost, np.uint16(0x7FFF), rounded) if lost.any() else rounded
