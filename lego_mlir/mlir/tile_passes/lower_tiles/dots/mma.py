"""Dots: each warp multiplies its tiles by `mma.sync`, from and to registers.

    %d = "lego.dot"(%a, %b, %c) : (tensor<16x16xf16, #A>, tensor<16x8xf16, #B>, ...)

becomes, on the parts of a thread,

    %a0 = vector.extract_strided_slice ... : vector<4xf16> to vector<2xf16>
    %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]

An operand's registers are numbered instruction by instruction (`analysis.distributed`), so each one
takes neighbouring words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.analysis.distributed.mma_grids import accumulator_grid, operand_a, operand_b
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.emit.mma import MmaBuilder
from lego_mlir.mlir.tile_ir.dots import read_dot
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.lower_tiles.dots.words import to_words
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, of_elements

_A_WORDS, _B_WORDS, _ACCUMULATORS = 4, 2, 4
"""Registers of a lane for one instruction (PTX ISA, "Matrix Fragments for mma.m16n8k16")."""


def lower_dot(kernel: TileKernel, op: Any, operands: Sequence[Fragment]) -> Fragment:
    """Build the instructions of a lego.dot; return the fragment of its result.

    Args:
        kernel: the kernel.
        op: the dot.
        operands: what a thread holds of operand A, operand B and the accumulator.

    Raises:
        LegoError: the layouts are not those of an instruction.
    """
    dot = read_dot(kernel, op)
    a_tile, b_tile, accumulator = operands
    bits = dot.instruction.bits
    grid = accumulator_grid(accumulator.layout)
    if grid is None:
        raise LegoError(
            f"mma.sync does not take an accumulator in the layout '{accumulator.layout}'",
            hint="leave the layouts of a dot's tiles to the compiler, or write mma_accumulator's",
        )
    for name, tile, needed in (
        ("operand A", a_tile, operand_a(accumulator.layout, (dot.m, dot.k), bits)),
        ("operand B", b_tile, operand_b(accumulator.layout, (dot.k, dot.n), bits)),
    ):
        if tile.layout != needed:
            raise LegoError(
                f"mma.sync does not take {name} in the layout '{tile.layout}'",
                hint=f"convert it to '{needed}'",
            )
    mma = MmaBuilder(dot.instruction)
    a = mma.operands(to_words(a_tile.parts, bits))
    b = mma.operands(to_words(b_tile.parts, bits))
    sums = accumulator.elements()
    rows, columns, depth = dot.instruction.shape
    m, n, steps = dot.m // grid[0] // rows, dot.n // grid[1] // columns, dot.k // depth
    for step in range(steps):
        for i in range(m):
            at = (i * steps + step) * _A_WORDS
            # Alternate directions, so that consecutive instructions share an operand.
            for j in reversed(range(n)) if i % 2 else range(n):
                of_b = (j * steps + step) * _B_WORDS
                to = (i * n + j) * _ACCUMULATORS
                sums[to : to + _ACCUMULATORS] = mma(
                    a[at : at + _A_WORDS],
                    b[of_b : of_b + _B_WORDS],
                    sums[to : to + _ACCUMULATORS],
                )
    return of_elements(accumulator.layout, sums)
