"""A ring buffer between a producer and its consumers, guarded by mbarriers.

Each stage has two barriers. `full` completes a phase when all expected bytes have arrived, `empty`
when every consumer has released the stage. A position on the ring is a stage and the parity of its
phase, which flips each time around.

Source: PTX ISA 9.7.13.15 (mbarrier: phases, transaction counts, parity waits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tiles.accesses import alloc, constant
from lego_mlir.mlir.tiles.pointers import i32_constant, pointer

TICKS = 10_000_000
"""Nanoseconds that mbarrier.try_wait may suspend the thread."""


@dataclass(frozen=True, slots=True)
class RingPosition:
    """The position of the producer or a consumer on the ring.

    Attributes:
        stage: the stage, an index.
        parity: the parity of its phase, an i32 of 0 or 1.
    """

    stage: Any
    parity: Any


@dataclass(frozen=True, slots=True)
class RingBuffer:
    """The barriers of a ring buffer.

    Attributes:
        stages: the number of stages.
        layout: the layout of the barriers.
        full: the barriers of filled stages.
        empty: the barriers of released stages.
    """

    stages: int
    layout: Layout
    full: Any
    empty: Any

    @staticmethod
    def make(stages: int) -> RingBuffer:
        """Allocate the barriers of a ring buffer in shared memory."""
        layout = OrderBy(Row(stages))
        i64 = ir.IntegerType.get_signless(64)
        return RingBuffer(stages, layout, alloc(layout, i64), alloc(layout, i64))

    def initialize(self, consumers: int) -> None:
        """Initialize the barriers; one thread does, and the others wait for it.

        Args:
            consumers: the arrivals that release a stage.
        """
        for stage in range(self.stages):
            nvvm.mbarrier_init(self._at(self.full, stage), i32_constant(1))
            nvvm.mbarrier_init(self._at(self.empty, stage), i32_constant(consumers))
        nvvm.fence_mbarrier_init()

    def start(self) -> RingPosition:
        """Return the first position."""
        return RingPosition(constant(0), i32_constant(0))

    def next(self, at: RingPosition) -> RingPosition:
        """Return the position after `at`."""
        following = arith.AddIOp(at.stage, constant(1)).result
        around = arith.CmpIOp(arith.CmpIPredicate.eq, following, constant(self.stages)).result
        flipped = arith.XOrIOp(at.parity, i32_constant(1)).result
        return RingPosition(
            arith.SelectOp(around, constant(0), following).result,
            arith.SelectOp(around, flipped, at.parity).result,
        )

    def wait_empty(self, at: RingPosition) -> None:
        """Wait until the stage may be filled, which it may the first time around."""
        other = arith.XOrIOp(at.parity, i32_constant(1)).result
        self._wait(self.empty, at.stage, other)

    def wait_full(self, at: RingPosition) -> None:
        """Wait until the stage is full."""
        self._wait(self.full, at.stage, at.parity)

    def expect(self, at: RingPosition, size: int) -> Any:
        """Announce the bytes that will fill the stage, and return the barrier that counts them."""
        barrier = self._at(self.full, at.stage)
        nvvm.mbarrier_arrive_expect_tx(barrier, i32_constant(size))
        return barrier

    def release(self, stage: Any) -> None:
        """Release a stage, an index, by this consumer."""
        nvvm.mbarrier_arrive(self._at(self.empty, stage))

    def _wait(self, barriers: Any, stage: Any, parity: Any) -> None:
        nvvm.mbarrier_try_wait_parity(self._at(barriers, stage), parity, i32_constant(TICKS))

    def _at(self, barriers: Any, stage: Any) -> Any:
        return pointer(barriers, self.layout, [stage])
