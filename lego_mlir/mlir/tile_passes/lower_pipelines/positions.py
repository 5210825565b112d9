"""Where the tiles of rings lie: the stage of a tile's number, and the parity of its round.

    %stage = %n mod stages
    %parity = %n / stages mod 2

If the stages are a power of two, these are bits of the number, unless that is divided by another
one, as of a loop with such a stride. Else loops carry them from one iteration to the next: it takes
several dependent multiplications to divide, for which all threads would wait before they even look
at a barrier.

    scf.for %i = 0 to %trips iter_args(%stage = 0, %parity = 0) {
      wait(full of %stage, %parity)
      %wraps = %stage == stages - 1
      yield %wraps ? 0 : %stage + 1, %parity xor %wraps
    }

A loop carries them if each of its iterations adds the same to the number. They begin with those of
the number before the loop, which a loop around it may carry. Rings without mbarriers have stages
only: nothing uses their parities, which are removed later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from lego_mlir.index import construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.modules import body_of, named_attributes
from lego_mlir.mlir.tile_ir.iterations import (
    BRANCH,
    LOOP,
    is_guarded_by,
    open_conditions,
)
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.scalars import Scalars
from lego_mlir.mlir.tile_passes.lower_pipelines.loop_numbers import (
    arguments_of,
    is_of_bits,
    rebuilt,
    step_of,
)
from lego_mlir.mlir.tile_passes.lower_tiles import build


@dataclass(frozen=True)
class Position:
    """Where a tile lies in a ring.

    Attributes:
        stage: its stage, an index.
        parity: the parity of its round, an i32 of 0 or 1.
    """

    stage: Any
    parity: Any

    @staticmethod
    def of(number: Any, stages: int) -> Position:
        """Build the position of a tile's number, an index."""
        stage = build.binary("remui", number, build.index(stages))
        turn = build.binary("divui", number, build.index(stages))
        odd = build.binary("andi", turn, build.index(1))
        return Position(stage, build.make("arith.index_cast", build.i32(), odd))

    def moved(self, distance: int, stages: int) -> Position:
        """Build the position of the tile whose number is greater by `distance`."""
        rounds, further = divmod(distance, stages)
        stage, parity = self.stage, self.parity
        if further:
            first = stages - further  # the first stage from which it wraps around
            if further == 1:
                wraps, around = build.compare("eq", stage, build.index(first)), build.index(0)
            else:
                wraps = build.compare("ult", build.index(first - 1), stage)
                around = build.binary("subi", stage, build.index(first))
            ahead = build.binary("addi", stage, build.index(further))
            stage = _bounded(build.select(wraps, around, ahead), stages)
            parity = build.binary("xori", parity, build.make("arith.extui", build.i32(), wraps))
        if rounds % 2:
            parity = build.binary("xori", parity, build.constant(build.i32(), 1))
        return Position(stage, parity)


@dataclass(frozen=True)
class _Carried:
    """A number whose position a loop carries.

    Attributes:
        number: the number, in the loop's body.
        before: what it is as the loop begins, in front of the loop; in its second iteration if the
            first one does not use it, where it may be negative.
        step: what each iteration adds.
        stages: of the ring.
        ahead: how much further the position is in the first iteration than that of `before`.
        position: that of the number, once the loop carries it.
    """

    number: Any
    before: Any
    step: int
    stages: int
    ahead: int
    position: Position | None = None


