"""Floating-point arithmetic. Source: PTX ISA 9.7.3 (f32, f64), 9.7.4 (f16, bf16).

The `.approx` and `.full` forms give the result rounded to nearest, or within an ulp of it: more
exact than the hardware's, and inside the error that the ISA allows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lego_mlir.sim.numerics.rounding import (
    added,
    canonical,
    flush,
    fused,
    greatest,
    least,
    multiplied,
    relu,
    saturate,
    through_double,
)
from lego_mlir.sim.ptx.form import Form, Handler
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import PRED, Array, Type

_RND = "rn|rz|rm|rp"
_F16 = "f16|f16x2"
_BF16 = "bf16|bf16x2"


def elementwise(form: Form, function: Callable[..., Array], arity: int) -> Handler:
    """d = function(a, …) with the flushing, clamping and NaN rules of the instruction."""
    kind = form.types[0]
    finish: list[Callable[[Array], Array]] = []
    if form.has("ftz"):
        finish.append(flush)
    if form.has("sat"):
        finish.append(saturate)
    if form.has("relu"):
        finish.append(relu)
    if kind.bits != 64 and kind.kind != "bf":
        finish.append(canonical)
    ftz = form.has("ftz")

    def apply(*operands: Array) -> Array:
        result = function(*(flush(x) for x in operands)) if ftz else function(*operands)
        for f in finish:
            result = f(result)
        return result

    return form.compute(apply, [kind] * arity, kind)


def _exactly_rounded(
    form: Form,
    native: Callable[[Array, Array], Array],
    rounded: Callable[[Array, Array, Type, str], Array],
) -> Handler:
    """NumPy's operation where it rounds as PTX does: to nearest, in the operands' own format.

    float16 computed in float32 is rounded twice to the same result, float32 having more than twice
    the bits; bf16 products can underflow in float32 and take the exact way.
    """
    mode, kind = form.one_of(*_RND.split("|")) or "rn", form.types[0].element
    if mode == "rn" and not (kind.kind == "bf" and native is np.multiply):
        return elementwise(form, native, 2)
    return elementwise(form, lambda a, b: rounded(a, b, kind, mode), 2)


@instruction("9.7.3.3", f"add [{_RND}] [ftz] [sat] f32", "add [rn] f64")
@instruction("9.7.4.1", f"add [rn] [ftz] [sat] {_F16}", f"add [rn] {_BF16}")
def add(form: Form) -> Handler:
    """d = a + b."""
    return _exactly_rounded(form, np.add, added)


@instruction("9.7.3.4", f"sub [{_RND}] [ftz] [sat] f32", "sub [rn] f64")
@instruction("9.7.4.2", f"sub [rn] [ftz] [sat] {_F16}", f"sub [rn] {_BF16}")
def sub(form: Form) -> Handler:
    """d = a - b."""
    return _exactly_rounded(form, np.subtract, lambda a, b, kind, mode: added(a, -b, kind, mode))


@instruction("9.7.3.5", f"mul [{_RND}] [ftz] [sat] f32", "mul [rn] f64")
@instruction("9.7.4.3", f"mul [rn] [ftz] [sat] {_F16}", f"mul [rn] {_BF16}")
def mul(form: Form) -> Handler:
    """d = a * b."""
    return _exactly_rounded(form, np.multiply, multiplied)


@instruction("9.7.3.6", f"fma {_RND} [ftz] [sat] f32", "fma rn f64")
@instruction("9.7.3.7", f"mad {_RND} [ftz] [sat] f32", "mad rn f64")
@instruction(
    "9.7.4.4", f"fma rn [ftz] [sat] {_F16}", f"fma rn [ftz] relu {_F16}", f"fma rn [relu] {_BF16}"
)
def fma(form: Form) -> Handler:
    """d = a * b + c, rounded once."""
    mode, kind = form.one_of(*_RND.split("|")), form.types[0].element
    return elementwise(form, lambda a, b, c: fused(a, b, c, kind, mode), 3)


@instruction("9.7.3.8", "div approx|full|rn [ftz] f32", "div rn f64")
def div(form: Form) -> Handler:
    """d = a / b."""
    return elementwise(form, np.divide, 2)


@instruction("9.7.3.9", "abs [ftz] f32", "abs f64")
@instruction("9.7.4.6", f"abs [ftz] {_F16}", f"abs {_BF16}")
def abs_(form: Form) -> Handler:
    """d = |a|."""
    return elementwise(form, np.abs, 1)


@instruction("9.7.3.10", "neg [ftz] f32", "neg f64")
@instruction("9.7.4.5", f"neg [ftz] {_F16}", f"neg {_BF16}")
def neg(form: Form) -> Handler:
    """d = -a."""
    return elementwise(form, np.negative, 1)


_LIMITS = (
    "[ftz] [NaN] [xorsign] [abs] f32",
    "f64",
    f"[ftz] [NaN] [xorsign] [abs] {_F16}",
    f"[NaN] [xorsign] [abs] {_BF16}",
)


def _limit(form: Form, pick: Callable[[Array, Array, bool], Array]) -> Handler:
    propagate = form.has("NaN")
    if form.has("xorsign") != form.has("abs"):
        form.fail("one of .xorsign and .abs without the other")
    if not form.has("xorsign"):
        return elementwise(form, lambda a, b: pick(a, b, propagate), 2)

    def apply(a: Array, b: Array) -> Array:
        # The sign is that of the product, the size that of the limit of the sizes.
        sign = np.where(np.signbit(a) != np.signbit(b), a.dtype.type(-1), a.dtype.type(1))
        value: Array = np.copysign(pick(np.abs(a), np.abs(b), propagate), sign)
        return value

    return elementwise(form, apply, 2)


@instruction("9.7.3.11", *(f"min {row}" for row in _LIMITS[:2]))
@instruction("9.7.4.7", *(f"min {row}" for row in _LIMITS[2:]))
def min_(form: Form) -> Handler:
    """d = the smaller of a and b. A NaN loses, with `.NaN` it wins."""
    return _limit(form, least)


@instruction("9.7.3.12", *(f"max {row}" for row in _LIMITS[:2]))
@instruction("9.7.4.8", *(f"max {row}" for row in _LIMITS[2:]))
def max_(form: Form) -> Handler:
    """d = the larger of a and b. A NaN loses, with `.NaN` it wins."""
    return _limit(form, greatest)


@instruction("9.7.3.13", "rcp approx|rn [ftz] f32", "rcp rn f64")
def rcp(form: Form) -> Handler:
    """d = 1 / a."""
    return elementwise(form, lambda a: a.dtype.type(1) / a, 1)


@instruction("9.7.3.15", "sqrt approx|rn [ftz] f32", "sqrt rn f64")
def sqrt(form: Form) -> Handler:
    """d = the square root of a."""
    return elementwise(form, np.sqrt, 1)


@instruction("9.7.3.16", "rsqrt approx [ftz] f32", "rsqrt approx f64")
def rsqrt(form: Form) -> Handler:
    """d = 1 / the square root of a."""
    return elementwise(form, through_double(lambda a: 1.0 / np.sqrt(a)), 1)


@instruction("9.7.3.18", "sin approx [ftz] f32")
def sin(form: Form) -> Handler:
    """The sine of a, which is in radians."""
    return elementwise(form, through_double(np.sin), 1)


@instruction("9.7.3.19", "cos approx [ftz] f32")
def cos(form: Form) -> Handler:
    """The cosine of a, which is in radians."""
    return elementwise(form, through_double(np.cos), 1)


@instruction("9.7.3.20", "lg2 approx [ftz] f32")
def lg2(form: Form) -> Handler:
    """d = the logarithm of a to the base 2."""
    return elementwise(form, through_double(np.log2), 1)


@instruction("9.7.3.21", "ex2 approx [ftz] f32")
@instruction("9.7.4.10", f"ex2 approx {_F16}", f"ex2 approx ftz {_BF16}")
def ex2(form: Form) -> Handler:
    """d = 2 to the power of a."""
    return elementwise(form, through_double(np.exp2), 1)


@instruction("9.7.3.22", "tanh approx f32")
@instruction("9.7.4.9", f"tanh approx {_F16}|{_BF16}")
def tanh(form: Form) -> Handler:
    """The hyperbolic tangent of a."""
    return elementwise(form, through_double(np.tanh), 1)


@instruction("9.7.3.2", "copysign f32|f64")
def copysign(form: Form) -> Handler:
    """d = the size of b with the sign of a."""
    kind = form.types[0]
    return form.compute(lambda a, b: np.copysign(b, a), [kind, kind], kind)


@instruction("9.7.3.1", "testp finite|infinite|number|notanumber|normal|subnormal f32|f64")
def testp(form: Form) -> Handler:
    """p = whether a has a property."""
    kind = form.types[0]
    tiny = np.finfo(kind.dtype).tiny
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return form.compute(tests[form.modifiers[0]], [kind], PRED)
