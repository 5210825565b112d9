"""A kernel with the functions that it calls, as one sequence of instructions.

Names of functions' registers, labels and variables begin with the function's name, so that nothing
meets here: the instructions of all routines stand one behind the other, and the rest is united.

Source: PTX ISA 7.1 (functions), 9.7.12.5 (call).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lego_mlir.sim.ptx.flow import components
from lego_mlir.sim.ptx.syntax import (
    Function,
    Group,
    Instruction,
    Kernel,
    Module,
    Operand,
    Register,
    Symbol,
)

_ENDS = ("ret", "exit", "trap", "bra", "brx")


@dataclass(frozen=True, slots=True)
class Routine:
    """A kernel (`function` is None) or function, and the range of its instructions."""

    function: Function | None
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Linked:
    """A kernel with its functions.

    Attributes:
        kernel: the kernel, with the registers, variables, instructions and labels of all routines.
        routines: the kernel first, then its functions, those that others call before these.
        recursive: function that may call itself → those that it may call and that may call it.
        indirect: the functions that a call by address may reach.
        called: routine (None: the kernel) → the functions that it calls.
    """

    kernel: Kernel
    routines: tuple[Routine, ...]
    recursive: Mapping[str, frozenset[str]]
    indirect: tuple[Function, ...]
    called: Mapping[str | None, tuple[str, ...]]


def call_operands(
    instruction: Instruction,
) -> tuple[tuple[Operand, ...], Operand | None, tuple[Operand, ...]]:
    """Return the results, the target and the arguments of a `call`."""
    operands = list(instruction.operands)
    results: tuple[Operand, ...] = ()
    arguments: tuple[Operand, ...] = ()
    if operands and isinstance(operands[0], Group):
        results = operands.pop(0).elements  # type: ignore[union-attr]
    target = operands.pop(0) if operands else None
    if operands and isinstance(operands[0], Group):
        arguments = operands.pop(0).elements  # type: ignore[union-attr]
    return results, target, arguments


def link(module: Module, kernel: Kernel) -> Linked:
    """Return a kernel with all functions that it may call."""
    taken = _taken(module, kernel)
    called: dict[str | None, tuple[str, ...]] = {}
    waiting: list[tuple[str | None, Sequence[Instruction]]] = [(None, kernel.instructions)]
    while waiting:
        name, of_routine = waiting.pop()
        called[name] = tuple(dict.fromkeys(_callees(module, of_routine, taken)))
        waiting += [
            (callee, module.functions[callee].instructions)
            for callee in called[name]
            if callee not in called
        ]
    if len(called) == 1:
        return Linked(kernel, (Routine(None, 0, len(kernel.instructions)),), {}, (), called)
    names = list(called)
    position = {name: at for at, name in enumerate(names)}
    edges = [[position[callee] for callee in called[name]] for name in names]
    groups = components([0], edges, set(position.values()))[::-1]
    functions = {n: module.functions[n] for group in groups for at in group if (n := names[at])}
    indirect = tuple(functions[name] for name in taken if name in functions)
    instructions, labels = _ended(kernel.instructions, "exit"), dict(kernel.labels)
    undefined = dict(kernel.undefined)
    routines = [Routine(None, 0, len(instructions))]
    for function in functions.values():
        start = len(instructions)
        instructions += _ended(function.instructions, "ret", function.line)
        labels |= {name: start + at for name, at in function.labels.items()}
        undefined |= {start + at: names for at, names in function.undefined.items()}
        routines.append(Routine(function, start, len(instructions)))
    every = functions.values()
    whole = replace(
        kernel,
        registers=dict(kernel.registers) | {n: t for f in every for n, t in f.registers.items()},
        instructions=tuple(instructions),
        labels=labels,
        undefined=undefined,
        tables=dict(kernel.tables) | {n: t for f in every for n, t in f.tables.items()},
    )
    recursive = {
        name: frozenset(names[k] or "" for k in group)
        for group in groups
        for at in group
        if (name := names[at]) and (len(group) > 1 or at in edges[at])
    }
    return Linked(whole, tuple(routines), recursive, indirect, called)


def _ended(instructions: Sequence[Instruction], word: str, line: int = 0) -> list[Instruction]:
    """Return the instructions, with an end if the last of them does not end the routine."""
    last = instructions[-1] if instructions else Instruction("", (), None, line, 1)
    if last.guard is None and last.opcode.split(".")[0] in _ENDS:
        return list(instructions)
    return [*instructions, Instruction(word, (), None, last.line, last.column, last.loc)]


def _taken(module: Module, kernel: Kernel) -> list[str]:
    """Return the functions of which something holds the address, that are not only declared."""
    routines = [kernel.instructions, *(f.instructions for f in module.functions.values())]
    names = [
        operand.name
        for instructions in routines
        for i in instructions
        if not i.opcode.startswith("call")
        for operand in i.operands
        if isinstance(operand, Symbol)
    ]
    names += [pointer.symbol.name for v in module.variables for pointer in v.pointers]
    names += [name for table in kernel.tables.values() for name in table]
    return [
        name
        for name in dict.fromkeys(names)
        if name in module.functions and not module.functions[name].declared
    ]


def _callees(
    module: Module, instructions: Sequence[Instruction], taken: Sequence[str]
) -> Iterator[str]:
    """Yield the functions with a body that these instructions may call."""
    for instruction in instructions:
        if instruction.opcode.split(".")[0] != "call":
            continue
        match call_operands(instruction)[1]:
            case Symbol(name) if name in module.functions:
                if not module.functions[name].declared:
                    yield module.functions[name].name
            case Register():
                yield from taken
