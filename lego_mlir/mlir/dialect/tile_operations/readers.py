"""Readers of the attributes of operations on tiles."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect.tile_operations.names import (
    DIM,
    DIVISOR,
    IDENTITY,
    IN_BOUNDS,
    INSTRUCTION,
    KIND,
    LOAD_PARTS,
    MATRICES,
    OFFSETS,
    OPERAND_SEGMENTS,
    ORDER,
    REGISTERS,
    REVERSE,
    SCATTER_NUMBER,
    SIZE,
    STORE_PARTS,
    TRANSPOSED,
    VALUE,
    WORD,
)


def instruction_of(dot: Any) -> str | None:
    """Return what is to multiply the operands of a lego.dot, `None` if the compiler chooses."""
    return str(dot.attributes[INSTRUCTION].value) if INSTRUCTION in dot.attributes else None


def dim_of(op: Any) -> int:
    """Return the dimension that an operation is about."""
    return ir.IntegerAttr(op.attributes[DIM]).value  # type: ignore[no-any-return]


def size_of(op: Any) -> int:
    """Return the bound of a lego.in_range."""
    return ir.IntegerAttr(op.attributes[SIZE]).value  # type: ignore[no-any-return]


def limit_of(op: Any) -> Any | None:
    """Return the value that a lego.in_range compares with, beside its bound."""
    return op.operands[1] if len(op.operands) > 1 else None


def divisor_of(op: Any) -> int:
    """Return what is known to divide the origin and the bounds of a lego.in_range."""
    if DIVISOR not in op.attributes:
        return 1
    return ir.IntegerAttr(op.attributes[DIVISOR]).value  # type: ignore[no-any-return]


def kind_of(op: Any) -> str:
    """Return by what a lego.reduce or lego.scan combines."""
    return ir.StringAttr(op.attributes[KIND]).value  # type: ignore[no-any-return]


def order_of(op: Any) -> list[int]:
    """Return the order of dimensions of a lego.transpose."""
    return list(ir.DenseI64ArrayAttr(op.attributes[ORDER]))


def offsets_of(op: Any) -> list[int]:
    """Return the first index of a lego.extract_slice."""
    return list(ir.DenseI64ArrayAttr(op.attributes[OFFSETS]))


def is_reverse(op: Any) -> bool:
    """Return whether a scan begins at the last element."""
    return REVERSE in op.attributes


def identity_of(op: Any) -> list[Any] | None:
    """Return the attributes that stand for invalid elements, `None` if there are none."""
    return list(ir.ArrayAttr(op.attributes[IDENTITY])) if IDENTITY in op.attributes else None


def registers_of(op: Any, name: str = REGISTERS) -> list[tuple[int, int, int]]:
    """Return the register factors of an access of parts: dimension, size and stride."""
    numbers = list(ir.DenseI64ArrayAttr(op.attributes[name]))
    return [(d, n, s) for d, n, s in zip(*(iter(numbers),) * 3, strict=True)]


def segments_of(op: Any) -> list[list[Any]]:
    """Return the operands of an access of parts or matrices, group by group."""
    if OPERAND_SEGMENTS not in op.attributes:  # the last of two groups is the only variadic one
        return [list(op.operands)[:1], list(op.operands)[1:]]
    sizes = list(ir.DenseI32ArrayAttr(op.attributes[OPERAND_SEGMENTS]))
    operands = list(op.operands)
    return [operands[end - n : end] for n, end in zip(sizes, accumulate(sizes), strict=True)]


def scatter_number_of(op: Any) -> int | None:
    """Return which lego.scatter a store_parts is a part of, `None` if it is of none."""
    attribute = op.attributes.get(SCATTER_NUMBER)
    return None if attribute is None else ir.IntegerAttr(attribute).value


def is_in_bounds(op: Any) -> bool:
    """Return whether all elements that an access of parts accesses are said to exist."""
    return IN_BOUNDS in op.attributes


def is_masked(op: Any) -> bool:
    """Return whether a load_parts or store_parts has a mask."""
    if op.name not in (LOAD_PARTS, STORE_PARTS):
        return False
    *_, of_mask = ir.DenseI32ArrayAttr(op.attributes[OPERAND_SEGMENTS])
    return bool(of_mask)


def matrices_of(op: Any) -> int:
    """Return how many matrices each instruction of a load_matrices or store_matrices moves."""
    return ir.IntegerAttr(op.attributes[MATRICES]).value  # type: ignore[no-any-return]


def is_transposed(op: Any) -> bool:
    """Return whether a load_matrices or store_matrices transposes."""
    return TRANSPOSED in op.attributes


def word_of(op: Any) -> int:
    """Return the 64 bits of a lego.matrix_descriptor of a tile at address 0."""
    return ir.IntegerAttr(op.attributes[WORD]).value & (1 << 64) - 1  # type: ignore[no-any-return]


def value_of(op: Any) -> Any:
    """Return the attribute of the number of a lego.fill."""
    return op.attributes[VALUE]


def has_slots(op: Any) -> bool:
    """Return whether a lego.send_parts is one of an exchange that alternates between slots."""
    *_, slots, _ = segments_of(op)
    return bool(slots)
