"""Stores of accumulator tiles: by stmatrix to shared memory, then by TMA to global memory.

A warpgroup stores its rows of the tile in chunks of 64 rows and as many columns as a row of the
swizzle has. For each chunk, through `BUFFERS` buffers in turn:

    the elected thread waits until the buffer's last copy has been read;  barrier of the warpgroup
    all threads store their fragments;  fence.proxy.async;                barrier of the warpgroup
    the elected thread starts an asynchronous TMA store of the chunk

The attribute `shared` of the payload's store is a chunk's shared-memory layout. With the attribute
`by_threads` all threads copy the chunk to global memory instead, from one buffer: TMA does not take
tensors whose rows begin at other bytes than multiples of 16. A warp copies rows that it has itself
written, one behind the other, so that the L1 cache joins the parts of sectors that it stores.

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
from lego_mlir.mlir.fragments.thread_fragment import FragmentValue, ThreadFragment
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.lowering.buffers import alignment_of
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles.accesses import Tile, alloc, apply, tile_of
from lego_mlir.mlir.tiles.pointers import beyond, element_bytes, i32_constant, pointer
from lego_mlir.mlir.tiles.tensor_maps import TensorMaps, TileCoordinates, TileTensorMaps
from lego_mlir.mlir.tiles.thread_copies import ThreadCopies

BUFFERS = 2
"""Chunks of a warpgroup that are stored concurrently."""

_ACCESS = 16
"""Bytes of the widest access of a thread."""

_FIRST_BARRIER = 1
"""The first of the named barriers, one for each warpgroup; 0 is the CTA's."""


class _Buffer(NamedTuple):
    """Shared memory for a chunk of a warpgroup.

    Attributes:
        tile: the memory.
        start: its address.
        write: a function that makes a thread's stores to it.
    """

    tile: Tile
    start: Any
    write: Callable[[FragmentValue], None]


@dataclass(slots=True)
class _ChunkBuffers:
    """The buffers for chunks of one shared-memory layout.

    Attributes:
        layout: the layout of all warpgroups' buffers.
        memory: their shared memory.
        size: the elements of a buffer.
        thread_fragment: a thread's fragment of a chunk.
        stores: the number of stores that use them.
        state: the values that several stores share.
    """

    layout: Layout
    memory: Any
    size: int
    thread_fragment: ThreadFragment
    stores: int = 0
    state: _StoreState | None = None


class _StoreState(NamedTuple):
    """The values that a thread needs to store chunks.

    Attributes:
        buffers: its warpgroup's buffers, which chunks use in turn.
        elected: whether it is the thread that starts TMA stores.
    """

    buffers: list[_Buffer]
    elected: Any


