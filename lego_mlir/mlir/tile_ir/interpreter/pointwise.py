"""What the operations of arith and math do with elements.

Each function takes the operation and the operands' arrays, and returns the results' array, or a
tuple of arrays. Functions of floats are computed in f64 and rounded once; sums, products and
quotients are those of the type itself. What MLIR leaves undefined is what PTX does: conversions to
integers saturate, NaN becomes 0, shifts by too much leave no bits, and n / 0 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.tile_ir.interpreter.values import Array, cast, dtype_of, is_float, number_of

Pointwise = Callable[..., Any]


def unsigned(x: Array) -> Array:
    """Return integers as unsigned ones of the same bits."""
    return x.astype(np.uint8) if x.dtype.kind == "b" else x.view(f"uint{8 * x.dtype.itemsize}")


def signed(x: Array) -> Array:
    """Return integers as signed ones of the same bits: a true i1 is -1."""
    return -x.astype(np.int8) if x.dtype.kind == "b" else x.view(f"int{8 * x.dtype.itemsize}")


def as_type(x: Any, dtype: np.dtype[Any]) -> Array:
    """Return integers of any sign as those of a dtype, by their low bits."""
    array = np.asarray(x)
    return (array & 1).astype(bool) if dtype.kind == "b" else array.astype(dtype)


def _of_unsigned(f: Callable[..., Any]) -> Pointwise:
    return lambda op, *xs: as_type(f(*map(unsigned, xs)), xs[0].dtype)


def _of_signed(f: Callable[..., Any]) -> Pointwise:
    return lambda op, *xs: as_type(f(*map(signed, xs)), xs[0].dtype)


def _of_floats(f: Callable[..., Any]) -> Pointwise:
    """Return an operation of the type itself."""
    return lambda op, *xs: np.asarray(f(*xs)).astype(xs[0].dtype)


def _rounded(f: Callable[..., Any]) -> Pointwise:
    """Return a function of floats that is computed in f64."""
    return lambda op, *xs: cast(f(*(x.astype(np.float64) for x in xs)), xs[0].dtype)


def _each(f: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return a function that NumPy has not, of the elements one by one."""
    return lambda x: np.asarray(np.frompyfunc(f, 1, 1)(x)).astype(np.float64)


