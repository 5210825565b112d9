"""The keys that a dot can have: by mma.sync, and by wgmma where the target and the tile allow it.

wgmma reads operand B from shared memory, and operand A from there or from registers. The layouts in
shared memory are derived: contiguous along the dimension that is contiguous where the operand comes
from, so that it is stored in long vectors, with the widest swizzle that fits. 8-bit elements must
be contiguous along k.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.analysis.distributed.mma_grids import accumulator
from lego_mlir.analysis.distributed.tensor_cores import wgmma_accumulator, wgmma_operand_a
from lego_mlir.analysis.instructions.wgmma_operands import operand_descriptors
from lego_mlir.analysis.shared_tiles import swizzled_tile
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WGMMA_ROWS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.dots import read_dot, read_warpgroup_dot, why_no_wgmma
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import is_pointwise
from lego_mlir.mlir.tile_ir.types import is_tile, shared_layout_of
from lego_mlir.mlir.tile_passes.assign_layouts.keys import DotKey, Key
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses

_WORD_ELEMENTS_BITS = 16
"""Bits of the elements that wgmma reads along m and n, too (PTX ISA 9.7.15.5.1)."""


def dot_keys(op: Any, kernel: TileKernel, accesses: Accesses) -> Iterator[Key]:
    """Yield the keys that a dot can have, those that are preferred at the same cost first.

    Raises:
        LegoError: the dot is of sizes or elements that tensor cores do not take.
    """
    if kernel.ctas > 1:
        raise kernel.source.error(
            "a dot of tiles that the CTAs of a cluster divide is not there yet",
            op.location,
            hint="launch the kernel without a cluster",
        )
    instruction = tiles.instruction_of(op)
    why_not = why_no_wgmma(kernel, op)
    if instruction == "wgmma" and why_not is not None:
        raise kernel.source.error(
            f"wgmma does not compute this dot: {why_not}",
            op.location,
            hint="other sizes, another target, or no instruction",
        )
    is_placed = any(shared_layout_of(x) is not None for x in list(op.operands)[:2])
    if instruction != "mma.sync" and why_not is None:
        found = list(_warpgroup_keys(op, kernel, accesses))
        if is_placed and not found:
            _refuse_layouts(op, kernel)
        yield from found
    if instruction != "wgmma" and not is_placed:
        yield from _accumulators(op, kernel)


def _accumulators(op: Any, kernel: TileKernel) -> Iterator[Key]:
    """Yield the accumulators' layouts of mma.sync, those of most warps.

    Where the tile is too small for all warps, several grids of them compute the same.
    """
    dot = read_dot(kernel, op)
    for copies in range(1, kernel.warps + 1):
        grids = [] if kernel.warps % copies else dot.warp_grids(kernel.warps // copies)
        if grids:
            yield from (accumulator((dot.m, dot.n), grid, copies) for grid in grids)
            return


def _warpgroup_keys(op: Any, kernel: TileKernel, accesses: Accesses) -> Iterator[Key]:
    """Yield the keys of wgmma: operand A in shared memory, then in registers."""
    dot = read_warpgroup_dot(kernel, op)
    bits = dot.instruction.bits
    a, b, _ = op.operands
    for grid in dot.warpgroup_grids(kernel.warps):
        of_b = _in_memory(b, 0, bits, dot.n // grid[1], grid[1], accesses)
        if of_b is None:
            continue
        sums = wgmma_accumulator((dot.m, dot.n), grid)
        of_a = _in_memory(a, 1, bits, WGMMA_ROWS, grid[0], accesses)
        if of_a is not None:
            yield DotKey(sums, of_a, of_b)
        if shared_layout_of(a) is None:
            yield DotKey(sums, wgmma_operand_a((dot.m, dot.k), bits, grid), of_b)


def _refuse_layouts(op: Any, kernel: TileKernel) -> None:
    """Say why wgmma does not read operands in the layouts that the program gives them.

    Raises:
        LegoError: always.
    """
    dot = read_warpgroup_dot(kernel, op)
    size = dot.instruction.bits // 8
    grid = next(iter(dot.warpgroup_grids(kernel.warps)), (1, 1))
    extents = ("A", 1, WGMMA_ROWS, grid[0]), ("B", 0, dot.n // grid[1], grid[1])
    for operand, (name, k, extent, groups) in zip(op.operands, extents, strict=False):
        layout = shared_layout_of(operand)
        if layout is None:
            continue
        try:
            operand_descriptors(Slice(layout, (None, None)), size, k, extent, groups)
        except LegoError as e:
            raise kernel.source.error(
                f"operand {name} of this dot: {e.message}",
                op.location,
                hint=e.hint or "give the operand no layout, and one is derived",
            ) from None
    raise kernel.source.error(
        f"wgmma does not divide this dot among {kernel.warps} warps",
        op.location,
        hint="another number of threads",
    )


def _in_memory(
    operand: Any, k: int, bits: int, extent: int, groups: int, accesses: Accesses
) -> Layout | None:
    """Return the layout of an operand in shared memory, `None` if wgmma reads none of it.

    Args:
        operand: the tile.
        k: its dimension k.
        bits: of an element.
        extent: an instruction's size along the other dimension.
        groups: the warpgroups that divide the other dimension.
        accesses: reads the loads of the kernel.
    """
    layout = shared_layout_of(operand)
    shape = tuple(ir.RankedTensorType(operand.type).shape)
    if layout is None:
        dim = contiguous_dim(operand, accesses) if bits == _WORD_ELEMENTS_BITS else None
        layout = _swizzled(shape, k if dim is None else dim, k, bits // 8, extent)
    if layout is None or not _is_readable(layout, bits // 8, k, extent, groups):
        return None
    return layout


@lru_cache(maxsize=1 << 10)
def _swizzled(
    shape: tuple[int, int], contiguous: int, k: int, element_bytes: int, extent: int
) -> Layout | None:
    parts = 1 if contiguous == k else shape[1 - k] // extent
    try:
        return swizzled_tile(shape, contiguous, element_bytes, parts)
    except LegoError:  # no chunks of 16 bytes
        return None


@lru_cache(maxsize=1 << 10)
def _is_readable(layout: Layout, element_bytes: int, k: int, extent: int, groups: int) -> bool:
    """Return whether there are matrix descriptors of an operand."""
    try:
        operand_descriptors(Slice(layout, (None, None)), element_bytes, k, extent, groups)
    except LegoError:
        return False
    return True


def contiguous_dim(tile: Any, accesses: Accesses) -> int | None:
    """Return the dimension along which the elements of a tile come from memory contiguously.

    Transposes, and work of element by element, are looked through. `None` if it is not known.
    """
    if isinstance(tile, ir.BlockArgument):
        return None
    op = tile.owner.operation
    if op.name == dialect.LOAD:
        order = accesses.of(op).order
        return order[-1] if order else None
    inputs = [x for x in op.operands if is_tile(x)]
    if op.name == tiles.TRANSPOSE:
        dim = contiguous_dim(inputs[0], accesses)
        return None if dim is None else tiles.order_of(op).index(dim)
    if inputs and (is_pointwise(op) or op.name == tiles.CONVERT):
        return contiguous_dim(inputs[0], accesses)
    return None
