"""The entry and the end of a basic block: what lanes wait for, and where they continue.

Source: PTX ISA 9.7.12 (control flow), 9.7.13.1 (barriers), 9.3 (predicated execution).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.traps import trapped
from lego_mlir.sim.machine.memory import Fault
from lego_mlir.sim.ptx.syntax import Instruction

if TYPE_CHECKING:
    from lego_mlir.sim.machine.call_stack import CallSite
    from lego_mlir.sim.machine.wave import Wave
    from lego_mlir.sim.ptx.decoded import Barrier, Reader


@dataclass(frozen=True, slots=True)
class BasicBlockEnd:
    """The end of a basic block: a function that sets where the active lanes continue."""

    run: Callable[[Wave], None]

    @staticmethod
    def branch(guard: Reader | None, target: int | None, after: int | None) -> BasicBlockEnd:
        """Continue at `target` where the guard holds (everywhere without one), else at `after`."""
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
    def switch(
        guard: Reader | None, index: Reader, targets: Sequence[int], after: int | None
    ) -> BasicBlockEnd:
        """Continue where the guard holds at the target that the index of each lane selects."""

        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                active, chosen = w.active_in(taken), np.broadcast_to(index(w), w.lanes)
                for number in np.unique(chosen[active]):
                    lanes = active & (chosen == number)
                    if number >= len(targets):
                        raise Fault(
                            f"brx.idx selects target {number} of {len(targets)}",
                            int(np.argmax(lanes)),
                        )
                    w.make_ready(targets[number], lanes)
            if others:
                w.continue_at(after, rest)

        return BasicBlockEnd(run)

    @staticmethod
    def call(
        guard: Reader | None, site: CallSite, target: Reader | None, after: int | None
    ) -> BasicBlockEnd:
        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                w.calls.call(site, None if target is None else target(w), taken)
            if others:
                w.continue_at(after, rest)

        return BasicBlockEnd(run)

    @staticmethod
    def ret(guard: Reader | None, after: int | None) -> BasicBlockEnd:
        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                w.calls.ret(taken)
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
    """The wait of lanes, before an instruction, for the lanes of their warp in `members`.

    Attributes:
        warpgroup: whether they wait for all lanes of their warpgroup, too.
    """

    members: Reader
    guard: Reader | None
    instruction: Instruction
    warpgroup: bool = False

    def admits(self, w: Wave, at: int) -> bool:
        """Keep the lanes that can continue at basic block `at` in the mask; False: none."""
        return w.wait_for_warp(at, self)


@dataclass(frozen=True, slots=True)
class StallCondition:
    """The stall of lanes, before an instruction, until a condition holds (see `form.Wait`)."""

    holds: Reader
    reason: Callable[[Wave, int], str]
    awaits: Reader
    tries: bool
    guard: Reader | None
    instruction: Instruction

    def admits(self, w: Wave, at: int) -> bool:
        """Keep the lanes that can continue at basic block `at` in the mask; False: none."""
        return w.stalls.admits(at, self)
