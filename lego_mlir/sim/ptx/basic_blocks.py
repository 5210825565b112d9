"""The division of a linked kernel into basic blocks, in the order that divergent lanes run them.

The kernel's entry comes first, then functions, those that are called before those that call them,
then the rest of the kernel: so lanes in a function run before those that wait for them behind the
call. Inside each of these the order is that of `flow`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lego_mlir.sim.machine.basic_block_ends import BasicBlockEnd, Convergence, StallCondition
from lego_mlir.sim.machine.call_stack import Callee, CallSite
from lego_mlir.sim.machine.wave import Wave
from lego_mlir.sim.ptx.decoded import (
    Barrier,
    Branch,
    Call,
    Decoded,
    Exit,
    Handler,
    Reader,
    Return,
    Switch,
    Trap,
    Uses,
    Wait,
    WarpCollective,
)
from lego_mlir.sim.ptx.flow import weak_topological_order
from lego_mlir.sim.ptx.linking import Linked
from lego_mlir.sim.ptx.syntax import Instruction, Kernel


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A basic block.

    Attributes:
        handlers: executed by all lanes that enter together.
        instructions: the instruction of each handler, and last that of the end.
        end: sets where the lanes continue.
        entry: what lanes wait for before the first handler: the other lanes of their warp, or a
            condition.
        length: the number of instructions; the end is not one if the basic block falls through.
        uses: the registers of each of those instructions.
        successors: the basic blocks where lanes may continue.
    """

    handlers: tuple[Handler, ...]
    instructions: tuple[Instruction, ...]
    end: BasicBlockEnd
    entry: Convergence | StallCondition | None
    length: int
    uses: tuple[Uses, ...] = ()
    successors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Decodings:
    """The decoded instructions of a linked kernel.

    Attributes:
        decoded, uses, guards: of each instruction.
        frames: routine (None: the kernel) → bytes of its variables in local memory.
    """

    linked: Linked
    decoded: Sequence[Decoded]
    uses: Sequence[Uses]
    guards: Sequence[Reader | None]
    frames: Mapping[str | None, int]


def guarded(execute: Handler, guard: Reader | None) -> Handler:
    """Return a handler for the active lanes where the guard holds (PTX ISA 9.3)."""
    if guard is None:
        return execute

    def run(w: Wave) -> None:
        mask = w.mask
        holds = guard(w)
        if len(holds) == 1:
            if holds[0]:
                execute(w)
            return
        both = holds if mask is None else holds & mask
        if both.any():
            w.mask = both
            execute(w)
            w.mask = mask

    return run


def divide(code: Decodings) -> tuple[tuple[BasicBlock, ...], dict[str, int]]:
    """Return the basic blocks in running order, and where each function begins."""
    linked, decoded = code.linked, code.decoded
    kernel, count = linked.kernel, len(decoded)
    leaders = {0, count, *(routine.start for routine in linked.routines)}
    for i, d in enumerate(decoded):
        if isinstance(d, Branch):
            leaders.add(kernel.labels[d.target])
        if isinstance(d, Switch):
            leaders.update(kernel.labels[target] for target in d.targets)
        if isinstance(d, _ENDS):
            leaders.add(i + 1)
        elif isinstance(d, WarpCollective | Wait):
            leaders.add(i)
    starts = sorted(leaders)
    # The last start is one past the last instruction: falling off the end is `exit`.
    node_at = {start: node for node, start in enumerate(starts)}
    successors = [
        [node_at[i] for i in _next(kernel, decoded[stop - 1], code.guards[stop - 1], stop)]
        for stop in starts[1:]
    ]
    successors.append([])
    first, *functions = [
        weak_topological_order(successors, node_at[routine.start]) for routine in linked.routines
    ]
    order = [first[0], *(node for nodes in functions for node in nodes), *first[1:]]
    position = {node: i for i, node in enumerate(order)}
    entries = {
        routine.function.name: position[node_at[routine.start]]
        for routine in linked.routines
        if routine.function is not None
    }
    last_instruction = kernel.instructions[-1] if count else Instruction("exit", (), None, 0, 0)
    make = _Maker(code, {start: position.get(node) for start, node in node_at.items()}, entries)
    blocks = []
    for node in order:
        if starts[node] == count:
            blocks.append(
                BasicBlock((), (last_instruction,), BasicBlockEnd.exit(None, None), None, 0)
            )
            continue
        span = range(starts[node], starts[node + 1])
        ways = tuple(position[n] for n in successors[node])
        block = make.block(span)
        blocks.append(replace(block, uses=tuple(code.uses[i] for i in span), successors=ways))
    return tuple(blocks), entries


