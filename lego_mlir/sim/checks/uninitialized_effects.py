"""The effects of instructions on uninitialized registers.

An unwritten value is harmless while it only moves between registers: LLVM leaves registers of
undefined values unwritten, copies them, computes with them and drops the result. So an instruction
either *needs* a register, because its effect is visible (it accesses memory, branches, communicates
with other threads), or its result is unwritten too:

- `mov` keeps what is unwritten byte by byte, also where it packs and unpacks, and so does `prmt`
  with a constant selector;
- `cvt` that packs two elements keeps an element unwritten whose source is;
- `selp` keeps what it selects; `and` and `or` ignore an operand that the other one overrides;
- the result of other arithmetic is unwritten where all bytes of an operand are.

A register is needed as a whole: it is an error if none of its bytes has been written. The same
holds for the elements of a store, of which some may be undefined. The address registers of a
`ldmatrix` are needed in those lanes whose rows it loads, and the accumulators of a `wgmma` where
they are added. What a thread stores in its own local memory is not needed: that is how LLVM keeps
a vector of which it sets one element after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.checks.warpgroup import registers_of
from lego_mlir.sim.cost.instruction_classes import PURE, class_of
from lego_mlir.sim.machine.memory import LOCAL, WINDOW_BITS
from lego_mlir.sim.numerics.shuffles import source_lanes
from lego_mlir.sim.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Negated,
    Operand,
    Register,
    Vector,
)
from lego_mlir.sim.ptx.table import find
from lego_mlir.sim.ptx.types import PRED, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave
    from lego_mlir.sim.ptx.decoded import Uses
    from lego_mlir.sim.ptx.program import Program

_MODES = ("up", "down", "bfly", "idx")

Mask = Array
"""The unwritten bytes of a register in each lane, one bit a byte; uint8."""

Rule = Callable[["Wave", Sequence[Mask]], Mask]


@dataclass(frozen=True, slots=True)
class Need:
    """A need: at least one of these registers must have been written.

    Attributes:
        where: the lanes that need it; None: all that execute the instruction.
    """

    registers: tuple[int, ...]
    where: Callable[[Wave], Array] | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow: a register that may be unwritten because its sources are.

    Attributes:
        rule: its mask, from those of the sources.
    """

    target: int
    sources: tuple[int, ...]
    rule: Rule


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an instruction: its needs, and the results that may be unwritten."""

    needs: tuple[Need, ...]
    flows: tuple[Flow, ...]


def whole(kind: Type) -> np.uint8:
    """Return the mask of a register of which no byte is written.

    Registers of 128 bits, which are moved as a whole, have the mask of one of 64.
    """
    return np.uint8(1 if kind == PRED else (1 << min(kind.bytes, 8)) - 1)


def effect(program: Program, index: dict[str, int], instruction: Instruction, uses: Uses) -> Effect:
    """Return the effect of an instruction where its guard holds; `index` is by name."""
    section = find(program.module, instruction).section
    if class_of(section, instruction) not in PURE:
        return Effect(tuple(_needs(instruction, uses, index)), ())
    needs, flows = _spread(program.registers, instruction, uses, index)
    return Effect(tuple(needs), flows)


# --- what shows ---


def _needs(instruction: Instruction, uses: Uses, index: dict[str, int]) -> list[Need]:
    word = instruction.opcode.split(".")[0]
    operands = instruction.operands

    def of(operand: Operand) -> tuple[int, ...]:
        return tuple(index[name] for name in registers_of(operand) if name in index)

    special: list[Need] = []
    match word:
        case "st" if len(operands) == 2:
            address, value = operands
            elements = value.elements if isinstance(value, Vector) else (value,)
            if all(of(element) for element in elements) and ".local" not in instruction.opcode:
                special = [Need(of(value), _not_local(address, index))]
            return [*(Need((r,)) for r in of(address)), *special]
        case "ldmatrix" | "stmatrix":
            at = 1 if word == "ldmatrix" else 0
            special = [Need((r,), _rows(instruction)) for r in of(operands[at])]
        case "shfl" if len(operands) > 4:
            special = [Need((r,), _chosen_lanes(instruction, index)) for r in of(operands[1])]
        case "wgmma" if len(operands) > 3:
            special = [Need((r,), _adds(operands[3], index)) for r in of(operands[0])]
    elsewhere = {r for need in special for r in need.registers}
    return [*special, *(Need((r,)) for r in dict.fromkeys(uses.reads) if r not in elsewhere)]


def _not_local(address: Operand, index: dict[str, int]) -> Callable[[Wave], Array] | None:
    """Return the lanes whose generic address is not in local memory."""
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    base = index[address.base.name]
    return lambda w: w.regs[base].astype(np.uint64) >> np.uint64(WINDOW_BITS) != np.uint64(LOCAL)


def _rows(instruction: Instruction) -> Callable[[Wave], Array]:
    """Return the lanes that give the address of a row."""
    count = next(int(word[1:]) for word in instruction.opcode.split(".") if word[0] == "x")
    return lambda w: w.lane_in_warp < 8 * count


def _chosen_lanes(instruction: Instruction, index: dict[str, int]) -> Callable[[Wave], Array]:
    """Return the lanes whose value a shuffle gives to a lane."""
    mode = next(word for word in instruction.opcode.split(".") if word in _MODES)

    def value(operand: Operand) -> Callable[[Wave], Array]:
        if isinstance(operand, Register) and operand.name in index:
            at = index[operand.name]
            return lambda w: w.regs[at]
        known = operand.value if isinstance(operand, Integer) else 0
        fixed = np.array([known % (1 << 32)], np.uint32)
        return lambda w: fixed

    by, clamp = map(value, instruction.operands[2:4])

    def chosen(w: Wave) -> Array:
        other, _ = source_lanes(mode, w.lane_in_warp, by(w), clamp(w))
        found = np.zeros(w.lanes, np.bool_)
        active = w.active()
        sources = (np.arange(w.lanes) + other - w.lane_in_warp)[active]
        found[sources[sources < w.lanes]] = True
        return found

    return chosen


def _adds(scale: Operand, index: dict[str, int]) -> Callable[[Wave], Array] | None:
    """Return the lanes in which the old value of an accumulator is added."""
    match scale:
        case Integer(value):
            fixed = np.array([value != 0])
            return lambda w: fixed
        case Register(name) | Negated(Register(name)) if name in index:
            at, negated = index[name], isinstance(scale, Negated)
            return lambda w: w.regs[at] != negated
    return None


# --- what spreads ---


def _spread(
    kinds: Sequence[Type], instruction: Instruction, uses: Uses, index: dict[str, int]
) -> tuple[list[Need], tuple[Flow, ...]]:
    word = instruction.opcode.split(".")[0]
    operands = instruction.operands
    match word, operands:
        case "mov", _ if "b128" in instruction.opcode:
            pass
        case "mov", (Vector(elements), Register(name)) if name in index:
            return [], tuple(_unpacked(kinds, elements, index[name], index))
        case "mov", (Register(name), Vector(elements)):
            return [], (_packed(kinds, index[name], elements, index),)
        case "mov", (Register(), Register(name)) if name in index:
            return [], (Flow(uses.writes[0], (index[name],), lambda w, masks: masks[0]),)
        case "cvt", (Register(name), upper, lower):
            return [], (_converted(kinds, index[name], (lower, upper), index),)
        case "prmt", (*_, Integer(selector)) if instruction.opcode == "prmt.b32":
            return [], (_permuted(uses.writes[0], operands[1:3], selector, index),)
        case "selp", (*_, (Register(name) | Negated(Register(name))) as by) if name in index:
            negated = isinstance(by, Negated)
            chosen = _chosen(uses.writes[0], operands[1:3], index[name], negated, index)
            return [Need((index[name],))], (chosen,)
        case "and" | "or", (_, Register(a), Register(b)) if a in index and b in index:
            return [], (_overruled(kinds, uses.writes[0], index[a], index[b], word == "and"),)
    full = [whole(kinds[r]) for r in uses.reads]

    def rule(target: int) -> Rule:
        all_of_it = whole(kinds[target])

        def lost(w: Wave, masks: Sequence[Mask]) -> Mask:
            found = np.zeros(1, np.bool_)
            for mask, f in zip(masks, full, strict=True):
                found = found | (mask == f)
            return np.where(found, all_of_it, np.uint8(0))

        return lost

    return [], tuple(Flow(target, uses.reads, rule(target)) for target in uses.writes)


def _unpacked(
    kinds: Sequence[Type], elements: Sequence[Operand], source: int, index: dict[str, int]
) -> list[Flow]:
    """Split a register's mask into its elements, the lowest first."""
    size = kinds[source].bytes // len(elements)
    part = np.uint8((1 << size) - 1)

    def rule(k: int) -> Rule:
        return lambda w, masks: masks[0] >> np.uint8(k * size) & part

    return [
        Flow(index[element.name], (source,), rule(k))
        for k, element in enumerate(elements)
        if isinstance(element, Register)
    ]


