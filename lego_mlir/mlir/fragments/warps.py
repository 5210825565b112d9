"""Who a thread is: its warp's place among the warps, its lane, the lane's place in a fragment."""

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
    """The thread, as index values.

    Attributes:
        warp: its warp's place along rows and columns.
        lane: its number in the warp.
        group, thread: the lane's place in a fragment.
        warpgroup: its warpgroup, and its warp's number in that, where a warpgroup's rows are not one
            warp's after another's but, for each fragment, four warps' one below the other.
    """

    warp: tuple[Any, Any]
    lane: Any
    group: Any
    thread: Any
    warpgroup: tuple[Any, Any] | None = None


def thread_of(step: TransformStep, op: Any, warps: Layout) -> Thread:
    """The thread that runs an operation; what tells it is computed where the kernel begins.

    Args:
        step: for errors.
        op: an operation in a kernel.
        warps: from the place along rows and columns to the warp's number.

    Raises:
        LegoError: the operation is in no kernel, or a block has another number of threads.
    """
    kernel = scope_of(op).kernel
    if kernel is None:
        raise step.error("found no kernel around it", op, hint="put it into a gpu.launch")
    number, count = warps.size, thread_count(step, kernel)
    assert isinstance(number, int)
    if count != WARP_THREADS * number:
        raise step.error(
            f"{number} warps of '{warps}' are {WARP_THREADS * number} threads, a block has {count}",
            op,
            hint="the size of a block is 32 times that of lego.warps",
        )
    with ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0]), op.location:
        warp, lane = accesses.inv(OrderBy(Row(number, WARP_THREADS)), flat_thread_id(step, kernel))
        row, column = accesses.inv(warps, warp)
        sizes = accumulator().sizes
        group, thread = accesses.inv(OrderBy(Row(sizes[GROUP], sizes[THREAD])), lane)
    return Thread((row, column), lane, group, thread)
