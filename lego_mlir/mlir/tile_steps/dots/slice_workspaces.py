"""The memory through which programs that compute slices of K add up a tile.

A tile lies there as threads hold it, 16 bytes of each beside one another, so that nobody needs the
positions of elements in the tile. Programs either add their slices to one tile, or each stores its
slice in a place of its own, and the last one to arrive adds up all of them in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.analysis.distributed import REPLICA, DistributedLayout
from lego_mlir.index import Int, Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import layout_attribute, symbols_of
from lego_mlir.mlir.tile_ir.types import element_of, layout_of, shape_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_steps.accumulating import add, build_loop, zeros

_ACCESS_ELEMENTS = 4
"""Elements of the widest access of a thread."""

_LOADED_REGISTERS = 128
"""Of a thread, that it loads at once: a load takes as long as many additions."""


class SliceWorkspaces:
    """The workspaces of a kernel, allocated in front of its launch.

    Args:
        tiles: the values that programs have slices of, in registers.
        parts: how many slices there are.
        grid: rows and columns of programs of a slice.
        sizes: the values of the grid's symbols, by name.
        in_order: whether slices are added in their order.
    """

    def __init__(
        self,
        tiles: list[Any],
        parts: int,
        grid: tuple[Int, Int],
        sizes: Mapping[str, Any],
        *,
        in_order: bool,
    ) -> None:
        self._tiles = tiles
        self._parts = parts
        self._grid = grid
        self._sizes = sizes
        self._in_order = in_order
        self._places = parts if in_order else 1  # for slices of a tile
        self._memory = [self._layout(tile) for tile in tiles]
        self._sums = [
            self._allocate(
                str(element_of(tile)), self._places * prod(shape_of(tile)), zeroed=not in_order
            )
            for tile in tiles
        ]
        self._arrivals = self._allocate("i32", 1, zeroed=True)
        self._programs = OrderBy(Row(*grid))

    def put(self, slices: list[Any], program: list[Any]) -> None:
        """Build what a program (slice, y, x) does with its slices of the tiles."""
        number, *place = program
        first, by = (number, None) if self._in_order else (build.index(0), "add")
        for part, layout, buffer in zip(slices, self._memory, self._sums, strict=True):
            at = self._at([first, *place], layout)
            dialect.store(part, buffer, at, _access(layout, 3), by=by)

    def arrive(self, place: list[Any]) -> Any:
        """Build the arrival of a program at (y, x); return how many came before, an i32.

        It orders what programs do before with what others do that arrive later.
        """
        one, ordered = build.constant(build.i32(), 1), {dialect.ORDERS: ir.UnitAttr.get()}
        return self._update("add", one, place, ordered)

    def take(self, place: list[Any]) -> list[Any]:
        """Build what the last program to arrive at (y, x) does; return the sums of the slices.

        Afterwards all that has to be zero for the next launch is so.
        """
        totals = self._added(place) if self._in_order else self._taken(place)
        self._update("exchange", build.constant(build.i32(), 0), place, {})
        return totals

    def _taken(self, place: list[Any]) -> list[Any]:
        """Build loads of the sums, and stores of zeros in their place."""
        totals = []
        for tile, buffer, layout in zip(self._tiles, self._sums, self._memory, strict=True):
            at, access = self._at([build.index(0), *place], layout), _access(layout, 3)
            totals.append(dialect.load(tile.type, buffer, at, access))
            dialect.store(zeros(tile.type), buffer, at, access)
        return totals

    def _added(self, place: list[Any]) -> list[Any]:
        """Build the sums of all slices, in their order; several are loaded at a time."""
        kinds = [tile.type for tile in self._tiles]
        held = sum(_registers(tile) for tile in self._tiles)
        most = max(1, _LOADED_REGISTERS // held)
        step = next(n for n in range(min(most, self._parts), 0, -1) if self._parts % n == 0)
        bounds = [build.index(n) for n in (0, self._parts, step)]
        made, (first, *totals) = build_loop(bounds, [zeros(kind) for kind in kinds])
        with ir.InsertionPoint(made.regions[0].blocks[0]):
            numbers = [build.binary("addi", first, build.index(k)) for k in range(step)]
            loaded = [
                [
                    dialect.load(
                        kind, buffer, self._at([number, *place], layout), _access(layout, 3)
                    )
                    for kind, buffer, layout in zip(kinds, self._sums, self._memory, strict=True)
                ]
                for number in numbers
            ]
            for parts in loaded:
                totals = [add(a, b) for a, b in zip(totals, parts, strict=True)]
            ir.Operation.create("scf.yield", operands=totals)
        return list(made.results)

    def _update(self, kind: str, value: Any, place: list[Any], attributes: dict[str, Any]) -> Any:
        """Build an update of the count of arrivals at (y, x); return it as it was before."""
        at, access = self._at(place, self._programs), _access(self._programs, 2)
        return dialect.atomic(kind, value, self._arrivals, at, access | attributes)

    def _layout(self, tile: Any) -> Layout:
        """Return where the slices of a tile of all programs lie: (place, y, x, *index)."""
        layout = layout_of(tile)
        assert layout is not None  # it is placed
        outer, shape = (self._places, *self._grid), shape_of(tile)
        sizes, order = _as_held(layout)
        before = len(outer)
        permuted = RegP([*outer, *sizes], [*range(before), *(before + k for k in order)])
        return OrderBy(permuted).GroupBy([*outer, *shape])

    def _at(self, index: list[Any], layout: Layout) -> list[Any]:
        """Return the index of an access that begins with some, and the sizes of its layout."""
        rest = [build.index(0) for _ in range(layout.rank - len(index))]
        sizes = symbols_of(layout, layout_attribute(layout))
        return [*index, *rest, *(self._sizes[symbol.name] for symbol in sizes)]

    def _allocate(self, element: str, each: int, *, zeroed: bool) -> Any:
        """Build a workspace of so many elements for each program of a slice."""
        known = each * prod(n for n in self._grid if isinstance(n, int))
        open_sizes = [self._sizes[n.name] for n in self._grid if isinstance(n, Sym)]
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