def _packed(
    kinds: Sequence[Type], target: int, elements: Sequence[Operand], index: dict[str, int]
) -> Flow:
    """Join elements' masks into the mask of a register, the lowest first."""
    size = kinds[target].bytes // len(elements)
    fields = [
        (index[e.name], np.uint8(k * size))
        for k, e in enumerate(elements)
        if isinstance(e, Register) and e.name in index
    ]

    def rule(w: Wave, masks: Sequence[Mask]) -> Mask:
        found = np.zeros(1, np.uint8)
        for mask, (_, shift) in zip(masks, fields, strict=True):
            found = found | mask << shift
        return found

    return Flow(target, tuple(r for r, _ in fields), rule)


def _converted(
    kinds: Sequence[Type], target: int, elements: Sequence[Operand], index: dict[str, int]
) -> Flow:
    """Join the masks of converted elements, the lowest first (PTX ISA 9.7.9.21, cvt)."""
    size = kinds[target].bytes // len(elements)
    part = np.uint8((1 << size) - 1)
    fields = [
        (index[e.name], whole(kinds[index[e.name]]), np.uint8(k * size))
        for k, e in enumerate(elements)
        if isinstance(e, Register) and e.name in index
    ]

    def rule(w: Wave, masks: Sequence[Mask]) -> Mask:
        found = np.zeros(1, np.uint8)
        for mask, (_, full, shift) in zip(masks, fields, strict=True):
            found = found | np.where(mask == full, part << shift, np.uint8(0))
        return found

    return Flow(target, tuple(r for r, _, _ in fields), rule)