def _divided(x: Array, y: Array) -> Array:
    """Return integer quotients rounded towards 0."""
    safe = np.where(y == 0, 1, y)
    quotient = x // safe
    quotient = quotient + ((x % safe != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(y == 0, 0, quotient)


def _floor_divided(x: Array, y: Array) -> Array:
    return np.where(y == 0, 0, x // np.where(y == 0, 1, y))


def _ceil_divided(x: Array, y: Array) -> Array:
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, 0, x // safe + (x % safe != 0).astype(x.dtype))


def _remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, 0, x - _divided(x, y) * y)


def _shifted_left(x: Array, y: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    return np.where(y < bits, x << (y % bits), 0)


def _shifted_right(x: Array, y: Array) -> Array:
    """Shift by y >= 0; signed numbers keep their sign."""
    bits = 8 * x.dtype.itemsize
    amount = np.where(unsigned(y) < bits, y, bits - 1)
    gone = np.where(x < 0, x.dtype.type(-1), 0) if x.dtype.kind == "i" else 0
    return np.where(unsigned(y) < bits, x >> amount, gone)


def _round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _power(x: Array, y: Array) -> Array:
    return np.power(x, y)


def _extended(f: Callable[[int, int], int], view: Callable[[Array], Array]) -> Pointwise:
    """Return an operation with a result of twice the width, in its low and high half."""

    def low_and_high(op: Any, x: Array, y: Array) -> tuple[Array, Array]:
        bits = 1 if x.dtype.kind == "b" else 8 * x.dtype.itemsize
        wide = np.frompyfunc(lambda a, b: f(int(a), int(b)), 2, 1)(view(x), view(y))
        kinds = [dtype_of(result.type) for result in op.results]
        low, high = np.asarray(wide, object), np.asarray(wide, object) >> bits
        return _low_bits(low, kinds[0]), _low_bits(high, kinds[1])

    return low_and_high


def _low_bits(x: Any, dtype: np.dtype[Any]) -> Array:
    """Return the low bits of Python's integers as a dtype."""
    if dtype.kind == "b":
        return np.asarray(np.asarray(x, object) & 1).astype(bool)
    bits = 8 * dtype.itemsize
    return np.asarray(np.asarray(x, object) & ((1 << bits) - 1)).astype(f"uint{bits}").view(dtype)


_INTEGER_PREDICATES: tuple[Callable[[Array, Array], Any], ...] = (
    lambda x, y: x == y,
    lambda x, y: x != y,
    lambda x, y: signed(x) < signed(y),
    lambda x, y: signed(x) <= signed(y),
    lambda x, y: signed(x) > signed(y),
    lambda x, y: signed(x) >= signed(y),
    lambda x, y: unsigned(x) < unsigned(y),
    lambda x, y: unsigned(x) <= unsigned(y),
    lambda x, y: unsigned(x) > unsigned(y),
    lambda x, y: unsigned(x) >= unsigned(y),
)
"""In the order of arith.cmpi's numbers."""

_ORDERED: tuple[Callable[[Array, Array], Any], ...] = (
    lambda x, y: x == y,
    lambda x, y: x > y,
    lambda x, y: x >= y,
    lambda x, y: x < y,
    lambda x, y: x <= y,
    lambda x, y: (x < y) | (x > y),
)


def _compared(op: Any, x: Array, y: Array) -> Array:
    return np.asarray(_INTEGER_PREDICATES[op.attributes["predicate"].value](x, y), bool)


def _floats_compared(op: Any, x: Array, y: Array) -> Array:
    """Compare by arith.cmpf's numbers: false, six ordered, ord, six unordered, uno, true."""
    number = op.attributes["predicate"].value
    unordered = np.isnan(x) | np.isnan(y)
    if number in (0, 15):
        return np.full(np.shape(unordered), number == 15)
    if number in (7, 14):
        return np.asarray(unordered if number == 14 else ~unordered)
    if number < 7:
        return np.asarray(_ORDERED[number - 1](x, y) & ~unordered, bool)
    return np.asarray(_ORDERED[number - 8](x, y) | unordered, bool)


def _to_integer(op: Any, x: Array, *, is_unsigned: bool) -> Array:
    dtype = dtype_of(op.results[0].type)
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    least, most = (0, (1 << bits) - 1) if is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = np.where((whole > least) & (whole < most), whole, 0.0)
    found = np.frompyfunc(int, 1, 1)(inside)
    found = np.where(whole >= most, most, np.where(whole <= least, least, found))
    return _low_bits(found, dtype)


def _converted(view: Callable[[Array], Array]) -> Pointwise:
    """Return a conversion of integers, read as `view` reads them, to the result's type."""

    def convert(op: Any, x: Array) -> Array:
        dtype = dtype_of(op.results[0].type)
        return cast(view(x), dtype) if is_float(dtype) else as_type(view(x), dtype)

    return convert


def _bitcast(op: Any, x: Array) -> Array:
    dtype = dtype_of(op.results[0].type)
    return x if x.dtype == dtype else np.ascontiguousarray(x).view(dtype).reshape(x.shape)


def _counted(f: Callable[[int, int], int]) -> Pointwise:
    """Return a function of the bits of each integer, and of how many bits there are."""

    def count(op: Any, x: Array) -> Array:
        bits = 1 if x.dtype.kind == "b" else 8 * x.dtype.itemsize
        found = np.frompyfunc(lambda n: f(int(n), bits), 1, 1)(unsigned(x))
        return _low_bits(found, x.dtype)

    return count


def _selected(op: Any, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def constant(op: Any) -> Array:
    """Return the elements of an arith.constant."""
    attribute, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.ShapedType):
        number = number_of(ir.DenseElementsAttr(attribute).get_splat_value())
        return np.full(tuple(ir.ShapedType(kind).shape), number)
    return number_of(attribute)


def _to_float(op: Any, x: Array) -> Array:
    return cast(x, dtype_of(op.results[0].type))


POINTWISE: Mapping[str, Pointwise] = {
    # Integers.
    "arith.addi": _of_unsigned(np.add),
    "arith.subi": _of_unsigned(np.subtract),
    "arith.muli": _of_unsigned(np.multiply),
    "arith.andi": _of_unsigned(np.bitwise_and),
    "arith.ori": _of_unsigned(np.bitwise_or),
    "arith.xori": _of_unsigned(np.bitwise_xor),
    "arith.divsi": _of_signed(_divided),
    "arith.divui": _of_unsigned(_floor_divided),
    "arith.remsi": _of_signed(_remainder),
    "arith.remui": _of_unsigned(lambda x, y: np.where(y == 0, 0, x % np.where(y == 0, 1, y))),
    "arith.floordivsi": _of_signed(_floor_divided),
    "arith.ceildivsi": _of_signed(_ceil_divided),
    "arith.ceildivui": _of_unsigned(_ceil_divided),
    "arith.maxsi": _of_signed(np.maximum),
    "arith.minsi": _of_signed(np.minimum),
    "arith.maxui": _of_unsigned(np.maximum),
    "arith.minui": _of_unsigned(np.minimum),
    "arith.shli": _of_unsigned(_shifted_left),
    "arith.shrui": _of_unsigned(_shifted_right),
    "arith.shrsi": _of_signed(_shifted_right),
    "arith.addui_extended": _extended(lambda a, b: a + b, unsigned),
    "arith.mului_extended": _extended(lambda a, b: a * b, unsigned),
    "arith.mulsi_extended": _extended(lambda a, b: a * b, signed),
    "arith.cmpi": _compared,
    "arith.select": _selected,
    # Floats.
    "arith.addf": _of_floats(np.add),
    "arith.subf": _of_floats(np.subtract),
    "arith.mulf": _of_floats(np.multiply),
    "arith.divf": _of_floats(np.divide),
    "arith.remf": _rounded(np.fmod),
    "arith.negf": _of_floats(np.negative),
    "arith.maximumf": _of_floats(np.maximum),
    "arith.minimumf": _of_floats(np.minimum),
    "arith.maxnumf": _of_floats(np.fmax),
    "arith.minnumf": _of_floats(np.fmin),
    "arith.cmpf": _floats_compared,
    # Conversions.
    "arith.extf": _to_float,
    "arith.truncf": _to_float,
    "arith.extsi": _converted(signed),
    "arith.extui": _converted(unsigned),
    "arith.trunci": _converted(unsigned),
    "arith.index_cast": _converted(signed),
    "arith.index_castui": _converted(unsigned),
    "arith.sitofp": _converted(signed),
    "arith.uitofp": _converted(unsigned),
    "arith.fptosi": lambda op, x: _to_integer(op, x, is_unsigned=False),
    "arith.fptoui": lambda op, x: _to_integer(op, x, is_unsigned=True),
    "arith.bitcast": _bitcast,
    # Mathematics.
    "math.absf": _of_floats(np.abs),
    "math.absi": _of_signed(np.abs),
    "math.ceil": _rounded(np.ceil),
    "math.floor": _rounded(np.floor),
    "math.trunc": _rounded(np.trunc),
    "math.round": _rounded(_round_half_away),
    "math.roundeven": _rounded(np.rint),
    "math.sqrt": _rounded(np.sqrt),
    "math.rsqrt": _rounded(lambda x: 1 / np.sqrt(x)),
    "math.cbrt": _rounded(np.cbrt),
    "math.exp": _rounded(np.exp),
    "math.exp2": _rounded(np.exp2),
    "math.expm1": _rounded(np.expm1),
    "math.log": _rounded(np.log),
    "math.log2": _rounded(np.log2),
    "math.log10": _rounded(np.log10),
    "math.log1p": _rounded(np.log1p),
    "math.sin": _rounded(np.sin),
    "math.cos": _rounded(np.cos),
    "math.tan": _rounded(np.tan),
    "math.asin": _rounded(np.arcsin),
    "math.acos": _rounded(np.arccos),
    "math.atan": _rounded(np.arctan),
    "math.atan2": _rounded(np.arctan2),
    "math.sinh": _rounded(np.sinh),
    "math.cosh": _rounded(np.cosh),
    "math.tanh": _rounded(np.tanh),
    "math.asinh": _rounded(np.arcsinh),
    "math.acosh": _rounded(np.arccosh),
    "math.atanh": _rounded(np.arctanh),
    "math.erf": _rounded(_each(math.erf)),
    "math.erfc": _rounded(_each(math.erfc)),
    "math.powf": _rounded(_power),
    "math.fpowi": _rounded(_power),
    "math.copysign": _of_floats(np.copysign),
    "math.fma": _rounded(lambda x, y, z: x * y + z),
    "math.clampf": _of_floats(lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "math.isnan": lambda op, x: np.isnan(x),
    "math.isinf": lambda op, x: np.isinf(x),
    "math.isfinite": lambda op, x: np.isfinite(x),
    "math.ctpop": _counted(lambda n, bits: n.bit_count()),
    "math.ctlz": _counted(lambda n, bits: bits - n.bit_length()),
    "math.cttz": _counted(lambda n, bits: (n & -n).bit_length() - 1 if n else bits),
}
"""By the operation's name. An operation that is not here is none on tiles."""
