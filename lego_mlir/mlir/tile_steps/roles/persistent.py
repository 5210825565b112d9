"""`transform_lego.persistent`: persistent CTAs, each of which runs several programs in a loop.

    gpu.launch blocks(%x, %y, %z) in (%c32, %c16, %c1) { body(%x, %y, %z) }

becomes, with `ctas = 132` and `raster_group = 8`,

    gpu.launch blocks(%b, ...) in (%c132, %c1, %c1) {
      scf.for %n = %b to %c512 step %c132 {
        %y, %x = "lego.inv"(%n) {layout = #lego.layout<"OrderBy(GenP([16, 32], row_groups(8)))">}
        body(%x, %y, %c0)
      }
    }

The order in which programs begin is a layout of the grid, (z, y, x) without the sizes of 1: the one
that the step has as `order`, else `raster_group` rows of the grid at a time, column by column. By
default x runs fastest, as in a launch. `pipeline_loop` lets rings run on from one program to the
next, so that what a program loads is copied while the one before still computes.

Where programs take differently long, as under a causal mask, `balance = 1` deals those of a known
grid by what their loops cost (`balanced_loop`). Of a grid that only the launch knows a CTA runs two
neighbours in order at a time: an order in which these take equally long together balances it.

With `cluster = 2` neighbours in this order run on the CTAs of a cluster at the same time:

    scf.for %m = %b / 2 to %c256 step %c66 { %n = %m * 2 + %b % 2 ... }

`multicast` loads what they have in common once. With `cluster_rows` the clusters, of so many rows
of the grid and the columns that remain, have this order, and no cluster is in two places. By
default they are one column, if that divides the grid.

Sizes of the grid may be what only the launch knows: the host computes the number of programs, and
how many CTAs run them. The raster groups then divide the dimension whose size is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row, size_symbol
from lego_mlir.index import Int, Sym, construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.layouts import layout_attribute, symbols_of
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader, launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import set_size
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.kernels import kernels_of, operations_of
from lego_mlir.mlir.tile_steps.roles.balanced_loop import balanced_loop, neighbours_loop
from lego_mlir.mlir.tile_steps.roles.program_order import known_order, open_order

_CTAS = 132
"""The multiprocessors of an H200."""

_OF_LAUNCH = "nvvm.griddepcontrol"
"""What a CTA does once, before its programs."""

_IDS, _SIZES = slice(0, 3), slice(6, 9)
"""Which arguments of a launch's body are the numbers of the CTA, and the sizes of the grid."""


@transform("persistent")
def persistent(step: TransformStep) -> list[list[Any]]:
    """Let at most `ctas` CTAs run the programs of a grid one after another; 0 for no change."""
    ctas = step.number("ctas", _CTAS)
    group, cluster = step.number("raster_group", 1), step.number("cluster", 1)
    rows, balance = step.number("cluster_rows", 0), step.number("balance", 0)
    given = (
        ("ctas", ctas, 0, _CTAS),
        ("raster_group", group, 1, 8),
        ("cluster", cluster, 1, 2),
        ("cluster_rows", rows, 0, 2),
        ("balance", balance, 0, 1),
    )
    for name, number, least, example in given:
        if number < least:
            raise step.misuse(f"{name} is {number}", hint=step.option(name, example))
    if balance and cluster > 1:
        raise step.misuse(
            f"programs of clusters of {cluster} cannot be balanced", hint=step.option("balance", 0)
        )
    for kernel in kernels_of(step) if ctas else []:
        _Persistence(step, kernel, ctas, group, cluster, rows, balanced=balance > 0).build()
    return []


