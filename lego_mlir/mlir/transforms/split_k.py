"""`transform_lego.split_k`: the blocks of a cluster share a tile of the result, each a part of k.

    gpu.launch blocks(%b, …) in (%tiles, …) {
      %sum = scf.for %k = 0 to 64 { load A[m, k]; load B[k, n]; contract }
      lego.store f(%sum), %c[m, n]
    }

becomes, with `parts = 2`, in clusters of two blocks,

    gpu.launch blocks(%b, …) in (%twice_the_tiles, …) {
      %tile, %part = lego.inv(%b) {layout = (tiles, 2)}
      %sum = scf.for %j = 0 to 32 { %k = lego.apply(%part, %j) {layout = (2, 32)}; … }
      %own = lego.reduce_scatter(%sum, %part) {layout = (2, columns / 2)}
      lego.store f(%own), %c[m, n, part]
    }

Each block adds up what all of them have for the columns that it keeps, and goes on with these
alone; where they lie in the result is the result's own layout, its columns split. So there is
enough to do for all multiprocessors where there are few tiles and k is long, without a second
kernel, and without sums that go through global memory.

Where the parts do not divide the steps, the last part goes on beyond the end of k, and fetches what
TMA fills in beyond the end of a tensor: zeros.

How sums get from block to block: `cluster_sums`. With `over_ring = 1` they take no memory of their
own, but that of the tiles of A or B: then there is room for more of these.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.hardware.limits import MMA_COLUMNS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.index_reader import launch_sizes
from lego_mlir.mlir.modules import CLUSTER, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import apply, constant, inv
from lego_mlir.mlir.tiles.column_slices import ColumnSlices
from lego_mlir.mlir.tiles.main_loop import MainLoop, find_main_loop
from lego_mlir.mlir.tiles.structure import body_of, known_size, set_launch_size
from lego_mlir.mlir.warp_specialized.cluster_reduction import OVER_RING, REDUCE_SCATTER

_MAX_SPLIT_K = 8
"""Blocks of a cluster that every GPU with clusters can have (PTX ISA, cluster_dim)."""


@transform("split_k")
def split_k(step: TransformStep) -> list[list[Any]]:
    """Divide a product's sums among the blocks of a cluster; `split_k` of 1 leave it as it is."""
    split_k = step.number("split_k")
    if not 1 <= split_k <= _MAX_SPLIT_K:
        raise step.misuse(f"a cluster has up to {_MAX_SPLIT_K} blocks, so parts is not {split_k}")
    if split_k == 1:
        return []
    if step.pass_context.target.capability < (9, 0):
        raise step.misuse(
            f"clusters of blocks begin with sm_90, the target is {step.pass_context.target.name}",
            hint="--target=sm_90a, or parts = 1",
        )
    for launch in step.payload():
        _split(step, launch, split_k, over_ring=bool(step.number(OVER_RING, 0)))
    return []


