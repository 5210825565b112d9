"""A decoded kernel: basic blocks of handlers, in the order that divergent lanes run them.

Decoding checks every instruction of the kernel, so unsupported ones are errors before the first
instruction runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import lego_mlir.sim.instructions  # noqa: F401  (fills the instruction table)
from lego_mlir.sim.checks import setmaxnreg_checks, uninitialized_registers
from lego_mlir.sim.checks.warpgroup import watched, wgmma_registers
from lego_mlir.sim.machine.memory import CODE, FIRST_VARIABLE, WINDOWS, base_of
from lego_mlir.sim.ptx.basic_blocks import BasicBlock, Decodings, divide, guarded
from lego_mlir.sim.ptx.decoded import Decoded, Reader, Uses
from lego_mlir.sim.ptx.form import Form, SymbolTable
from lego_mlir.sim.ptx.linking import Linked, link
from lego_mlir.sim.ptx.syntax import (
    Address,
    Function,
    Group,
    Instruction,
    Kernel,
    Module,
    Operand,
    Symbol,
    TensorAddress,
    Variable,
)
from lego_mlir.sim.ptx.table import Entry, look_up
from lego_mlir.sim.ptx.types import PRED, Type

CARRY = "CC.CF"
"""The carry flag of extended-precision arithmetic (PTX ISA 9.7.2), kept as a register."""

_FRAMED = ("local", "param")
"""State spaces of which each call of a function has its own variables."""

_FRAME = 16
"""Alignment of a function's frame, in bytes."""


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
        pointers: (window of a variable, byte in it) → an address of its initial value, and size.
        entries: function → its first basic block.
        formals: the registers that calls write, by index.
        recursive: whether a function may call itself.
        largest_frame: bytes of the largest frame of a function in local memory.
        shadows: register → its shadow (see `uninitialized_registers`).
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
    pointers: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)
    formals: frozenset[int] = frozenset()
    recursive: bool = False
    largest_frame: int = 0
    shadows: Mapping[int, int] = field(default_factory=dict)

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
    linked = link(module, kernel)
    kernel = linked.kernel
    layout = _Layout(module, linked)
    names = [*kernel.registers, CARRY]
    kinds = (*kernel.registers.values(), PRED)
    symbols = SymbolTable(
        module,
        {name: (i, kind) for i, (name, kind) in enumerate(zip(names, kinds, strict=True))},
        layout.addresses,
        frozenset(kernel.labels),
        wgmma_registers(kernel),
        linked,
        frames=layout.frames,
        variables=layout.sizes,
    )
    decoded: list[Decoded] = []
    uses: list[Uses] = []
    guards: list[Reader | None] = []
    for routine in linked.routines:
        own = replace(symbols, function=routine.function)
        for i in range(routine.start, routine.stop):
            instruction = kernel.instructions[i]
            entry, modifiers = look_up(module, instruction)
            form = Form(instruction, own, entry.section, modifiers)
            guards.append(_guard(instruction, own))
            decoded.append(_decode(form, entry, guards[-1]))
            uses.append(_uses(form, kernel.undefined.get(i, ())))
    blocks, entries = divide(Decodings(linked, decoded, uses, guards, layout.frames))
    formals = {
        symbols.registers[p.name][0]
        for routine in linked.routines
        if routine.function is not None
        for p in routine.function.parameters
        if p.register
    }
    program = Program(
        module,
        kernel,
        blocks,
        kinds,
        layout.shared,
        layout.dynamic_start,
        layout.stack(linked),
        layout.variables,
        tuple(sorted((at, n) for n, (space, at) in layout.addresses.items() if space == "shared")),
        layout.pointers(),
        entries,
        frozenset(formals),
        bool(linked.recursive),
        max(layout.frames.values()),
    )
    setmaxnreg_checks.check(program)
    return uninitialized_registers.checked(program)


