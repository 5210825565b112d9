"""`transform_lego.split_k_loop`: several programs compute slices of K, which the last one adds up.

    gpu.launch blocks(%x, %y, %z) in (%c4, %c2, %c1) {
      %sum = scf.for %i = 0 to 64 iter_args(%c = %zero) { ... "lego.dot"(%a, %b, %c) ... }
      "lego.store"(%sum, %c, %y, %x)
    }

becomes, with `split_k = 4`,

    %sums = gpu.alloc() : memref<...xf32>
    %arrivals = gpu.alloc() {lego.zeroed} : memref<8xi32>
    gpu.launch blocks(%x, %y, %z) in (%c4, %c2, %c4) {
      %part = scf.for %j = 0 to 16 iter_args(%c = %zero) { %i = %z * 16 + %j  ... }
      "lego.store"(%part, %sums, %z, %y, %x)
      %before = "lego.atomic"(%one, %arrivals, %y, %x) {kind = "add", ordered}
      scf.if %before == 3 {
        %sum = scf.for %s = 0 to 4 iter_args(%t = %zero) { %t + "lego.load"(%sums, %s, %y, %x) }
        "lego.store"(%sum, %c, %y, %x)
        "lego.atomic"(0, %arrivals, %y, %x) {kind = "exchange"}
      }
    }

Slices of iterations that `split_k` does not divide differ by one. The first ones are longer:

    %first = %z * 4 + min(%z, 2)
    %part = scf.for %j = 0 to 4 + min(max(2 - %z, 0), 1)          of 18 iterations, split_k = 4

No program waits for another, so that they may run in any order, also as those of persistent CTAs:
the last one to arrive adds up the slices, always in their order, and loads several at a time. In
memory a slice lies as threads hold it, 16 bytes of each beside one another.

Source: PTX ISA 8.5 (causality order).
"""

from __future__ import annotations

from functools import partial, reduce
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row, size_symbol
from lego_mlir.analysis.distributed import REPLICA, DistributedLayout
from lego_mlir.index import Int, Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute, symbols_of
from lego_mlir.mlir.lowering.indices.index_reader import launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.tile_ir.kernels import TileKernel, constant_size
from lego_mlir.mlir.tile_ir.types import element_of, layout_of, shape_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.accumulating import (
    accumulates,
    add,
    iterations_of,
    loop_like,
    move_body,
    zeros,
)
from lego_mlir.mlir.tile_steps.kernels import body_of, kernels_of, operations_of, set_size

_LOOP, _BRANCH = "scf.for", "scf.if"
_Z = 2
"""Which size of a grid counts the slices."""

_ACCESS_ELEMENTS = 4
"""Elements of the widest access of a thread."""

_ELEMENTS = ("f32", "i32")
"""Element types of accumulators, of 4 bytes each."""

_LOADED_REGISTERS = 128
"""Of a thread, that it loads at once: a load takes as long as many additions."""

_EFFECTS = (dialect.STORE, dialect.ATOMIC, tiles.SCATTER, pipelines.MAKE_RING)


@transform("split_k_loop")
def split_k_loop(step: TransformStep) -> list[list[Any]]:
    """Divide the loop of dots of kernels among several programs; `split_k = 1` changes nothing."""
    parts = step.number("split_k", 1)
    if parts < 1:
        raise step.misuse(f"split_k is {parts}", hint=step.option("split_k", 1))
    for kernel in kernels_of(step) if parts > 1 else ():
        _SplitK(step, kernel, parts).build()
    return []


