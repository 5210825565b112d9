"""Readers of the dialect's attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect.names import (
    ALIGNMENT,
    BOUNDS,
    LAYOUT,
    SIZES,
    VALUES,
)

_DIM = "dim"
SHAPE, STRIDES, BOX = "shape", "strides", "box"
SWIZZLE, L2_PROMOTION = "swizzle", "l2_promotion"


def made_by(value: Any, name: str) -> bool:
    """Return whether the operation of this name computes `value`."""
    return not isinstance(value, ir.BlockArgument) and bool(value.owner.name == name)


def sizes_of(module: Any, source: Source) -> dict[str, int]:
    """Return the values that a module's `SIZES` give to the symbols of its layouts.

    Raises:
        LegoError: the attribute is not a dictionary of positive integers.
    """
    if SIZES not in module.operation.attributes:
        return {}
    attribute = module.operation.attributes[SIZES]
    location = module.operation.location
    if not isinstance(attribute, ir.DictAttr):
        raise source.error(f"{SIZES} is a dictionary, not '{attribute}'", location)
    sizes: dict[str, int] = {}
    for entry in ir.DictAttr(attribute):
        if not isinstance(entry.attr, ir.IntegerAttr) or ir.IntegerAttr(entry.attr).value < 1:
            raise source.error(
                f"{SIZES}: {entry.name} is a positive integer, not '{entry.attr}'", location
            )
        sizes[entry.name] = ir.IntegerAttr(entry.attr).value
    return sizes


def set_sizes(module: Any, sizes: Mapping[str, int]) -> None:
    """Set a module's `SIZES`; its context is the current one."""
    i64 = ir.IntegerType.get_signless(64)
    entries = {name: ir.IntegerAttr.get(i64, n) for name, n in sizes.items()}
    module.operation.attributes[SIZES] = ir.DictAttr.get(entries)


def layout_attribute_of(op: Any) -> Any:
    """Return the layout attribute of a lego operation."""
    return op.attributes[LAYOUT]


def dim_of(op: Any) -> int:
    """Return the dimension whose size a lego.dim computes."""
    return ir.IntegerAttr(op.attributes[_DIM]).value  # type: ignore[no-any-return]


def table_values(op: Any) -> list[int]:
    """Return the numbers of a lego.table."""
    return list(ir.DenseI64ArrayAttr(op.attributes[VALUES]))


def alignment_in(attributes: Any, default: int = 1) -> int:
    """Return the alignment in bytes that attributes state, `default` if they state none."""
    return ir.IntegerAttr(attributes[ALIGNMENT]).value if ALIGNMENT in attributes else default


def bounds_of(op: Any) -> list[int] | None:
    """Return the exclusive upper bounds of an operation's results, `None` if it has none."""
    if BOUNDS not in op.attributes:
        return None
    return list(ir.DenseI64ArrayAttr(op.attributes[BOUNDS]))


def tensor_map_fields(op: Any) -> dict[str, Any]:
    """Return shape, strides, box, swizzle and L2 promotion of a lego.tensor_map by name."""
    fields: dict[str, Any] = {
        name: _sizes_in(op.attributes[name]) for name in (SHAPE, STRIDES, BOX)
    }
    return fields | {name: op.attributes[name].value for name in (SWIZZLE, L2_PROMOTION)}


def _sizes_in(attribute: Any) -> tuple[int | str, ...]:
    """Return the numbers of an array, and the expressions among them as texts."""
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return tuple(attribute)
    return tuple(n.value for n in ir.ArrayAttr(attribute))
