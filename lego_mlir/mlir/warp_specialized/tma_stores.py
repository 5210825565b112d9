"""Tiles of sums from fragments to global memory: by stmatrix into shared memory, and on by TMA.

A warpgroup stores its part of the tile in chunks of 64 rows, each with columns enough for a row of
the swizzle. Per chunk, and `BUFFERS` of them in turn:

    the elected thread waits until the buffer's last copy has been read;  barrier of the warpgroup
    all store their fragments;  fence.proxy.async;                        barrier of the warpgroup
    the elected thread has TMA copy the chunk, which goes on by itself

The layout of a chunk in shared memory is what the payload's store says by `shared`.

Source: PTX ISA 9.7.9.25 (cp.async.bulk.tensor), 9.7.13.14 (fence.proxy.async).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.algebra.multibuffer import multibuffered
from lego_mlir.algebra.subdivide import subdivide
from lego_mlir.analysis.copy_plan import CopiedTile, plan_copy
from lego_mlir.hardware.limits import WARP_THREADS, WARPGROUP_WARPS, WGMMA_ROWS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.fragments.thread_fragment import Held, Share
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.lowering.buffers import alignment_of
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles.accesses import Tile, alloc, apply, tile_of
from lego_mlir.mlir.tiles.pointers import beyond, element_bytes, i32_constant, pointer
from lego_mlir.mlir.tiles.tensor_maps import Corners, Mapped, TensorMaps
from lego_mlir.mlir.tiles.thread_copies import ThreadCopies

BUFFERS = 2
"""Chunks of a warpgroup that are under way at once."""

_ACCESS = 16
"""Bytes of a thread's widest access."""

_FIRST_BARRIER = 1
"""Of the named barriers, one a warpgroup; 0 is the block's."""


class _Buffer(NamedTuple):
    """Shared memory for a chunk of a warpgroup.

    Attributes:
        tile: the memory.
        start: its address.
        write: makes a thread's stores to it.
    """

    tile: Tile
    start: Any
    write: Callable[[Held], None]


@dataclass(slots=True)
class _Room:
    """Shared memory for the chunks of a layout.

    Attributes:
        layout: of all warpgroups' buffers.
        memory: that they are in.
        size: of a buffer, in elements.
        share: a thread's share of a chunk.
        stores: how many go through it.
        told: what they have in common.
    """

    layout: Layout
    memory: Any
    size: int
    share: Share
    stores: int = 0
    told: _Told | None = None


class _Told(NamedTuple):
    """What a thread has to know to store chunks.

    Attributes:
        buffers: its warpgroup's own, which chunks go through in turn.
        elected: whether it is the one for copies.
    """

    buffers: list[_Buffer]
    elected: Any


