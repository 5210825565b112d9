"""A decoded kernel: basic blocks of handlers, in the order that divergent lanes run them.

Decoding checks every instruction of the kernel, so unsupported ones are errors before the first
instruction runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import lego_mlir.sim.instructions  # noqa: F401  (fills the instruction table)
from lego_mlir.sim.checks import setmaxnreg_checks, uninitialized_registers
from lego_mlir.sim.checks.warpgroup import watched, wgmma_registers
from lego_mlir.sim.machine.basic_block_ends import BasicBlockEnd, Convergence, StallCondition
from lego_mlir.sim.machine.memory import FIRST_VARIABLE, base_of
from lego_mlir.sim.machine.wave import Wave
from lego_mlir.sim.ptx.flow import weak_topological_order
from lego_mlir.sim.ptx.form import (
    Barrier,
    Branch,
    Decoded,
    Exit,
    Form,
    Handler,
    Reader,
    SymbolTable,
    Trap,
    Uses,
    Wait,
    WarpCollective,
)
from lego_mlir.sim.ptx.syntax import (
    Address,
    Instruction,
    Kernel,
    Module,
    Symbol,
    TensorAddress,
    Variable,
)
from lego_mlir.sim.ptx.table import find
from lego_mlir.sim.ptx.types import PRED, Type

CARRY = "CC.CF"
"""The carry flag of extended-precision arithmetic (PTX ISA 9.7.2), kept as a register."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A decoded kernel.

    Attributes:
        basic_blocks: in running order; the position of a basic block is its priority.
        registers: type of each register, by index.
        shared_bytes: static shared memory of one CTA; dynamic memory follows it.
        dynamic_start: byte at which dynamic shared memory starts.
        local_bytes: of one thread.
        variables: the module's global and constant variables, by address window.
        shared: the shared variables, as (first byte, name) in the order of their addresses.
    """

    module: Module
    kernel: Kernel
    basic_blocks: tuple[BasicBlock, ...]
    registers: tuple[Type, ...]
    shared_bytes: int
    dynamic_start: int
    local_bytes: int
    variables: dict[int, Variable]
    shared: tuple[tuple[int, str], ...]

    def shared_name(self, at: int) -> str:
        """Return the name of a byte of shared memory: its variable and offset, `tile+96`."""
        start, name = max((v for v in self.shared if v[0] <= at), default=(0, "shared"))
        return f"{name}+{at - start}" if at > start else name


@lru_cache(maxsize=64)
def decode(module: Module, kernel: Kernel) -> Program:
    """Decode a kernel of a module.

    Raises:
        LegoError: it contains something unsupported, or something that is not valid PTX.
    """
    layout = _Layout(module, kernel)
    names = [*kernel.registers, CARRY]
    kinds = (*kernel.registers.values(), PRED)
    symbols = SymbolTable(
        module,
        {name: (i, kind) for i, (name, kind) in enumerate(zip(names, kinds, strict=True))},
        layout.addresses,
        frozenset(kernel.labels),
        wgmma_registers(kernel),
    )
    decoded: list[Decoded] = []
    uses: list[Uses] = []
    for i, instruction in enumerate(kernel.instructions):
        form = Form(instruction, symbols, find(module, instruction).section)
        decoded.append(_decode(form))
        uses.append(_uses(form, kernel.undefined.get(i, ())))
    program = Program(
        module,
        kernel,
        _basic_blocks(kernel, symbols, decoded, uses),
        kinds,
        layout.shared,
        layout.dynamic_start,
        layout.local,
        layout.variables,
        tuple(sorted((at, n) for n, (space, at) in layout.addresses.items() if space == "shared")),
    )
    setmaxnreg_checks.check(program)
    return uninitialized_registers.checked(program)


class _Layout:
    """The addresses of parameters and variables."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.addresses: dict[str, tuple[str, int]] = {}
        self.variables: dict[int, Variable] = {}
        self.shared = self.local = at = 0
        for parameter in kernel.parameters:
            at = _aligned(at, parameter.align)
            self.addresses[parameter.name] = ("param", at)
            at += parameter.size
        dynamic: list[Variable] = []
        used = {name for i in kernel.instructions for name in _symbols(i)}
        for variable in [*module.variables, *kernel.variables]:
            # As ptxas does, give shared memory only to what the kernel names.
            if variable.space != "shared" or variable.name in used:
                if variable.size is None:
                    dynamic.append(variable)
                else:
                    self._allocate(variable, variable.size)
        align = max((v.align for v in dynamic), default=1)
        self.dynamic_start = _aligned(self.shared, max(align, 16)) if dynamic else self.shared
        for variable in dynamic:
            if variable.space != "shared":
                raise module.error(
                    f"{variable.name} is declared elsewhere: linking is not modelled "
                    f"(PTX ISA 11.6.1)",
                    variable.line,
                )
            self.addresses[variable.name] = ("shared", self.dynamic_start)

    def _allocate(self, variable: Variable, size: int) -> None:
        if variable.space == "shared":
            start = _aligned(self.shared, variable.align)
            self.shared = start + size
        elif variable.space == "local":
            start = _aligned(self.local, variable.align)
            self.local = start + size
        else:
            window = FIRST_VARIABLE + len(self.variables)
            self.variables[window] = variable
            start = base_of(window)
        self.addresses[variable.name] = (variable.space, start)