def _split(step: TransformStep, launch: Any, split_k: int, *, over_ring: bool) -> None:
    main_loop = find_main_loop(step, launch)
    _check_accumulator(step, main_loop)
    iterations, tiles = _slice_iterations(step, main_loop, split_k), _tiles(step, launch)
    rows, columns = ir.VectorType(main_loop.loop.results[0].type).shape
    if columns % (split_k * MMA_COLUMNS):
        raise step.error(
            f"{columns} columns of the result do not make {split_k} slices of whole fragments, "
            f"{MMA_COLUMNS} columns each",
            main_loop.contract,
        )
    body = body_of(launch)
    block, count = body.arguments[0], body.arguments[6]
    with ir.InsertionPoint.at_block_begin(body), launch.location:
        tile, k_slice = inv(OrderBy(Row(tiles, split_k)), block)
        _replace_uses(block, tile)
        if any(True for _ in count.uses):
            _replace_uses(count, constant(tiles))
    set_launch_size(launch, 0, tiles * split_k)
    i64 = ir.IntegerType.get_signless(64)
    launch.attributes[CLUSTER] = ir.IntegerAttr.get(i64, split_k)
    _shorten(main_loop, k_slice, split_k, iterations)
    slices = OrderBy(Row(split_k, columns // split_k))
    kept = _reduce(step, main_loop, k_slice, slices, rows)
    if over_ring:
        kept.attributes[OVER_RING] = ir.UnitAttr.get()


def _reduce(
    step: TransformStep, main_loop: MainLoop, k_slice: Any, slices: Layout, rows: int
) -> Any:
    """Go on behind the loop with this block's columns of the sums of all."""
    loop = main_loop.loop
    (accumulator,) = loop.results
    home = [op.operation for op in loop.block.operations]
    after = home[home.index(loop) + 1]
    kind = ir.VectorType.get([rows, slices.dims[1]], ir.VectorType(accumulator.type).element_type)
    with ir.InsertionPoint(after), loop.location:
        kept = ir.Operation.create(
            REDUCE_SCATTER,
            results=[kind],
            operands=[accumulator, k_slice],
            attributes={"layout": layout_attribute(slices)},
        )
    ColumnSlices(step, slices, k_slice).replace(accumulator, kept)
    return kept


def _check_accumulator(step: TransformStep, main_loop: MainLoop) -> None:
    """Check that the loop carries the sums alone, begins them at zero, and is in no other loop."""
    loop = main_loop.loop
    if main_loop.outer is not None:
        raise step.error(
            "the blocks take one tile after another, and of those that share a tile each takes one",
            main_loop.outer,
            hint="split_k without persist: as many blocks as there are tiles, times parts",
        )
    end = list(loop.regions[0].blocks[0].operations)[-1].operation
    if list(end.operands) != [main_loop.contract.results[0]]:
        raise step.error(
            "looked for a loop that carries the sums of its products alone, found "
            f"{[str(v.type) for v in end.operands]}",
            loop,
        )
    if not _is_zero(loop.operands[3]):
        raise step.error(
            "the sums do not begin at a constant zero: every part would add what they begin at",
            loop,
            hint="add it to the sums behind the loop",
        )


def _slice_iterations(step: TransformStep, main_loop: MainLoop, split_k: int) -> int:
    """The steps over k of each part; the last part may take some beyond the end."""
    lower, upper, stride = (
        known_size(v, step.pass_context) for v in list(main_loop.loop.operands)[:3]
    )
    if upper is None or (lower, stride) != (0, 1):
        raise step.error(
            f"looked for a loop from 0 to a known number by steps of 1, found {lower} to {upper} "
            f"by {stride}",
            main_loop.loop,
        )
    each = -(-upper // split_k)
    if each * (split_k - 1) >= upper:
        raise step.error(
            f"{upper} steps over k leave none for the last of {split_k} parts of {each}",
            main_loop.loop,
            hint="fewer parts, or smaller tiles along k",
        )
    return each


def _tiles(step: TransformStep, launch: Any) -> int:
    """The tiles of the result, each of which has been one block's."""
    if CLUSTER in launch.attributes:
        raise step.error("the launch has clusters already", launch)
    tiles = known_size(launch_sizes(launch)[0], step.pass_context)
    if tiles is None:
        raise step.error("looked for a grid of known size along x", launch)
    for op in operations_in(launch):
        if op.name in ("gpu.block_id", "gpu.grid_dim"):
            raise step.error(
                f"'{op.name}' would count the blocks of a cluster too",
                op,
                hint="take the gpu.launch's own arguments",
            )
    return tiles


def _shorten(main_loop: MainLoop, k_slice: Any, split_k: int, iterations: int) -> None:
    """Let the loop take the steps of a part, numbered as they are among all."""
    loop = main_loop.loop
    body = loop.regions[0].blocks[0]
    number = body.arguments[0]
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = constant(iterations)
    with ir.InsertionPoint.at_block_begin(body), loop.location:
        _replace_uses(number, apply(OrderBy(Row(split_k, iterations)), [k_slice, number]))


def _replace_uses(value: Any, other: Any) -> None:
    """Let all use another value, but for the operation that makes it."""
    for use in list(value.uses):
        op = use.owner.operation
        if op != other.owner.operation:
            op.operands[use.operand_number] = other


def _is_zero(value: Any) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    attribute = ir.DenseElementsAttr(value.owner.attributes["value"])
    return attribute.is_splat and float(attribute.get_splat_value().value) == 0.0
