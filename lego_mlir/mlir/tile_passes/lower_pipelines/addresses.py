"""Buffers in shared memory whose accesses are in order, and numbers that a CTA's rank chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_passes.lower_tiles import build

_WORKGROUP = "#gpu.address_space<workgroup>"


def allocate_guarded(
    layout: Layout, element: Any, alignment: int, by: str = dialect.GUARDED
) -> Any:
    """Build a buffer in shared memory whose accesses are in order.

    Args:
        layout: of its elements.
        element: their type.
        alignment: of its address, in bytes.
        by: what orders them: `dialect.GUARDED`, mbarriers, or `dialect.ORDERED`.
    """
    space = ir.Attribute.parse(_WORKGROUP)
    dynamic = ir.ShapedType.get_dynamic_size()
    kind = ir.MemRefType.get([dynamic], element, memory_space=space)
    buffer = dialect.alloc(kind, layout_attribute(layout))
    i64 = ir.IntegerType.get_signless(64)
    buffer.owner.attributes[dialect.ALIGNMENT] = ir.IntegerAttr.get(i64, alignment)
    buffer.owner.attributes[by] = ir.UnitAttr.get()
    return buffer


def by_rank(kind: Any, numbers: Sequence[int], rank: Any) -> Any:
    """Build the number of type `kind` that belongs to a rank, an i32."""
    found = build.constant(kind, numbers[0])
    if all(n == numbers[0] for n in numbers):
        return found
    if list(numbers) == list(range(len(numbers))) and kind == rank.type:
        return rank
    for k, n in enumerate(numbers[1:], start=1):
        is_mine = build.compare("eq", rank, build.constant(rank.type, k))
        found = build.select(is_mine, build.constant(kind, n), found)
    return found
