"""How the warpgroups of a CTA divide the tile of a dot, as wgmma's accumulators are laid out.

A grid of warpgroups has rows and columns. Each warpgroup has blocks of 64 rows, one below the
other, and all columns of its part: one instruction's.
"""

from __future__ import annotations

from functools import lru_cache

from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.distributed.tensor_cores import Shape2, wgmma_accumulator, wgmma_operand_a
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import (
    WARPGROUP_WARPS,
    WGMMA_COLUMNS,
    WGMMA_INTEGER_COLUMNS,
    WGMMA_ROWS,
)


def warpgroup_grids(shape: Shape2, warps: int, *, is_integer: bool = False) -> list[Shape2]:
    """Return the grids of warpgroups that can divide an accumulator, the best first.

    Operand B is read by every row of the grid, and operand A, of fewer rows an instruction, by
    every column; so rows come first.

    Args:
        shape: rows and columns of the tile.
        warps: of the CTA, or of those that multiply.
        is_integer: whether elements are integers, which have fewer sizes.
    """
    if warps % WARPGROUP_WARPS:
        return []
    groups = warps // WARPGROUP_WARPS
    sizes = WGMMA_INTEGER_COLUMNS if is_integer else WGMMA_COLUMNS
    return [
        (down, groups // down)
        for down in range(groups, 0, -1)
        if groups % down == 0
        and shape[0] % (down * WGMMA_ROWS) == 0
        and shape[1] % (groups // down) == 0
        and shape[1] // (groups // down) in sizes
    ]


@lru_cache(maxsize=1 << 12)
def warpgroup_grid(layout: DistributedLayout) -> Shape2 | None:
    """Return rows and columns of the grid of warpgroups that an accumulator's layout has.

    Returns:
        None if it is no accumulator's layout.
    """
    if layout.rank != 2:
        return None
    rows, columns = layout.shape
    for grid in warpgroup_grids((rows, columns), layout.warps):
        if layout == wgmma_accumulator((rows, columns), grid):
            return grid
    return None


@lru_cache(maxsize=1 << 12)
def warpgroup_operand_a(of: DistributedLayout, shape: Shape2, bits: int) -> DistributedLayout:
    """Return the layout in registers of operand A of a dot with an accumulator.

    Args:
        of: the accumulator's layout.
        shape: rows and depth of the operand.
        bits: of its elements.

    Raises:
        LegoError: there is no such instruction, or it is no accumulator's layout.
    """
    grid = warpgroup_grid(of)
    if grid is None:
        raise LegoError(
            f"'{of}' is not the layout of an accumulator of wgmma",
            hint="leave the layouts of a dot's tiles to the compiler, or write wgmma_accumulator's",
        )
    return wgmma_operand_a(shape, bits, grid)
