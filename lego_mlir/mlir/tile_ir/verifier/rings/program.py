"""What decides how a kernel uses its rings, decoded once into steps on numbers.

A program has the operations on rings, the loops and branches around them, and of all others those
on whose results it depends which of these run and with which numbers: no tiles, no addresses.
Every such result has a place in a list of numbers.

    scf.for %i = %c0 to %n step %c1 {
      %row = arith.muli %i, %c64                   // decides nothing: is counted only
      %k = arith.addi %i, %first                   numbers[3] = numbers[1] + numbers[2]
      "lego.wait"(%ring, %k)                       waits until numbers[3] is complete
    }
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.launch_sizes.promises import promised
from lego_mlir.mlir.tile_ir.interpreter.machine import ENDS, Machine
from lego_mlir.mlir.tile_ir.interpreter.rings import Ring
from lego_mlir.mlir.tile_ir.interpreter.roles import deadlock
from lego_mlir.mlir.tile_ir.interpreter.values import Value, dtype_of, number_of, wrapped
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.roles import role_around
from lego_mlir.mlir.tile_ir.types import has_tiles
from lego_mlir.mlir.tile_ir.verifier.deciding_values import deciding_values, end_of
from lego_mlir.mlir.tile_ir.verifier.rings.natural_numbers import on_naturals
from lego_mlir.mlir.tile_ir.verifier.rings.steps import RunningRole, on_ring, run_roles

Waiting: TypeAlias = Generator[tuple[Callable[[], bool], str], None, None]
"""Yields what has to hold before it goes on, with that in words."""

Execute: TypeAlias = "Callable[[Run], Waiting | None]"
"""Executes one operation; what may wait returns the rest of its execution."""

_KEPT = (dialect.LOAD, dialect.ATOMIC, CONSTANT)
"""Operations whose results keep the numbers that their places begin with."""


class Enough(Exception):
    """Ends a run that is long enough."""


@dataclass
class Run:
    """The state of one CTA.

    Attributes:
        machine: executes what is neither on rings nor on small numbers.
        numbers: the numbers of the program's places.
        most: operations after which the run ends.
        rings: by the ring's place in the program.
        count: operations that have been executed.
    """

    machine: Machine
    numbers: list[Any]
    most: int
    rings: list[Ring]
    count: int = 0

    def block(self, block: Block) -> Waiting:
        """Run a block.

        Raises:
            LegoError: at the operation that fails.
            Enough: the run is long enough.
        """
        for count, op, execute in block.steps:
            self.count += count
            if self.count > self.most:
                raise Enough
            try:
                rest = execute(self)
                if rest is not None:
                    yield from rest
            except LegoError as e:
                if e.location is None:
                    raise self.machine.source.error(e.message, op.location, hint=e.hint) from None
                raise
        self.count += block.rest


@dataclass
class Block:
    """A block of a program.

    Attributes:
        steps: what is executed: each operation, and how many it counts for with those before it
            that decide nothing.
        rest: how many decide nothing behind the last of them.
    """

    steps: list[tuple[int, Any, Execute]] = field(default_factory=list)
    rest: int = 0


class RingProgram:
    """The program of a kernel.

    Args:
        body: the block of the kernel.
        inside: the operations in it.
        machine: whose operations those are that are neither on rings nor on small numbers.
        unknown: the number that stands for each one that is not known.

    Raises:
        LegoError: at an operation that decides something, and that the interpreter does not know.
    """

    def __init__(self, body: Any, inside: Iterable[Any], machine: Machine, unknown: int) -> None:
        self._machine = machine
        self._unknown = unknown
        self._initial: list[Any] = []
        self._places: dict[Any, int] = {}
        self._deciding = deciding_values(inside)
        self._ring_places: dict[Any, int] = {}
        self._rings: list[tuple[int, frozenset[Any]]] = []
        self._role: Any = None
        self._body = self._block(body)

    def _place(self, value: Any) -> int:
        """Return the place of a value; at first it has the number of a constant, or the unknown."""
        found = self._places.get(value)
        if found is None:
            found = self._places[value] = len(self._initial)
            is_constant = not isinstance(value, ir.BlockArgument) and value.owner.name == CONSTANT
            known = number_of(value.owner.attributes["value"]).item() if is_constant else None
            self._initial.append(self._number_for(value) if known is None else known)
        return found

    def _number_for(self, value: Any) -> int:
        """Return the number that stands for one that is not known; a size's keeps its promises."""
        promise = promised(value)
        if promise is None:
            return self._unknown
        number = max(self._unknown * promise.divisor, promise.low)
        return number if promise.high is None else min(number, promise.high)

    def run(self, machine: Machine, known: Iterable[tuple[Any, int]], most: int) -> None:
        """Run the program for one CTA.

        Args:
            machine: of the CTA.
            known: values of the kernel whose numbers are known.
            most: operations after which the run ends.

        Raises:
            LegoError: roles wait for one another in a circle, or number tiles wrongly.
        """
        numbers = list(self._initial)
        for value, number in known:
            if value in self._places:
                numbers[self._places[value]] = number
        run = Run(machine, numbers, most, [Ring(*ring) for ring in self._rings])
        going = run.block(self._body)
        try:
            for _, what in going:
                going.throw(deadlock({"the kernel": what}))
        except Enough:
            pass

    def _block(self, block: Any) -> Block:
        made = Block()
        for op in (each.operation for each in block.operations):
            if op.name in ENDS:
                break
            made.rest += 1
            execute = self._decoded(op)
            if execute is not None:
                made.steps.append((made.rest, op, execute))
                made.rest = 0
        return made

    def _passed(self, sources: Iterable[Any], targets: Iterable[Any]) -> Callable[[Run], None]:
        """Return what gives values that decide the numbers of others, all at once."""
        both = [(a, b) for a, b in zip(sources, targets, strict=True) if b in self._deciding]
        places = [self._place(a) for a, _ in both]
        others = [self._place(b) for _, b in both]

        def execute(run: Run) -> None:
            found = [run.numbers[place] for place in places]
            for place, number in zip(others, found, strict=True):
                run.numbers[place] = number

        return execute

    def _decoded(self, op: Any) -> Execute | None:
        """Return what executes an operation, `None` if it decides nothing."""
        match op.name:
            case pipelines.MAKE_RING:
                (ring,) = op.results
                releases = [u.owner for u in ring.uses if u.owner.name == pipelines.RELEASE]
                self._ring_places[ring] = len(self._rings)
                consumers = frozenset(_role_of(release) for release in releases)
                self._rings.append((pipelines.stages_of(ring), consumers))
                return None
            case pipelines.ROLE:
                return self._roles(op)
            case "scf.for":
                return self._loop(op)
            case "scf.if":
                return self._branch(op)
            case "scf.while":
                return self._while(op)
        if op.name in pipelines.OF_RING:
            ring, number = self._ring_places[op.operands[0]], self._place(op.operands[1])
            return on_ring(op.name, ring, number, _role_of(op))
        is_computed = op.name not in _KEPT and not has_tiles(op)
        if not is_computed or not any(x in self._deciding for x in op.results):
            return None
        rest = self._by_machine(op)
        return on_naturals(op, self._place, rest) or rest

    def _by_machine(self, op: Any) -> Callable[[Run], None]:
        """Return what executes an operation as the interpreter does."""
        handler = self._machine.handler(op)
        results = [(x, self._place(x)) for x in op.results]
        operands = [
            (x, self._place(x), dtype_of(x.type))
            for x in op.operands
            if isinstance(x.type, (ir.IndexType, ir.IntegerType, ir.FloatType))
        ]

        def execute(run: Run) -> None:
            values = run.machine.values
            for value, place, dtype in operands:
                number = run.numbers[place]
                is_integer = dtype.kind in "iub"
                values[value] = Value.of(
                    wrapped(int(number), dtype) if is_integer else dtype.type(number)
                )
            if handler is not None:
                handler(run.machine, op)
                for value, place in results:
                    run.numbers[place] = values[value].number()

        return execute

    # Control flow.
    def _loop(self, op: Any) -> Execute:
        body = op.regions[0].blocks[0]
        low, high, step = (self._place(x) for x in list(op.operands)[:3])
        variable = self._place(body.arguments[0])
        carried = list(body.arguments)[1:]
        begin = self._passed(list(op.operands)[3:], carried)
        again = self._passed(end_of(body).operands, carried)
        end = self._passed(carried, op.results)
        block = self._block(body)

        def execute(run: Run) -> Waiting:
            numbers = run.numbers
            if numbers[step] < 1:
                raise LegoError(f"a loop has the step {numbers[step]}", hint="steps are at least 1")
            begin(run)
            for number in range(numbers[low], numbers[high], numbers[step]):
                run.count += 1
                numbers[variable] = number
                yield from run.block(block)
                again(run)
            end(run)

        return execute

    def _branch(self, op: Any) -> Execute:
        condition = self._place(op.operands[0])
        ways = [
            (self._block(block), self._passed(end_of(block).operands, op.results))
            for block in (region.blocks[0] for region in op.regions if len(region.blocks))
        ]

        def execute(run: Run) -> Waiting:
            way = 0 if run.numbers[condition] else 1
            if way < len(ways):
                block, end = ways[way]
                yield from run.block(block)
                end(run)

        return execute

    def _while(self, op: Any) -> Execute:
        before, after = (region.blocks[0] for region in op.regions)
        begin = self._passed(op.operands, before.arguments)
        condition, *passed = end_of(before).operands
        enter, leave = self._passed(passed, after.arguments), self._passed(passed, op.results)
        again = self._passed(end_of(after).operands, before.arguments)
        place, test, body = self._place(condition), self._block(before), self._block(after)

        def execute(run: Run) -> Waiting:
            begin(run)
            while True:
                run.count += 1
                yield from run.block(test)
                if not run.numbers[place]:
                    break
                enter(run)
                yield from run.block(body)
                again(run)
            leave(run)

        return execute

    def _roles(self, op: Any) -> Execute | None:
        """Return what runs all roles of a kernel, at its first one."""
        siblings = [o.operation for o in op.block.operations if o.operation.name == pipelines.ROLE]
        if op != siblings[0]:
            return None
        roles = [(pipelines.role_name(s), self._block(s.regions[0].blocks[0])) for s in siblings]
        return lambda run: run_roles([RunningRole(name, run.block(b)) for name, b in roles])


def _role_of(op: Any) -> Any:
    """Return what names the role of an operation: its block, or `None` without roles."""
    role = role_around(op)
    return None if role is None else role.regions[0].blocks[0]
