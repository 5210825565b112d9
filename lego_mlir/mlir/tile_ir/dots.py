"""Tensor cores: the instruction of a lego.dot, and the layouts that it wants of its operands."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.analysis.distributed import (
    DistributedLayout,
    Place,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
)
from lego_mlir.analysis.distributed.conversions.matrices import MatrixInstructions
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.fragments.instructions import INSTRUCTIONS, Instruction
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import element_of, shape_of

WarpGrid = tuple[int, int]
"""The warps along the rows and the columns of a dot's result."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A lego.dot as `mma.sync` computes it.

    Attributes:
        m, n, k: the sizes.
        instruction: for the element types.
    """

    m: int
    n: int
    k: int
    instruction: Instruction

    def layouts(
        self, warps: WarpGrid
    ) -> tuple[DistributedLayout, DistributedLayout, DistributedLayout]:
        """Return the layouts of operand A, operand B and the accumulator.

        Args:
            warps: the warps along rows and columns; warps are numbered row by row.

        Raises:
            LegoError: the parts of the warps are no multiples of the instruction's shape.
        """
        bits = self.instruction.bits
        return (
            mma_operand_a((self.m, self.k), bits, warps),
            mma_operand_b((self.k, self.n), bits, warps),
            mma_accumulator((self.m, self.n), warps),
        )

    def warp_grids(self, warps: int) -> list[WarpGrid]:
        """Return the ways to divide the result among so many warps, the most square ones first."""
        grids = [
            (down, warps // down)
            for down in range(1, warps + 1)
            if warps % down == 0
            and self.m % (down * MMA_ROWS) == 0
            and self.n % (warps // down * MMA_COLUMNS) == 0
        ]
        # What each warp reads of both operands for each element of k.
        return sorted(grids, key=lambda grid: (self.m // grid[0] + self.n // grid[1], grid))


def read_dot(kernel: TileKernel, op: Any) -> Dot:
    """Return a lego.dot with its instruction.

    Raises:
        LegoError: no instruction of the target has these element types, or its shape does not
            divide the tiles.
    """
    (m, k), (_, n) = (shape_of(value) for value in list(op.operands)[:2])
    a, b, accumulator = (str(element_of(value)) for value in op.operands)
    capability = kernel.target.capability
    known = [i for i in INSTRUCTIONS if i.capability <= capability]
    matching = [i for i in known if (a, b, accumulator) == (i.element, i.element, i.accumulator)]
    if not matching:
        raise kernel.source.error(
            f"{kernel.target.name} has no mma.sync of {a} by {b} to {accumulator}",
            op.location,
            hint=f"it has: {', '.join(map(str, known)) or 'none'}; convert the operands",
        )
    found = matching[0]
    rows, columns, depth = found.shape
    if m % rows or n % columns or k % depth:
        raise kernel.source.error(
            f"a dot of {m}×{k} by {k}×{n} is not divided by mma.sync of m{rows}n{columns}k{depth}",
            op.location,
            hint=f"take tiles of multiples of {rows} rows, {columns} columns and {depth} along k; "
            "a tile may extend past the end of its tensor",
        )
    return Dot(m, n, k, found)


def warp_grid_of(accumulator: DistributedLayout) -> WarpGrid:
    """Return the warps along rows and columns that hold an accumulator."""
    factors = accumulator.places[Place.WARP]
    down, across = (prod(f.size for f in factors if f.dim == dim) for dim in range(2))
    return down, across


def matrix_instructions(target: Target) -> MatrixInstructions:
    """Return which matrix instructions a GPU has (PTX ISA, "ldmatrix" and "stmatrix")."""
    return MatrixInstructions(
        load=target.capability >= (7, 5),
        store=target.capability >= (9, 0),
    )
