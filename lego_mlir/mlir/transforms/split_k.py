"""`transform_lego.split_k`: the CTAs of a cluster share an output tile, each for a slice of K.

    gpu.launch blocks(%b, …) in (%tiles, …) {
      %sum = scf.for %k = 0 to 64 { load A[m, k]; load B[k, n]; contract }
      lego.store f(%sum), %c[m, n]
    }

becomes, with `split_k = 2`, in clusters of two CTAs,

    gpu.launch blocks(%b, …) in (%twice_the_tiles, …) {
      %tile, %slice = lego.inv(%b) {layout = (tiles, 2)}
      %sum = scf.for %j = 0 to 32 { %k = lego.apply(%slice, %j) {layout = (2, 32)}; … }
      %own = lego.reduce_scatter_columns(%sum, %slice) {layout = (2, columns / 2)}
      lego.store f(%own), %c[m, n, slice]
    }

Each CTA reduces the accumulators of all CTAs for the columns that it keeps, and computes the
epilogue for these columns only. The output's layout, with its columns split, gives their addresses.
So if there are few tiles and K is long, all multiprocessors have work, without a second kernel and
without accumulators in global memory.

If `split_k` does not divide the iterations, the last slice runs beyond the end of K, where TMA
fills tiles with zeros.

`warp_specialized.cluster_reduction` moves accumulators between CTAs. With `over_ring = 1` they
reuse the shared memory of the tiles of A or B, which leaves space for more stages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lego_mlir.algebra import Layout, OrderBy, Row, size_symbol
from lego_mlir.hardware.limits import MMA_COLUMNS
from lego_mlir.index import Int, Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tiles.accesses import Sizes, apply, constant, inv
from lego_mlir.mlir.tiles.main_loop import MainLoop, find_main_loop
from lego_mlir.mlir.tiles.structure import body_of, is_zero, known_size, set_launch_size
from lego_mlir.mlir.warp_specialized.cluster_reduction import OVER_RING, REDUCE_SCATTER_COLUMNS
from lego_mlir.mlir.warp_specialized.column_slices import ColumnSlices

_MAX_SPLIT_K = 8
"""The cluster size that every GPU with clusters supports (PTX ISA, cluster_dim)."""


@transform("split_k")
def split_k(step: TransformStep) -> list[list[Any]]:
    """Divide the K loop among the CTAs of a cluster; `split_k = 1` changes nothing."""
    split_k = step.number("split_k")
    if split_k < 1:
        raise step.misuse(
            f"split_k is {split_k}, no number of slices", hint=step.option("split_k", 2)
        )
    if split_k > _MAX_SPLIT_K:
        raise step.misuse(
            f"split_k is {split_k}, but a cluster has 1 to {_MAX_SPLIT_K} CTAs",
            hint=step.option("split_k", 2),
        )
    if split_k == 1:
        return []
    if not step.pass_context.target.has_clusters:
        raise step.misuse(
            f"the target {step.pass_context.target.name} has no clusters of CTAs",
            hint=f"--target=sm_90a, or {step.option('split_k', 1)}",
        )
    for launch in step.payload():
        _split(step, launch, split_k, over_ring=bool(step.number(OVER_RING, 0)))
    return []


def _number_ctas(
    launch: Any, ctas: Layout, tiles: _Tiles, main_loop: MainLoop, iterations: int
) -> Any:
    """Launch a CTA for each slice of each tile; return the number of a CTA's slice.

    Args:
        launch: the kernel.
        ctas: the layout from (tile, slice) to a CTA's id.
        tiles: the tiles.
        main_loop: its main loop, which then runs over a slice.
        iterations: of a slice.
    """
    body = body_of(launch)
    block, count = body.arguments[0], body.arguments[6]
    with ir.InsertionPoint.at_block_begin(body), launch.location:
        tile, k_slice = inv(ctas, block, tiles.known)
        _replace_uses(block, tile)
    count.replace_all_uses_with(tiles.value)
    split_k = ctas.dims[1]
    assert isinstance(split_k, int)
    set_launch_size(launch, 0, tiles.times(split_k, launch))
    _shorten(main_loop, k_slice, split_k, iterations)
    return k_slice


def _split(step: TransformStep, launch: Any, split_k: int, *, over_ring: bool) -> None:
    main_loop = find_main_loop(step, launch)
    _check_accumulator(step, main_loop)
    iterations, tiles = _slice_iterations(step, main_loop, split_k), _tiles(step, launch)
    rows, columns = ir.VectorType(main_loop.loop.results[0].type).shape
    if columns % (split_k * MMA_COLUMNS):
        raise step.error(
            f"{columns} columns of the output tile do not divide into {split_k} slices of "
            f"fragments of {MMA_COLUMNS} columns",
            main_loop.contract,
        )
    ctas = OrderBy(Row(tiles.size, split_k))
    k_slice = _number_ctas(launch, ctas, tiles, main_loop, iterations)
    i64 = ir.IntegerType.get_signless(64)
    launch.attributes[dialect.CLUSTER] = ir.IntegerAttr.get(i64, split_k)
    slices = OrderBy(Row(split_k, columns // split_k))
    kept = _reduce(step, main_loop, k_slice, slices, rows)
    if over_ring:
        kept.attributes[OVER_RING] = ir.UnitAttr.get()


def _reduce(
    step: TransformStep, main_loop: MainLoop, k_slice: Any, slices: Layout, rows: int
) -> Any:
    """Reduce the accumulators after the loop, and compute the epilogue for the kept columns."""
    loop = main_loop.loop
    (accumulator,) = loop.results
    home = [op.operation for op in loop.block.operations]
    after = home[home.index(loop) + 1]
    kind = ir.VectorType.get([rows, slices.dims[1]], ir.VectorType(accumulator.type).element_type)
    with ir.InsertionPoint(after), loop.location:
        kept = ir.Operation.create(
            REDUCE_SCATTER_COLUMNS,
            results=[kind],
            operands=[accumulator, k_slice],
            attributes={"layout": layout_attribute(slices)},
        )
    ColumnSlices(step, slices, k_slice).replace(accumulator, kept)
    return kept


def _check_accumulator(step: TransformStep, main_loop: MainLoop) -> None:
    """Check that the loop carries only the accumulator, from zero."""
    loop = main_loop.loop
    end = list(loop.regions[0].blocks[0].operations)[-1].operation
    if list(end.operands) != [main_loop.contract.results[0]]:
        raise step.error(
            "looked for a loop that carries only the accumulator of its vector.contract, found "
            f"{[str(v.type) for v in end.operands]}",
            loop,
        )
    if not is_zero(loop.operands[3]):
        raise step.error(
            "the accumulator does not start at a constant zero, which each slice of K would add",
            loop,
            hint="add it to the accumulator after the loop",
        )


def _slice_iterations(step: TransformStep, main_loop: MainLoop, split_k: int) -> int:
    """Return the iterations of each slice of K; the last slice may run beyond the end."""
    lower, upper, stride = (
        known_size(v, step.pass_context) for v in list(main_loop.loop.operands)[:3]
    )
    if upper is None or (lower, stride) != (0, 1):
        raise step.error(
            f"looked for a K loop from 0 to a constant by steps of 1, found {lower} to {upper} "
            f"by {stride}",
            main_loop.loop,
        )
    each = -(-upper // split_k)
    if each * (split_k - 1) >= upper:
        raise step.error(
            f"{upper} iterations of the K loop leave none for the last of {split_k} slices of "
            f"{each}",
            main_loop.loop,
            hint="a smaller split_k, or smaller tiles along K",
        )
    return each


class _Tiles(NamedTuple):
    """The number of output tiles, which is the grid size before the split.

    Attributes:
        size: the number, or the symbol of one that only the launch knows.
        value: the same, as a value of the host.
    """

    size: Int
    value: Any

    @property
    def known(self) -> Sizes:
        """The value of the symbol, if it is one."""
        return ((self.size.name, self.value),) if isinstance(self.size, Sym) else ()

    def times(self, n: int, launch: Any) -> Any:
        """Return `n` times as many: a number, or a value before the launch."""
        if isinstance(self.size, int):
            return self.size * n
        with ir.InsertionPoint(launch), launch.location:
            return arith.MulIOp(self.value, constant(n)).result


def _tiles(step: TransformStep, launch: Any) -> _Tiles:
    """Return the number of output tiles."""
    if dialect.CLUSTER in launch.attributes:
        raise step.error("the launch has clusters already", launch)
    for op in operations_in(launch):
        if op.name in ("gpu.block_id", "gpu.grid_dim"):
            raise step.error(
                f"'{op.name}' would also count the CTAs of a cluster",
                op,
                hint="use the block arguments of the gpu.launch",
            )
    value = launch_sizes(launch)[0]
    number = known_size(value, step.pass_context)
    if number is None:
        return _Tiles(size_symbol("tiles"), value)
    with ir.InsertionPoint(launch), launch.location:
        return _Tiles(number, constant(number))


def _shorten(main_loop: MainLoop, k_slice: Any, split_k: int, iterations: int) -> None:
    """Restrict the loop to one slice of K, with iteration numbers of the whole loop."""
    loop = main_loop.loop
    body = loop.regions[0].blocks[0]
    number = body.arguments[0]
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[1] = constant(iterations)
    with ir.InsertionPoint.at_block_begin(body), loop.location:
        _replace_uses(number, apply(OrderBy(Row(split_k, iterations)), [k_slice, number]))


def _replace_uses(value: Any, other: Any) -> None:
    """Replace the uses of `value` by `other`, except in the operation that defines `other`."""
    for use in list(value.uses):
        op = use.owner.operation
        if op != other.owner.operation:
            op.operands[use.operand_number] = other