def _aligned(at: int, align: int) -> int:
    return -(-at // align) * align


def _symbols(instruction: Instruction) -> list[str]:
    """Return the names of variables among the operands."""
    found = []
    for operand in instruction.operands:
        match operand:
            case Symbol(name) | Address(Symbol(name)) | TensorAddress(Address(Symbol(name))):
                found.append(name)
    return found


def _decode(form: Form) -> Decoded:
    instruction, symbols = form.instruction, form.symbols
    decoded = find(symbols.module, instruction).decode(form)
    decoded = watched(instruction, symbols, decoded)
    if instruction.guard is not None and callable(decoded):
        return _guarded(decoded, _guard(instruction, symbols))
    return decoded


def _uses(form: Form, undefined: Sequence[str]) -> Uses:
    """Return the registers that a decoded instruction accesses."""
    instruction, symbols = form.instruction, form.symbols
    asking = Form(instruction, symbols, "9.3")
    return Uses(
        tuple(form.reads),
        tuple(form.writes),
        None if instruction.guard is None else asking.predicate(instruction.guard),
        tuple(asking.reads),
        tuple(symbols.registers[name][0] for name in undefined),
    )


def _guard(instruction: Instruction, symbols: SymbolTable) -> Reader:
    assert instruction.guard is not None
    return Form(instruction, symbols, "9.3").predicate(instruction.guard)


def _guarded(execute: Handler, guard: Reader) -> Handler:
    """Return a handler for the active lanes where the guard holds (PTX ISA 9.3)."""

    def guarded(w: Wave) -> None:
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

    return guarded


def _basic_blocks(
    kernel: Kernel, symbols: SymbolTable, decoded: Sequence[Decoded], uses: Sequence[Uses]
) -> tuple[BasicBlock, ...]:
    """Divide the instructions into basic blocks, and order those."""
    count = len(decoded)
    leaders = {0, count}
    for i, d in enumerate(decoded):
        if isinstance(d, Branch):
            leaders.add(kernel.labels[d.target])
        if isinstance(d, Branch | Exit | Trap | Barrier):
            leaders.add(i + 1)
        elif isinstance(d, WarpCollective | Wait):
            leaders.add(i)
    starts = sorted(leaders)
    # The last start is one past the last instruction: falling off the end is `exit`.
    node_at = {start: node for node, start in enumerate(starts)}
    successors: list[list[int]] = []
    for stop in starts[1:]:
        last = decoded[stop - 1]
        next_node = node_at[stop]
        match last:
            case Branch(target):
                goal = node_at[kernel.labels[target]]
                guarded = kernel.instructions[stop - 1].guard is not None
                successors.append([next_node, goal] if guarded else [goal])
            case Exit() | Trap():
                guarded = kernel.instructions[stop - 1].guard is not None
                successors.append([next_node] if guarded else [])
            case _:
                successors.append([next_node])
    successors.append([])
    order = weak_topological_order(successors)
    position = {node: i for i, node in enumerate(order)}
    last_instruction = kernel.instructions[-1] if count else Instruction("exit", (), None, 0, 0)
    blocks = []
    for node in order:
        if starts[node] == count:
            blocks.append(
                BasicBlock((), (last_instruction,), BasicBlockEnd.exit(None, None), None, 0)
            )
            continue
        span = range(starts[node], starts[node + 1])
        after = position.get(node + 1)
        block = _basic_block(kernel, symbols, decoded, span, after, position, node_at)
        ways = tuple(position[n] for n in successors[node])
        blocks.append(replace(block, uses=tuple(uses[i] for i in span), successors=ways))
    return tuple(blocks)


def _basic_block(
    kernel: Kernel,
    symbols: SymbolTable,
    decoded: Sequence[Decoded],
    span: range,
    after: int | None,
    position: dict[int, int],
    node_at: dict[int, int],
) -> BasicBlock:
    handlers: list[Handler] = []
    instructions: list[Instruction] = []
    entry: Convergence | StallCondition | None = None
    for i in span:
        instruction, d = kernel.instructions[i], decoded[i]
        guard = None if instruction.guard is None else _guard(instruction, symbols)
        instructions.append(instruction)
        match d:
            case Branch(target):
                end = BasicBlockEnd.branch(guard, position[node_at[kernel.labels[target]]], after)
                return BasicBlock(tuple(handlers), tuple(instructions), end, entry, len(span))
            case Exit():
                end = BasicBlockEnd.exit(guard, after)
                return BasicBlock(tuple(handlers), tuple(instructions), end, entry, len(span))
            case Trap():
                end = BasicBlockEnd.trap(guard, after, instruction)
                return BasicBlock(tuple(handlers), tuple(instructions), end, entry, len(span))
            case Barrier():
                end = BasicBlockEnd.barrier(guard, d, after, instruction)
                return BasicBlock(tuple(handlers), tuple(instructions), end, entry, len(span))
            case WarpCollective(members, execute, warpgroup):
                entry = Convergence(members, guard, instruction, warpgroup)
                handlers.append(execute if guard is None else _guarded(execute, guard))
            case Wait(execute, holds, reason, awaits, tries):
                entry = StallCondition(holds, reason, awaits, tries, guard, instruction)
                handlers.append(execute if guard is None else _guarded(execute, guard))
            case execute:
                handlers.append(execute)
    end = BasicBlockEnd.branch(None, after, None)
    return BasicBlock(tuple(handlers), (*instructions, instructions[-1]), end, entry, len(span))
