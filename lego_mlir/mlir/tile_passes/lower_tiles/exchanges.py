"""What the exchanges between the CTAs of a cluster need besides their data: barriers, and order.

Each exchange has an mbarrier in every CTA, which counts the bytes that arrive there. One in a loop
has two, and two buffers for its bytes, which alternate: who sends for the next iteration
disturbs nobody who still reads what this one has sent. Senders arrive at the mbarrier, too, behind
what their CTA has read: who sends for the iteration after that has waited for them. So CTAs do not
wait for one another between iterations. At the begin of the kernel

    scf.if %is_first {
      mbarrier.init %full, 1                            and for an exchange that comes once,
      mbarrier.arrive.expect_tx %full, %bytes
      fence.mbarrier.init
    }
    cluster.arrive.relaxed

and before the first exchange, as late as all threads still come there,

    cluster.wait                                        all CTAs run, and have their barriers

If one role exchanges, its threads wait there, and those of other roles when they have ended, so
that these begin before other CTAs do.

Behind an exchange's stores the thread need not wait at once: where another exchange follows that
does not depend on the first, its stores come before the first one's wait (`overlap`). So two
reductions of one tile take one round trip.

Source: PTX ISA, "mbarrier", "barrier.cluster".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.buffer_users import ancestor_in
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.dialect.pipeline_operations import role_warps
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.modules import first_inside, operations_in
from lego_mlir.mlir.tile_ir.roles import role_around
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate, where
from lego_mlir.mlir.tile_passes.lower_tiles.pointers import address, as_pointer

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_SLOTS = 2
"""The mbarriers of an exchange in a loop, and the buffers for its bytes."""

_TICKS = 10_000_000
"""Nanoseconds that mbarrier.try_wait may suspend the thread."""

_LOOPS = ("scf.for", "scf.while")
_MOVABLE = ("arith.", "math.", "vector.", tiles.LOAD_PARTS)
"""Operations that may come later: what they read is an exchange's, or computed."""


@dataclass
class Exchange:
    """One exchange.

    Attributes:
        barrier: the mbarriers, a memref.
        size: the bytes that each CTA gets.
        senders: the threads that send to each CTA.
        count: a private memref of one i32, how often it has come; `None` for an exchange that
            comes once.
        slot: the number of the mbarrier, an index; `None` for an exchange that comes once.
        buffers: what the bytes are stored in.
        waiting: the operation that waits for them.
    """

    barrier: Any
    size: int
    senders: int
    count: Any | None
    slot: Any | None = None
    buffers: Sequence[Any] = ()
    waiting: Any = None

    def begin(self, is_first: Any) -> None:
        """Build what comes before the sends of an exchange in a loop.

        Args:
            is_first: whether the thread is the first of its CTA.
        """
        number = build.make("memref.load", build.i32(), self.count, build.index(0))
        low = build.binary("andi", number, build.constant(build.i32(), _SLOTS - 1))
        self.slot = build.make("arith.index_cast", ir.IndexType.get(), low)
        self.slot.owner.attributes[dialect.BOUNDS] = dialect.bounds_attribute([_SLOTS])
        with where(is_first):
            self.expect()

    def expect(self) -> None:
        """Build the announcement of the bytes, which one thread makes."""
        nvvm.mbarrier_arrive_expect_tx(
            self._pointer(self.slot), build.constant(build.i32(), self.size)
        )

    def initialize(self) -> None:
        """Build the begin of the barriers, by one thread."""
        arrivals = 1 if self.count is None else 1 + self.senders
        for slot in range(self.slots):
            nvvm.mbarrier_init(self._pointer(slot), build.constant(build.i32(), arrivals))
        if self.count is None:
            self.expect()

    @property
    def slots(self) -> int:
        """The number of its mbarriers."""
        return 1 if self.count is None else _SLOTS

    def wait(self, buffers: Sequence[Any]) -> None:
        """Build the wait for all bytes, by all threads, before they load from the buffers."""
        self.buffers = buffers
        parity = build.constant(build.i32(), 0)
        if self.count is not None:
            at, one = [build.index(0)], build.constant(build.i32(), 1)
            number = build.make("memref.load", build.i32(), self.count, *at)
            following = build.binary("addi", number, one)
            ir.Operation.create("memref.store", operands=[following, self.count, *at])
            parity = build.binary("andi", build.binary("shrui", number, one), one)
        ticks = build.constant(build.i32(), _TICKS)
        self.waiting = nvvm.mbarrier_try_wait_parity(self._pointer(self.slot), parity, ticks)

    def overlap(self) -> None:
        """Move the wait, and what is computed of what it waits for, behind stores that follow."""
        following = iter(self.waiting.block.operations)
        while next(following).operation != self.waiting:
            continue
        delayed, results, last = [self.waiting], set(self.buffers), None
        moved: list[Any] = []
        for each in following:
            op = each.operation
            if any(x in results for x in op.operands) or _uses_inside(op, results):
                if len(op.regions) or not op.name.startswith(_MOVABLE):
                    break
                delayed.append(op)
                results.update(op.results)
            elif any(map(_is_send, (op, *operations_in(op)))):
                # What is computed behind it may need what is between, too, and stays there.
                last, moved = op, list(delayed)
        for op in reversed(moved):
            op.move_after(last)

    def _pointer(self, slot: Any | None) -> Any:
        at = slot if isinstance(slot, ir.Value) else build.index(slot or 0)
        return as_pointer(address(self.barrier, OrderBy(Row(self.slots)), [at]))