class ResultStores:
    """The stores of a kernel's tiles of sums.

    Args:
        step: for errors.
        launch: the kernel.
        thread: that runs, its warp the one in its warpgroup.
        group: the thread's warpgroup.
        groups: of warps that share a tile.
    """

    def __init__(
        self, step: TransformStep, launch: Any, thread: Thread, group: Any, groups: int
    ) -> None:
        self._step = step
        self._thread = thread
        self._group = group
        self._groups = groups
        self._body = launch.regions[0].blocks[0]
        self._maps = TensorMaps(step, launch)
        self._rooms: dict[Layout, _Room] = {}

    def prepare(self, op: Any) -> None:
        """Make room for the chunks of a store, which those of the same layout have in common.

        Raises:
            LegoError: the chunk that the store names does not divide its tile.
        """
        chunk = self._chunk(op)
        tile = tile_of(op, self._step.pass_context)
        rows, columns = tile.shape
        if len(chunk.dims) != 2 or chunk.dims[0] != WGMMA_ROWS or columns % int(chunk.dims[1]):
            raise self._step.error(
                f"the result's tile is {list(tile.shape)}, and a chunk of it in shared memory "
                f"{list(chunk.dims)}",
                op,
                hint=f"{WGMMA_ROWS} rows, and columns that divide the tile's: one chunk's layout",
            )
        if rows % (self._groups * WGMMA_ROWS):
            raise self._step.error(
                f"{rows} rows are not those of {self._groups} warpgroups of {WGMMA_ROWS}", op
            )
        if chunk not in self._rooms:
            stages = multibuffered(chunk, self._groups * BUFFERS)
            shape = WGMMA_ROWS, int(chunk.dims[1])
            share = Share(self._thread, shape, OrderBy(Row(WARPGROUP_WARPS, 1)), has_stmatrix=True)
            with ir.InsertionPoint.at_block_begin(self._body), op.location:
                memory = alloc(stages, tile.element)
                self._rooms[chunk] = _Room(stages, memory, prod(shape), share)
        self._rooms[chunk].stores += 1

    def _told(self, op: Any, room: _Room) -> _Told:
        """What is to know of a room: for the one store, or for all together."""
        if room.stores == 1:
            return self._tell(op, room)
        if room.told is None:
            last = self._thread.thread.owner.operation  # of those that tell who the thread is
            with ir.InsertionPoint.after(last), op.location:
                room.told = self._tell(op, room)
        return room.told

    def _tell(self, op: Any, room: _Room) -> _Told:
        numbers = OrderBy(Row(self._groups, BUFFERS))
        stages = [apply(numbers, [self._group, turn]) for turn in range(BUFFERS)]
        tiles = [Tile(op, room.layout, room.memory, (stage, None, None)) for stage in stages]
        # A group's buffers lie one after another: one address is held, and distances from it.
        distances = [turn * room.size for turn in range(BUFFERS)]
        writes = room.share.writers(tiles[0], distances)
        if writes is None:
            writes = [partial(room.share.store, tile=tile) for tile in tiles]
        start = pointer(room.memory, room.layout, [stages[0], 0, 0])
        size = element_bytes(tiles[0].element)
        starts = [beyond(start, n * size) for n in distances]
        buffers = [_Buffer(*parts) for parts in zip(tiles, starts, writes, strict=True)]
        return _Told(buffers, self._is_elected())

    def store(self, op: Any, held: Held) -> None:
        """The operations, where a store stands: of all chunks of its tile, or of the one due."""
        tile = tile_of(op, self._step.pass_context)
        chunk = self._chunk(op)
        room = self._rooms[chunk]
        width = int(chunk.dims[1])
        blocks, across = tile.shape[0] // self._groups // WGMMA_ROWS, tile.shape[1] // width
        rows, columns = room.share.counts
        down, right = tile.whole
        split = subdivide(
            tile.layout, {down: (self._groups, blocks, WGMMA_ROWS), right: (across, width)}
        )
        buffers, elected = self._told(op, room)
        corners = Corners()
        for number in self._due(op, blocks * across):
            block, column = divmod(number, across)
            buffer = buffers[number % BUFFERS]
            with self._only(elected):
                others = _copies_since(number, blocks * across)
                nvvm.wait_for_stores_read(others)
            self._barrier()
            parts = {
                (i, j): held.at(block * rows + i, column * columns + j)
                for i, j in room.share.places()
            }
            buffer.write(Held(parts, (True, True)))
            # Passes merge blocks that differ in their values alone, here the chunks that a step
            # chooses among: all of a chunk's registers would be copied first, and these are scarce.
            nvvm.fence_async_shared({dialect.STORED_CHUNK: _number(number)})
            self._barrier()
            index = [0 if i is None else i for i in tile.index]
            index[down], index[right] = (self._group, block, None), (column, None)
            piece = replace(tile, layout=split.layout, index=split.index(*index))
            mapped = self._map(piece, buffer.tile)
            corner = corners(piece, mapped)
            with self._only(elected):
                with nullcontext() if tile.rows is None else self._only(self._is_whole(piece)):
                    at = mapped.shape.boxes[0].at
                    where = [p.plus(n) for p, n in zip(corner, at, strict=True)]
                    nvvm.store_tile(mapped.pointer(), buffer.start, where)
                # Of each chunk one, be it empty: they are counted.
                nvvm.commit_stores()
            if tile.rows is not None:
                self._store_rows(piece, buffer.tile)

    def finish(self) -> None:
        """Wait until nothing is read from shared memory any more; before the block ends."""
        with self._only(self._is_elected()):
            nvvm.wait_for_stores_read(0)

    def _chunk(self, op: Any) -> Layout:
        return self._step.pass_context.layouts(op.attributes[dialect.SHARED], op.location)

    def _due(self, op: Any, count: int) -> range:
        """The numbers of the chunks that a store is to store."""
        if dialect.CHUNK not in op.attributes:
            return range(count)
        number = ir.IntegerAttr(op.attributes[dialect.CHUNK]).value
        return range(number, number + 1)

    def _map(self, piece: Tile, buffer: Tile) -> Mapped:
        """The tensor maps of a chunk, which one copy takes."""
        mapped = self._maps(piece, buffer)
        if (count := len(mapped.shape.boxes)) > 1:
            raise self._step.error(
                f"a chunk of {list(piece.shape)} takes {count} copies by TMA, not one",
                piece.op,
                hint="no more columns than a row of its swizzle has: 128 bytes",
            )
        return mapped

    def _is_whole(self, piece: Tile) -> Any:
        """Whether all rows of a chunk are among those that the store writes."""
        down, _ = piece.whole
        ends = []
        for row in (0, WGMMA_ROWS - 1):
            index = [0 if i is None else i for i in piece.index]
            index[down] = row
            ends.append(piece.row(index))
        return piece.is_within(*ends)

    def _store_rows(self, piece: Tile, buffer: Tile) -> None:
        """Where a chunk is not written whole, write its rows that are: by the threads."""
        true = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
        size = element_bytes(piece.element)
        source, target = (
            CopiedTile(t.layout, t.whole, alignment_of(t.buffer, scope_of(piece.op)))
            for t in (buffer, piece)
        )
        widths = (_ACCESS // size, 1)
        plan = plan_copy(
            source, target, size, WARPGROUP_WARPS * WARP_THREADS, lead=target, widths=widths
        )
        warp, _ = self._thread.warp
        with self._only(arith.XOrIOp(self._is_whole(piece), true).result):
            thread = apply(OrderBy(Row(WARPGROUP_WARPS, WARP_THREADS)), [warp, self._thread.lane])
            ThreadCopies(buffer, piece, plan, thread).through_registers()

    def _is_elected(self) -> Any:
        """Whether this is the warpgroup's thread for copies: always the same one."""
        first = arith.ConstantOp(ir.IndexType.get(), 0).result
        warp, _ = self._thread.warp
        number = apply(OrderBy(Row(WARPGROUP_WARPS, WARP_THREADS)), [warp, self._thread.lane])
        return arith.CmpIOp(arith.CmpIPredicate.eq, number, first).result

    @contextmanager
    def _only(self, condition: Any) -> Iterator[None]:
        """What is made inside is done where a condition holds."""
        guard = scf.IfOp(condition)
        with ir.InsertionPoint(guard.then_block):
            yield
            scf.YieldOp([])

    def _barrier(self) -> None:
        """Wait for the warpgroup."""
        i32 = ir.IntegerType.get_signless(32)
        number = arith.IndexCastOp(i32, self._group).result
        which = arith.AddIOp(number, i32_constant(_FIRST_BARRIER)).result
        nvvm.barrier(which, i32_constant(WARPGROUP_WARPS * WARP_THREADS))


def is_stored_by_tma(op: Any) -> bool:
    """Whether a store says where its chunks lie in shared memory."""
    return bool(op.name == dialect.STORE and dialect.SHARED in op.attributes)


def _copies_since(number: int, count: int) -> int:
    """How many chunks have left since the one that was in a chunk's buffer before it.

    Args:
        number: of the chunk in its tile.
        count: chunks of a tile; the tile before had as many.
    """
    before = max(k for k in range(number - count, number) if (k % count - number) % BUFFERS == 0)
    return number - before - 1


def _number(n: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)
