"""`transform_lego.choose_layouts`: layouts of warps, and of tiles in shared memory, if left open.

    gpu.launch ... threads(...) in (%c1, %c1, %c1) {
      %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}
      %next = vector.contract {...} %x, %y, %sums
      "lego.store"(%result, %c, %m, %n) {layout = #C, slice = array<i64: 2, 3>}
    }

becomes, with `warps_down = 2, warps_across = 2`,

    gpu.launch ... threads(...) in (%c128, %c1, %c1) {
      %x = "lego.load"(...) {..., shared = #lego.layout<"...tma_swizzle(128, 2)...">}
      %next = vector.contract {..., lego.warps = #lego.layout<"OrderBy(Row(2, 2))">}
      "lego.store"(...) {..., shared = ...}
    }

An operand's tile lies in shared memory contiguously along the dimension that is contiguous in its
tensor, 8-bit elements along k, with the widest swizzle that fits. With `warpgroups` instead of
warps the layouts are those of wgmma: warpgroups lie one below the other, and a tile of C is stored
64 rows and one row of a swizzle at a time. A CTA gets the threads of the warps if the launch has
one thread. What the program gives stays, and the steps that use it check it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.copy_plan import CopiedTile
from lego_mlir.analysis.shared_tiles import swizzled_tile
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import MAX_CTA_THREADS, WARP_THREADS, WARPGROUP_WARPS, WGMMA_ROWS
from lego_mlir.hardware.swizzle import MODES
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.fragments.contraction import operand_dimensions
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles.accesses import Tile, tile_of
from lego_mlir.mlir.tiles.kernels import LAUNCH
from lego_mlir.mlir.tiles.main_loop import INDEX_SWITCH
from lego_mlir.mlir.tiles.structure import known_size, set_launch_size

_K = 2
"""The number of the dimension k in `operand_dimensions`."""

_THREADS_X = 3
"""Which of a launch's six sizes is the number of threads along x."""


@transform("choose_layouts")
def choose_layouts(step: TransformStep) -> list[list[Any]]:
    """Give contractions, and the accesses around them, the layouts that the program leaves open."""
    warpgroups = step.number("warpgroups", 0)
    for name in ("warps_down", "warps_across", "warpgroups"):
        count = step.number(name, 1)
        if not 1 <= count <= MAX_CTA_THREADS // WARP_THREADS:
            raise step.misuse(f"{name} is {count}", hint=step.option(name, 2))
    warps = OrderBy(Row(step.number("warps_down", 1), step.number("warps_across", 1)))
    if warpgroups:
        warps = OrderBy(Row(WARPGROUP_WARPS * warpgroups, 1))
    for op in step.payload():
        if op.name != "vector.contract":
            raise step.error(
                f"takes contractions, and this is '{op.name}'", op, hint='ops{["vector.contract"]}'
            )
        _complete(step, op, warps, is_wgmma=bool(warpgroups))
    return []


def _complete(step: TransformStep, contract: Any, warps: Layout, *, is_wgmma: bool) -> None:
    """Give one contraction, its operands and the stores of its result their layouts."""
    if dialect.WARPS not in contract.attributes:
        contract.attributes[dialect.WARPS] = layout_attribute(warps)
    given = step.pass_context.layouts(contract.attributes[dialect.WARPS], contract.location)
    _set_threads(step, contract, int(given.size))
    dimensions = operand_dimensions(step, contract)
    for value, dims in zip(list(contract.operands)[:2], dimensions, strict=True):
        choose = partial(_of_operand, k=dims.index(_K))
        for load in _loads(value):
            _give(step, load, choose)
    shape = list(ir.VectorType(contract.operands[2].type).shape)
    kernel = scope_of(contract).kernel
    for op in operations_in(kernel) if kernel is not None else ():
        if op.name == dialect.STORE and _shape(op.operands[0]) == shape:
            _give(step, op, _of_epilogue if is_wgmma else _of_result)


def _set_threads(step: TransformStep, contract: Any, warps: int) -> None:
    """Give the CTAs of a launch the threads of so many warps, where they have one thread."""
    kernel = scope_of(contract).kernel
    if kernel is None or kernel.name != LAUNCH:
        return
    sizes = [known_size(size, step.pass_context) for size in launch_sizes(kernel)[3:]]
    if sizes == [1, 1, 1]:
        set_launch_size(kernel, _THREADS_X, warps * WARP_THREADS)


def _loads(value: Any) -> Iterator[Any]:
    """Yield the loads of an operand: one, or those among which it is selected."""
    if isinstance(value, ir.BlockArgument):
        return
    op = value.owner.operation
    if op.name == dialect.LOAD:
        yield op
    elif op.name == INDEX_SWITCH:
        number = list(op.results).index(value)
        for region in op.regions:
            yield from _loads(list(region.blocks[0].operations)[-1].operands[number])


def _shape(value: Any) -> list[int] | None:
    return list(ir.VectorType(value.type).shape) if isinstance(value.type, ir.VectorType) else None


def _give(step: TransformStep, op: Any, choose: Callable[[Tile], Layout]) -> None:
    """Give an access of a tensor in global memory a shared-memory layout, unless it has one."""
    if dialect.SHARED in op.attributes or dialect.SLICE not in op.attributes:
        return
    tile = tile_of(op, step.pass_context)
    if not tile.is_shared and len(tile.whole) == 2:
        op.attributes[dialect.SHARED] = layout_attribute(choose(tile))


def _of_operand(tile: Tile, k: int) -> Layout:
    """Return the layout of an operand whose dimension `k` is summed."""
    size = _bytes(tile)
    return _swizzled(tile.shape, k if size == 1 else _contiguous(tile), size)


def _of_result(tile: Tile) -> Layout:
    """Return the layout of a tile of the result."""
    return _swizzled(tile.shape, _contiguous(tile), _bytes(tile))


def _of_epilogue(tile: Tile) -> Layout:
    """Return the layout of an epilogue tile: 64 rows, and a row of the widest swizzle."""
    size, columns = _bytes(tile), tile.shape[1]
    width = next((m // size for m in MODES if m and columns % (m // size) == 0), columns)
    return _swizzled((WGMMA_ROWS, width), 1, size)


def _swizzled(shape: tuple[int, ...], contiguous: int, size: int) -> Layout:
    """Return the layout with the widest swizzle, or none where rows are too short for one."""
    try:
        return swizzled_tile((shape[0], shape[1]), contiguous, size)
    except LegoError:
        return OrderBy(Row(*shape))


def _contiguous(tile: Tile) -> int:
    """Return the dimension of a tile along which its tensor is contiguous."""
    strides = CopiedTile(tile.layout, tile.whole, 1).strides()
    return strides.index(min(strides))


def _bytes(tile: Tile) -> int:
    return max(1, getattr(tile.element, "width", 64) // 8)
