"""`transform_lego.stage_in_shared`: copy tiles through shared memory.

    scf.for %k = ... {
      %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>, shared = #tile}
      use(%x)
    }

becomes, with `buffers = 4`,

    %s = "lego.alloc"() {layout = #tiles}                      // #tile, four times
    scf.for %k = ... {
      %stage = arith.remui %k, %c4
      %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}
      "lego.store"(%x, %s, %stage) {layout = #tiles, slice = array<i64: 1, 2>}
      gpu.barrier
      %y = "lego.load"(%s, %stage) {layout = #tiles, slice = array<i64: 1, 2>}
      use(%y)
    }

and a store of a tile becomes a store to shared memory, a barrier, a load from there and the store.
Loads of one loop share their barrier. With one buffer there is a second barrier at the end of the
loop's body. With more, iteration k writes what iteration k - buffers read, and the barrier of an
iteration between orders them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.accesses import Tile, tile_of
from lego_mlir.mlir.tiles.kernels import FUNCTION, LAUNCH, barrier, iteration, loop_around

Staged = tuple[Tile, Layout]
"""The access of a tile, and its shared-memory layout."""


@transform("stage_in_shared")
def stage_in_shared(step: TransformStep) -> list[list[Any]]:
    """Stage the loads and stores of tiles that have the attribute `shared`."""
    buffers = step.number("buffers", 1)
    if buffers < 1:
        raise step.misuse(
            f"buffers is {buffers}, but a staged tile needs one",
            hint=f"{step.option('buffers', 1)}, or more",
        )
    staged = [_staged(step, op) for op in step.payload() if dialect.SHARED in op.attributes]
    if not staged:
        raise step.misuse(
            f"none of the {len(step.payload())} operations has the attribute '{dialect.SHARED}'",
            hint=f"a lego.load or lego.store of a tile has {{{dialect.SHARED} = #layout}}",
        )
    for group in _groups([s for s in staged if s[0].is_load]):
        _stage_loads(group, buffers)
    for tile, layout in staged:
        if not tile.is_load:
            _stage_store(tile, layout)
        del tile.op.attributes[dialect.SHARED]
    return []


def _staged(step: TransformStep, op: Any) -> Staged:
    """Return the tile and the shared-memory layout of an access.

    Raises:
        LegoError: it accesses no tile, the layout has another shape, or a condition guards it.
    """
    if op.name not in (dialect.LOAD, dialect.STORE):
        raise step.error(f"expected a lego.load or lego.store, found '{op.name}'", op)
    tile = tile_of(op, step.pass_context)
    layout = step.pass_context.layouts(op.attributes[dialect.SHARED], op.location)
    if not tile.whole:
        raise step.error(
            f"'{op.name}' with '{dialect.SHARED}' accesses a single element",
            op,
            hint="name the dimensions of the tile: slice = array<i64: 2, 3>",
        )
    if layout.dims != tile.shape or layout.is_partial:
        sizes, found = ("x".join(map(str, dims)) for dims in (tile.shape, layout.dims))
        raise step.error(
            f"the tile is {sizes}, its shared-memory layout '{layout}' is {found}"
            + (" with partial tiles" if layout.is_partial else ""),
            op,
            hint="both have the dimensions of the slice, in the same order",
        )
    if tile.is_shared:
        raise step.error("this tile is in shared memory already", op)
    if op.parent.name not in ("scf.for", LAUNCH, FUNCTION):
        raise step.error(
            f"all threads of a CTA copy this tile together, but it is inside of '{op.parent.name}'",
            op,
            hint="put it into the kernel's body or a loop of it",
        )
    return tile, layout


def _groups(loads: Sequence[Staged]) -> Iterator[list[Staged]]:
    """Group loads of a block that are independent of one another, and so share a barrier."""
    group: list[Staged] = []
    used = -1
    for load in loads:
        op = load[0].op
        block = _operations(op.block)
        position, first = block.index(op), _first_use(op, block)
        if group and (group[0][0].op.block != op.block or position > used):
            yield group
            group = []
        used = min(used, first) if group else first
        group.append(load)
    if group:
        yield group


def _first_use(op: Any, block: Sequence[Any]) -> int:
    """Return the position in `block` of the first operation that contains a use of `op`."""
    positions = [len(block)]
    for use in op.results[0].uses:
        user = use.owner.operation
        while user.block != op.block:
            user = user.parent.operation
        positions.append(block.index(user))
    return min(positions)


def _stage_loads(group: Sequence[Staged], buffers: int) -> None:
    last = group[-1][0].op
    loop = loop_around(last)
    stages = buffers if loop is not None else 1
    moved = [_Copy(tile, layout, stages) for tile, layout in group]
    for copy in moved:
        with ir.InsertionPoint(_next(copy.tile.op)), copy.tile.op.location:
            copy.write(loop)
    after = moved[-1].end
    with ir.InsertionPoint(after), last.location:
        barrier()
    for copy in moved:
        with ir.InsertionPoint(after), copy.tile.op.location:
            copy.read()
    if loop is not None:
        if stages == 1:
            _barrier_before(_terminator(loop))
        _barrier_after_nested_loop(loop)


class _Copy:
    """The shared-memory copy of one load."""

    def __init__(self, tile: Tile, layout: Layout, stages: int) -> None:
        self.tile = tile
        self.stages = stages
        self.layout = layout if stages == 1 else multibuffered(layout, stages)
        self.buffer = _alloc(self.layout, tile)
        self.index: list[Any] = [None] * len(tile.whole)
        self.end: Any = None

    def write(self, loop: Any) -> None:
        """Store the loaded tile, at the insertion point, to the stage of the loop's iteration."""
        if self.stages > 1:
            stage = arith.RemUIOp(iteration(loop), accesses.constant(self.stages)).result
            self.index.insert(0, stage)
        self.uses = [(use.owner, use.operand_number) for use in self.tile.value.uses]
        self.end = _next(accesses.store(self.tile.value, self.layout, self.buffer, self.index))

    def read(self) -> None:
        """Load the tile from shared memory, at the insertion point, for the load's users."""
        value = accesses.load(self.layout, self.buffer, self.index)
        for owner, number in self.uses:
            owner.operation.operands[number] = value