class _SplitK:
    """The rewrite of one kernel."""

    def __init__(self, step: TransformStep, kernel: TileKernel, parts: int) -> None:
        self._step = step
        self._kernel = kernel
        self._parts = parts
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
        memory = [self._slices(result) for result in loop.results]
        with ir.InsertionPoint(kernel.launch), loop.location:
            elements = [str(element_of(result)) for result in loop.results]
            sums = [
                self._allocate(element, self._parts * prod(shape_of(result)))
                for element, result in zip(elements, loop.results, strict=True)
            ]
            arrivals = self._allocate("i32", 1, zeroed=True)
        with ir.InsertionPoint(loop), loop.location:
            made = self._slice(z)
            for part, layout, buffer in zip(made.results, memory, sums, strict=True):
                at = self._at([z, y, x], layout)
                dialect.store(part, buffer, at, _access(layout, 3))
            programs = OrderBy(Row(*self._grid))
            i32, place = build.i32(), _access(programs, 2)
            at = self._at([y, x], programs)
            one, ordered = build.constant(i32, 1), {dialect.ORDERS: ir.UnitAttr.get()}
            before = dialect.atomic("add", one, arrivals, at, place | ordered)
            is_last = build.compare("eq", before, build.constant(i32, parts - 1))
            branch = ir.Operation.create(_BRANCH, operands=[is_last], regions=2)
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                totals = self._add_up(memory, sums, [y, x])
                zero = build.constant(i32, 0)
                dialect.atomic("exchange", zero, arrivals, at, place)
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

    def _add_up(self, memory: list[Layout], sums: list[Any], place: list[Any]) -> list[Any]:
        """Build the sums of all slices, in their order; several are loaded at a time."""
        kinds = [result.type for result in self._loop.results]
        held = sum(_registers(result) for result in self._loop.results)
        most = max(1, _LOADED_REGISTERS // held)
        step = next(n for n in range(min(most, self._parts), 0, -1) if self._parts % n == 0)
        bounds = [build.index(n) for n in (0, self._parts, step)]
        made, (first, *totals) = loop_like(self._loop, bounds, [zeros(kind) for kind in kinds])
        with ir.InsertionPoint(body_of(made)):
            numbers = [build.binary("addi", first, build.index(k)) for k in range(step)]
            loaded = [
                [
                    dialect.load(
                        kind, buffer, self._at([number, *place], layout), _access(layout, 3)
                    )
                    for kind, buffer, layout in zip(kinds, sums, memory, strict=True)
                ]
                for number in numbers
            ]
            for parts in loaded:
                pairs = zip(totals, parts, strict=True)
                totals = [add(a, b) for a, b in pairs]
            ir.Operation.create("scf.yield", operands=totals)
        return list(made.results)

    def _slices(self, tile: Any) -> Layout:
        """Return where the slices of a tile of all programs lie: (slice, y, x, *index)."""
        layout = layout_of(tile)
        assert layout is not None  # it is placed
        outer, shape = (self._parts, *self._grid), shape_of(tile)
        sizes, order = _as_held(layout)
        before = len(outer)
        permuted = RegP([*outer, *sizes], [*range(before), *(before + k for k in order)])
        return OrderBy(permuted).GroupBy([*outer, *shape])

    def _at(self, index: list[Any], layout: Layout) -> list[Any]:
        """Return the index of an access that begins with some, and the sizes of its layout."""
        rest = [build.index(0) for _ in range(layout.rank - len(index))]
        sizes = symbols_of(layout, layout_attribute(layout))
        return [*index, *rest, *(self._values[symbol.name] for symbol in sizes)]

    def _allocate(self, element: str, each: int, *, zeroed: bool = False) -> Any:
        """Build a workspace of so many elements for each program of a slice."""
        known = each * prod(n for n in self._grid if isinstance(n, int))
        open_sizes = [self._values[n.name] for n in self._grid if isinstance(n, Sym)]
        multiply = partial(build.binary, "muli")
        sizes = [reduce(multiply, open_sizes, build.index(known))] if open_sizes else []
        shape = [ir.ShapedType.get_dynamic_size() if sizes else known]
        kind = ir.MemRefType.get(shape, ir.Type.parse(element))
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(sizes), 0])}
        if zeroed:
            attributes[dialect.ZEROED] = ir.UnitAttr.get()
        return ir.Operation.create(
            "gpu.alloc", results=[kind], operands=sizes, attributes=attributes
        ).result


def _as_held(layout: DistributedLayout) -> tuple[list[int], list[int]]:
    """Return a tile's sizes divided as threads hold it, and the order of these sizes in memory.

    Warps come first, then registers but for the last four elements, then lanes, and these.
    """
    ctas, warps, lanes, registers = layout.places
    near, width = len(registers), 1
    while near and width * registers[near - 1].size <= _ACCESS_ELEMENTS:
        near -= 1
        width *= registers[near].size
    listed = [*ctas, *warps, *registers[:near], *lanes, *registers[near:]]
    factors = [f for f in listed if f.dim != REPLICA]
    by_dim = sorted(range(len(factors)), key=lambda k: (factors[k].dim, -factors[k].stride))
    return [factors[k].size for k in by_dim], [by_dim.index(k) for k in range(len(factors))]


def _registers(tile: Any) -> int:
    """Return how many elements of a tile a thread holds."""
    layout = layout_of(tile)
    assert layout is not None  # it is placed
    return layout.registers


def _access(layout: Layout, outer: int) -> dict[str, Any]:
    """Return the attributes of an access of a tile, or an element, behind `outer` dimensions."""
    return dialect.access_attributes(layout_attribute(layout), range(outer, layout.rank))
