"""Sums that lie in fragments, added up over the blocks of a cluster, each of which keeps a slice.

    %own = "lego.reduce_scatter"(%sum, %part) {layout = #slices}

becomes, for each thread of every block,

    wait until all blocks of the cluster have begun: only then may one write into another's memory
    for each other block:  write the sums of the columns that it keeps into its shared memory
    cluster barrier
    add what the others wrote to the own sums of the own columns

A thread of one block holds the same places of the tile as that of the same number in another. So
sums go from thread to thread, four at a time, and neither side needs to know what place they are
of: the other block, the four, thread and number are a layout of the buffer in which the 16 bytes of
neighbouring threads are neighbours, and so in different banks.

With the attribute `over_ring` the buffer lies where the factors of the product are. Then all blocks
first wait until all have done with these, and not only until all have begun.

After the cluster barrier no block writes into another's memory any more, and each may leave.

Source: PTX ISA 9.7.9.23 (mapa), 9.7.13.3 (barrier.cluster).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref, scf, vector
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.fragments.thread_fragment import Held, Parts, as_values
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, alloc, apply, constant
from lego_mlir.mlir.tiles.main_loop import MainLoop
from lego_mlir.mlir.tiles.pointers import CLUSTER as CLUSTER_SPACE
from lego_mlir.mlir.tiles.pointers import as_pointer, element_bytes, i32_constant

OVER_RING = "over_ring"
"""The attribute of a reduction: the sums go where the factors of the product were."""

_WARPS, _LANES = 4, 32
_QUAD = 4
"""Sums that are moved at once: 16 bytes."""


def is_in(launch: Any) -> bool:
    """Whether the blocks of a cluster add up their sums."""
    return _reduction(launch) is not None


def check(step: TransformStep, launch: Any, main_loop: MainLoop, cluster: int) -> None:
    """Check that a kernel whose blocks add up their sums takes one tile, and fetches it alone.

    Args:
        step: for errors.
        launch: the kernel.
        main_loop: what it computes.
        cluster: blocks that are to fetch together what they have in common.

    Raises:
        LegoError: it takes several tiles one after another, or blocks are to fetch together.
    """
    if not is_in(launch):
        return
    if main_loop.outer is not None:
        raise step.error(
            "the blocks of a cluster add up their sums once, and here take several tiles each",
            main_loop.outer,
            hint="split_k without persist: blocks = the number of tiles, times parts",
        )
    if cluster > 1:
        raise step.misuse(
            "the blocks of a cluster multiply other parts of k, and have no tiles in common",
            hint="cluster = 1, or split_k with parts = 1",
        )


def begin(launch: Any) -> None:
    """Say that the block has begun; all its threads do."""
    if not _is_over_ring(_reduction(launch)):
        nvvm.cluster_arrive_relaxed()


def attend(launch: Any) -> None:
    """What threads do that have no sums: the cluster's barriers wait for them too."""
    _enter(_is_over_ring(_reduction(launch)))
    _meet()


def _reduction(launch: Any) -> Any:
    return next((op for op in operations_in(launch) if op.name == dialect.REDUCE_SCATTER), None)


def _is_over_ring(op: Any) -> bool:
    return OVER_RING in op.attributes


def _enter(over_ring: bool) -> None:
    """Wait until all blocks may be written to."""
    if over_ring:
        nvvm.cluster_arrive()
    nvvm.cluster_wait()


def _meet() -> None:
    """Wait until all blocks have written."""
    nvvm.cluster_arrive()
    nvvm.cluster_wait()


