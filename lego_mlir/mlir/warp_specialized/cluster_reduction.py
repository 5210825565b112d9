"""The reduction of accumulators over a cluster, of which each CTA keeps a slice of the columns.

    %kept = "lego.reduce_scatter_columns"(%sum, %slice) {layout = #slices}

becomes, for each thread of every CTA,

    wait until all CTAs of the cluster run: only then may one write to another's shared memory
    for each other CTA:  write the accumulator's columns that it keeps to its shared memory
    cluster barrier
    add what the other CTAs wrote to the columns that this CTA keeps

Threads of the same id hold the same elements of the tile in every CTA. So elements go from thread
to thread, four at a time, and neither side needs their position in the tile. The buffer's layout
has the dimensions other CTA, quad, thread and element: the 16 bytes of adjacent threads are
adjacent, and so in different banks.

With the attribute `over_ring` the buffer reuses the memory of operand A or B. Then all CTAs first
wait until all have finished their main loops, and not only until all run.

After the cluster barrier no CTA writes to another's shared memory, and each may exit.

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
from lego_mlir.mlir.fragments.thread_fragment import FragmentValue, PairsByPosition, as_values
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, alloc, apply, constant
from lego_mlir.mlir.tiles.pointers import CLUSTER as CLUSTER_SPACE
from lego_mlir.mlir.tiles.pointers import as_pointer, element_bytes, i32_constant

REDUCE_SCATTER_COLUMNS = dialect.REDUCE_SCATTER_COLUMNS
"""The operation: a tile summed over the CTAs of a cluster, each of which keeps some columns."""

OVER_RING = "over_ring"
"""The attribute of a reduction whose buffer reuses the memory of operand A or B."""

_WARPS, _LANES = 4, 32
_QUAD = 4
"""Elements that are moved at once: 16 bytes."""


def is_used_in(launch: Any) -> bool:
    """Return whether a kernel has a reduction over a cluster."""
    return _find_reduction(launch) is not None


def announce_start(launch: Any) -> None:
    """Announce, by all threads, that the CTA runs and its shared memory may be written to."""
    if not _is_over_ring(_find_reduction(launch)):
        nvvm.cluster_arrive_relaxed()


def join_barriers(launch: Any) -> None:
    """Arrive at the reduction's barriers, for threads without an accumulator."""
    _wait_until_writable(_is_over_ring(_find_reduction(launch)))
    _wait_until_written()


def _find_reduction(launch: Any) -> Any:
    return next((op for op in operations_in(launch) if op.name == REDUCE_SCATTER_COLUMNS), None)


def _is_over_ring(op: Any) -> bool:
    return OVER_RING in op.attributes


def _wait_until_writable(over_ring: bool) -> None:
    """Wait until the shared memory of all CTAs may be written to."""
    if over_ring:
        nvvm.cluster_arrive()
    nvvm.cluster_wait()


def _wait_until_written() -> None:
    """Wait until all CTAs have written."""
    nvvm.cluster_arrive()
    nvvm.cluster_wait()


