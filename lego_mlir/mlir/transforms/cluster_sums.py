"""Sums that lie in fragments, added up over the blocks of a cluster, each of which keeps a slice.

    %own = "lego.reduce_scatter"(%sum, %part) {layout = #slices}

becomes, for each thread of every block,

    wait until all blocks of the cluster have begun: only then may one write into another's memory
    for each other block:  write the sums of the columns that it keeps into its shared memory
    cluster barrier
    add what the others wrote to the own sums of the own columns

A thread of one block holds the same places of the tile as that of the same number in another. So
sums go from thread to thread, four at a time, and neither side needs to know what place they are
of: `from` (the other block), `piece`, thread and number are a layout of the buffer in which the 16
bytes of neighbouring threads are neighbours, and so in different banks.

After the cluster barrier no block writes into another's memory any more, and each may leave.

Source: PTX ISA 9.7.9.23 (mapa), 9.7.13.3 (barrier.cluster).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.fragments import COLUMNS, ROWS
from lego_mlir.mlir.bindings import arith, ir, llvm, nvvm, scf, vector
from lego_mlir.mlir.fragments.share import Held, Parts, as_values
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.transforms.operation import Step
from lego_mlir.mlir.transforms.pointers import CLUSTER as CLUSTER_SPACE
from lego_mlir.mlir.transforms.pointers import element_bytes, i32_constant, pointer
from lego_mlir.mlir.transforms.tiles import alloc, apply, constant, load

REDUCE_SCATTER = "lego.reduce_scatter"
"""The operation: sums of a tile over the blocks of a cluster, of which each keeps some columns."""

CLUSTER = "lego.cluster"
"""The attribute of a gpu.launch: how many blocks along x make a cluster."""

_WARPS, _LANES = 4, 32
_QUAD = 4
"""Sums that are moved at once: 16 bytes."""


def is_shared_by_cluster(launch: Any) -> bool:
    """Whether the blocks of a cluster add up their sums."""
    return any(op.name == REDUCE_SCATTER for op in operations_in(launch))


def begin() -> None:
    """Say that the block has begun; all its threads do."""
    nvvm.cluster_arrive_relaxed(aligned=True)


def attend() -> None:
    """What threads do that have no sums: the cluster's barriers wait for them too."""
    nvvm.cluster_wait(aligned=True)
    _meet()


def _meet() -> None:
    nvvm.cluster_arrive(aligned=True)
    nvvm.cluster_wait(aligned=True)


class ClusterSums:
    """Makes the operations of one lego.reduce_scatter.

    Args:
        step: for errors.
        launch: the kernel.
        op: the lego.reduce_scatter.
        thread: that runs, its warp the one in its warpgroup.
        group: the thread's warpgroup.
        groups: of warps that share the tile, one below the other.

    Raises:
        LegoError: the slices are not those of fragments, or not as many as a cluster has blocks.
    """

    def __init__(
        self, step: Step, launch: Any, op: Any, thread: Thread, group: Any, groups: int
    ) -> None:
        self._op = op
        slices = step.setting.layouts(op.attributes["layout"], op.location)
        self._blocks, width = (n for n in slices.dims if isinstance(n, int))
        _check_cluster(step, launch, op, self._blocks)
        self._columns = _fragments(step, op, slices)
        kind = ir.VectorType(op.operands[0].type)
        self._vector = ir.VectorType.get([_QUAD], kind.element_type)
        # A thread's quads: two rows of a fragment, two neighbours in each.
        self._quads = OrderBy(Row(kind.shape[0] // (groups * _WARPS * ROWS), width // COLUMNS))
        threads = groups * _WARPS * _LANES
        self._layout = OrderBy(Row(self._blocks - 1, self._quads.size, threads, _QUAD))
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
        nvvm.cluster_wait(aligned=True)
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
        slot = (block - other - 1) % self._blocks
        base = pointer(self._room, self._layout, [slot, 0, thread, 0])
        space = ir.Type.parse(f"!llvm.ptr<{CLUSTER_SPACE}>")
        remote = nvvm.mapa(space, base, i32_constant(other))
        size = element_bytes(self._vector.element_type)
        for row, column in np.ndindex(*self._quads.dims):
            number = self._quads.apply(row, column)
            distance = self._layout.apply(slot, number, 0, 0) - self._layout.apply(slot, 0, 0, 0)
            values = self._quad(sums, row, self._columns[other, column])
            at = llvm.getelementptr(
                space, remote, [], [int(distance) * size], ir.IntegerType.get_signless(8), None
            )
            quad = vector.FromElementsOp(self._vector, values).result
            llvm.store(quad, at, alignment=_QUAD * size)

    def _received(self, sums: Held, own: Sequence[Any], thread: Any) -> Parts:
        """The own sums of the columns that the block keeps, and to them what the others sent."""
        add = arith.AddFOp if _is_float(self._vector.element_type) else arith.AddIOp
        found = {}
        for row, column in np.ndindex(*self._quads.dims):
            every = [self._quad(sums, row, starts[column]) for starts in self._columns]
            total = every[0]
            for here, values in zip(own[1:], every[1:], strict=True):
                total = [
                    arith.SelectOp(here, x, y).result for x, y in zip(values, total, strict=True)
                ]
            for slot in range(self._blocks - 1):
                index = [slot, int(self._quads.apply(row, column)), thread, None]
                sent = load(self._layout, self._room, index)
                total = [
                    add(x, vector.ExtractOp(sent, [], [k]).result).result
                    for k, x in enumerate(total)
                ]
            found[2 * row, column] = (total[0], total[1])
            found[2 * row + 1, column] = (total[2], total[3])
        return found

    def _quad(self, sums: Held, row: int, column: int) -> list[Any]:
        """A thread's sums of a fragment."""
        return [x for half in (0, 1) for x in as_values(sums.at(2 * row + half, int(column)))]


def _check_cluster(step: Step, launch: Any, op: Any, blocks: int) -> None:
    said = launch.attributes[CLUSTER] if CLUSTER in launch.attributes else None
    cluster = 1 if said is None else ir.IntegerAttr(said).value
    if cluster != blocks:
        raise step.error(
            f"the columns are divided among {blocks} blocks, and a cluster has {cluster}",
            op,
            hint="transform_lego.split_k makes both",
        )


def _fragments(step: Step, op: Any, slices: Layout) -> Any:
    """By slice, and fragment along its columns, the number of the fragment in the tile."""
    offsets = slices.offsets()
    if offsets.shape[1] % COLUMNS == 0:
        runs = offsets.reshape(offsets.shape[0], -1, COLUMNS)
        starts = runs[..., :1]
        if not (starts % COLUMNS).any() and (runs == starts + np.arange(COLUMNS)).all():
            return starts[..., 0] // COLUMNS
    raise step.error(f"the slices '{slices}' do not keep fragments of {COLUMNS} columns whole", op)


def _is_float(element: Any) -> bool:
    return isinstance(element, ir.FloatType)
