"""Checks of the attributes and the types of a lego.load_parts or lego.store_parts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.access_checks import MOST_ELEMENTS
from lego_mlir.mlir.lowering.parts_access.lanes import lanes_in, with_elements


def check_registers(op: Any, layout: Layout, source: Source) -> int:
    """Return the number of registers that an access of parts names, checked.

    Raises:
        LegoError: they are no factors of the layout's dimensions, or too many.
    """
    attribute = op.attributes[tiles.REGISTERS]
    numbers = list(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else [0]
    dims, sizes, strides = numbers[::3], numbers[1::3], numbers[2::3]
    if (
        len(numbers) % 3
        or not all(0 <= dim < layout.rank for dim in dims)
        or any(n < 1 for n in sizes)
        or any(n < 0 for n in strides)
    ):
        raise source.error(
            f"'{op.name}': registers is {attribute}, its layout '{layout}' has the dimensions 0 to "
            f"{layout.rank - 1}",
            op.location,
            hint="three numbers a factor, slowest first: dimension, size, stride, such as "
            "array<i64: 1, 4, 1>",
        )
    if prod(sizes) > MOST_ELEMENTS:
        raise source.error(
            f"'{op.name}' of {prod(sizes)} elements a thread: more than the {MOST_ELEMENTS} that "
            "one access takes",
            op.location,
            hint="take smaller tiles or more warps",
        )
    return prod(sizes)


def check_parts(
    op: Any, kinds: Sequence[Any], mask: Sequence[Any], buffer: Any, count: int, source: Source
) -> None:
    """Check the types of the parts and of the mask.

    Args:
        op: the access.
        kinds: the types of its parts.
        mask: the parts of its mask.
        buffer: the memory.
        count: the number of registers.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: they do not hold the registers' elements, or not those of the buffer.
    """
    memory = ir.MemRefType(buffer.type).element_type
    i1, i8 = (ir.IntegerType.get_signless(n) for n in (1, 8))
    held = [memory, i1] if memory == i8 else [memory]
    _check(op, "parts", kinds, held, count, source)
    if mask:
        _check(op, "a mask", [part.type for part in mask], [i1], count, source)


def _check(
    op: Any, what: str, kinds: Sequence[Any], allowed: Sequence[Any], count: int, source: Source
) -> None:
    element = next((e for e in allowed if all(with_elements(k, e) == k for k in kinds)), None)
    flat = all(not isinstance(k, ir.VectorType) or _is_flat(ir.VectorType(k)) for k in kinds)
    if element is not None and flat and sum(map(lanes_in, kinds)) == count:
        return
    shown = ", ".join(map(str, kinds))
    raise source.error(
        f"'{op.name}' has {what} of {shown or 'nothing'}, but {count} registers of {allowed[0]}",
        op.location,
        hint="vectors of one dimension, or elements, that together hold a register each",
    )


def _is_flat(kind: Any) -> bool:
    return kind.rank == 1 and not any(kind.scalable_dims or [])
