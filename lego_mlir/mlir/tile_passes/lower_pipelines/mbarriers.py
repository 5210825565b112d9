"""The barriers of a ring: for each stage one that says it is full, and one that says it is empty.

Tile n lies in stage n mod stages, in the round n / stages. `full` completes the phase of a round
when the tile is there, `empty` when all consumers have released it. A wait names the parity of the
phase, the lowest bit of the round. Before the first round the phase before counts as complete.

Source: PTX ISA 9.7.13.15 (mbarrier: phases, transaction counts, parity waits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tile_passes.lower_pipelines.addresses import allocate_guarded
from lego_mlir.mlir.tile_passes.lower_pipelines.positions import Position
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where
from lego_mlir.mlir.tile_passes.lower_tiles.pointers import address, as_pointer, cluster_pointer

_ALL_LANES = -1
_BARRIER_BYTES = 8
_TICKS = 10_000_000
"""Nanoseconds that mbarrier.try_wait may suspend the thread."""


@dataclass(frozen=True)
class StageBarriers:
    """The barriers of the stages of a ring.

    Attributes:
        layout: of the barriers.
        full: those of tiles that are there.
        empty: those of tiles that are released.
    """

    layout: Layout
    full: Any
    empty: Any

    @staticmethod
    def make(stages: int) -> StageBarriers:
        """Build the barriers, which are not initialized yet."""
        layout = OrderBy(Row(stages))
        i64 = ir.IntegerType.get_signless(64)
        full, empty = (allocate_guarded(layout, i64, _BARRIER_BYTES) for _ in range(2))
        return StageBarriers(layout, full, empty)

    def initialize(self, producers: int, consumers: Any) -> None:
        """Build the initialization, which one thread does.

        Args:
            producers: the arrivals that make a stage full.
            consumers: the arrivals that make it empty, an i32.
        """
        for stage in range(int(self.layout.size)):
            at = build.index(stage)
            nvvm.mbarrier_init(self._at(self.full, at), build.constant(build.i32(), producers))
            nvvm.mbarrier_init(self._at(self.empty, at), consumers)

    def wait_empty(self, at: Position) -> None:
        """Build the wait for the release of the tile that was in the stage."""
        before = build.binary("xori", at.parity, build.constant(build.i32(), 1))
        self._wait(self.empty, at.stage, before)

    def wait_full(self, at: Position) -> None:
        """Build the wait for the tile."""
        self._wait(self.full, at.stage, at.parity)

    def expect(self, at: Position, size: int) -> None:
        """Build a thread's arrival at `full`, which the arrival of so many bytes completes."""
        nvvm.mbarrier_arrive_expect_tx(self.full_at(at), build.constant(build.i32(), size))

    def arrive_full(self, at: Position) -> None:
        """Build a thread's arrival at `full`."""
        nvvm.mbarrier_arrive(self.full_at(at))

    def empty_at(self, at: Position, cta: Any = None) -> Any:
        """Build the pointer to `empty` of a tile, of a CTA of the cluster if its rank is given."""
        barrier = self._at(self.empty, at.stage)
        if cta is None:
            return barrier
        return nvvm.of_block(cluster_pointer(), barrier, cta)

    def full_at(self, at: Position) -> Any:
        """Build the pointer to the barrier `full` of a tile."""
        return self._at(self.full, at.stage)

    def _wait(self, barriers: Any, stage: Any, parity: Any) -> None:
        ticks = build.constant(build.i32(), _TICKS)
        nvvm.mbarrier_try_wait_parity(self._at(barriers, stage), parity, ticks)

    def _at(self, barriers: Any, stage: Any) -> Any:
        return as_pointer(address(barriers, self.layout, [stage]))


def arrive_by_warps(barrier: Any) -> None:
    """Build the arrival of each warp at a barrier, behind what its lanes have done."""
    order_lanes()
    with where(nvvm.elect()):
        nvvm.mbarrier_arrive(barrier)


def order_lanes() -> None:
    """Build the wait of the lanes of a warp for one another."""
    lanes = build.constant(build.i32(), _ALL_LANES)
    ir.Operation.create("nvvm.bar.warp.sync", operands=[lanes])