class TmaStores:
    """The TMA stores of a kernel's accumulator tiles.

    Args:
        step: the transform step, for errors.
        launch: the kernel.
        thread: the thread's position in its warpgroup.
        group: the thread's warpgroup.
        groups: the warpgroups, which divide a tile's rows.
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
        self._chunk_buffers: dict[Layout, _ChunkBuffers] = {}
        self._has_tma = False

    def prepare(self, op: Any) -> None:
        """Allocate buffers for the chunks of a store, unless they exist for this layout.

        Raises:
            LegoError: chunks of this layout do not divide the tile.
        """
        chunk = self._chunk(op)
        tile = tile_of(op, self._step.pass_context)
        rows, columns = tile.shape
        if len(chunk.dims) != 2 or chunk.dims[0] != WGMMA_ROWS or columns % int(chunk.dims[1]):
            raise self._step.error(
                f"the output tile is {list(tile.shape)}, and a chunk of it in shared memory "
                f"{list(chunk.dims)}",
                op,
                hint=f"write a layout in 'shared' with {WGMMA_ROWS} rows, and columns that divide "
                "the tile's",
            )
        if rows % (self._groups * WGMMA_ROWS):
            raise self._step.error(
                f"{rows} rows are no multiple of {self._groups} warpgroups' {WGMMA_ROWS} rows each",
                op,
            )
        if chunk not in self._chunk_buffers:
            stages = multibuffered(chunk, self._groups * _buffer_count(op))
            shape = WGMMA_ROWS, int(chunk.dims[1])
            thread_fragment = ThreadFragment(
                self._thread, shape, OrderBy(Row(WARPGROUP_WARPS, 1)), has_stmatrix=True
            )
            with ir.InsertionPoint.at_block_begin(self._body), op.location:
                memory = alloc(stages, tile.element)
                self._chunk_buffers[chunk] = _ChunkBuffers(
                    stages, memory, prod(shape), thread_fragment
                )
        self._chunk_buffers[chunk].stores += 1
        self._has_tma = self._has_tma or not _is_by_threads(op)

    def _state(self, op: Any, chunk_buffers: _ChunkBuffers) -> _StoreState:
        """Return the values for a store, which several stores of one layout share."""
        if chunk_buffers.stores == 1:
            return self._make_state(op, chunk_buffers)
        if chunk_buffers.state is None:
            last = (
                self._thread.thread.owner.operation
            )  # the last operation that computes the position
            with ir.InsertionPoint.after(last), op.location:
                chunk_buffers.state = self._make_state(op, chunk_buffers)
        return chunk_buffers.state

    def _make_state(self, op: Any, chunk_buffers: _ChunkBuffers) -> _StoreState:
        count = _buffer_count(op)
        numbers = OrderBy(Row(self._groups, count))
        stages = [apply(numbers, [self._group, k]) for k in range(count)]
        tiles = [
            Tile(op, chunk_buffers.layout, chunk_buffers.memory, (stage, None, None))
            for stage in stages
        ]
        # A warpgroup's buffers are consecutive, so one address and constants are enough.
        distances = [k * chunk_buffers.size for k in range(count)]
        writes = chunk_buffers.thread_fragment.writers(tiles[0], distances)
        if writes is None:
            writes = [partial(chunk_buffers.thread_fragment.store, tile=tile) for tile in tiles]
        start = pointer(chunk_buffers.memory, chunk_buffers.layout, [stages[0], 0, 0])
        size = element_bytes(tiles[0].element)
        starts = [beyond(start, n * size) for n in distances]
        buffers = [_Buffer(*fields) for fields in zip(tiles, starts, writes, strict=True)]
        return _StoreState(buffers, self._is_elected())

    def store(self, op: Any, fragment: FragmentValue) -> None:
        """Make the operations at a store, of all chunks of its tile."""
        tile = tile_of(op, self._step.pass_context)
        chunk = self._chunk(op)
        chunk_buffers = self._chunk_buffers[chunk]
        width = int(chunk.dims[1])
        blocks, across = tile.shape[0] // self._groups // WGMMA_ROWS, tile.shape[1] // width
        rows, columns = chunk_buffers.thread_fragment.counts
        down, right = tile.whole
        split = subdivide(
            tile.layout, {down: (self._groups, blocks, WGMMA_ROWS), right: (across, width)}
        )
        buffers, elected = self._state(op, chunk_buffers)
        by_tma = not _is_by_threads(op)
        tile_coordinates = TileCoordinates()
        for number in range(blocks * across):
            block, column = divmod(number, across)
            buffer = buffers[number % len(buffers)]
            if self._has_tma:
                with self._only(elected):
                    others = _copies_since(number, blocks * across) if by_tma else 0
                    nvvm.wait_for_stores_read(others)
            self._barrier()
            pairs = {
                (i, j): fragment.at(block * rows + i, column * columns + j)
                for i, j in chunk_buffers.thread_fragment.positions()
            }
            buffer.write(FragmentValue(pairs, (True, True)))
            index = [0 if i is None else i for i in tile.index]
            index[down], index[right] = (self._group, block, None), (column, None)
            chunk_tile = replace(tile, layout=split.layout, index=split.index(*index))
            # Passes merge basic blocks that differ only in values, here those of an iteration's
            # chunks. All of a chunk's registers would be copied first, and registers are scarce.
            nvvm.fence_async_shared({dialect.STORED_CHUNK: _number(number)})
            self._barrier()
            if not by_tma:
                self._store_by_threads(chunk_tile, buffer.tile)
                continue
            maps = self._map(chunk_tile, buffer.tile)
            coordinates = tile_coordinates(chunk_tile, maps)
            with self._only(elected):
                with nullcontext() if tile.rows is None else self._only(self._is_whole(chunk_tile)):
                    at = maps.shape.boxes[0].at
                    where = [p.plus(n) for p, n in zip(coordinates, at, strict=True)]
                    nvvm.store_tile(maps.pointer(), buffer.start, where)
                # Commit a group for each chunk, even an empty one, because waits count groups.
                nvvm.commit_stores()
            if tile.rows is not None:
                self._store_rows(chunk_tile, buffer.tile)

    def finish(self) -> None:
        """Wait, before the CTA exits, until TMA has read all shared memory."""
        if not self._has_tma:
            return
        with self._only(self._is_elected()):
            nvvm.wait_for_stores_read(0)

    def _chunk(self, op: Any) -> Layout:
        return self._step.pass_context.layouts(op.attributes[dialect.SHARED], op.location)

    def _map(self, chunk_tile: Tile, buffer: Tile) -> TileTensorMaps:
        """Return the tensor maps of a chunk, which has a single box."""
        maps = self._maps(chunk_tile, buffer)
        if (count := len(maps.shape.boxes)) > 1:
            raise self._step.error(
                f"a chunk of {list(chunk_tile.shape)} needs {count} TMA stores, not one",
                chunk_tile.op,
                hint="use no more columns than a row of its swizzle, which has up to 128 bytes",
            )
        return maps

    def _is_whole(self, chunk_tile: Tile) -> Any:
        """Return whether the store writes all rows of a chunk."""
        down, _ = chunk_tile.whole
        ends = []
        for row in (0, WGMMA_ROWS - 1):
            index = [0 if i is None else i for i in chunk_tile.index]
            index[down] = row
            ends.append(chunk_tile.row(index))
        return chunk_tile.is_within(*ends)

    def _store_rows(self, chunk_tile: Tile, buffer: Tile) -> None:
        """Write a chunk of which the store writes only some rows, by the threads."""
        true = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
        with self._only(arith.XOrIOp(self._is_whole(chunk_tile), true).result):
            self._store_by_threads(chunk_tile, buffer)

    def _store_by_threads(self, chunk_tile: Tile, buffer: Tile) -> None:
        """Write a chunk from shared memory by the threads of the warpgroup."""
        size = element_bytes(chunk_tile.element)
        most = _ACCESS // size
        widths = [most, 1]
        if _is_by_threads(chunk_tile.op):
            widths = [most >> k for k in range(most.bit_length())]
        warp, _ = self._thread.warp
        threads = WARPGROUP_WARPS * WARP_THREADS
        thread = apply(OrderBy(Row(WARPGROUP_WARPS, WARP_THREADS)), [warp, self._thread.lane])
        source, target = (_copied(t) for t in (buffer, chunk_tile))
        if _is_by_threads(chunk_tile.op) and target.strides()[1] == 1:
            buffer, chunk_tile = (_rows_of_warp(t, warp) for t in (buffer, chunk_tile))
            source, target = (_copied(t) for t in (buffer, chunk_tile))
            threads, thread = WARP_THREADS, self._thread.lane
        plan = plan_copy(source, target, size, threads, lead=target, widths=widths)
        ThreadCopies(buffer, chunk_tile, plan, thread).through_registers()

    def _is_elected(self) -> Any:
        """Return whether this is the warpgroup's first thread, which starts all TMA stores."""
        first = arith.ConstantOp(ir.IndexType.get(), 0).result
        warp, _ = self._thread.warp
        number = apply(OrderBy(Row(WARPGROUP_WARPS, WARP_THREADS)), [warp, self._thread.lane])
        return arith.CmpIOp(arith.CmpIPredicate.eq, number, first).result

    @contextmanager
    def _only(self, condition: Any) -> Iterator[None]:
        """Guard the operations that are made inside by a condition."""
        guard = scf.IfOp(condition)
        with ir.InsertionPoint(guard.then_block):
            yield
            scf.YieldOp([])

    def _barrier(self) -> None:
        """Make a barrier of the warpgroup."""
        i32 = ir.IntegerType.get_signless(32)
        number = arith.IndexCastOp(i32, self._group).result
        which = arith.AddIOp(number, i32_constant(_FIRST_BARRIER)).result
        nvvm.barrier(which, i32_constant(WARPGROUP_WARPS * WARP_THREADS))


