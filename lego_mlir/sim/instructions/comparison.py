"""Comparison and selection. Source: PTX ISA 9.7.6, 9.7.7 (half precision), 9.3.1 (operators)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.numerics.rounding import flush
from lego_mlir.sim.ptx.decoded import Handler, Reader
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.syntax import Operand, Pair
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import PRED, TYPES, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

Compare = Callable[[Array, Array], Array]

_ORDERED: dict[str, Compare] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED: dict[str, Compare] = {
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_COMBINE: dict[str, Compare] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_BITS = "eq|ne"
_SIGN = "eq|ne|lt|le|gt|ge"
_INTEGER = f"{_SIGN}|lo|ls|hi|hs"
_FLOAT = f"{_SIGN}|equ|neu|ltu|leu|gtu|geu|num|nan"
_BOOL = "[and|or|xor]"


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def _comparison(form: Form, kind: Type) -> Compare:
    """The comparison that the instruction names, on values of a type."""
    name = form.modifiers[0]
    if not kind.is_float:
        return _ORDERED[name] if name in _ORDERED else _UNSIGNED[name]
    ftz = form.has("ftz")

    def compare(a: Array, b: Array) -> Array:
        if ftz:
            a, b = flush(a), flush(b)
        match name:
            case "nan":
                return _unordered(a, b)
            case "num":
                return ~_unordered(a, b)
            case "ne":
                # NumPy's is the unordered one.
                value: Array = (a != b) & ~_unordered(a, b)
                return value
            case _ if name in _ORDERED:
                return _ORDERED[name](a, b)
            case _:
                return _ORDERED[name[:2]](a, b) | _unordered(a, b)

    return compare


@instruction(
    "9.7.6.2",
    f"setp {_BITS} {_BOOL} b16|b32|b64",
    f"setp {_INTEGER} {_BOOL} u16|u32|u64",
    f"setp {_SIGN} {_BOOL} s16|s32|s64",
    f"setp {_FLOAT} {_BOOL} [ftz] f32",
    f"setp {_FLOAT} {_BOOL} f64",
)
@instruction(
    "9.7.7.2", f"setp {_FLOAT} {_BOOL} [ftz] f16|f16x2", f"setp {_FLOAT} {_BOOL} bf16|bf16x2"
)
def setp(form: Form) -> Handler:
    """p = a cmp b, and q its complement; both combined with c where a boolean operator stands.

    For packed halves p is the lower and q the upper comparison.
    """
    kind = form.types[0]
    compare = _comparison(form, kind)
    combine = _COMBINE.get(form.one_of(*_COMBINE))
    form.expect(3 if combine is None else 4)
    first, second = _targets(form, form.operands[0])
    if kind.lanes == 2 and second is None:
        form.fail("a single predicate where two should stand", form.operands[0])
    a, b = form.read(form.operands[1], kind), form.read(form.operands[2], kind)
    third = None if combine is None else form.predicate(form.operands[3])

    def execute(w: Wave) -> None:
        holds = compare(a(w), b(w))
        fails = holds[:, 1] if kind.lanes == 2 else ~holds if second is not None else holds
        if kind.lanes == 2:
            holds = holds[:, 0]
        if combine is not None and third is not None:
            c = third(w)
            holds, fails = combine(holds, c), combine(fails, c)
        first(w, holds)
        if second is not None:
            second(w, fails)

    if combine is None and second is None:
        return lambda w: first(w, compare(a(w), b(w)))
    return execute


def _targets(
    form: Form, operand: Operand
) -> tuple[Callable[[Wave, Array], None], Callable[[Wave, Array], None] | None]:
    """Writers of `p` or `p|q`."""
    if isinstance(operand, Pair):
        return form.write(operand.first, PRED), form.write(operand.second, PRED)
    return form.write(operand, PRED), None


@instruction(
    "9.7.6.1",
    f"set {_BITS} {_BOOL} u32|s32|f32 b16|b32|b64",
    f"set {_INTEGER} {_BOOL} u32|s32|f32 u16|u32|u64",
    f"set {_SIGN} {_BOOL} u32|s32|f32 s16|s32|s64",
    f"set {_FLOAT} {_BOOL} [ftz] u32|s32|f32 f32",
    f"set {_FLOAT} {_BOOL} u32|s32|f32 f64",
)
@instruction(
    "9.7.7.1",
    f"set {_FLOAT} {_BOOL} [ftz] u16|s16|u32|s32|f16 f16",
    f"set {_FLOAT} {_BOOL} u16|s16|u32|s32|bf16 bf16",
    f"set {_FLOAT} {_BOOL} [ftz] u32|s32|f16x2 f16x2",
    f"set {_FLOAT} {_BOOL} u32|s32|bf16x2 bf16x2",
)
def set_(form: Form) -> Handler:
    """d = all ones (as a float: 1.0) where a cmp b, else 0; combined with c as in `setp`.

    For packed halves each half of d has the result of its own comparison.
    """
    result, kind = form.types
    compare = _comparison(form, kind)
    combine = _COMBINE.get(form.one_of(*_COMBINE))
    form.expect(3 if combine is None else 4)
    if kind.lanes == 2 and result.lanes == 1:
        result = TYPES[f"{result.kind}16x2"]
    write = form.write(form.operands[0], result)
    a, b = form.read(form.operands[1], kind), form.read(form.operands[2], kind)
    third: Reader | None = None if combine is None else form.predicate(form.operands[3])
    yes = np.array(1.0, result.dtype) if result.is_float else np.array(-1).astype(result.dtype)

    def execute(w: Wave) -> None:
        holds = compare(a(w), b(w))
        if combine is not None and third is not None:
            c = third(w)
            holds = combine(holds, c[:, None] if kind.lanes == 2 else c)
        write(w, np.where(holds, yes, result.dtype.type(0)))

    return execute


@instruction("9.7.6.3", "selp b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64")
def selp(form: Form) -> Handler:
    """d = c ? a : b, with a predicate c."""
    form.expect(4)
    kind = form.types[0]
    write = form.write(form.operands[0], kind)
    a, b = form.read(form.operands[1], kind), form.read(form.operands[2], kind)
    c = form.predicate(form.operands[3])
    return lambda w: write(w, np.where(c(w), a(w), b(w)))


@instruction(
    "9.7.6.4",
    "slct b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64 s32",
    "slct [ftz] b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64 f32",
)
def slct(form: Form) -> Handler:
    """d = c >= 0 ? a : b; a NaN picks b."""
    kind, by = form.types
    ftz = form.has("ftz")

    def pick(a: Array, b: Array, c: Array) -> Array:
        return np.where((flush(c) if ftz else c) >= 0, a, b)

    return form.compute(pick, [kind, kind, by], kind)
