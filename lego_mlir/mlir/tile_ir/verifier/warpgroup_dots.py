"""The layouts of dots by `wgmma`, which have their operand B in shared memory."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra.slices import Slice
from lego_mlir.analysis.distributed.wgmma_grids import warpgroup_grid, warpgroup_operand_a
from lego_mlir.analysis.instructions.wgmma_operands import operand_descriptors
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WGMMA_ROWS
from lego_mlir.mlir.tile_ir.dots import WarpgroupDot, is_warpgroup_dot, read_warpgroup_dot
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import bytes_of, element_of, layout_of, shared_layout_of
from lego_mlir.mlir.tile_ir.verifier.checked import Checked


def check_warpgroup_dot(kernel: TileKernel, c: Checked) -> None:
    """Check the operands of a dot that has one in shared memory.

    Raises:
        LegoError: `wgmma` does not take them as they are.
    """
    a, _, accumulator = c.op.operands
    c.require(
        is_warpgroup_dot(c.op),
        lambda: "has operand A in shared memory, and operand B in registers",
        "wgmma reads operand B from shared memory; mma.sync has both in registers",
    )
    dot = read_warpgroup_dot(kernel, c.op)
    layout = layout_of(accumulator)
    if layout is None:
        return  # it is not placed yet
    grid = warpgroup_grid(layout)
    fits = grid is not None and grid in dot.warpgroup_grids(layout.warps)
    c.require(
        fits,
        lambda: f"accumulates in the layout '{layout}', which no accumulator of wgmma has",
        "leave the layouts of a dot's tiles to the compiler, or write wgmma_accumulator's",
    )
    assert grid is not None
    if shared_layout_of(a) is None:
        needed = warpgroup_operand_a(layout, (dot.m, dot.k), dot.instruction.bits)
        c.require(
            layout_of(a) in (None, needed),
            lambda: f"has operand A in the layout '{layout_of(a)}'",
            f"wgmma takes it in '{needed}', or from shared memory",
        )
    try:
        _check_readable(c.op, dot, grid)
    except LegoError as e:
        c.fail(f"has an operand that cannot be read: {e.message}", e.hint)


def _check_readable(op: Any, dot: WarpgroupDot, grid: tuple[int, int]) -> None:
    """Check that `wgmma` reads the operands in shared memory.

    Raises:
        LegoError: there are no matrix descriptors of one.
    """
    extents = (WGMMA_ROWS, dot.n // grid[1])
    for number, k in ((0, 1), (1, 0)):
        operand = op.operands[number]
        memory = shared_layout_of(operand)
        if memory is not None:
            size = bytes_of(element_of(operand))
            piece = Slice(memory, (None, None))
            operand_descriptors(piece, size, k, extents[number], grid[number])
