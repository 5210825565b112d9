"""A ring of buffers between a producer and its consumers, guarded by mbarriers.

Each slot has two barriers. `full` completes a phase when all bytes that were announced have
arrived; `empty` when every consumer has done with the slot. Both sides walk the ring by a position,
the slot and the parity of the phase they are in, which changes each time around.

Source: PTX ISA 9.7.13.15 (mbarrier: phases, transaction counts, parity waits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tiles.accesses import alloc, constant
from lego_mlir.mlir.tiles.pointers import CLUSTER, address, as_pointer, i32_constant, pointer

_TICKS = 10_000_000
"""Nanoseconds that a wait may suspend the thread before it looks again."""


@dataclass(frozen=True, slots=True)
class RingPosition:
    """Where a side is on the ring.

    Attributes:
        stage: an index.
        parity: of the phase, an i32 of 0 or 1.
    """

    stage: Any
    parity: Any


@dataclass(frozen=True, slots=True)
class RingBuffer:
    """The barriers of a ring.

    Attributes:
        stages: how many.
        layout: of the slots' barriers.
        full: the barriers that say a slot is filled.
        empty: those that say it may be filled again.
        cluster: blocks that fill one another's slots.
    """

    stages: int
    layout: Layout
    full: Any
    empty: Any
    cluster: int = 1

    @staticmethod
    def make(stages: int, cluster: int = 1) -> RingBuffer:
        """Room for the barriers of a ring, in shared memory."""
        layout = OrderBy(Row(stages))
        i64 = ir.IntegerType.get_signless(64)
        return RingBuffer(stages, layout, alloc(layout, i64), alloc(layout, i64), cluster)

    def initialize(self, consumers: int) -> None:
        """Set the counts; one thread does, and all wait for it.

        Args:
            consumers: arrivals that empty a slot, of one block.
        """
        for stage in range(self.stages):
            nvvm.mbarrier_init(self._at(self.full, stage), i32_constant(1))
            nvvm.mbarrier_init(self._at(self.empty, stage), i32_constant(consumers * self.cluster))
        nvvm.fence_mbarrier_init()

    def start(self) -> RingPosition:
        """The first position."""
        return RingPosition(constant(0), i32_constant(0))

    def next(self, at: RingPosition) -> RingPosition:
        """The position after another."""
        following = arith.AddIOp(at.stage, constant(1)).result
        around = arith.CmpIOp(arith.CmpIPredicate.eq, following, constant(self.stages)).result
        flipped = arith.XOrIOp(at.parity, i32_constant(1)).result
        return RingPosition(
            arith.SelectOp(around, constant(0), following).result,
            arith.SelectOp(around, flipped, at.parity).result,
        )

    def wait_empty(self, at: RingPosition) -> None:
        """Wait until the slot may be filled: at once the first time around."""
        other = arith.XOrIOp(at.parity, i32_constant(1)).result
        self._wait(self.empty, at.stage, other)

    def wait_full(self, at: RingPosition) -> None:
        """Wait until the slot is filled."""
        self._wait(self.full, at.stage, at.parity)

    def expect(self, at: RingPosition, size: int) -> Any:
        """Announce the bytes that will fill the slot; the barrier that counts them."""
        barrier = self._at(self.full, at.stage)
        nvvm.mbarrier_arrive_expect_tx(barrier, i32_constant(size))
        return barrier

    def release(self, stage: Any, cta_rank: Any = None) -> None:
        """Say that this consumer has done with a slot.

        Args:
            stage: an index.
            cta_rank: the rank in the cluster of the block to say it to, an i32; its own by default.
        """
        if cta_rank is None:
            nvvm.mbarrier_arrive(self._at(self.empty, stage))
            return
        own = as_pointer(address(self.empty, self.layout, [stage]))
        remote = nvvm.of_block(ir.Type.parse(f"!llvm.ptr<{CLUSTER}>"), own, cta_rank)
        nvvm.mbarrier_arrive(remote)

    def _wait(self, barriers: Any, stage: Any, parity: Any) -> None:
        nvvm.mbarrier_try_wait_parity(self._at(barriers, stage), parity, i32_constant(_TICKS))

    def _at(self, barriers: Any, stage: Any) -> Any:
        return pointer(barriers, self.layout, [stage])