def _stage_store(tile: Tile, layout: Layout) -> None:
    buffer, index = _alloc(layout, tile), [None] * len(tile.whole)
    with ir.InsertionPoint(tile.op), tile.op.location:
        accesses.store(tile.value, layout, buffer, index)
        barrier()
        tile.op.operands[0] = accesses.load(layout, buffer, index)
    loop = loop_around(tile.op)
    if loop is not None:
        _barrier_before(_terminator(loop))


def _alloc(layout: Layout, tile: Tile) -> Any:
    """Allocate shared memory at the beginning of the kernel."""
    with ir.InsertionPoint.at_block_begin(scope_of(tile.op).body), tile.op.location:
        return accesses.alloc(layout, tile.element)


def _barrier_after_nested_loop(loop: Any) -> None:
    """Put a barrier after a nested loop, which starts again with the stages it ends with."""
    if loop_around(loop) is not None:
        _barrier_before(_next(loop))


def _barrier_before(op: Any) -> None:
    block = _operations(op.block)
    position = block.index(op)
    if position and block[position - 1].name == "gpu.barrier":
        return
    with ir.InsertionPoint(op), op.location:
        barrier()


def _terminator(loop: Any) -> Any:
    return _operations(loop.regions[0].blocks[0])[-1]


def _next(op: Any) -> Any:
    """Return the operation after `op` in its block."""
    block = _operations(op.block)
    return block[block.index(op) + 1]


def _operations(block: Any) -> list[Any]:
    return [op.operation for op in block.operations]