_ENDS = (Branch, Switch, Exit, Return, Trap, Barrier, Call)


def _next(kernel: Kernel, last: Decoded, guard: Reader | None, stop: int) -> list[int]:
    """Return the instructions that may follow the end of a basic block in its routine."""
    after = [stop] if guard is not None else []
    match last:
        case Branch(target):
            return [*after, kernel.labels[target]]
        case Switch(_, targets):
            return [*after, *dict.fromkeys(kernel.labels[target] for target in targets)]
        case Exit() | Trap() | Return():
            return after
        case _:
            return [stop]


class _Maker:
    """Makes basic blocks of decoded instructions.

    Args:
        code: the instructions.
        position: index of a leader → its basic block; None if it is never reached.
        entries: function → its first basic block.
    """

    def __init__(
        self, code: Decodings, position: Mapping[int, int | None], entries: Mapping[str, int]
    ) -> None:
        self.code = code
        self.position = position
        self.entries = entries

    def label(self, name: str) -> int:
        at = self.position[self.code.linked.kernel.labels[name]]
        assert at is not None, "a branch reaches its target"
        return at

    def block(self, span: range) -> BasicBlock:
        handlers: list[Handler] = []
        instructions: list[Instruction] = []
        entry: Convergence | StallCondition | None = None
        for i in span:
            instruction, d = self.code.linked.kernel.instructions[i], self.code.decoded[i]
            guard = self.code.guards[i]
            instructions.append(instruction)
            if isinstance(d, _ENDS):
                end = self.end(d, guard, instruction, self.position.get(i + 1))
                return BasicBlock(tuple(handlers), tuple(instructions), end, entry, len(span))
            match d:
                case WarpCollective(members, execute, warpgroup):
                    entry = Convergence(members, guard, instruction, warpgroup)
                    handlers.append(guarded(execute, guard))
                case Wait(execute, holds, reason, awaits, tries):
                    entry = StallCondition(holds, reason, awaits, tries, guard, instruction)
                    handlers.append(guarded(execute, guard))
                case execute:
                    handlers.append(execute)
        end = BasicBlockEnd.branch(None, self.position[span.stop], None)
        instructions.append(instructions[-1])
        return BasicBlock(tuple(handlers), tuple(instructions), end, entry, len(span))

    def end(
        self, d: Decoded, guard: Reader | None, instruction: Instruction, after: int | None
    ) -> BasicBlockEnd:
        match d:
            case Branch(target):
                return BasicBlockEnd.branch(guard, self.label(target), after)
            case Switch(index, targets):
                return BasicBlockEnd.switch(guard, index, [self.label(t) for t in targets], after)
            case Return():
                return BasicBlockEnd.ret(guard, after)
            case Trap():
                return BasicBlockEnd.trap(guard, after, instruction)
            case Barrier():
                return BasicBlockEnd.barrier(guard, d, after, instruction)
            case Call():
                callees = {
                    address: Callee(self.entries[c.name], c.enter, c.leave)
                    for address, c in d.callees.items()
                }
                site = CallSite(instruction, after, self.code.frames[d.caller], d.saved, callees)
                return BasicBlockEnd.call(guard, site, d.target, after)
        return BasicBlockEnd.exit(guard, after)
