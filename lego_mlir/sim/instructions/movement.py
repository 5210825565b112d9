"""Moves of registers, and conversions of addresses. Source: PTX ISA 9.7.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.memory.addresses import SPACE, own_rank, rank_of, space_of
from lego_mlir.sim.machine.memory import PARAM, WINDOW_BITS, WINDOWS, base_of
from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Operand, Register, Vector
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B32, B64, TYPES, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave


@instruction("9.7.9.3", "mov b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f32|f64|pred")
def mov(form: Form) -> Handler:
    """Copy; take the address of a variable; pack a vector into a register, or unpack one."""
    form.expect(2)
    kind = form.types[0]
    target, source = form.operands
    if isinstance(target, Vector):
        return _unpack(form, target, source, kind)
    if isinstance(source, Vector):
        return _pack(form, target, source, kind)
    read, write = form.read(source, kind), form.write(target, kind)
    return lambda w: write(w, read(w))


def _part(form: Form, vector: Vector, kind: Type) -> Type:
    """The type of one of a vector's elements that fill a register of `kind`."""
    bits, rest = divmod(kind.bits, len(vector.elements))
    if rest or bits not in (8, 16, 32, 64) or kind.kind != "b":
        form.fail(f"a {kind} has no {len(vector.elements)} fields", vector)
    return TYPES[f"b{bits}"]


def _unpack(form: Form, target: Vector, source: Operand, kind: Type) -> Handler:
    part = _part(form, target, kind)
    read = form.read(source, kind)
    writes = [form.write(element, part) for element in target.elements]

    def split(w: Wave) -> None:
        halves = np.ascontiguousarray(read(w)).view(np.uint64).reshape(-1, 2)
        for k, write in enumerate(writes):
            write(w, halves[:, k])

    if kind.bits == 128:
        return split

    def execute(w: Wave) -> None:
        value = read(w)
        for k, write in enumerate(writes):
            write(w, (value >> value.dtype.type(k * part.bits)).astype(part.storage))

    return execute


def _pack(form: Form, target: Operand, source: Vector, kind: Type) -> Handler:
    part = _part(form, source, kind)
    reads = [form.read(element, part) for element in source.elements]
    write = form.write(target, kind)

    def join(w: Wave) -> None:
        halves = np.broadcast_arrays(*[read(w) for read in reads])
        write(w, np.stack(halves, axis=1).view(kind.storage).reshape(-1))

    if kind.bits == 128:
        return join

    def execute(w: Wave) -> None:
        value = reads[0](w).astype(kind.storage)
        for k, read in enumerate(reads[1:], 1):
            value = value | read(w).astype(kind.storage) << kind.dtype.type(k * part.bits)
        write(w, value)

    return execute


@instruction(
    "9.7.9.20",
    f"cvta {SPACE} u32|u64",
    f"cvta to {SPACE} u32|u64",
)
def cvta(form: Form) -> Handler:
    """A generic address from one in a state space, or back (`.to`).

    Addresses of global and constant memory are generic already.
    """
    kind = form.types[0]
    space = space_of(form)
    if kind.bits == 32:
        form.fail("a 32-bit generic address")
    if space not in WINDOWS:
        return form.compute(lambda a: a, [kind], kind)
    base = np.uint64(base_of(WINDOWS[space]))
    if form.has("to"):
        return form.compute(lambda a: a - base, [kind], kind)
    return form.compute(lambda a: a + base, [kind], kind)


@instruction("9.7.9.19", f"isspacep {SPACE}")
def isspacep(form: Form) -> Handler:
    """Whether a generic address lies in a state space."""
    form.expect(2)
    space = space_of(form)
    if space == "const":
        form.fail("a query for constant memory")
    operand = form.operands[1]
    short = isinstance(operand, Register) and (
        form.symbols.registers.get(operand.name, (0, B64))[1].bits == 32
    )
    # An address of 32 bits lies in no window but the first, in which there is no memory.
    given = form.read(operand, B32 if short else B64)
    write = form.write(form.operands[0], TYPES["pred"])

    def read(w: Wave) -> Array:
        return given(w).astype(np.uint64, copy=False)

    def inside(w: Wave) -> Array:
        address = read(w)
        window: Array = address >> np.uint64(WINDOW_BITS)
        if space == "global":
            return window > np.uint64(PARAM)
        found = window == np.uint64(WINDOWS[space])
        if space == "shared":
            found = found & (rank_of(w, address) == own_rank(w))
        return np.asarray(found)

    return lambda w: write(w, inside(w))


@instruction("9.7.9.7", "prmt b32 [f4e|b4e|rc8|ecl|ecr|rc16]")
def prmt(form: Form) -> Handler:
    """Pick four bytes out of the eight of a (bytes 0–3) and b (4–7).

    By default each nibble of c picks one byte: its low three bits say which, its top bit asks for
    the sign of that byte, repeated. A mode picks by the low two bits of c instead.
    """
    mode = form.one_of("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    word = TYPES["b32"]

    def permute(a: Array, b: Array, c: Array) -> Array:
        both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
        result = np.zeros(1, np.uint32)
        for k in range(4):
            nibble = _picked(mode, k, c)
            byte = both >> ((nibble & np.uint32(7)) << np.uint32(3)).astype(np.uint64)
            value = byte.astype(np.uint8)
            sign = np.where(value >> np.uint8(7), np.uint8(255), np.uint8(0))
            value = np.where(nibble & np.uint32(8), sign, value)
            result = result | value.astype(np.uint32) << np.uint32(8 * k)
        return result

    return form.compute(permute, [word, word, word], word)


def _picked(mode: str, k: int, c: Array) -> Array:
    """The nibble that says where byte k of a `prmt` comes from."""
    n, at, seven = c & np.uint32(3), np.uint32(k), np.uint32(7)
    match mode:
        case "f4e":
            return n + at
        case "b4e":
            return (n - at) & seven
        case "rc8":
            return n
        case "ecl":
            return np.asarray(np.maximum(n, at))
        case "ecr":
            return np.asarray(np.minimum(n, at))
        case "rc16":
            return (n & np.uint32(1)) * np.uint32(2) + np.uint32(k & 1)
        case _:
            return c >> np.uint32(4 * k) & np.uint32(15)