class ClusterSums:
    """Makes the operations of one lego.reduce_scatter.

    Args:
        step: for errors.
        launch: the kernel.
        op: the lego.reduce_scatter.
        thread: that runs, its warp the one in its warpgroup.
        group: the thread's warpgroup.
        groups: of warps that share the tile, one below the other.
        factors: what was multiplied: tiles in shared memory, which nothing needs any more.

    Raises:
        LegoError: the slices are not those of fragments, or not as many as a cluster has blocks, or
            they are to go where the factors are and have no room there.
    """

    def __init__(
        self,
        step: TransformStep,
        launch: Any,
        op: Any,
        thread: Thread,
        group: Any,
        groups: int,
        factors: Sequence[Tile],
    ) -> None:
        self._op = op
        slices = _slices(step, op)
        self._blocks, width = (n for n in slices.dims if isinstance(n, int))
        _check_cluster(step, launch, op, self._blocks)
        self._columns = _fragments(step, op, slices)
        kind = ir.VectorType(op.operands[0].type)
        self._vector = ir.VectorType.get([_QUAD], kind.element_type)
        # A thread's quads: two rows of a fragment, two neighbours in each.
        self._quads = OrderBy(
            Row(kind.shape[0] // (groups * _WARPS * MMA_ROWS), width // MMA_COLUMNS)
        )
        threads = groups * _WARPS * _LANES
        self._layout = OrderBy(Row(self._blocks - 1, self._quads.size, threads, _QUAD))
        self._size = element_bytes(kind.element_type)
        if _is_over_ring(op):
            self._room = _ring(step, op, self._layout, self._size, factors)
        else:
            with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), op.location:
                self._room = alloc(self._layout, kind.element_type)
        self._threads = OrderBy(Row(groups, _WARPS, _LANES))
        self._place = [group, thread.warp[0], thread.lane]

    def __call__(self, sums: Held) -> Held:
        """The operations, where the reduction stands: from a thread's sums to those it keeps."""
        thread = apply(self._threads, self._place)
        equal = arith.CmpIPredicate.eq
        part = self._op.operands[1]
        own = [arith.CmpIOp(equal, part, constant(b)).result for b in range(self._blocks)]
        _enter(_is_over_ring(self._op))
        for block, here in enumerate(own):
            guard = scf.IfOp(here)
            with ir.InsertionPoint(guard.then_block):
                for other in range(self._blocks):
                    if other != block:
                        self._send(sums, block, other, thread)
                scf.YieldOp([])
        _meet()
        return Held(self._received(sums, own, thread), (True, True))

    def _send(self, sums: Held, block: int, other: int, thread: Any) -> None:
        """Write what a block has for another's columns into that one's memory."""
        # Among the others, as the receiver counts them.
        stage = (block - other - 1) % self._blocks
        space = ir.Type.parse(f"!llvm.ptr<{CLUSTER_SPACE}>")
        remote = nvvm.of_block(space, self._first(stage, thread), i32_constant(other))
        for row, column in np.ndindex(*self._quads.dims):
            values = self._quad(sums, row, self._columns[other, column])
            ir.Operation.create(
                "llvm.store",
                operands=[
                    vector.FromElementsOp(self._vector, values).result,
                    self._behind(remote, row, column),
                ],
                attributes=self._aligned(),
            )

    def _received(self, sums: Held, own: Sequence[Any], thread: Any) -> Parts:
        """The own sums of the columns that the block keeps, and to them what the others sent."""
        add = arith.AddFOp if isinstance(self._vector.element_type, ir.FloatType) else arith.AddIOp
        sent = [self._first(stage, thread) for stage in range(self._blocks - 1)]
        found = {}
        for row, column in np.ndindex(*self._quads.dims):
            every = [self._quad(sums, row, starts[column]) for starts in self._columns]
            total = every[0]
            for here, values in zip(own[1:], every[1:], strict=True):
                total = [
                    arith.SelectOp(here, x, y).result for x, y in zip(values, total, strict=True)
                ]
            for first in sent:
                quad = ir.Operation.create(
                    "llvm.load",
                    results=[self._vector],
                    operands=[self._behind(first, row, column)],
                    attributes=self._aligned(),
                ).result
                total = [
                    add(x, vector.ExtractOp(quad, [], [k]).result).result
                    for k, x in enumerate(total)
                ]
            found[2 * row, column] = (total[0], total[1])
            found[2 * row + 1, column] = (total[2], total[3])
        return found

    def _quad(self, sums: Held, row: int, column: int) -> list[Any]:
        """A thread's sums of a fragment."""
        return [x for half in (0, 1) for x in as_values(sums.at(2 * row + half, int(column)))]

    def _first(self, stage: int, thread: Any) -> Any:
        """Where the first quad of a thread lies, as a pointer to the own block's memory."""
        i32 = ir.IntegerType.get_signless(32)
        start = memref.ExtractAlignedPointerAsIndexOp(self._room).result
        offset = arith.IndexCastOp(i32, apply(self._layout, [stage, 0, thread, 0])).result
        distance = arith.MulIOp(offset, i32_constant(self._size)).result
        return as_pointer(arith.AddIOp(arith.IndexCastOp(i32, start).result, distance).result)

    def _behind(self, first: Any, row: int, column: int) -> Any:
        """Where another quad of the same thread lies."""
        number = self._quads.apply(row, column)
        distance = self._layout.apply(0, number, 0, 0) - self._layout.apply(0, 0, 0, 0)
        return ir.Operation.create(
            "llvm.getelementptr",
            results=[first.type],
            operands=[first],
            attributes={
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([int(distance) * self._size]),
                "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
            },
        ).result

    def _aligned(self) -> dict[str, Any]:
        i64 = ir.IntegerType.get_signless(64)
        return {"alignment": ir.IntegerAttr.get(i64, _QUAD * self._size)}