class _Layout:
    """The addresses of parameters, variables and functions.

    Attributes:
        frames: routine → bytes of its variables in local memory.
        sizes: variable in local memory → its bytes.
    """

    def __init__(self, module: Module, linked: Linked) -> None:
        kernel = linked.kernel
        self.module = module
        self.addresses: dict[str, tuple[str, int]] = {}
        self.variables: dict[int, Variable] = {}
        self.frames: dict[str | None, int] = {}
        self.sizes: dict[str, int] = {}
        self.shared = self.local = at = 0
        for parameter in kernel.parameters:
            at = _aligned(at, parameter.align)
            self.addresses[parameter.name] = ("param", at)
            at += parameter.size
        dynamic: list[Variable] = []
        used = {name for i in kernel.instructions for name in _symbols(i.operands)}
        functions = [r.function for r in linked.routines if r.function is not None]
        static = [v for f in functions for v in f.variables if v.space not in _FRAMED]
        for variable in [*module.variables, *kernel.variables, *static]:
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
        self.frames[None] = _aligned(self.local, _FRAME)
        for number, function in enumerate(functions):
            self.addresses[function.name] = ("code", base_of(CODE) + 16 * number)
            self._frame(function)

    def _frame(self, function: Function) -> None:
        """Give the variables of a function their places in its frame."""
        at = 0
        for variable in function.variables:
            if variable.space not in _FRAMED:
                continue
            if variable.size is None:
                raise self.module.error(
                    f"the variable {variable.name} of a function needs its size (PTX ISA 7.1)",
                    variable.line,
                )
            at = _aligned(at, variable.align)
            self.addresses[variable.name] = ("frame", at)
            self.sizes[variable.name] = variable.size
            at += variable.size
        self.frames[function.name] = _aligned(at, _FRAME)

    def stack(self, linked: Linked) -> int:
        """Return the bytes of local memory that a thread needs; those of recursion grow later."""
        deepest: dict[str | None, int] = {}
        for routine in (*linked.routines[1:], linked.routines[0]):
            name = routine.function.name if routine.function else None
            inner = (deepest.get(callee, 0) for callee in linked.called[name])
            deepest[name] = self.frames[name] + max(inner, default=0)
        return deepest[None]

    def pointers(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the addresses in initial values of variables (see `Program`)."""
        found = {}
        for window, variable in self.variables.items():
            for pointer in variable.pointers:
                space, at = self.addresses.get(pointer.symbol.name, ("", 0))
                if not space or space in ("frame", "param"):
                    raise self.module.error(
                        f"the initial value of {variable.name} is the address of "
                        f"{pointer.symbol.name}, which has none (PTX ISA 5.4.4)",
                        variable.line,
                    )
                base = base_of(WINDOWS[space]) if pointer.generic and space in WINDOWS else 0
                found[window, pointer.at] = at + pointer.symbol.offset + base, pointer.size
        return found

    def _allocate(self, variable: Variable, size: int) -> None:
        if variable.space == "shared":
            start = _aligned(self.shared, variable.align)
            self.shared = start + size
        elif variable.space in ("local", "param"):
            start = _aligned(self.local, variable.align)
            self.local = start + size
            self.sizes[variable.name] = size
        else:
            window = FIRST_VARIABLE + len(self.variables)
            self.variables[window] = variable
            start = base_of(window)
        space = "local" if variable.space == "param" else variable.space
        self.addresses[variable.name] = (space, start)


def _aligned(at: int, align: int) -> int:
    return -(-at // align) * align


def _symbols(operands: Sequence[Operand]) -> list[str]:
    """Return the names of variables among the operands."""
    found = []
    for operand in operands:
        match operand:
            case Symbol(name) | Address(Symbol(name)) | TensorAddress(Address(Symbol(name))):
                found.append(name)
            case Group(elements):
                found += _symbols(elements)
    return found


def _guard(instruction: Instruction, symbols: SymbolTable) -> Reader | None:
    if instruction.guard is None:
        return None
    return Form(instruction, symbols, "9.3").predicate(instruction.guard)


def _decode(form: Form, entry: Entry, guard: Reader | None) -> Decoded:
    decoded = watched(form.instruction, form.symbols, entry.decode(form))
    return guarded(decoded, guard) if callable(decoded) else decoded


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
