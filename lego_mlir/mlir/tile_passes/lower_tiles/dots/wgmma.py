"""Dots by `wgmma`: operand B is in shared memory, operand A there or in registers.

    %d = "lego.dot"(%a, %b, %zero) : (tensor<64x32xf16, #A>, tensor<32x8xf16, #lego.shared<"...">>,
        tensor<64x8xf32, #C>) -> tensor<64x8xf32, #C>

becomes, for each warpgroup, one group of instructions and a wait for it,

    %b = "lego.matrix_descriptor"(%room, %c0, %c0) {layout = #B, word = ...}
    %d:4 = llvm.inline_asm "wgmma.fence...; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 ...;
        add.s64 at0, $8, 2; ...; wgmma.commit_group...; wgmma.wait_group.sync.aligned 0;" ..., %b

A dot_async has no wait; a dot_wait passes the accumulators on. An accumulator that is zero is no
operand: the first instruction defines it.

Source: PTX ISA 9.7.15.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra.slices import Slice
from lego_mlir.analysis.distributed import Place
from lego_mlir.analysis.distributed.conversions.atoms import Digit
from lego_mlir.analysis.distributed.wgmma_grids import warpgroup_grid
from lego_mlir.analysis.instructions.wgmma_operands import Major, operand_descriptors
from lego_mlir.hardware.limits import WARPGROUP_WARPS, WGMMA_ROWS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.dialect.pipeline_operations import OUTLIVES, pending_of
from lego_mlir.mlir.emit import nvvm, wgmma
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.dots import WarpGrid, WarpgroupDot, read_warpgroup_dot
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.types import bytes_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.dots.words import to_words
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import ElementsFragment, Fragment
from lego_mlir.mlir.tile_passes.lower_tiles.shared_tiles import SharedTile
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_Blocks = list[list[tuple[Any, Major]]]
"""What the instructions read of an operand: by block of rows or columns, and by step along k."""


def lower_warpgroup_dot(
    op: Any, operands: Sequence[Any], threads: Threads, pending: int | None
) -> Fragment:
    """Build the instructions of a dot; return the fragment of its result.

    Args:
        op: a lego.dot or lego.dot_async.
        operands: operand A, a fragment or a tile in shared memory, operand B in shared memory, and
            the fragment of the accumulator.
        threads: those of the kernel.
        pending: how many groups may be in flight behind it; `None` for no wait.
    """
    dot = read_warpgroup_dot(threads.kernel, op)
    a_tile, b_tile, accumulator = operands
    grid = warpgroup_grid(accumulator.layout)
    assert grid is not None, "the verifier has seen to it"
    columns = dot.n // grid[1]
    (b_steps,) = _descriptors(b_tile, 0, columns, (grid[1], 1), dot, threads)
    if isinstance(a_tile, SharedTile):
        own = _descriptors(a_tile, 1, WGMMA_ROWS, (grid[0], grid[1]), dot, threads)
    else:
        own = _in_registers(a_tile, grid, dot)
    accumulators = [
        [
            wgmma.Step(a, b, (a_major, b_major))
            for (a, a_major), (b, b_major) in zip(a_steps, b_steps, strict=True)
        ]
        for a_steps in own
    ]
    sums = None if is_zero(op.operands[2]) else accumulator.elements()
    found = wgmma.Group(dot.instruction, columns)(accumulators, sums, pending)
    return ElementsFragment(accumulator.layout, found)


def lower_dot_wait(op: Any, accumulator: Fragment, operand: Fragment | None) -> Fragment:
    """Build the wait for a dot; return the fragment of the finished result.

    Args:
        op: a lego.dot_wait.
        accumulator: the result of a dot_async.
        operand: operand A of the dot, if it is in registers that are defined anew before the wait.
    """
    pending = pending_of(op)
    if not any(True for _ in op.results[0].uses):
        nvvm.wgmma_wait(
            pending
        )  # a later dot adds to the accumulator, whose registers are not read
        return accumulator
    found = wgmma.wait(
        str(accumulator.element),
        accumulator.elements(),
        pending,
        is_copied=OUTLIVES in op.attributes,
        operands=() if operand is None else to_words(operand.parts, 8 * bytes_of(operand.element)),
    )
    return ElementsFragment(accumulator.layout, found)


def is_zero(tile: Any) -> bool:
    """Return whether a tile is a constant, or full, of zeros."""
    if isinstance(tile, ir.BlockArgument):
        return False
    op = tile.owner.operation
    if op.name == tiles.FULL:
        number = op.operands[0]
        if isinstance(number, ir.BlockArgument) or number.owner.name != CONSTANT:
            return False
        return _is_zero_number(number.owner.attributes["value"])
    return op.name == CONSTANT and _is_zero_number(
        ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    )


def _is_zero_number(attribute: Any) -> bool:
    """Return whether the attribute of a number is 0; -0.0 is not, for sums keep its sign."""
    return str(attribute.value) in ("0", "0.0")


def _in_registers(tile: Fragment, grid: WarpGrid, dot: WarpgroupDot) -> _Blocks:
    """Return the words of operand A in registers."""
    words = to_words(tile.parts, dot.instruction.bits)
    blocks = dot.m // grid[0] // WGMMA_ROWS
    each = len(words) // blocks
    return [
        [(words[k : k + wgmma.A_WORDS], "k") for k in range(start, start + each, wgmma.A_WORDS)]
        for start in range(0, len(words), each)
    ]


def _descriptors(
    tile: SharedTile,
    k_dim: int,
    extent: int,
    groups: tuple[int, int],
    dot: WarpgroupDot,
    threads: Threads,
) -> _Blocks:
    """Build the matrix descriptors of an operand in shared memory.

    Args:
        tile: the operand.
        k_dim: its dimension k.
        extent: an instruction's size along the other dimension.
        groups: the warpgroups that divide the other dimension, and how many next to one another
            read the same part.
        dot: the dot.
        threads: those of the kernel.
    """
    size = bytes_of(tile.element)
    piece = Slice(tile.layout, (*(0 for _ in tile.index), None, None))
    blocks = operand_descriptors(piece, size, k_dim, extent, groups[0])
    first: list[Any] = [build.index(0), build.index(0)]
    if groups[0] > 1:
        own = int(piece.shape[1 - k_dim]) // groups[0]
        weight = groups[1] * WARPGROUP_WARPS
        number = threads.warp_digit(Digit(Place.WARP, weight, groups[0]))
        first[1 - k_dim] = build.binary("muli", number, build.index(own))
    attribute = layout_attribute(tile.layout)
    start = blocks[0][0]
    base = tiles.matrix_descriptor(tile.buffer, [*tile.index, *first], attribute, start.bits)
    return [
        [(wgmma.Descriptor(base, step.bits - start.bits), step.major) for step in steps]
        for steps in blocks
    ]
