"""Functions of numbers, and of every element of vectors and tiles.

Elements of f16 and bf16 are computed in f32, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, pi
from math import log2 as log2_of
from math import sqrt as sqrt_of
from typing import Any

from lego_mlir.frontend.casts import element_type, is_float
from lego_mlir.frontend.operators import Operand, meet, pointwise, where
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.index import maximum, minimum
from lego_mlir.mlir.bindings import ir


def exp(x: Value) -> Value:
    """Return e to the power of `x`, a floating-point value."""
    return _function("exp", x)


def exp2(x: Value) -> Value:
    """Return 2 to the power of `x`, a floating-point value."""
    return _function("exp2", x)


def log(x: Value) -> Value:
    """Return the natural logarithm of `x`, a floating-point value."""
    return _function("log", x)


def log2(x: Value) -> Value:
    """Return the logarithm to base 2 of `x`, a floating-point value."""
    return _function("log2", x)


def sqrt(x: Value) -> Value:
    """Return the square root of `x`, a floating-point value."""
    return _function("sqrt", x)


def rsqrt(x: Value) -> Value:
    """Return 1 divided by the square root of `x`, a floating-point value."""
    return _function("rsqrt", x)


def sin(x: Value) -> Value:
    """Return the sine of `x`, a floating-point value in radians."""
    return _function("sin", x)


def cos(x: Value) -> Value:
    """Return the cosine of `x`, a floating-point value in radians."""
    return _function("cos", x)


def erf(x: Value) -> Value:
    """Return the error function of `x`, a floating-point value."""
    return _function("erf", x)


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent of `x`, a floating-point value."""
    return _function("tanh", x)


def floor(x: Value) -> Value:
    """Return the greatest whole number that is not above `x`, a floating-point value."""
    return _function("floor", x)


def ceil(x: Value) -> Value:
    """Return the smallest whole number that is not below `x`, a floating-point value."""
    return _function("ceil", x)


def round(x: Value) -> Value:  # noqa: A001  (NumPy's name)
    """Return the whole number nearest to `x`, a floating-point value; of two the even one."""
    return _function("roundeven", x)


def abs(x: Any) -> Value:  # noqa: A001  (NumPy's name)
    """Return the absolute value of `x`, a number of any type."""
    if not isinstance(x, Value) or is_float(x.ssa.type):
        _check_floating("abs", x)
        return pointwise("math.absf", [x])
    x.check_arithmetic("abs")
    return x if x.dtype.startswith(("u", "index")) else pointwise("math.absi", [x])


def pow(x: Operand, y: Operand) -> Value:  # noqa: A001  (NumPy's name)
    """Return `x` to the power of `y`, of which one is a floating-point value."""
    a, b = _met("pow", [x, y])
    return _in_single(lambda s, t: pointwise("math.powf", [s, t]), a, b)


def fma(x: Operand, y: Operand, z: Operand) -> Value:
    """Return `x * y + z`, rounded once; one of them is a floating-point value."""
    return pointwise("math.fma", _met("fma", [x, y, z]))


def sigmoid(x: Value) -> Value:
    """Return `1 / (1 + exp(-x))` of a floating-point value."""
    _check_floating("sigmoid", x)
    return _in_single(lambda s: 1 / (exp(-s) + 1), x)


def silu(x: Value) -> Value:
    """Return `x * sigmoid(x)` of a floating-point value."""
    _check_floating("silu", x)
    return _in_single(lambda s: s / (exp(-s) + 1), x)


def softplus(x: Value) -> Value:
    """Return `log(1 + exp(x))` of a floating-point value.

    As `max(x, 0) + log1p(exp(-|x|))`, in which nothing overflows. log1p(t) is t log(u) / (u - 1)
    with u = 1 + t, where the errors of u cancel. (W. Kahan, HP-15C Advanced Functions Handbook,
    1982.)
    """
    _check_floating("softplus", x)

    def computed(s: Value) -> Value:
        t = exp(-abs(s))
        u = t + 1
        small = where(u == 1, t, log(u) * (t / where(u == 1, 1.0, u - 1)))
        total: Value = maximum(s, 0) + small
        return total

    return _in_single(computed, x)


def relu(x: Value) -> Value:
    """Return the maximum of `x` and 0."""
    result: Value = maximum(x, 0)
    return result


def gelu(x: Value) -> Value:
    """Return `0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, the tanh form of x Φ(x).

    With 1 + tanh(u) = 2 / (1 + exp(-2u)) it takes one exponential and one division.
    (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, section 2.)
    """
    _check_floating("gelu", x)
    scale = -2 * log2_of(e) * sqrt_of(2 / pi)
    fast = ir.Attribute.parse("#arith.fastmath<arcp, afn>")  # div.approx: 2 units in the last place

    def computed(s: Value) -> Value:
        below = exp2(s * (s * s * (0.044715 * scale) + scale)) + 1
        return pointwise("arith.divf", [s, below], fastmath=fast)

    return _in_single(computed, x)


def clamp(x: Value, low: Operand, high: Operand) -> Value:
    """Return `x`, or `low` where it is less, or `high` where it is more; NaN of NaN."""
    result: Value = minimum(maximum(x, low), high)
    return result


def _function(name: str, x: Any) -> Value:
    """Return a function of the math dialect of each element."""
    _check_floating("round" if name == "roundeven" else name, x)
    return _in_single(lambda s: pointwise(f"math.{name}", [s]), x)


def _in_single(compute: Callable[..., Value], *operands: Value) -> Value:
    """Compute in f32 of f16 and bf16, and round the result once."""
    dtype = operands[-1].dtype
    if element_type(operands[-1].ssa.type).width >= 32:
        return compute(*operands)
    return compute(*(x.to("f32") for x in operands)).to(dtype)


def _met(name: str, operands: list[Operand]) -> list[Value]:
    """Return floating-point operands in one shape."""
    trace = current(name)
    first = next((x for x in operands if isinstance(x, Value)), None)
    _check_floating(name, first if first is not None else operands[0])
    return meet(operands, trace)


def _check_floating(name: str, x: Any) -> Trace:
    """Return the trace; raise LegoError unless `x` is a floating-point kernel value."""
    trace = current(name)
    if not isinstance(x, Value) or not is_float(x.ssa.type):
        what = x.described if isinstance(x, Value) else repr(x)
        raise trace.error(
            f"'{name}' is for kernel values of floating point, not {what}",
            hint='convert an integer first: x.to("f32")',
        )
    x.check_arithmetic(name)
    return trace
