"""What happens at the edges of a basic block: how its lanes go on, and what they wait for.

Source: PTX ISA 9.7.12 (control flow), 9.7.13.1 (barriers), 9.3 (predicated execution).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lego_mlir.sim.syntax import Instruction

if TYPE_CHECKING:
    from lego_mlir.sim.form import Reader
    from lego_mlir.sim.machine import Wave


@dataclass(frozen=True, slots=True)
class End:
    """How a basic block ends: a function that sends the group of lanes on."""

    run: Callable[[Wave], None]

    @staticmethod
    def branch(guard: Reader | None, target: int | None, after: int | None) -> End:
        """To `target` where the guard holds (everywhere without one), else to `after`."""
        assert target is not None
        goal = target
        if guard is None:
            return End(lambda w: w.go(goal, w.mask))

        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(guard(w))
            if some:
                w.go(goal, taken)
            if others:
                w.go_on(after, rest)

        return End(run)

    @staticmethod
    def exit(guard: Reader | None, after: int | None) -> End:
        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                w.leave(taken)
            if others:
                w.go_on(after, rest)

        return End(run)

    @staticmethod
    def trap(guard: Reader | None, after: int | None, instruction: Instruction) -> End:
        def run(w: Wave) -> None:
            taken, rest, some, _ = w.split(None if guard is None else guard(w))
            if some:
                raise w.error(f"the kernel trapped in {w.lane_name(w.first(taken))}", instruction)
            w.go_on(after, rest)

        return End(run)

    @staticmethod
    def barrier(
        guard: Reader | None,
        number: Reader,
        count: Reader | None,
        after: int | None,
        instruction: Instruction,
    ) -> End:
        def run(w: Wave) -> None:
            taken, rest, some, others = w.split(None if guard is None else guard(w))
            if some:
                assert after is not None
                w.arrive(number(w), None if count is None else count(w), after, taken, instruction)
            if others:
                w.go_on(after, rest)

        return End(run)


@dataclass(frozen=True, slots=True)
class Gather:
    """Before this instruction lanes wait for the lanes of their warp that `members` names."""

    members: Reader
    guard: Reader | None
    instruction: Instruction
