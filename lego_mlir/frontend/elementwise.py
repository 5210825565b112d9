"""Functions of numbers, and of every element of vectors."""

from __future__ import annotations

from math import e, log2, pi, sqrt
from typing import Any

from lego_mlir.frontend.casts import element_type
from lego_mlir.frontend.trace import Trace, current
from lego_mlir.frontend.values import Value
from lego_mlir.index import maximum
from lego_mlir.mlir.bindings import ir


def exp2(x: Value) -> Value:
    """Return 2 to the power of `x`, a floating-point value."""
    return _unary("math.exp2", x)


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent of `x`, a floating-point value."""
    return _unary("math.tanh", x)


def relu(x: Value) -> Value:
    """Return the maximum of `x` and 0."""
    result: Value = maximum(x, 0)
    return result


def gelu(x: Value) -> Value:
    """Return `0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))`, the tanh form of x Φ(x).

    With 1 + tanh(u) = 2 / (1 + exp(-2u)) it takes one exponential and one division.
    (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, section 2.)
    """
    trace = _check_floating("gelu", x)
    scale = -2 * log2(e) * sqrt(2 / pi)
    below = exp2(x * (x * x * (0.044715 * scale) + scale)) + 1
    fast = ir.Attribute.parse("#arith.fastmath<arcp, afn>")  # div.approx: 2 units in the last place
    operands = [x.ssa, below.ssa]
    (result,) = trace.create("arith.divf", [x.ssa.type], operands, fastmath=fast)
    return Value(result, trace)


def _unary(name: str, x: Any) -> Value:
    trace = _check_floating(name.partition(".")[2], x)
    (result,) = trace.create(name, [x.ssa.type], [x.ssa])
    return Value(result, trace)


def _check_floating(name: str, x: Any) -> Trace:
    """Return the trace; raise LegoError unless `x` is a floating-point kernel value."""
    trace = current(name)
    if not isinstance(x, Value) or not isinstance(element_type(x.ssa.type), ir.FloatType):
        what = x.dtype if isinstance(x, Value) else repr(x)
        raise trace.error(
            f"'{name}' is for kernel values of floating point, not {what}",
            hint='convert an integer first: x.to("f32")',
        )
    x.check_arithmetic(name)
    return trace
