"""Loads and stores of tiles: each thread accesses the elements that it holds.

    "lego.store"(%y, %b, %i, %c0) {layout = #B, slice = array<i64: 1>}

becomes

    %is_first = arith.cmpi eq, %copy, %c0       where several threads hold an element: one stores it
    scf.if %is_first {
      "lego.store_parts"(%b, %i, %j, %y0, %y1) {layout = #B, registers = array<i64: 1, 8, 1>}
    }

where %j, the index of the thread's first element, and %copy, which of its copies it is, come from
`lego.inv` of the thread's number by the tile's layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tile_ir.types import element_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    once,
    part_types,
    register_factors,
    repeated,
    without_copies,
)
from lego_mlir.mlir.tile_passes.role_barriers import make_barrier

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_SHARED = "#gpu.address_space<workgroup>"


def lower_load(op: Any, layout: DistributedLayout, threads: Threads) -> Fragment:
    """Build a load of a tile by its threads.

    Args:
        op: a lego.load whose result is a tile.
        layout: of the tile.
        threads: those of the kernel.
    """
    buffer, *operands = list(op.operands)
    own = without_copies(layout)
    index, registers = _access(op, operands, own, threads)
    attributes = op.attributes
    has_other = dialect.OTHER in attributes
    parts = tiles.load_parts(
        part_types(own, element_of(op.results[0])),
        buffer,
        index,
        attributes[dialect.LAYOUT],
        registers,
        other=attributes[dialect.OTHER] if has_other else None,
    )
    return repeated(Fragment(own, tuple(parts)), layout)


def lower_store(op: Any, tile: Fragment, mask: Fragment | None, threads: Threads) -> None:
    """Build a store of a tile by its threads; of those with the same element one stores it.

    With `kind` they update what was there.

    Args:
        op: a lego.store of a tile.
        tile: what is stored.
        mask: which elements are valid; `None` for all.
        threads: those of the kernel.
    """
    _, buffer, *operands = list(op.operands)
    tile = once(tile)
    index, registers = _access(op, operands, tile.layout, threads)
    masks = () if mask is None else once(mask).parts
    with where(threads.is_first_copy(tile.layout)):
        tiles.store_parts(
            tile.parts,
            buffer,
            index,
            op.attributes[dialect.LAYOUT],
            registers,
            masks,
            by=tiles.kind_of(op) if tiles.KIND in op.attributes else None,
            exclusive=dialect.EXCLUSIVE in op.attributes,
        )


def lower_once(op: Any, threads: Threads) -> None:
    """Build what one thread of the CTA or cluster does, such as a store of one element.

    Its result, such as what an atomic update returns, goes through shared memory to all threads. If
    it orders memory, barriers extend that to all threads.

    Args:
        op: of at most one result.
        threads: those of the kernel.

    Raises:
        LegoError: other CTAs of a cluster would need the result.
    """
    used = [r for r in op.results if any(True for _ in r.uses)]
    if used and threads.kernel.ctas > 1:
        raise LegoError(
            f"what '{op.name}' of one element returns is known to one CTA of the cluster only",
            hint="update a tile of elements, or launch the kernel without a cluster",
        )
    one = layout_attribute(OrderBy(Row(1)))
    buffers = [allocate(one, r.type) for r in used]
    zero = [build.index(0)] if used else []
    if dialect.ORDERS in op.attributes:
        make_barrier(op)
    with where(threads.is_first_of_cluster()):
        made = ir.Operation.create(
            op.name,
            results=[r.type for r in op.results],
            operands=list(op.operands),
            attributes=named_attributes(op),
        )
        for buffer in buffers:
            tiles.store_parts(list(made.results), buffer, zero, one, [])
    for buffer, result in zip(buffers, used, strict=True):
        (value,) = tiles.load_parts([result.type], buffer, zero, one, [])
        result.replace_all_uses_with(value)


def allocate(layout: Any, element: Any, alignment: int | None = None) -> Any:
    """Build a buffer in shared memory of a layout's elements; i1 is no element of memory.

    Args:
        layout: the attribute of the layout.
        element: the type of its elements.
        alignment: of the buffer's address in bytes; `None` for what all buffers have.
    """
    dynamic = ir.ShapedType.get_dynamic_size()
    space = ir.Attribute.parse(_SHARED)
    kind = ir.MemRefType.get([dynamic], element, memory_space=space)
    return dialect.alloc(kind, layout, alignment=alignment)


def _access(
    op: Any, operands: Sequence[Any], layout: DistributedLayout, threads: Threads
) -> tuple[list[Any], list[tuple[int, int, int]]]:
    """Return the index of the thread's first element, and the register factors.

    Args:
        op: the load or store.
        operands: its origin, then the values of symbols.
        layout: of the tile, each element once a thread.
        threads: those of the kernel.
    """
    attributes = op.attributes
    whole = []
    if dialect.SLICE in attributes:
        whole = list(ir.DenseI64ArrayAttr(attributes[dialect.SLICE]))
    index = list(operands)
    for dim, x in zip(whole, threads.coordinates(layout), strict=True):
        index[dim] = build.binary("addi", index[dim], x)
    return index, [(whole[dim], n, stride) for dim, n, stride in register_factors(layout)]


@contextmanager
def where(condition: Any | None) -> Iterator[None]:
    """Build what follows under a condition, an i1; `None` for always."""
    if condition is None:
        yield
        return
    branch = ir.Operation.create("scf.if", results=[], operands=[condition], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        yield
        ir.Operation.create("scf.yield")