class Positions:
    """The positions of the tiles of one kernel.

    Args:
        kernel: the kernel, some of whose loops are replaced by loops that carry positions.
        numbers: for operations of the kernel the numbers of their tiles, and the rings' stages.
            Operands change, so that sets do not find operations any more that were put into them.
    """

    def __init__(self, kernel: TileKernel, numbers: Iterable[tuple[Any, Any, int]]) -> None:
        self._kernel = kernel
        self._carried: dict[Any, list[_Carried]] = {}
        for op, number, stages in list(numbers):
            self._request(op, number, stages)
        for loop in sorted(self._carried, key=self._depth):
            self._carry(loop)

    def of(self, op: Any, number: Any, stages: int) -> Position:
        """Build the position of a tile's number at the insertion point, which is before `op`."""
        found = self._known(self._loop_of(op, number, in_branches=True), number, stages)
        if found is None or found[0].position is None:
            return Position.of(number, stages)
        carried, distance = found
        assert carried.position is not None  # it has been tested
        return carried.position.moved(distance, stages)

    def _known(self, loop: Any, number: Any, stages: int) -> tuple[_Carried, int] | None:
        """Return a number that a loop carries, and how much greater the given one is."""
        read = Scalars()
        for carried in self._carried.get(loop, []):
            distance = construct.sub(read(number), read(carried.number))
            if carried.stages == stages and isinstance(distance, int):
                return carried, distance
        return None

    # What loops carry.
    def _request(self, op: Any, number: Any, stages: int) -> None:
        """Note that the loops around an operation carry the position of a number, if they can."""
        loop = None if is_of_bits(number, stages) else self._loop_of(op, number)
        if loop is None or self._known(loop, number, stages) is not None:
            return
        step = step_of(loop, number)
        if step is None:
            return
        arguments = list(body_of(loop).arguments)
        low, _, stride, *entering = list(loop.operands)
        is_late = is_guarded_by(op, loop)
        if is_late and arguments_of(number) & set(arguments[1:]):
            return
        with ir.InsertionPoint(loop), loop.location:
            first = build.binary("addi", low, stride) if is_late else low
            before = rebuilt(number, loop, dict(zip(arguments, [first, *entering], strict=True)))
        ahead = -step % (2 * stages) if is_late else 0
        self._carried.setdefault(loop, []).append(_Carried(number, before, step, stages, ahead))
        self._request(loop, before, stages)

    def _loop_of(self, op: Any, number: Any, *, in_branches: bool = False) -> Any | None:
        """Return the innermost loop around an operation on whose iterations a number depends.

        Args:
            op: the operation.
            number: the number.
            in_branches: whether the loop may be around a branch with the operation. What few
                iterations use is not worth carrying, but may be near what a loop carries.
        """
        arguments = arguments_of(number)
        around = op.parent.operation
        while around != self._kernel.launch and (
            in_branches or around.name != BRANCH or not open_conditions(around)
        ):
            if around.name == LOOP and arguments & set(body_of(around).arguments):
                return around
            around = around.parent.operation
        return None

    def _depth(self, op: Any) -> int:
        return 0 if op == self._kernel.launch else 1 + self._depth(op.parent.operation)

    def _carry(self, loop: Any) -> None:
        """Replace a loop, those around which carry what they can, by one that carries positions."""
        noted = self._carried.pop(loop)
        with ir.InsertionPoint(loop), loop.location:
            begin = [
                self.of(loop, each.before, each.stages).moved(each.ahead, each.stages)
                for each in noted
            ]
        made, values = _with_arguments(
            loop,
            [x for at in begin for x in (at.stage, at.parity)],
            [bound for each in noted for bound in (each.stages, 0)],
        )
        carried = list(body_of(made).arguments)[-2 * len(noted) :]
        positions = [Position(*carried[k : k + 2]) for k in range(0, len(carried), 2)]
        *_, end = body_of(made).operations
        with ir.InsertionPoint(end), loop.location:
            following = [
                at.moved(each.step, each.stages) for each, at in zip(noted, positions, strict=True)
            ]
            ir.Operation.create(
                "scf.yield",
                operands=[*end.operands, *(x for at in following for x in (at.stage, at.parity))],
            )
        end.operation.erase()
        loop.erase()
        self._carried[made] = [
            replace(each, position=at) for each, at in zip(noted, positions, strict=True)
        ]
        self._carried = {
            op: [
                replace(
                    each,
                    number=values.get(each.number, each.number),
                    before=values.get(each.before, each.before),
                )
                for each in found
            ]
            for op, found in self._carried.items()
        }


def _bounded(stage: Any, stages: int) -> Any:
    """Build an index with the bound that is known of it."""
    bounded = build.binary("andi", stage, stage)
    bounded.owner.attributes[dialect.BOUNDS] = dialect.bounds_attribute([stages])
    return bounded


def _with_arguments(
    loop: Any, entering: list[Any], bounds: list[int]
) -> tuple[Any, dict[Any, Any]]:
    """Build a loop that carries more values, whose yield lacks them yet.

    Args:
        loop: what it replaces; its operations move.
        entering: the values that it begins with.
        bounds: of these, 0 where none is known.

    Returns:
        The loop, and what stands for the arguments of the old one.
    """
    attributes = named_attributes(loop)
    known = dialect.bounds_of(loop) or [0] * len(loop.results)
    attributes[dialect.BOUNDS] = dialect.bounds_attribute([*known, *bounds])
    kinds = [*(x.type for x in loop.results), *(x.type for x in entering)]
    with ir.InsertionPoint(loop), loop.location:
        made = ir.Operation.create(
            LOOP,
            results=kinds,
            operands=[*loop.operands, *entering],
            attributes=attributes,
            regions=1,
        )
    types = [body_of(loop).arguments[0].type, *kinds]
    body = made.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))
    with ir.InsertionPoint(body), loop.location:
        here = ir.Operation.create("gpu.barrier")  # operations move before it
    for op in [each.operation for each in body_of(loop).operations]:
        op.move_before(here)
    here.erase()
    old = [*body_of(loop).arguments, *loop.results]
    new = [*list(body.arguments)[: 1 + len(loop.results)], *made.results]
    values = dict(zip(old, new, strict=False))
    for value, other in values.items():
        value.replace_all_uses_with(other)
    return made, values