class ClusterReduction:
    """The lowering of one lego.reduce_scatter_columns.

    Args:
        step: the transform step, for errors.
        launch: the kernel.
        op: the lego.reduce_scatter_columns.
        thread: the thread's position in its warpgroup.
        group: the thread's warpgroup.
        groups: the warpgroups, which divide the tile's rows.
        operands: the tiles A and B in shared memory, which are not used after the main loop.

    Raises:
        LegoError: slices divide fragments, are not as many as the cluster's CTAs, or do not fit
            into the memory of the operands.
    """

    def __init__(
        self,
        step: TransformStep,
        launch: Any,
        op: Any,
        thread: Thread,
        group: Any,
        groups: int,
        operands: Sequence[Tile],
    ) -> None:
        self._op = op
        slices = _slices(step, op)
        self._ctas, width = (n for n in slices.dims if isinstance(n, int))
        _check_cluster(step, launch, op, self._ctas)
        self._columns = _fragments(step, op, slices)
        kind = ir.VectorType(op.operands[0].type)
        self._vector = ir.VectorType.get([_QUAD], kind.element_type)
        # A thread's quads: two rows of a fragment, with two adjacent elements each.
        self._quads = OrderBy(
            Row(kind.shape[0] // (groups * _WARPS * MMA_ROWS), width // MMA_COLUMNS)
        )
        threads = groups * _WARPS * _LANES
        self._layout = OrderBy(Row(self._ctas - 1, self._quads.size, threads, _QUAD))
        self._size = element_bytes(kind.element_type)
        if _is_over_ring(op):
            self._buffer = _ring_memory(step, op, self._layout, self._size, operands)
        else:
            with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), op.location:
                self._buffer = alloc(self._layout, kind.element_type)
        self._threads = OrderBy(Row(groups, _WARPS, _LANES))
        self._position = [group, thread.warp[0], thread.lane]

    def __call__(self, accumulator: FragmentValue) -> FragmentValue:
        """Make the operations at the reduction, and return the kept columns' fragment."""
        thread = apply(self._threads, self._position)
        equal = arith.CmpIPredicate.eq
        cta_rank = self._op.operands[1]
        own = [arith.CmpIOp(equal, cta_rank, constant(b)).result for b in range(self._ctas)]
        _wait_until_writable(_is_over_ring(self._op))
        for cta, here in enumerate(own):
            guard = scf.IfOp(here)
            with ir.InsertionPoint(guard.then_block):
                for other in range(self._ctas):
                    if other != cta:
                        self._send(accumulator, cta, other, thread)
                scf.YieldOp([])
        _wait_until_written()
        return FragmentValue(self._reduced(accumulator, own, thread), (True, True))

    def _send(self, accumulator: FragmentValue, cta: int, other: int, thread: Any) -> None:
        """Write the columns that CTA `other` keeps to its shared memory."""
        # The index of this CTA among the others from which the receiver reads.
        stage = (cta - other - 1) % self._ctas
        space = ir.Type.parse(f"!llvm.ptr<{CLUSTER_SPACE}>")
        remote = nvvm.of_block(space, self._first(stage, thread), i32_constant(other))
        for row, column in np.ndindex(*self._quads.dims):
            values = self._quad(accumulator, row, self._columns[other, column])
            ir.Operation.create(
                "llvm.store",
                operands=[
                    vector.FromElementsOp(self._vector, values).result,
                    self._offset_pointer(remote, row, column),
                ],
                attributes=self._aligned(),
            )

    def _reduced(
        self, accumulator: FragmentValue, own: Sequence[Any], thread: Any
    ) -> PairsByPosition:
        """Add what the other CTAs sent to the columns that this CTA keeps."""
        add = arith.AddFOp if isinstance(self._vector.element_type, ir.FloatType) else arith.AddIOp
        sent = [self._first(stage, thread) for stage in range(self._ctas - 1)]
        found = {}
        for row, column in np.ndindex(*self._quads.dims):
            every = [self._quad(accumulator, row, starts[column]) for starts in self._columns]
            total = every[0]
            for here, values in zip(own[1:], every[1:], strict=True):
                total = [
                    arith.SelectOp(here, x, y).result for x, y in zip(values, total, strict=True)
                ]
            for first in sent:
                quad = ir.Operation.create(
                    "llvm.load",
                    results=[self._vector],
                    operands=[self._offset_pointer(first, row, column)],
                    attributes=self._aligned(),
                ).result
                total = [
                    add(x, vector.ExtractOp(quad, [], [k]).result).result
                    for k, x in enumerate(total)
                ]
            found[2 * row, column] = (total[0], total[1])
            found[2 * row + 1, column] = (total[2], total[3])
        return found

    def _quad(self, accumulator: FragmentValue, row: int, column: int) -> list[Any]:
        """Return a thread's elements of a fragment."""
        return [
            x for half in (0, 1) for x in as_values(accumulator.at(2 * row + half, int(column)))
        ]

    def _first(self, stage: int, thread: Any) -> Any:
        """Return the pointer to a thread's first quad in this CTA's shared memory."""
        i32 = ir.IntegerType.get_signless(32)
        start = memref.ExtractAlignedPointerAsIndexOp(self._buffer).result
        offset = arith.IndexCastOp(i32, apply(self._layout, [stage, 0, thread, 0])).result
        distance = arith.MulIOp(offset, i32_constant(self._size)).result
        return as_pointer(arith.AddIOp(arith.IndexCastOp(i32, start).result, distance).result)

    def _offset_pointer(self, first: Any, row: int, column: int) -> Any:
        """Return the pointer to another quad of the same thread."""
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


def _ring_memory(
    step: TransformStep, op: Any, layout: Layout, size: int, operands: Sequence[Tile]
) -> Any:
    """Return the memory of the larger operand's stages."""
    memories = [(int(f.layout.size) * element_bytes(f.element), f.buffer) for f in operands]
    available, buffer = max(memories, key=lambda found: found[0])
    needed = int(layout.size) * size
    if available < needed:
        raise step.error(
            f"the reduction needs {needed} bytes, the ring buffer's larger operand has {available}",
            op,
            hint=f"more stages, or {step.option(OVER_RING, 0)}",
        )
    return buffer


def _check_cluster(step: TransformStep, launch: Any, op: Any, ctas: int) -> None:
    attribute = launch.attributes.get(dialect.CLUSTER, None)
    cluster = 1 if attribute is None else ir.IntegerAttr(attribute).value
    if cluster != ctas:
        raise step.error(
            f"the columns are divided among {ctas} CTAs, but a cluster has {cluster}",
            op,
            hint="transform_lego.split_k sets both",
        )


def _slices(step: TransformStep, op: Any) -> Layout:
    """Return the layout of the slices, which divides the accumulator's columns."""
    slices = step.pass_context.layouts(op.attributes["layout"], op.location)
    before, after = (list(ir.VectorType(v.type).shape) for v in (op.operands[0], op.results[0]))
    sizes = [slices.dims, slices.size]
    if len(before) != 2 or sizes != [(before[1] // after[-1], after[-1]), before[1]]:
        raise step.error(
            f"the slices '{slices}' do not divide the columns of {before} into those of {after}", op
        )
    return slices


def _fragments(step: TransformStep, op: Any, slices: Layout) -> Any:
    """Return the index in the tile of each slice's fragments along the columns."""
    offsets = slices.offsets()
    if offsets.shape[1] % MMA_COLUMNS == 0:
        runs = offsets.reshape(offsets.shape[0], -1, MMA_COLUMNS)
        starts = runs[..., :1]
        if not (starts % MMA_COLUMNS).any() and (runs == starts + np.arange(MMA_COLUMNS)).all():
            return starts[..., 0] // MMA_COLUMNS
    raise step.error(f"the slices '{slices}' divide fragments of {MMA_COLUMNS} columns", op)