class Exchanges:
    """The exchanges of a kernel.

    Args:
        threads: those of the kernel.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._made: list[Exchange] = []

    def begin(self, size: int, senders: int) -> Exchange:
        """Begin an exchange at the insertion point.

        Args:
            size: the bytes that each CTA gets.
            senders: the threads that send to each CTA.
        """
        repeats = self._is_in_loop()
        i64 = ir.IntegerType.get_signless(64)
        count = None
        with self._threads.entry:
            slots = _SLOTS if repeats else 1
            barrier = allocate(layout_attribute(OrderBy(Row(slots))), i64)
            if repeats:
                kind = ir.MemRefType.get([1], build.i32())
                count = ir.Operation.create(
                    "memref.alloca",
                    results=[kind],
                    attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
                ).result
                zero = build.constant(build.i32(), 0)
                ir.Operation.create("memref.store", operands=[zero, count, build.index(0)])
        exchange = Exchange(barrier, size, senders, count)
        self._made.append(exchange)
        if repeats:
            exchange.begin(self._threads.is_first())
        return exchange

    def finish(self) -> None:
        """Build what the kernel does before the first exchange, and overlap exchanges."""
        if not self._made:
            return
        with self._threads.entry:
            with where(self._threads.is_first()):
                for exchange in self._made:
                    exchange.initialize()
                nvvm.fence_mbarrier_init()
            nvvm.cluster_arrive_relaxed()
        for exchange in reversed(self._made):
            exchange.overlap()
        kernel = self._threads.kernel
        send = first_inside(kernel.launch, _is_send)
        role = role_around(send)
        block = kernel.body if role is None else role.regions[0].blocks[0]
        with ir.InsertionPoint(ancestor_in(block, send)):
            nvvm.cluster_wait()
        if role is not None:
            *_, end = kernel.body.operations
            with ir.InsertionPoint(end):
                last = build.index(role_warps(role).stop * WARP_THREADS - 1)
                with where(build.compare("slt", last, kernel.launch_thread)):
                    nvvm.cluster_wait()

    def _is_in_loop(self) -> bool:
        op = ir.InsertionPoint.current.block.owner
        while op is not None and op.operation != self._threads.kernel.launch.operation:
            if op.name in _LOOPS:
                return True
            op = op.parent
        return False


def _is_send(op: Any) -> bool:
    return bool(op.name == tiles.SEND_PARTS)


def _uses_inside(op: Any, values: set[Any]) -> bool:
    """Return whether an operation in the regions of another one uses one of these values."""
    return any(x in values for inner in operations_in(op) for x in inner.operands)
