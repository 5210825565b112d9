"""`transform_lego.split_k_loop`: several programs compute slices of K, which the last one adds up.

    gpu.launch blocks(%x, %y, %z) in (%c4, %c2, %c1) {
      %sum = scf.for %i = 0 to 64 iter_args(%c = %zero) { ... "lego.dot"(%a, %b, %c) ... }
      "lego.store"(%sum, %c, %y, %x)
    }

becomes, with `split_k = 4`,

    %sums = gpu.alloc() {lego.zeroed} : memref<...xf32>
    %arrivals = gpu.alloc() {lego.zeroed} : memref<8xi32>
    gpu.launch blocks(%x, %y, %z) in (%c4, %c2, %c4) {
      %part = scf.for %j = 0 to 16 iter_args(%c = %zero) { %i = %z * 16 + %j  ... }
      "lego.store"(%part, %sums, %y, %x) {kind = "add"}
      %before = "lego.atomic"(%one, %arrivals, %y, %x) {kind = "add", ordered}
      scf.if %before == 3 {
        %sum = "lego.load"(%sums, %y, %x)
        "lego.store"(%zero, %sums, %y, %x)
        "lego.store"(%sum, %c, %y, %x)
        "lego.atomic"(0, %arrivals, %y, %x) {kind = "exchange"}
      }
    }

Slices of iterations that `split_k` does not divide differ by one. The first ones are longer:

    %first = %z * 4 + min(%z, 2)
    %part = scf.for %j = 0 to 4 + min(max(2 - %z, 0), 1)          of 18 iterations, split_k = 4

No program waits for another, so that they may run in any order, also as those of persistent CTAs.
In memory a tile lies as threads hold it, 16 bytes of each beside one another. Both workspaces hold
zeros again when the kernel ends.

Sums are added in the order in which programs arrive, so the last bits of floats may differ from
launch to launch. With `in_order = 1` each program stores its slice in a place of its own,

      "lego.store"(%part, %sums, %z, %y, %x)
      ...
        %sum = scf.for %s = 0 to 4 iter_args(%t = %zero) { %t + "lego.load"(%sums, %s, %y, %x) }

and the last one to arrive adds up all, always in their order, and loads several at a time. One
multiprocessor then reads what otherwise all add in the L2 cache: the more slices, the longer.

Source: PTX ISA 8.5 (causality order).
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import size_symbol
from lego_mlir.index import Int
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import body_of, operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.structure import set_size
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.accumulating import (
    accumulates,
    iterations_of,
    loop_like,
    move_body,
)
from lego_mlir.mlir.tile_steps.dots.slice_workspaces import SliceWorkspaces
from lego_mlir.mlir.tile_steps.kernels import kernels_of, operations_of

_LOOP, _BRANCH = "scf.for", "scf.if"
_Z = 2
"""Which size of a grid counts the slices."""

_ELEMENTS = ("f32", "i32")
"""Element types of accumulators, of 4 bytes each."""

_EFFECTS = (dialect.STORE, dialect.ATOMIC, tiles.SCATTER, pipelines.MAKE_RING)


@transform("split_k_loop")
def split_k_loop(step: TransformStep) -> list[list[Any]]:
    """Divide the loop of dots of kernels among several programs; `split_k = 1` changes nothing."""
    parts = step.number("split_k", 1)
    if parts < 1:
        raise step.misuse(f"split_k is {parts}", hint=step.option("split_k", 1))
    for kernel in kernels_of(step) if parts > 1 else ():
        _SplitK(step, kernel, parts, in_order=bool(step.number("in_order", 1))).build()
    return []


class _SplitK:
    """The rewrite of one kernel."""

    def __init__(
        self, step: TransformStep, kernel: TileKernel, parts: int, *, in_order: bool
    ) -> None:
        self._step = step
        self._kernel = kernel
        self._parts = parts
        self._in_order = in_order
        self._values: dict[str, Any] = {}
        self._grid = self._find_grid()
        self._loop = self._find_loop()
        trips = iterations_of(self._loop)
        if trips is None or trips < parts:
            shown = "an unknown number of" if trips is None else str(trips)
            raise step.error(
                f"the loop has {shown} iterations, which are no {parts} slices",
                self._loop,
                hint=step.option("split_k", trips or 1),
            )
        self._trips, self._longer = divmod(trips, parts)

    def _find_grid(self) -> tuple[Int, Int]:
        """Return the rows and columns of programs; symbols are what only the launch knows.

        Raises:
            LegoError: there are several along z, or clusters.
        """
        values = launch_sizes(self._kernel.launch)[:3]
        sizes = [constant_size(value) for value in values]
        if sizes[_Z] != 1 or self._kernel.cluster > 1:
            shown = " x ".join("?" if n is None else str(n) for n in sizes)
            raise self._step.error(
                f"the grid is {shown}, and the programs that share a tile are along z",
                self._kernel.launch,
                hint="launch a grid along x and y, without clusters",
            )
        found: list[Int] = []
        for axis, n, value in zip("xy", sizes, values, strict=False):
            found.append(size_symbol(f"grid_{axis}") if n is None else n)
            self._values[f"grid_{axis}"] = value
        x, y = found
        return y, x

    def _find_loop(self) -> Any:
        """Return the kernel's loop of dots.

        Raises:
            LegoError: there is none, or several, or the programs would do before it what one does.
        """
        listed = operations_of(self._kernel.body)
        loops = [op for op in listed if op.name == _LOOP and accumulates(op, _ELEMENTS)]
        if len(loops) != 1:
            raise self._step.error(
                f"the kernel's body has {len(loops)} loops whose dots only add to what they carry "
                "in f32 or i32",
                self._kernel.launch,
                hint="one loop is divided; split_k_loop comes before persistent and pipeline_loop",
            )
        before = listed[: listed.index(loops[0])]
        for op in (inner for each in before for inner in (each, *operations_in(each))):
            if op.name in _EFFECTS:
                raise self._step.error(
                    f"'{op.name}' in front of the loop would be done for every slice",
                    op,
                    hint="put it behind the loop",
                )
        return loops[0]

    # The rewrite.
    def build(self) -> None:
        """Rewrite the kernel."""
        kernel, loop, parts = self._kernel, self._loop, self._parts
        x, y, z = list(kernel.body.arguments)[:3]
        listed = operations_of(kernel.body)
        *behind, _ = listed[listed.index(loop) + 1 :]
        with ir.InsertionPoint(kernel.launch), loop.location:
            workspaces = SliceWorkspaces(
                list(loop.results), parts, self._grid, self._values, in_order=self._in_order
            )
        with ir.InsertionPoint(loop), loop.location:
            workspaces.put(list(self._slice(z).results), [z, y, x])
            before = workspaces.arrive([y, x])
            is_last = build.compare("eq", before, build.constant(build.i32(), parts - 1))
            branch = ir.Operation.create(_BRANCH, operands=[is_last], regions=2)
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                totals = workspaces.take([y, x])
                end = ir.Operation.create("scf.yield")
        for old, new in zip(loop.results, totals, strict=True):
            old.replace_all_uses_with(new)
        for op in behind:
            op.move_before(end)
        self._step.erase(loop)
        set_size(kernel.launch, _Z, parts)
        kernel.launch.attributes[dialect.REASSOCIATED] = ir.UnitAttr.get()

    def _slice(self, number: Any) -> Any:
        """Build the loop over one slice."""
        loop = self._loop
        low, _, stride, *_ = list(loop.operands)
        count, longer = build.index(self._trips), build.index(self._longer)
        if self._longer:
            ahead = build.binary("maxsi", build.binary("subi", longer, number), build.index(0))
            count = build.binary("addi", count, build.binary("minsi", ahead, build.index(1)))
        made, (k, *carried) = loop_like(loop, [build.index(0), count, build.index(1)])
        with ir.InsertionPoint(body_of(made)):
            first = build.binary("muli", number, build.index(self._trips))
            if self._longer:
                first = build.binary("addi", first, build.binary("minsi", number, longer))
            at = build.binary("addi", first, k)
            at = build.binary("addi", low, build.binary("muli", at, stride))
        move_body(loop, made, [at, *carried])
        return made