def is_stored_by_tma(op: Any) -> bool:
    """Return whether a store has a shared-memory layout for its chunks."""
    return bool(op.name == dialect.STORE and dialect.SHARED in op.attributes)


def _is_by_threads(op: Any) -> bool:
    """Return whether threads write the chunks of a store from shared memory, and not TMA."""
    return dialect.BY_THREADS in op.attributes


def _copied(tile: Tile) -> CopiedTile:
    """Return a chunk in one of its memories, as copies are planned."""
    return CopiedTile(tile.layout, tile.whole, alignment_of(tile.buffer, scope_of(tile.op)))


def _rows_of_warp(chunk: Tile, warp: Any) -> Tile:
    """Return the rows of a chunk that a warp of the warpgroup has accumulators of."""
    down, _ = chunk.whole
    split = subdivide(chunk.layout, {down: (WARPGROUP_WARPS, WGMMA_ROWS // WARPGROUP_WARPS)})
    index = list(chunk.index)
    index[down] = (warp, None)
    return replace(chunk, layout=split.layout, index=split.index(*index))


def _buffer_count(op: Any) -> int:
    """Return the buffers of a warpgroup for the chunks of a store."""
    return 1 if _is_by_threads(op) else BUFFERS


def _copies_since(number: int, count: int) -> int:
    """Return how many chunks were stored since the previous one in a chunk's buffer.

    Args:
        number: the chunk's number in its tile.
        count: the chunks of a tile, also of the previous one.
    """
    before = max(k for k in range(number - count, number) if (k % count - number) % BUFFERS == 0)
    return number - before - 1


def _number(n: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)