def _permuted(
    target: int, operands: Sequence[Operand], selector: int, index: dict[str, int]
) -> Flow:
    """Select four bytes of eight; a sign is as unwritten as its byte."""
    sources, of = _registers(operands, index)

    def rule(w: Wave, masks: Sequence[Mask]) -> Mask:
        found = np.zeros(1, np.uint8)
        for k in range(4):
            pick = selector >> 4 * k & 7
            mask = of(masks, pick // 4)
            found = found | (mask >> np.uint8(pick % 4) & np.uint8(1)) << np.uint8(k)
        return found

    return Flow(target, sources, rule)


def _chosen(
    target: int, operands: Sequence[Operand], by: int, negated: bool, index: dict[str, int]
) -> Flow:
    """Select the mask of one of two operands."""
    sources, of = _registers(operands, index)

    def rule(w: Wave, masks: Sequence[Mask]) -> Mask:
        return np.where(w.regs[by] != negated, of(masks, 0), of(masks, 1))

    return Flow(target, sources, rule)


def _registers(
    operands: Sequence[Operand], index: dict[str, int]
) -> tuple[tuple[int, ...], Callable[[Sequence[Mask], int], Mask]]:
    """Return the operands that are registers, and a function to the masks of all operands."""
    found = [index[o.name] for o in operands if isinstance(o, Register) and o.name in index]
    which: list[int | None] = []
    for operand in operands:
        known = isinstance(operand, Register) and operand.name in index
        which.append(sum(w is not None for w in which) if known else None)
    nothing = np.zeros(1, np.uint8)

    def of(masks: Sequence[Mask], k: int) -> Mask:
        at = which[k]
        return nothing if at is None else masks[at]

    return tuple(found), of


def _overruled(kinds: Sequence[Type], target: int, a: int, b: int, is_and: bool) -> Flow:
    """Combine masks of `and` or `or`, where an operand may override the other."""
    full = whole(kinds[target])

    def rule(w: Wave, masks: Sequence[Mask]) -> Mask:
        lost_a, lost_b = (mask == full for mask in masks)
        open_a, open_b = ((w.regs[r] if is_and else ~w.regs[r]) != 0 for r in (a, b))
        lost = (lost_a & lost_b) | (lost_a & open_b) | (lost_b & open_a)
        return np.where(lost, full, np.uint8(0))

    return Flow(target, (a, b), rule)