class _Persistence:
    """The rewrite of one kernel."""

    def __init__(
        self,
        step: TransformStep,
        kernel: TileKernel,
        ctas: int,
        group: int,
        cluster: int,
        cluster_rows: int,
        *,
        balanced: bool,
    ) -> None:
        self._step = step
        self._balanced = balanced
        self._kernel = kernel
        self._ctas = ctas
        self._cluster = cluster
        self._values = launch_sizes(kernel.launch)[:3]
        self._grid = self._find_grid()
        self._count = reduce(construct.mul, self._grid)
        self._check_cluster()
        self._order = self._find_order(group, cluster_rows)

    def _find_grid(self) -> tuple[Int, ...]:
        """Return the grid, along x first; symbols are the sizes that only the launch knows.

        Raises:
            LegoError: the kernel has rings, roles or clusters already.
        """
        launch = self._kernel.launch
        for op in operations_in(launch):
            if op.name in (pipelines.MAKE_RING, pipelines.ROLE):
                raise self._step.error(
                    f"a kernel with a '{op.name}' cannot become persistent any more",
                    op,
                    hint="transform_lego.persistent comes before the steps that make rings and "
                    "roles",
                )
        if self._kernel.cluster > 1:
            raise self._step.error(
                f"the programs of this kernel run on clusters of {self._kernel.cluster} CTAs",
                launch,
                hint="make kernels persistent that are launched without a cluster",
            )
        sizes = [constant_size(size) for size in launch_sizes(launch)[:3]]
        return tuple(
            self._open_size(f"grid_{axis}", value) if n is None else n
            for axis, n, value in zip("xyz", sizes, self._values, strict=True)
        )

    def _open_size(self, name: str, value: Any) -> Sym:
        """Return the symbol of a size that the host computes, with whether clusters divide it."""
        rest = construct.mod(IndexReader().read(value), self._cluster)
        return size_symbol(name, [self._cluster] if rest == 0 and self._cluster > 1 else [])

    def _check_cluster(self) -> None:
        """Check that programs and CTAs make whole clusters.

        Raises:
            LegoError: they do not.
        """
        for what, count in (("programs", self._count), ("CTAs", self._ctas)):
            if construct.mod(count, self._cluster) != 0:
                raise self._step.error(
                    f"{count} {what} are no whole clusters of {self._cluster}",
                    self._kernel.launch,
                    hint=self._step.option("cluster", 1),
                )
        if self._cluster > 1 and not self._kernel.target.has_clusters:
            raise self._step.error(
                f"the target {self._kernel.target} has no clusters of CTAs",
                self._kernel.launch,
                hint=f"{self._step.option('cluster', 1)}, or --target=sm_90a",
            )

    def _find_order(self, group: int, cluster_rows: int) -> Layout:
        """Return the layout from (z, y, x), without sizes of 1, to the order of the programs.

        Raises:
            LegoError: the step's layout is not of the grid, or no bijection; or clusters of so many
                rows do not divide the grid.
        """
        dims = [n for n in reversed(self._grid) if n != 1] or [1]
        known, step = [n for n in dims if isinstance(n, int)], self._step
        if "order" not in step.op.attributes:
            if len(known) < len(dims):
                return open_order(dims, group, self._cluster)
            return known_order(known, group, self._cluster_shape(known, cluster_rows))
        layout = step.layout("order")
        if tuple(layout.dims) != tuple(dims) or layout.is_partial or layout.symbols:
            raise step.misuse(
                f"the order '{layout}' is not of {dims}, the grid of programs",
                hint="a layout of the grid's sizes along z, y and x, without those of 1",
            )
        return layout

    def _cluster_shape(self, dims: Sequence[int], rows: int) -> list[int]:
        """Return the sizes of a cluster along the grid's dimensions; ones for neighbours in order.

        Raises:
            LegoError: clusters of so many rows do not divide the grid.
        """
        cluster, ones = self._cluster, [1] * len(dims)
        if len(dims) < 2 or cluster == 1:
            return ones
        shape = [*ones[2:], rows or cluster, cluster // (rows or cluster)]
        if prod(shape) == cluster and not any(n % k for n, k in zip(dims, shape, strict=True)):
            return shape
        if rows:
            raise self._step.error(
                f"a grid of {' x '.join(map(str, dims))} programs is no whole clusters of "
                f"{cluster} CTAs with {rows} rows",
                self._kernel.launch,
                hint=self._step.option("cluster_rows", 0),
            )
        return ones

    # The rewrite.
    def build(self) -> None:
        """Rewrite the kernel; one with a CTA for each program has their order only."""
        kernel, cluster = self._kernel, self._cluster
        launch, body = kernel.launch, kernel.body
        count, ctas = self._counts()
        *listed, before = operations_of(body)
        listed = [op for op in listed if op.name != _OF_LAUNCH]
        number, ids = body.arguments[0], None
        with ir.InsertionPoint([*listed, before][0]), launch.location:
            if cluster > 1:
                rank = build.binary("remui", number, build.index(cluster))
                number = build.binary("divui", number, build.index(cluster))
            known = [n for n in self._grid if isinstance(n, int)]
            if self._balanced and len(known) == len(self._grid) and prod(known) > ctas:
                ids, before = balanced_loop(kernel, self._order, known, number, ctas)
            elif self._balanced and not isinstance(count, int):
                number, before = neighbours_loop(count, number, self._ctas)
            elif count != ctas:
                # With fewer programs than `ctas` no CTA has a second one.
                stride = build.index(self._ctas // cluster)
                bounds = [number, self._clusters(count), stride]
                loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
                index = ir.IndexType.get()
                inside = loop.regions[0].blocks.append(index, arg_locs=[launch.location])
                (number,) = inside.arguments
                with ir.InsertionPoint(inside):
                    before = ir.Operation.create("scf.yield")
        with ir.InsertionPoint(before), launch.location:
            if cluster > 1:
                number = build.binary("muli", number, build.index(cluster))
                number = build.binary("addi", number, rank)
            if ids is None:
                numbers = iter(self._index(number))
                ids = [next(numbers) if n != 1 else build.index(0) for n in self._grid]
            sizes = [self._size(axis) for axis in range(len(self._grid))]
        for op in listed:
            op.move_before(before)
        self._rename(listed, ids, sizes)
        for which, size in enumerate((ctas, 1, 1)):
            set_size(launch, which, size)
        if cluster > 1:
            i64 = ir.IntegerType.get_signless(64)
            launch.attributes[dialect.CLUSTER] = ir.IntegerAttr.get(i64, cluster)
            launch.attributes[dialect.OWN_PROGRAMS] = ir.UnitAttr.get()

    def _counts(self) -> tuple[Any, Any]:
        """Return the programs and the CTAs, numbers or indices that the host computes."""
        if isinstance(self._count, int):
            return self._count, min(self._count, self._ctas)
        launch = self._kernel.launch
        with ir.InsertionPoint(launch), launch.location:
            count = reduce(partial(build.binary, "muli"), self._values)
            return count, build.binary("minsi", count, build.index(self._ctas))

    def _clusters(self, ctas: Any) -> Any:
        """Build how many clusters so many CTAs make."""
        if isinstance(ctas, int):
            return build.index(ctas // self._cluster)
        if self._cluster == 1:
            return ctas
        return build.binary("divui", ctas, build.index(self._cluster))

    def _size(self, axis: int) -> Any:
        """Build a size of the grid of programs."""
        size = self._grid[axis]
        return build.index(size) if isinstance(size, int) else self._values[axis]

    def _index(self, number: Any) -> list[Any]:
        """Build the numbers along x, y and z, without sizes of 1, of the `number`-th program."""
        layout = self._order
        if layout == OrderBy(Row(*layout.dims)) and layout.rank == 1:
            return [number]
        bounds = [n if isinstance(n, int) else 0 for n in layout.dims]
        attribute = layout_attribute(layout)
        sizes = dict(zip(self._grid, self._values, strict=True))
        values = [sizes[symbol] for symbol in symbols_of(layout, attribute)]
        return dialect.inv(attribute, layout.rank, [number, *values], bounds)[::-1]

    def _rename(self, operations: list[Any], ids: list[Any], sizes: list[Any]) -> None:
        """Let what programs compute with be their own number, and the grid's size."""
        arguments = list(self._kernel.body.arguments)
        values = dict(zip(arguments[_IDS], ids, strict=True))
        values |= dict(zip(arguments[_SIZES], sizes, strict=True))
        for op in (inner for each in operations for inner in (each, *operations_in(each))):
            for k, operand in enumerate(op.operands):
                if operand in values:
                    op.operands[k] = values[operand]
            named = {"gpu.block_id": ids, "gpu.grid_dim": sizes}.get(op.name)
            if named is not None:
                axis = "xyz".index(str(op.attributes["dimension"]).rstrip(">").split()[-1])
                op.results[0].replace_all_uses_with(named[axis])
