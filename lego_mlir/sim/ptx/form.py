"""The decoding of an instruction: its modifiers, and its operands as readers and writers.

Decoding turns each instruction once into a `Handler`, a function of the wave that performs it.
Types, constants, register numbers and addresses of variables are resolved here, and all errors in
an instruction are found here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from lego_mlir.sim.machine.special_registers import SPECIAL
from lego_mlir.sim.ptx import types
from lego_mlir.sim.ptx.syntax import (
    Float,
    Instruction,
    Integer,
    Module,
    Negated,
    Operand,
    Register,
    Sink,
    Symbol,
)
from lego_mlir.sim.ptx.types import PRED, TYPES, UNSIGNED, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

Handler = Callable[["Wave"], None]
Reader = Callable[["Wave"], Array]
Writer = Callable[["Wave", Array], None]


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch to `target` where the guard holds."""

    target: str


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit of the thread."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A trap, which aborts the kernel."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction of a predicate over the threads at a barrier: `popc`, `and` or `or`."""

    operation: str
    predicate: Reader
    write: Writer


@dataclass(frozen=True, slots=True)
class Barrier:
    """An arrival at barrier `number`, of `count` threads or of all threads of the CTA.

    Attributes:
        waits: whether the thread waits, or only arrives.
    """

    number: Reader
    count: Reader | None
    waits: bool = True
    reduction: Reduction | None = None


@dataclass(frozen=True, slots=True)
class WarpCollective:
    """A handler that the lanes of a warp in `members` execute together.

    Attributes:
        warpgroup: whether all warps of the warpgroup must converge first.
    """

    members: Reader
    execute: Handler
    warpgroup: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A handler before which a lane stalls until a condition holds.

    Attributes:
        execute: the handler.
        holds: whether each active lane may continue.
        reason: what a lane waits for, for the report of a deadlock: `for ...`.
        awaits: the mbarriers of the active lanes, as words of shared memory (see `mbarrier`).
        tries: whether the wait may fail, the first time and when nothing else can run; the handler
            then does what the instruction does when it fails.
    """

    execute: Handler
    holds: Reader
    reason: Callable[[Wave, int], str]
    awaits: Reader
    tries: bool


Decoded = Handler | Branch | Exit | Trap | Barrier | WarpCollective | Wait


