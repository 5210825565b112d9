"""Ping-pong: two consumer warpgroups compute whole tiles in turns.

One multiplies while the other stores its tile. The producer loads the tiles in order, so that the
tiles of a warpgroup alternate in the ring buffer with those of the other, which it passes over:

    warpgroup 0:  tile b      | store           | tile b + 2p  | store
    warpgroup 1:              | tile b + p      | store        | tile b + 3p

A warpgroup waits for its turn before its main loop, and gives the turn away when it has issued the
loop's last wgmma, so that the tensor cores get no wgmma of a later tile first. A turn is a phase of
an mbarrier, which completes when the warps of the other warpgroup have arrived; the first turn of
warpgroup 0 needs no arrival, as the phase before the first one counts as complete.

Turns also keep the ring buffer right. Stages are waited for by the parity of their phase, so nobody
may wait for a phase while the one before it is open. When a warpgroup's turn begins, the other one
has seen all of its own phases complete, which are those before.

Source: PTX ISA 9.7.13.15 (mbarrier); CUTLASS, "Efficient GEMM in CUDA" (warp-specialized
persistent ping-pong kernel design).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import GenP, OrderBy, Row, reverse
from lego_mlir.hardware.limits import WARPGROUP_WARPS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles.accesses import alloc, apply, constant
from lego_mlir.mlir.tiles.main_loop import MainLoop
from lego_mlir.mlir.tiles.pointers import i32_constant, pointer
from lego_mlir.mlir.tiles.structure import known_size
from lego_mlir.mlir.warp_specialized.ring_buffer import TICKS, RingBuffer, RingPosition

TEAMS = 2
"""The warpgroups that compute tiles in turns."""

_BARRIERS = OrderBy(Row(TEAMS))
_OTHER = OrderBy(GenP([TEAMS], reverse))
"""The barrier on which a warpgroup waits for its turn, and that of the other one."""


def teams_of(op: Any) -> int:
    """Return the teams of consumers, each with whole tiles, of the kernel that contains `op`."""
    attributes = scope_of(op).kernel.attributes
    return TEAMS if dialect.PING_PONG in attributes else 1


def check(step: TransformStep, launch: Any, main_loop: MainLoop, overlap_epilogue: bool) -> None:
    """Check that two warpgroups can compute the tiles of a kernel in turns.

    Raises:
        LegoError: a CTA computes one tile, several warpgroups share a tile, the epilogue is
            overlapped already, or the number of iterations is unknown.
    """
    if overlap_epilogue:
        raise step.misuse(
            "with ping-pong an epilogue overlaps with the other warpgroup's main loop already",
            hint=step.option("overlap_epilogue", 0),
        )
    if main_loop.outer is None:
        raise step.error(
            "ping-pong needs CTAs that compute several tiles",
            launch,
            hint="persist before, with fewer persistent_ctas than tiles; or "
            + step.option("ping_pong", 0),
        )
    if main_loop.warp_count != WARPGROUP_WARPS:
        raise step.error(
            f"with ping-pong a tile has one warpgroup, and {main_loop.warp_count} warps contract "
            "it",
            main_loop.contract,
            hint=f'lego.warps = #lego.layout<"OrderBy(Row({WARPGROUP_WARPS}, 1))">',
        )
    if _iterations(step, main_loop) is None:
        raise step.error(
            "ping-pong needs a K loop from 0 to a constant by steps of 1", main_loop.loop
        )


def _iterations(step: TransformStep, main_loop: MainLoop) -> int | None:
    """Return the iterations of the K loop, `None` if they are not known."""
    lower, upper, stride = (
        known_size(v, step.pass_context) for v in list(main_loop.loop.operands)[:3]
    )
    return upper if (lower, stride) == (0, 1) else None


@dataclass(frozen=True, slots=True)
class PingPong:
    """The turns of the two warpgroups.

    Attributes:
        iterations: the iterations of a tile's K loop.
        memory: the barriers of the turns.
    """

    iterations: int
    memory: Any

    @staticmethod
    def make(step: TransformStep, launch: Any, main_loop: MainLoop) -> PingPong:
        """Allocate the barriers of the turns in shared memory, and mark the kernel."""
        launch.attributes[dialect.PING_PONG] = ir.UnitAttr.get()
        iterations = _iterations(step, main_loop)
        assert iterations is not None
        return PingPong(iterations, alloc(_BARRIERS, ir.IntegerType.get_signless(64)))

    def initialize(self) -> None:
        """Initialize the barriers; one thread does, before a fence."""
        for team in range(TEAMS):
            barrier = pointer(self.memory, _BARRIERS, [team])
            nvvm.mbarrier_init(barrier, i32_constant(WARPGROUP_WARPS))

    def tiles(self, team: Any, bounds: list[Any]) -> list[Any]:
        """Return the bounds of a warpgroup's loop over tiles.

        Args:
            team: the warpgroup, an index.
            bounds: the bounds of the loop over all tiles of the CTA.
        """
        first, end, stride = bounds
        skipped = arith.MulIOp(team, stride).result
        return [
            arith.AddIOp(first, skipped).result,
            end,
            arith.MulIOp(stride, constant(TEAMS)).result,
        ]

    def start(self, team: Any, ring: RingBuffer) -> tuple[RingPosition, Any]:
        """Return a warpgroup's first position on the ring, and the parity of its first turn."""
        is_first = arith.CmpIOp(arith.CmpIPredicate.eq, team, constant(0)).result
        own, later = ring.start(), ring.after(ring.start(), self.iterations)
        stage = arith.SelectOp(is_first, own.stage, later.stage).result
        parity = arith.SelectOp(is_first, own.parity, later.parity).result
        turn = arith.SelectOp(is_first, i32_constant(1), i32_constant(0)).result
        return RingPosition(stage, parity), turn

    def wait(self, team: Any, turn: Any) -> Any:
        """Wait for a warpgroup's turn, and return the parity of its next one."""
        barrier = pointer(self.memory, _BARRIERS, [team])
        nvvm.mbarrier_try_wait_parity(barrier, turn, i32_constant(TICKS))
        return arith.XOrIOp(turn, i32_constant(1)).result

    def give_turn(self, team: Any) -> None:
        """Give the turn to the other warpgroup, for this warp."""
        barrier = pointer(self.memory, _BARRIERS, [apply(_OTHER, [team])])
        guard = scf.IfOp(nvvm.elect())
        with ir.InsertionPoint(guard.then_block):
            nvvm.mbarrier_arrive(barrier)
            scf.YieldOp([])
