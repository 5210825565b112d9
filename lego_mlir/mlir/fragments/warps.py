"""A thread's position: its warp's row and column, its lane, and that lane in a fragment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.analysis.instructions.mma_fragments import GROUP, THREAD, accumulator
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.kernels import flat_thread_id, thread_count


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread's position, as index values.

    Attributes:
        warp: the row and column of its warp.
        lane: its lane id.
        group, thread: the lane's position in a fragment.
        warpgroup: its warpgroup and the warp's number in that, if the four warps of a warpgroup
            divide the rows of each fragment instead of all rows; else `None`.
    """

    warp: tuple[Any, Any]
    lane: Any
    group: Any
    thread: Any
    warpgroup: tuple[Any, Any] | None = None


def thread_of(step: TransformStep, op: Any, warps: Layout) -> Thread:
    """Compute the position of a thread at the beginning of the kernel that contains `op`.

    Args:
        step: the transform step, for errors.
        op: an operation in a kernel.
        warps: the layout from a warp's row and column to its id.

    Raises:
        LegoError: the operation is in no kernel, or a CTA has another number of threads.
    """
    kernel = scope_of(op).kernel
    if kernel is None:
        raise step.error("it is in no kernel", op, hint="put it into a gpu.launch")
    number, count = warps.size, thread_count(step, kernel)
    assert isinstance(number, int)
    if count != WARP_THREADS * number:
        raise step.error(
            f"{number} warps of '{warps}' are {WARP_THREADS * number} threads, a CTA has {count}",
            op,
            hint="launch 32 times as many threads as lego.warps has warps",
        )
    with ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]), op.location:
        warp, lane = accesses.inv(OrderBy(Row(number, WARP_THREADS)), flat_thread_id(step, kernel))
        row, column = accesses.inv(warps, warp)
        sizes = accumulator().sizes
        group, thread = accesses.inv(OrderBy(Row(sizes[GROUP], sizes[THREAD])), lane)
    return Thread((row, column), lane, group, thread)
