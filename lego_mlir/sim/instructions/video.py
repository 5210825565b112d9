"""Video instructions: arithmetic on bytes and halves of words. Source: PTX ISA 9.7.18.

Operands may name a part, `%r1.b2` or `%r1.h0` (scalar forms) or the order of their parts,
`%r1.b3210` (vector forms), of which 4 to 7 are the parts of the second operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.ptx.decoded import Handler
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Operand, Register
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import TYPES, UNSIGNED, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_TYPE = "u32|s32"
_SECOND = "[add|min|max]"
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_CMP = "|".join(_COMPARE)


def _average(a: Array, b: Array) -> Array:
    """Return the mean of integers, halves away from zero for sums of at least 0."""
    total = a + b
    return np.where(total >= 0, total + 1, total) >> 1


_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": _average,
}

Values = Callable[["Wave"], Array]
"""Reads signed 64-bit integers: (lanes,), or (lanes, parts) in vector forms."""


def _selected(operand: Operand) -> tuple[Operand, str]:
    """Return an operand and the part of it that is named behind its last dot, or none."""
    if isinstance(operand, Register) and "." in operand.name:
        name, _, part = operand.name.rpartition(".")
        return Register(name, operand.column), part
    return operand, ""


def _scalar(form: Form, operand: Operand, kind: Type) -> Values:
    """Return a reader of the selected byte, half or word, extended by its type."""
    register, part = _selected(operand)
    bits, at = _place(form, operand, part)
    read = form.read(register, TYPES["b32"])
    narrow = np.dtype(f"{'i' if kind.is_signed else 'u'}{bits // 8}")

    def values(w: Wave) -> Array:
        word = read(w) >> np.uint32(bits * at)
        return word.astype(UNSIGNED[bits]).view(narrow).astype(np.int64)

    return values


def _place(form: Form, operand: Operand, part: str) -> tuple[int, int]:
    """Return the bits of a selected part, and its number."""
    if not part:
        return 32, 0
    if part not in ("b0", "b1", "b2", "b3", "h0", "h1"):
        form.fail(f"{operand}, of which .{part} is no byte or half", operand)
    return (8 if part[0] == "b" else 16), int(part[1])


def _clamped(value: Array, bits: int, *, signed: bool) -> Array:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return np.minimum(np.maximum(value, low), high)


def _finish_scalar(form: Form, result: Type, compute: Values) -> Handler:
    """Return the handler that combines or merges a result with the third source, and writes it."""
    target, part = _selected(form.operands[0])
    bits, at = _place(form, form.operands[0], part)
    second = next((word for word in form.modifiers[-2:] if word in ("add", "min", "max")), "")
    form.expect(4 if part or second else 3)
    c = _scalar(form, form.operands[3], result) if part or second else None
    write = form.write(target, TYPES["b32"])
    mask = np.uint32(((1 << bits) - 1) << bits * at)

    def execute(w: Wave) -> None:
        value = compute(w)
        if form.has("sat"):
            value = _clamped(value, bits, signed=result.is_signed)
        if c is not None and second:
            combine = {"add": np.add, "min": np.minimum, "max": np.maximum}[second]
            value = combine(value, c(w))
        word = value.astype(np.int64).astype(np.uint32)
        if c is not None and part:
            word = word << np.uint32(bits * at) & mask | c(w).astype(np.uint32) & ~mask
        write(w, word)

    return execute


@instruction(
    "9.7.18.1.1",
    *(
        f"{name} {_TYPE} {_TYPE} {_TYPE} [sat] {_SECOND}"
        for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
    ),
)
def scalar(form: Form) -> Handler:
    """d = a op b of bytes, halves or words; then combined with c, or put into a part of c."""
    result, a_type, b_type = form.types
    a, b = _scalar(form, form.operands[1], a_type), _scalar(form, form.operands[2], b_type)
    operation = _OPERATIONS[form.opcode]
    return _finish_scalar(form, result, lambda w: operation(a(w), b(w)))


@instruction(
    "9.7.18.1.2",
    *(f"{name} {_TYPE} {_TYPE} u32 [sat] clamp|wrap {_SECOND}" for name in ("vshl", "vshr")),
)
def shift(form: Form) -> Handler:
    """d = a shifted by b, of which `.wrap` takes the low five bits, and `.clamp` at most 32."""
    result, a_type, b_type = form.types
    a, b = _scalar(form, form.operands[1], a_type), _scalar(form, form.operands[2], b_type)

    def compute(w: Wave) -> Array:
        by = b(w) & 31 if form.has("wrap") else np.minimum(b(w), 32)
        if form.opcode == "vshr":
            return a(w) >> by
        # What 64 bits would lose of a shift by 32 exceeds all ranges that saturation knows.
        wide = np.where(by == 32, 0, a(w) << np.minimum(by, 31))
        beyond = np.sign(a(w)) * (1 << 62)
        return np.where((by == 32) & form.has("sat"), beyond, wide)

    return _finish_scalar(form, result, compute)


@instruction(
    "9.7.18.1.3",
    f"vmad {_TYPE} {_TYPE} {_TYPE} [sat] [shr7|shr15]",
    f"vmad {_TYPE} {_TYPE} {_TYPE} po [sat] [shr7|shr15]",
)
def multiply(form: Form) -> Handler:
    """d = a * b + c, with `.po` one more, shifted right, and clamped with `.sat`."""
    form.expect(4)
    result, a_type, b_type = form.types
    a, b = _scalar(form, form.operands[1], a_type), _scalar(form, form.operands[2], b_type)
    c = _scalar(form, form.operands[3], result)
    by = {"shr7": 7, "shr15": 15}.get(form.one_of("shr7", "shr15"), 0)
    signed = a_type.is_signed or b_type.is_signed
    write = form.write(form.operands[0], TYPES["b32"])

    def execute(w: Wave) -> None:
        # Products of 33-bit integers: Python's.
        x, y, z = (np.broadcast_to(read(w), w.lanes).tolist() for read in (a, b, c))
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
        found = []
        for p, q, r in zip(x, y, z, strict=True):
            total = p * q + r + form.has("po") >> by
            found.append(min(max(total, low), high) if form.has("sat") else total)
        write(w, np.array([value % (1 << 32) for value in found], np.uint32))

    return execute


@instruction("9.7.18.1.4", f"vset {_TYPE} {_TYPE} {_CMP} {_SECOND}")
def compare(form: Form) -> Handler:
    """d = 1 where a cmp b, else 0; then combined with c, or put into a part of c."""
    a_type, b_type = form.types
    a, b = _scalar(form, form.operands[1], a_type), _scalar(form, form.operands[2], b_type)
    holds = _COMPARE[form.modifiers[2]]
    return _finish_scalar(form, TYPES["u32"], lambda w: holds(a(w), b(w)).astype(np.int64))


# --- vectors of two halves or four bytes ---


def _vector(form: Form, count: int, a_type: Type, b_type: Type) -> Callable[[Wave], list[Array]]:
    """Return a reader of the parts of both operands, in the order that each selects."""
    bits, letter = 32 // count, "b" if count == 4 else "h"
    readers = []
    for operand, kind, first in (
        (form.operands[1], a_type, 0),
        (form.operands[2], b_type, count),
    ):
        register, order = _selected(operand)
        digits = order[1:] or "".join(str(first + k) for k in reversed(range(count)))
        good = len(digits) == count and all(d in "01234567"[: 2 * count] for d in digits)
        if (order and order[0] != letter) or not good:
            form.fail(f"{operand}, of which .{order} is no order of {count} parts", operand)
        narrow = np.dtype(f"{'i' if kind.is_signed else 'u'}{bits // 8}")
        readers.append((form.read(register, TYPES["b32"]), narrow, [int(d) for d in digits[::-1]]))

    def values(w: Wave) -> list[Array]:
        words = [np.broadcast_to(read(w), w.lanes) for read, _, _ in readers]
        parts = np.stack(words, axis=1).view(UNSIGNED[bits])
        return [parts[:, order].view(narrow).astype(np.int64) for _, narrow, order in readers]

    return values


def _finish_vector(form: Form, count: int, result: Type, compute: Values) -> Handler:
    """Return the handler that adds the chosen parts to c, or puts them into c."""
    bits, letter = 32 // count, "b" if count == 4 else "h"
    target, part = _selected(form.operands[0])
    chosen = {int(d) for d in part[1:]} if part else set(range(count))
    if (part and part[0] != letter) or not chosen <= set(range(count)):
        form.fail(f"{form.operands[0]}, of which .{part} is no set of parts", form.operands[0])
    form.expect(4)
    c = form.read(form.operands[3], TYPES["b32"])
    write = form.write(target, TYPES["b32"])
    taken = np.array([k in chosen for k in range(count)])

    def execute(w: Wave) -> None:
        value, other = compute(w), np.broadcast_to(c(w), w.lanes)
        if form.modifiers[-1] == "add":
            write(w, (value * taken).sum(axis=1).astype(np.uint32) + other)
            return
        if form.has("sat"):
            value = _clamped(value, bits, signed=result.is_signed)
        parts = np.ascontiguousarray(other).view(UNSIGNED[bits]).reshape(-1, count)
        merged = np.where(taken, value.astype(UNSIGNED[bits]), parts)
        write(w, np.ascontiguousarray(merged).view(np.uint32).reshape(-1))

    return execute


@instruction(
    "9.7.18.2",
    *(
        f"{name}{count} {_TYPE} {_TYPE} {_TYPE} [sat] [add]"
        for name in _OPERATIONS
        for count in (2, 4)
    ),
)
def vector(form: Form) -> Handler:
    """d = a op b of each part; `.add` adds all of them to c, else c has the parts not chosen."""
    count = int(form.opcode[-1])
    result, a_type, b_type = form.types
    operation, read = _OPERATIONS[form.opcode[:-1]], _vector(form, count, a_type, b_type)
    return _finish_vector(form, count, result, lambda w: operation(*read(w)))


@instruction("9.7.18.2", *(f"vset{count} {_TYPE} {_TYPE} {_CMP} [add]" for count in (2, 4)))
def compare_vector(form: Form) -> Handler:
    """d = 1 in each part where a cmp b, else 0; then as the other vector forms."""
    count = int(form.opcode[-1])
    a_type, b_type = form.types
    holds, read = _COMPARE[form.modifiers[2]], _vector(form, count, a_type, b_type)
    return _finish_vector(form, count, TYPES["u32"], lambda w: holds(*read(w)).astype(np.int64))
