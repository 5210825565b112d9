"""What the exchanges between the CTAs of a cluster need besides their data: barriers, and order.

Each exchange has an mbarrier in every CTA, which counts the bytes that arrive there. At the begin
of the kernel

    scf.if %is_first {
      mbarrier.init %full, 1                            and for an exchange that comes once,
      mbarrier.arrive.expect_tx %full, %bytes
      fence.mbarrier.init
    }
    cluster.arrive.relaxed

and before the first exchange, as late as all threads still come there,

    cluster.wait                                        all CTAs run, and have their barriers

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
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.buffer_users import ancestor_in
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate, where
from lego_mlir.mlir.tiles.pointers import pointer

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_ONE = OrderBy(Row(1))
_TICKS = 10_000_000
"""Nanoseconds that mbarrier.try_wait may suspend the thread."""

_LOOPS = ("scf.for", "scf.while")
_MOVABLE = ("arith.", "math.", "vector.", tiles.LOAD_PARTS)
"""Operations that may come later: what they read is an exchange's, or computed."""


@dataclass
class Exchange:
    """One exchange.

    Attributes:
        barrier: the mbarrier, a memref.
        size: the bytes that each CTA gets.
        parity: a private memref of one i32, the parity of the barrier's phase; `None` for an
            exchange that comes once.
        buffers: what the bytes are stored in.
        waiting: the operation that waits for them.
    """

    barrier: Any
    size: int
    parity: Any | None
    buffers: Sequence[Any] = ()
    waiting: Any = None

    def expect(self) -> None:
        """Build the announcement of the bytes, which one thread makes."""
        nvvm.mbarrier_arrive_expect_tx(self._pointer(), build.constant(build.i32(), self.size))

    def initialize(self) -> None:
        """Build the begin of the barrier, by one thread."""
        nvvm.mbarrier_init(self._pointer(), build.constant(build.i32(), 1))
        if self.parity is None:
            self.expect()

    def wait(self, buffers: Sequence[Any]) -> None:
        """Build the wait for all bytes, by all threads, before they load from the buffers."""
        self.buffers = buffers
        at = [build.index(0)]
        parity = build.constant(build.i32(), 0)
        if self.parity is not None:
            parity = build.make("memref.load", build.i32(), self.parity, *at)
            other = build.binary("xori", parity, build.constant(build.i32(), 1))
            ir.Operation.create("memref.store", operands=[other, self.parity, *at])
        ticks = build.constant(build.i32(), _TICKS)
        self.waiting = nvvm.mbarrier_try_wait_parity(self._pointer(), parity, ticks)

    def overlap(self) -> None:
        """Move the wait, and what is computed of what it waits for, behind stores that follow."""
        following = iter(self.waiting.block.operations)
        while next(following).operation != self.waiting:
            continue
        delayed, results, last = [self.waiting], set(self.buffers), None
        for each in following:
            op = each.operation
            if any(x in results for x in op.operands) or _uses_inside(op, results):
                if len(op.regions) or not op.name.startswith(_MOVABLE):
                    break
                delayed.append(op)
                results.update(op.results)
            elif any(map(_is_send, (op, *operations_in(op)))):
                last = op
        if last is not None:
            for op in reversed(delayed):
                op.move_after(last)

    def _pointer(self) -> Any:
        return pointer(self.barrier, _ONE, [0])


class Exchanges:
    """The exchanges of a kernel.

    Args:
        threads: those of the kernel.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._made: list[Exchange] = []

    def begin(self, size: int) -> Exchange:
        """Begin an exchange at the insertion point.

        Args:
            size: the bytes that each CTA gets.
        """
        repeats = self._is_in_loop()
        i64 = ir.IntegerType.get_signless(64)
        parity = None
        with self._threads.entry:
            barrier = allocate(layout_attribute(_ONE), i64)
            if repeats:
                kind = ir.MemRefType.get([1], build.i32())
                parity = ir.Operation.create(
                    "memref.alloca",
                    results=[kind],
                    attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
                ).result
                zero = build.constant(build.i32(), 0)
                ir.Operation.create("memref.store", operands=[zero, parity, build.index(0)])
        exchange = Exchange(barrier, size, parity)
        self._made.append(exchange)
        if repeats:
            with where(self._threads.is_first()):
                exchange.expect()
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
        sends = (op for op in operations_in(self._threads.kernel.launch) if _is_send(op))
        with ir.InsertionPoint(ancestor_in(self._threads.kernel.body, next(sends))):
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
