"""How the warps of a CTA divide the tile of a dot, as mma.sync's accumulators are laid out.

A grid of warps has rows and columns; where a tile is too small for all warps, several of them
compute the same part.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from lego_mlir.analysis.distributed.factors import replicas
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.analysis.distributed.tensor_cores import (
    Shape2,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS


def accumulator(shape: Shape2, grid: Shape2, copies: int = 1) -> DistributedLayout:
    """Return the layout of an accumulator that a grid of warps divides.

    Args:
        shape: rows and columns of the tile.
        grid: rows and columns of the grid.
        copies: how many such grids there are; all of them compute the same.

    Raises:
        LegoError: the parts of the warps are no multiples of 16 by 8.
    """
    return _copied(mma_accumulator(shape, grid), copies)


@lru_cache(maxsize=1 << 12)
def accumulator_grid(layout: DistributedLayout) -> tuple[int, int, int] | None:
    """Return rows, columns and copies of the grid of warps that an accumulator's layout has.

    Returns:
        None if it is no accumulator's layout.
    """
    if layout.rank != 2:
        return None
    rows, columns = layout.shape
    if rows % MMA_ROWS or columns % MMA_COLUMNS:
        return None
    for m in range(1, layout.warps + 1):
        for n in range(1, layout.warps // m + 1):
            fits = not rows % (m * MMA_ROWS) and not columns % (n * MMA_COLUMNS)
            if layout.warps % (m * n) or not fits:
                continue
            copies = layout.warps // (m * n)
            if layout == accumulator((rows, columns), (m, n), copies):
                return m, n, copies
    return None


@lru_cache(maxsize=1 << 12)
def operand_a(of: DistributedLayout, shape: Shape2, bits: int) -> DistributedLayout:
    """Return the layout of operand A of a dot with an accumulator.

    Args:
        of: the accumulator's layout.
        shape: rows and depth of the operand.
        bits: of its elements.

    Raises:
        LegoError: there is no such instruction, or it is no accumulator's layout.
    """
    m, n, copies = _grid(of)
    return _copied(mma_operand_a(shape, bits, (m, n)), copies)


@lru_cache(maxsize=1 << 12)
def operand_b(of: DistributedLayout, shape: Shape2, bits: int) -> DistributedLayout:
    """Return the layout of operand B of a dot with an accumulator; arguments as `operand_a`."""
    m, n, copies = _grid(of)
    return _copied(mma_operand_b(shape, bits, (m, n)), copies)


def _grid(of: DistributedLayout) -> tuple[int, int, int]:
    grid = accumulator_grid(of)
    if grid is None:
        raise LegoError(
            f"'{of}' is not the layout of an accumulator of mma.sync",
            hint="leave the layouts of a dot's tiles to the compiler, or write mma_accumulator's",
        )
    return grid


def _copied(layout: DistributedLayout, copies: int) -> DistributedLayout:
    """Return the layout held by so many groups of warps."""
    if copies == 1:
        return layout
    ctas, warps, lanes, registers = layout.places
    return replace(layout, places=(ctas, (replicas(copies), *warps), lanes, registers))
