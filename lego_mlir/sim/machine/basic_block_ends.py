"""What happens at the edges of a basic block: what its lanes wait for, and how they go on.

Source: PTX ISA 9.7.12 (control flow), 9.7.13.1 (barriers), 9.3 (predicated execution).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lego_mlir.sim.checks.traps import trapped
from lego_mlir.sim.ptx.syntax import Instruction

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave
    from lego_mlir.sim.ptx.form import Barrier, Reader


@dataclass(frozen=True, slots=True)
class BasicBlockEnd:
    """How a basic block ends: a function that sends the group of lanes on."""

    run: Callable[[Wave], None]

    @staticmethod
    def branch(guard: Reader | None, target: int | None, after: int | None) -> BasicBlockEnd:
        """To `target` where the guard holds (everywhere without one), else to `after`."""
        assert target is not None
        goal = target
        if guard is None:
            return BasicBlockEnd(lambda w: w.make_ready(goal, w.mask))

        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(guard(w))
            if some:
                w.make_ready(goal, taken)
            if others:
                w.continue_at(after, rest)

        return BasicBlockEnd(run)

    @staticmethod
    def exit(guard: Reader | None, after: int | None) -> BasicBlockEnd:
        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                w.leave(taken)
            if others:
                w.continue_at(after, rest)

        return BasicBlockEnd(run)

    @staticmethod
    def trap(guard: Reader | None, after: int | None, instruction: Instruction) -> BasicBlockEnd:
        def run(w: Wave) -> None:
            taken, rest, some, _ = w.split(None if guard is None else guard(w))
            if some:
                raise trapped(w, instruction, w.first(taken))
            w.continue_at(after, rest)

        return BasicBlockEnd(run)

    @staticmethod
    def barrier(
        guard: Reader | None, barrier: Barrier, after: int | None, instruction: Instruction
    ) -> BasicBlockEnd:
        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                assert after is not None
                w.barriers.arrive(barrier, after, taken, instruction)
            if others:
                w.continue_at(after, rest)

        return BasicBlockEnd(run)


@dataclass(frozen=True, slots=True)
class Convergence:
    """Before this instruction lanes wait for the lanes of their warp that `members` names.

    Attributes:
        warpgroup: whether they wait for all lanes of their warpgroup, too.
    """

    members: Reader
    guard: Reader | None
    instruction: Instruction
    warpgroup: bool = False

    def admits(self, w: Wave, at: int) -> bool:
        """Whether any lane that has come to block `at` goes on now; those stay in the mask."""
        return w.wait_for_warp(at, self)


@dataclass(frozen=True, slots=True)
class StallCondition:
    """Before this instruction lanes stall until something holds for them (see `form.Wait`)."""

    holds: Reader
    reason: Callable[[Wave, int], str]
    awaits: Reader
    tries: bool
    guard: Reader | None
    instruction: Instruction

    def admits(self, w: Wave, at: int) -> bool:
        """Whether any lane that has come to block `at` goes on now; those stay in the mask."""
        return w.stalls.admits(at, self)
