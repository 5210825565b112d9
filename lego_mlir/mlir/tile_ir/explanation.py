"""The layouts of a kernel's tiles, and what its conversions and reductions do, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import (
    DistributedLayout,
    plan_conversion,
    plan_reduction,
    plan_scan,
    plan_sort,
)
from lego_mlir.analysis.distributed.conversions.shared_access import plan_store
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import position_of
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.dots import explain_dot, matrix_instructions
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import (
    Placement,
    bytes_of,
    element_of,
    is_shared_tile,
    is_tile,
    placement_of,
    shape_of,
)

_REDUCTIONS = (tiles.REDUCE, tiles.REDUCE_WITH)
_SCANS = (tiles.SCAN, tiles.SCAN_WITH)


def explain_tiles(kernel: TileKernel) -> list[str]:
    """Return the description of a kernel whose tiles are placed, one item a line.

    Each layout has a number and its table of factors; then each operation has a line, with its
    tile, its layout, and what a conversion, a reduction or a scan does.

        tiles      4 warps
          layout 0   4×256
            warp      4 along dim 0
            lane      32 along dim 1 by 4
            register  2 along dim 1 by 128, 4 along dim 1
          line 12    lego.load     4×256 f32    layout 0
          line 13    lego.reduce   4×1 f32      layout 1   7 operations in registers → 5 shuffles
    """
    numbers: dict[Placement, int] = {}
    rows = [row for op in kernel.operations() for row in _described(op, kernel, numbers)]
    lines = [f"tiles      {kernel.warps} warp{'s' * (kernel.warps > 1)}"]
    for layout, number in numbers.items():
        if isinstance(layout, Layout):
            lines.append(f"  layout {number:<3} {_sizes(layout.dims)} in shared memory")
            lines.append(f"    {layout}")
        else:
            lines.append(f"  layout {number:<3} {_sizes(layout.shape)}")
            lines += [f"    {line}" for line in layout.table().splitlines()]
    lines += _rings(kernel)
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(4)]
    for row in rows:
        padded = [word.ljust(width) for word, width in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([*padded, *row[4:]]).rstrip())
    return lines


def _described(
    op: Any, kernel: TileKernel, numbers: dict[Placement, int]
) -> Iterator[tuple[str, ...]]:
    """Yield a row for an operation: where it is, its name, its tile, the layout, and its plan."""
    found = [v for v in (*op.results, *op.operands) if is_tile(v)]
    layout = placement_of(found[0])
    if layout is None or op.name.startswith("scf."):
        return
    has_operand = len(op.operands) and is_tile(op.operands[0])
    operand = placement_of(op.operands[0]) if has_operand else None
    number = numbers.setdefault(layout, len(numbers))
    where, plan = f"layout {number}", ""
    if op.name in (tiles.DOT, dialect.DOT_ASYNC):
        plan = explain_dot(kernel, op)
    elif operand is not None:
        if op.name == tiles.CONVERT:
            where = f"layout {numbers.setdefault(operand, len(numbers))} → {number}"
        plan = _plan(op, operand, layout, kernel)
    position = position_of(op.location)
    line = "" if position is None else f"line {position.line}"
    yield line, op.name, f"{_sizes(shape_of(found[0]))} {element_of(found[0])}", where, plan


def _plan(op: Any, operand: Placement, result: Placement, kernel: TileKernel) -> str:
    """Return what an operation does whose first operand is a tile; empty for most."""
    size = bytes_of(element_of(op.operands[0]))
    instructions = matrix_instructions(kernel.target)
    match operand, result:
        case DistributedLayout(), Layout():
            return f"shared: {plan_store(operand, result, size, instructions).explain('store')}"
        case DistributedLayout(), DistributedLayout():
            if op.name == tiles.CONVERT:
                return plan_conversion(operand, result, size, instructions).explain()
            if op.name in _REDUCTIONS:
                return plan_reduction(operand, tiles.dim_of(op), size).explain()
            if op.name == tiles.REDUCE_SCATTER:
                count = result.registers * result.warps * WARP_THREADS * size
                return f"{count} bytes from every other CTA of the cluster"
            if op.name in _SCANS:
                return plan_scan(operand, tiles.dim_of(op), size).explain()
            if op.name == tiles.SORT_WITH:
                return plan_sort(operand, tiles.dim_of(op)).explain()
    return ""


def _rings(kernel: TileKernel) -> list[str]:
    """Return a line for each ring, and one for each role."""
    lines = []
    for op in operations_in(kernel.launch):
        if op.name == pipelines.MAKE_RING:
            (ring,) = op.results
            kind = ir.RankedTensorType(pipelines.tile_type_of(ring))
            stages, element = pipelines.stages_of(ring), kind.element_type
            copies = (u.owner for u in ring.uses if u.owner.name == pipelines.COPY_ASYNC)
            engines = ", ".join(sorted({pipelines.engine_of(copy) for copy in copies}))
            puts = (u.owner for u in ring.uses if u.owner.name == pipelines.PUT)
            is_copied = any(is_shared_tile(put.operands[2]) for put in puts)
            source = "shared memory" if is_copied else "registers"
            filled = f"copied by {engines}" if engines else f"put from {source}"
            size = stages * prod(map(int, kind.shape)) * bytes_of(element)
            lines.append(
                f"  ring       {stages} stages of {_sizes(tuple(kind.shape))} {element}, "
                f"{size} bytes, {filled}"
            )
        elif op.name == pipelines.ROLE:
            warps, registers = pipelines.role_warps(op), pipelines.role_registers(op)
            more = "" if registers is None else f", {registers} registers a thread"
            name = pipelines.role_name(op)
            lines.append(f"  role       {name}: warps {warps.start} to {warps.stop - 1}{more}")
    return lines


def _sizes(shape: Iterable[Any]) -> str:
    return "×".join(map(str, shape)) or "scalar"
