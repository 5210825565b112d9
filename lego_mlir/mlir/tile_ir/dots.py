"""Tensor cores: the instruction of a lego.dot, and the layouts that it wants of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.analysis.distributed.conversions.matrices import MatrixInstructions
from lego_mlir.analysis.distributed.wgmma_grids import warpgroup_grid, warpgroup_grids
from lego_mlir.hardware.limits import (
    MMA_COLUMNS,
    MMA_ROWS,
    WARPGROUP_WARPS,
    WGMMA_K_BYTES,
    WGMMA_ROWS,
)
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.emit.mma import INSTRUCTIONS, Instruction
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import element_of, is_shared_tile, layout_of, shape_of

WGMMA_CAPABILITY = (9, 0)
"""The compute capability whose targets of their own, `sm_90a`, have `wgmma`."""

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
    m, n, k = sizes_of(op)
    known = [i for i in INSTRUCTIONS if i.capability <= kernel.target.capability]
    matching = _matching(op, known)
    if not matching:
        a, b, accumulator = (str(element_of(value)) for value in op.operands)
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


@dataclass(frozen=True, slots=True)
class WarpgroupDot:
    """A lego.dot as `wgmma` computes it: operand B in shared memory, A there or in registers.

    Attributes:
        m, n, k: the sizes.
        instruction: for the element types.
    """

    m: int
    n: int
    k: int
    instruction: Instruction

    @property
    def is_integer(self) -> bool:
        """Whether its elements are integers, of which instructions have fewer sizes."""
        return self.instruction.accumulator == "i32"

    def warpgroup_grids(self, warps: int) -> list[WarpGrid]:
        """Return the grids of warpgroups that can divide the result, the best first."""
        return warpgroup_grids((self.m, self.n), warps, is_integer=self.is_integer)


def is_warpgroup_dot(op: Any) -> bool:
    """Return whether a placed dot is one of `wgmma`: its operand B is in shared memory."""
    return is_shared_tile(op.operands[1])


def read_warpgroup_dot(kernel: TileKernel, op: Any) -> WarpgroupDot:
    """Return a dot with its instruction of `wgmma`.

    Raises:
        LegoError: no `wgmma` of the target computes it.
    """
    wrong = why_no_wgmma(kernel, op)
    if wrong is not None:
        raise kernel.source.error(
            f"no wgmma computes this '{op.name}': {wrong}",
            op.location,
            hint="operands in registers are multiplied by mma.sync",
        )
    m, n, k = sizes_of(op)
    return WarpgroupDot(m, n, k, _matching(op, INSTRUCTIONS)[0])


def why_no_wgmma(kernel: TileKernel, op: Any) -> str | None:
    """Return why `wgmma` does not compute a dot, `None` if it can."""
    target, warps = kernel.target, kernel.warps
    if target.capability != WGMMA_CAPABILITY or not target.exact:
        return f"{target.name} has no wgmma"
    found = _matching(op, INSTRUCTIONS)
    if not found:
        a, b, accumulator = (str(element_of(value)) for value in op.operands)
        return f"there is none of {a} by {b} to {accumulator}"
    m, n, k = sizes_of(op)
    depth = WGMMA_K_BYTES * 8 // found[0].bits
    if m % WGMMA_ROWS:
        return f"{m} rows are no multiple of {WGMMA_ROWS}"
    if k % depth:
        return f"{k} elements along k are no multiple of {depth}"
    if warps % WARPGROUP_WARPS:
        return f"{warps} warps are no multiple of {WARPGROUP_WARPS}"
    if not WarpgroupDot(m, n, k, found[0]).warpgroup_grids(warps):
        return f"{warps // WARPGROUP_WARPS} warpgroups do not divide {m}×{n}"
    return None


def explain_dot(kernel: TileKernel, op: Any) -> str:
    """Return by which instruction a placed dot is computed, and if it is not wgmma, why."""
    if is_warpgroup_dot(op):
        dot = read_warpgroup_dot(kernel, op)
        accumulator = layout_of(op.operands[2])
        grid = None if accumulator is None else warpgroup_grid(accumulator)
        if grid is None:
            return "wgmma"
        depth = WGMMA_K_BYTES * 8 // dot.instruction.bits
        of_a = "shared memory" if is_shared_tile(op.operands[0]) else "registers"
        return f"wgmma m{WGMMA_ROWS}n{dot.n // grid[1]}k{depth}, A from {of_a}"
    m, n, k = read_dot(kernel, op).instruction.shape
    why = why_no_wgmma(kernel, op) or "wgmma costs more here"
    return f"mma.sync m{m}n{n}k{k}: {why}"


def sizes_of(op: Any) -> tuple[int, int, int]:
    """Return m, n and k of a dot."""
    (m, k), (_, n) = (shape_of(value) for value in list(op.operands)[:2])
    return m, n, k


def _matching(op: Any, known: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions, of those known, that have the element types of a dot."""
    a, b, accumulator = (str(element_of(value)) for value in op.operands)
    return [i for i in known if (a, b, accumulator) == (i.element, i.element, i.accumulator)]


def matrix_instructions(target: Target) -> MatrixInstructions:
    """Return which matrix instructions a GPU has (PTX ISA, "ldmatrix" and "stmatrix")."""
    return MatrixInstructions(
        load=target.capability >= (7, 5),
        store=target.capability >= (9, 0),
    )
