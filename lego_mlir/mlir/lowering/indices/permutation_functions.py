"""Read a permutation's `func.func` as a Python function.

The same function takes integers, arrays and index expressions, so enumeration and proof examine
what a kernel computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, functions
from lego_mlir.index.ranges import is_nonnegative
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.lowering.indices.index_reader import affine_value


def _equal(a: Any, b: Any) -> Any:
    return functions.where(a < b, 0, functions.where(b < a, 0, 1))


def _below(a: Any, b: Any) -> Any:
    """Return whether `a < b` as unsigned numbers, among which the negative ones are greatest."""
    return functions.where((a < 0) ^ (b < 0), b < 0, a < b)


def _quotient(a: Any, b: Any) -> Any:
    """Return `a / b`, rounded towards zero."""
    quotient = _magnitude(a) // _magnitude(b)
    return functions.where((a < 0) ^ (b < 0), -quotient, quotient)


def _magnitude(x: Any) -> Any:
    return functions.where(x < 0, -x, x)


def _either(signed: Callable[[Any, Any], Any], a: Any, b: Any, first: Any) -> Any:
    """Return `a` if it is the first of two unsigned numbers, else `b`."""
    if all(isinstance(x, int | Expr) and is_nonnegative(x) for x in (a, b)):
        return signed(a, b)  # which has rules of its own
    return functions.where(first, a, b)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": _equal,
    "ne": lambda a, b: 1 - _equal(a, b),
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: b < a,
    "sge": lambda a, b: b <= a,
    "ult": _below,
    "ule": lambda a, b: 1 - _below(b, a) * 1,
    "ugt": lambda a, b: _below(b, a),
    "uge": lambda a, b: 1 - _below(a, b) * 1,
}
_COMPARISON_NAMES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")

# The operations of a permutation's functions. Their arguments are indices of a tile and positions
# in it, but what they compute on the way may be negative. How unsigned divisions and shifts read
# that depends on the width of an index, which is chosen later: they round down here.
_PURE: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b,
    "arith.divsi": _quotient,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.remsi": lambda a, b: a - _quotient(a, b) * b,
    "arith.shli": lambda a, b: a * (1 << b),
    "arith.shrui": lambda a, b: a // (1 << b),
    "arith.shrsi": lambda a, b: a // (1 << b),
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": functions.minimum,
    "arith.minui": lambda a, b: _either(functions.minimum, a, b, _below(a, b)),
    "arith.maxsi": functions.maximum,
    "arith.maxui": lambda a, b: _either(functions.maximum, a, b, _below(b, a)),
}

_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "arith.andi": lambda a, b: functions.where(a, b, 0),
    "arith.ori": lambda a, b: functions.where(a, 1, b),
    "arith.xori": lambda a, b: a + b - 2 * a * b,
}

_STRAIGHT = "such functions are straight-line arith on index values"


def read_function(func: Any, source: Source) -> Callable[..., Any]:
    """Return a func.func over indices as a function on ints, arrays and expressions.

    Raises:
        LegoError: (when called) an operation that no index expression has, at its location.
    """

    def call(*arguments: Any) -> Any:
        blocks = list(func.regions[0].blocks)
        if len(blocks) != 1:
            raise source.error(
                "the function of a permutation is one block of operations",
                func.location,
                hint="write choices with arith.select",
            )
        (block,) = blocks
        if len(arguments) != len(block.arguments):
            raise source.error(
                f"@{ir.StringAttr(func.attributes['sym_name']).value} takes "
                f"{len(block.arguments)} indices, the layout gives it {len(arguments)}",
                func.location,
            )
        env: dict[Any, Any] = dict(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            op = op.operation
            operands = [env[o] for o in op.operands]
            if op.name == "func.return":
                return operands[0] if len(operands) == 1 else tuple(operands)
            try:
                env[op.results[0]] = evaluate(op, operands, source)
            except LegoError as e:
                raise (
                    e if e.location else source.error(e.message, op.location, hint=_STRAIGHT)
                ) from None
            except (ArithmeticError, TypeError, ValueError) as e:
                raise source.error(
                    f"'{op.name}' has no value here: {e}", op.location, hint=_STRAIGHT
                ) from None
        raise AssertionError("a verified func.func ends in a return")

    return call


def _keeps_indices(op: Any) -> bool:
    """Return whether an index cast goes through no type that is too narrow for a tile's indices."""
    kinds = [op.operands[0].type, op.results[0].type]
    widths = [kind.width for kind in kinds if isinstance(kind, ir.IntegerType)]
    return str(kinds[0]) == "i1" or all(width >= _WIDE for width in widths)


_WIDE = 32
"""Bits that hold every index of a tile whose functions are looked at."""


def evaluate(op: Any, operands: list[Any], source: Source) -> Any:
    """Return the result of an operation on indices and truth values: ints, arrays, expressions.

    Raises:
        LegoError: no index expression has this operation.
    """
    name = op.name
    logical = str(op.results[0].type) == "i1"
    if name == "arith.constant":
        value = op.attributes["value"]
        if isinstance(value, ir.BoolAttr):
            return int(ir.BoolAttr(value).value)
        if isinstance(value, ir.IntegerAttr):
            return ir.IntegerAttr(value).value
    if name in _LOGIC and logical:
        return _LOGIC[name](*operands)
    if name in _PURE:
        return _PURE[name](*operands)
    if name == "affine.apply":
        return affine_value(op, operands)
    if name == "arith.cmpi":
        predicate = _COMPARISON_NAMES[ir.IntegerAttr(op.attributes["predicate"]).value]
        if predicate[0] == "s" and str(op.operands[0].type) == "i1":  # true is -1
            operands = operands[::-1]
        return _COMPARISONS[predicate](*operands) * 1  # truth values do not add up as numbers do
    if name == "arith.select":
        return functions.where(*operands)
    if name in ("arith.index_cast", "arith.index_castui") and _keeps_indices(op):
        is_signed_bit = name == "arith.index_cast" and str(op.operands[0].type) == "i1"
        return -operands[0] if is_signed_bit else operands[0]
    raise source.error(
        f"'{name}' cannot stand in the function of a permutation",
        op.location,
        hint=_STRAIGHT,
    )