@dataclass(frozen=True, slots=True)
class Uses:
    """The registers that an instruction accesses, by index.

    Attributes:
        reads, writes: of its operands, in those lanes where the guard holds.
        guard: where the instruction is performed; None: in all lanes.
        decides: the register of the guard, where it is one.
        undefined: the registers that get an undefined value before the instruction (see `Kernel`).
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    guard: Reader | None
    decides: tuple[int, ...]
    undefined: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """The names that a kernel can use.

    Attributes:
        registers: name → (index in the wave's register file, declared type).
        addresses: variable or parameter → (state space, address in that space).
        wgmma_registers: those that some `wgmma` of the kernel uses (see `warpgroup`).
    """

    module: Module
    registers: Mapping[str, tuple[int, Type]]
    addresses: Mapping[str, tuple[str, int]]
    labels: frozenset[str]
    wgmma_registers: frozenset[str] = frozenset()


class Form:
    """One instruction, as its decoder sees it.

    Attributes:
        modifiers: the opcode's words after the first.
        types: those of them that are types, in order.
        section: of the PTX ISA, for errors.
        reads, writes: the registers that its readers and writers access so far, by index.
    """

    def __init__(self, instruction: Instruction, symbols: SymbolTable, section: str) -> None:
        self.instruction = instruction
        self.symbols = symbols
        self.section = section
        self.opcode, *rest = instruction.opcode.split(".")
        self.modifiers = tuple(rest)
        self.types = [TYPES[word] for word in rest if word in TYPES]
        self.operands = instruction.operands
        self.reads: list[int] = []
        self.writes: list[int] = []

    def fail(self, message: str, operand: Operand | None = None) -> NoReturn:
        """Raise an error at the instruction, or at one of its operands."""
        column = operand.column if operand is not None else 0
        raise self.symbols.module.error(
            f"{message} in {self.instruction.opcode} (PTX ISA {self.section})",
            self.instruction.line,
            column or self.instruction.column,
        )

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    def one_of(self, *modifiers: str) -> str:
        """Return the first of these modifiers that the instruction has, or the empty string."""
        return next((word for word in self.modifiers if word in modifiers), "")

    def expect(self, least: int, most: int | None = None) -> None:
        """Check the number of operands."""
        most = least if most is None else most
        if not least <= len(self.operands) <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            self.fail(f"{len(self.operands)} operands where {expected} should stand")

    def constant(self, operand: Operand, least: int, most: int) -> int:
        """Return the value of an operand that must be an integer constant in a range."""
        if not isinstance(operand, Integer) or not least <= operand.value <= most:
            self.fail(
                f"the operand {operand} where a constant from {least} to {most} should stand",
                operand,
            )
        return operand.value

    # --- reading ---

    def read(self, operand: Operand, kind: Type, *, wider: bool = False) -> Reader:
        """Return a function of the wave that reads the operand as values of `kind`.

        Its result has one element for each lane, or a single one that stands for all lanes.

        Args:
            operand: a register, a special register, a constant or the name of a variable.
            kind: the type to read it as.
            wider: whether a wider register is allowed, whose low bits are read (ld, st and
                cvt, PTX ISA 9.4.1).
        """
        convert = types.values(kind)
        match operand:
            case Register(name) if name in self.symbols.registers:
                index, declared = self.symbols.registers[name]
                self._check(operand, declared, kind, wider)
                self.reads.append(index)
                if declared.bits == kind.bits:
                    if convert is None:
                        return lambda w: w.regs[index]
                    return lambda w: convert(w.regs[index])
                narrow = kind.storage
                if convert is None:
                    return lambda w: w.regs[index].astype(narrow)
                return lambda w: convert(w.regs[index].astype(narrow))
            case Register(name):
                return self._special(operand, name, kind, wider)
            case _:
                bits = self._constant(operand, kind)
                fixed = np.array([bits], kind.storage)
                value = fixed if convert is None else convert(fixed)
                value.flags.writeable = False
                return lambda w: value

    def _check(self, operand: Operand, declared: Type, kind: Type, wider: bool) -> None:
        same = declared.bits == kind.bits
        if wider and declared.bits > kind.bits and "pred" not in (declared.kind, kind.kind):
            return
        if not same or not (wider or types.compatible(declared, kind)):
            self.fail(f"the register {operand} is {declared} where {kind} should stand", operand)

    def _special(self, operand: Operand, name: str, kind: Type, wider: bool) -> Reader:
        known = SPECIAL.get(name)
        if known is None:
            self.fail(
                f"{name} is neither declared nor a special register that is modelled", operand
            )
        declared, read = known
        # ISA versions before 2.0 declared these 16 bits wide, and such a read is still legal.
        self._check(operand, declared, kind, wider or kind.bits == 16)
        convert = types.values(kind)
        narrow = kind.storage

        def value(w: Wave) -> Array:
            bits = read(w).astype(narrow, copy=False)
            return bits if convert is None else convert(bits)

        return value

    def _constant(self, operand: Operand, kind: Type) -> int:
        match operand:
            case Integer(number) if kind.kind == "pred":
                return int(number != 0)
            case Integer(number) if not kind.is_float:
                return number % (1 << kind.bits)
            case Float(bits, width) if kind.kind == "b" and kind.bits == width:
                return bits
            case Float(bits, width) if kind.name in ("f32", "f64"):
                if width == kind.bits:
                    return bits
                if kind.bits == 32:
                    return int(_double(bits).astype(np.float32).view(np.uint32)[0])
                single = np.array([bits], np.uint32).view(np.float32)
                return int(single.astype(np.float64).view(np.uint64)[0])
            case Symbol(name, offset) if kind.bits in (32, 64) and not kind.is_float:
                return (self.address(operand, name)[1] + offset) % (1 << kind.bits)
            case _:
                return self.fail(f"the operand {operand} where a {kind} should stand", operand)

    def address(self, operand: Operand, name: str) -> tuple[str, int]:
        """Return the state space of a variable or parameter, and its address there."""
        found = self.symbols.addresses.get(name)
        if found is None:
            self.fail(f"the name {name} is not declared", operand)
        return found

    def predicate(self, operand: Operand) -> Reader:
        """Return the reader of a predicate operand, negated or not."""
        if isinstance(operand, Negated):
            read = self.read(operand.register, PRED)
            return lambda w: ~read(w)
        return self.read(operand, PRED)

    # --- writing ---

    def write(self, operand: Operand, kind: Type, *, wider: bool = False) -> Writer:
        """Return a function that writes values of `kind` to the operand in the active lanes.

        Arrays in registers are never changed in place: two registers may share one.

        Args:
            operand: a register, or the sink `_`.
            kind: the type of the result.
            wider: whether a wider register is allowed; the value is extended, with its sign if
                the type has one (ld and cvt, PTX ISA 9.4.1).
        """
        if isinstance(operand, Sink):
            return lambda w, value: None
        if not isinstance(operand, Register) or operand.name not in self.symbols.registers:
            self.fail(f"the operand {operand} where a register should stand", operand)
        index, declared = self.symbols.registers[operand.name]
        self._check(operand, declared, kind, wider)
        self.writes.append(index)
        convert = _extended(declared, kind) if declared.bits > kind.bits else types.bits(kind)

        def write(w: Wave, value: Array) -> None:
            bits = value if convert is None else convert(value)
            if w.mask is not None:
                bits = np.where(w.mask, bits, w.regs[index])
            w.regs[index] = bits

        return write

    # --- the common shape ---

    def compute(
        self,
        function: Callable[..., Array],
        sources: Sequence[Type],
        result: Type,
        *,
        wider: bool = False,
    ) -> Handler:
        """Return the handler of `d = function(a, b, …)`, which writes the first operand."""
        self.expect(1 + len(sources))
        write = self.write(self.operands[0], result, wider=wider)
        readers = [
            self.read(operand, kind, wider=wider)
            for operand, kind in zip(self.operands[1:], sources, strict=True)
        ]
        match readers:
            case [a]:
                return lambda w: write(w, function(a(w)))
            case [a, b]:
                return lambda w: write(w, function(a(w), b(w)))
            case [a, b, c]:
                return lambda w: write(w, function(a(w), b(w), c(w)))
            case _:
                return lambda w: write(w, function(*[read(w) for read in readers]))


def _extended(declared: Type, kind: Type) -> Callable[[Array], Array]:
    """Return a function from values of `kind` to bits of a wider register."""
    storage = declared.storage
    if kind.is_signed:
        signed = np.dtype(f"i{declared.bits // 8}")
        return lambda v: v.astype(signed).view(storage)
    to_bits = types.bits(kind)
    if to_bits is None:
        return lambda v: v.astype(storage)
    return lambda v: to_bits(v).astype(storage)


def _double(bits: int) -> Array:
    return np.array([struct.unpack("<d", bits.to_bytes(8, "little"))[0]])


def uniform(value: int, bits: int = 32) -> Array:
    """Return a constant, as one element for all lanes."""
    return np.array([value % (1 << bits)], UNSIGNED[bits])
