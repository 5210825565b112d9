"""Addresses in shared memory: those of a buffer, plus what a layout says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build

_SHARED = 3
"""The address space of shared memory in LLVM's NVPTX back end."""

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


def address(buffer: Any, layout: Layout, index: Sequence[Any], shift: int = 0) -> Any:
    """Build the address of an element, an i32.

    Args:
        buffer: a memref of one dimension in shared memory.
        layout: of its elements.
        index: of the element, a value a dimension.
        shift: bytes to add.
    """
    i32 = build.i32()
    base = build.make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer)
    start = build.make("arith.index_cast", i32, base)
    offset = dialect.apply(layout_attribute(layout), index)
    size = bytes_of(ir.MemRefType(buffer.type).element_type)
    distance = build.binary(
        "muli", build.make("arith.index_cast", i32, offset), build.constant(i32, size)
    )
    at = build.binary("addi", start, distance)
    return build.binary("addi", at, build.constant(i32, shift)) if shift else at


def as_pointer(at: Any) -> Any:
    """Build the pointer to shared memory of an address, an i32."""
    return build.make("llvm.inttoptr", ir.Type.parse(f"!llvm.ptr<{_SHARED}>"), at)


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