def _ring(step: TransformStep, op: Any, layout: Layout, size: int, factors: Sequence[Tile]) -> Any:
    """The memory of the larger factor's slots."""
    rooms = [(int(f.layout.size) * element_bytes(f.element), f.buffer) for f in factors]
    room, buffer = max(rooms, key=lambda found: found[0])
    needed = int(layout.size) * size
    if room < needed:
        raise step.error(
            f"the sums that a block gets are {needed} bytes, the larger half of the ring is {room}",
            op,
            hint=f"more stages, or {OVER_RING} = 0",
        )
    return buffer


def _check_cluster(step: TransformStep, launch: Any, op: Any, blocks: int) -> None:
    said = launch.attributes.get(dialect.CLUSTER, None)
    cluster = 1 if said is None else ir.IntegerAttr(said).value
    if cluster != blocks:
        raise step.error(
            f"the columns are divided among {blocks} blocks, and a cluster has {cluster}",
            op,
            hint="transform_lego.split_k makes both",
        )


def _slices(step: TransformStep, op: Any) -> Layout:
    """The layout of the slices, which divides the columns of the sums."""
    slices = step.pass_context.layouts.of(op)
    before, after = (list(ir.VectorType(v.type).shape) for v in (op.operands[0], op.results[0]))
    sizes = [slices.dims, slices.size]
    if len(before) != 2 or sizes != [(before[1] // after[-1], after[-1]), before[1]]:
        raise step.error(
            f"the slices '{slices}' do not divide the columns of {before} into those of {after}", op
        )
    return slices


def _fragments(step: TransformStep, op: Any, slices: Layout) -> Any:
    """By slice, and fragment along its columns, the number of the fragment in the tile."""
    offsets = slices.offsets()
    if offsets.shape[1] % MMA_COLUMNS == 0:
        runs = offsets.reshape(offsets.shape[0], -1, MMA_COLUMNS)
        starts = runs[..., :1]
        if not (starts % MMA_COLUMNS).any() and (runs == starts + np.arange(MMA_COLUMNS)).all():
            return starts[..., 0] // MMA_COLUMNS
    raise step.error(
        f"the slices '{slices}' do not keep fragments of {MMA_COLUMNS} columns whole", op
    )
