"""What the arithmetic of a function in MLIR computes, on NumPy arrays.

The functions are those of the index stage: `arith` on index and integers, `affine.apply`, the
square root's way through floating point. Each operation is computed as MLIR's reference says, and
all that it leaves undefined is an error: a division by zero, a shift too far, an integer that does
not fit its type. Nothing here is shared with `lego_mlir.mlir.lowering.indices.index_reader`.

    run(function, i, j)    the results, one array each
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from lego_mlir.mlir.bindings import ir

Array: TypeAlias = "np.ndarray[Any, Any]"


def functions(module: Any) -> dict[str, Any]:
    """The functions of a module, by name."""
    named = (op.operation for op in module.body.operations)
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in named}


def run(function: Any, *arguments: Any) -> list[Array]:
    """The results of a func.func on integer arrays that broadcast with one another."""
    (block,) = function.regions[0].blocks
    values: dict[Any, Array] = {}
    for formal, actual in zip(block.arguments, arguments, strict=True):
        values[formal] = np.asarray(actual, dtype=np.int64)
    with np.errstate(all="raise"):
        for op in (o.operation for o in block.operations):
            operands = [values[x] for x in op.operands]
            if op.name == "func.return":
                return operands
            assert op.name in _OPERATIONS, f"no meaning is given for {op.name}"
            try:
                result = _OPERATIONS[op.name](op, *operands)
            except (FloatingPointError, AssertionError) as e:
                raise AssertionError(f"{op} is undefined: {e}") from e
            values[op.results[0]] = _of_type(op.results[0].type, result)
    raise AssertionError("the function does not return")


def _width(kind: Any) -> int:
    return 64 if isinstance(kind, ir.IndexType) else ir.IntegerType(kind).width


def _of_type(kind: Any, x: Any) -> Array:
    """`x` as values of an MLIR type; integers are int64, whatever their width, i1 is 0 or 1."""
    if isinstance(kind, ir.FloatType):
        return np.asarray(x, dtype={32: np.float32, 64: np.float64}[kind.width])
    x = np.asarray(x, dtype=np.int64)
    width = _width(kind)
    if width == 1:
        return x & 1
    if width < 64:
        assert np.all((x >= -(1 << (width - 1))) & (x < 1 << (width - 1))), f"not of {kind}"
    return x


# ------------------------------------------------------------------------------------ integers
def _unsigned(x: Array) -> Array:
    return x.astype(np.int64).view(np.uint64)


def _magnitude(x: Array) -> int:
    return max(abs(int(x.max(initial=0))), abs(int(x.min(initial=0))))


def _sum(a: Array, b: Array) -> Array:
    assert _magnitude(a) + _magnitude(b) < 1 << 63, "the sum may not fit 64 bits"
    return a + b


def _difference(a: Array, b: Array) -> Array:
    assert _magnitude(a) + _magnitude(b) < 1 << 63, "the difference may not fit 64 bits"
    return a - b


def _product(a: Array, b: Array) -> Array:
    assert _magnitude(a) * _magnitude(b) < 1 << 63, "the product may not fit 64 bits"
    return a * b


def _shift(shift: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def compute(op: Any, x: Array, by: Array) -> Array:
        assert np.all((by >= 0) & (by < _width(op.results[0].type))), "shifted too far"
        return shift(x, by)

    return compute


def _shift_left(x: Array, by: Array) -> Array:
    return _product(x, np.int64(1) << by)


def _plain(f: Callable[..., Array]) -> Callable[..., Array]:
    return lambda op, *operands: f(*operands)


def _on_unsigned(f: Callable[..., Array]) -> Callable[..., Array]:
    """`f` on the operands read as unsigned; no narrower type than 64 bits is used that way."""

    def compute(op: Any, *operands: Array) -> Array:
        narrow = any(_width(x.type) < 64 for x in op.operands)
        assert not narrow or all(np.all(x >= 0) for x in operands), "a negative narrow integer"
        return f(*map(_unsigned, operands)).astype(np.uint64).view(np.int64)

    return compute


def _towards_zero(a: Array, b: Array) -> Array:
    return np.sign(a) * np.sign(b) * (abs(a) // abs(b))


_PREDICATES: tuple[Callable[..., Array], ...] = (
    np.equal, np.not_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
"""eq, ne, the signed ones, the unsigned ones: in the order of their numbers."""


def _compare(op: Any, a: Array, b: Array) -> Array:
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    if number >= 6:
        a, b = _unsigned(a), _unsigned(b)
    return _PREDICATES[number](a, b)


def _constant(op: Any) -> Array:
    attribute = op.attributes["value"]
    kind = ir.FloatAttr if isinstance(op.results[0].type, ir.FloatType) else ir.IntegerAttr
    return np.asarray(kind(attribute).value)


def _extended(op: Any, x: Array) -> Array:
    assert _width(op.operands[0].type) == 1 or np.all(x >= 0), "a negative narrow integer"
    return x


# ------------------------------------------------------------------------------ floating point
def _to_integer(op: Any, x: Array) -> Array:
    assert np.all(np.abs(x) < 2.0**63), "the number does not fit an integer"
    assert op.name != "arith.fptoui" or np.all(x > -1), "the number is negative"
    return np.trunc(x).astype(np.int64)


def _to_float(op: Any, x: Array) -> Array:
    assert op.name != "arith.uitofp" or np.all(x >= 0), "the integer is negative"
    return x.astype(np.float32 if op.results[0].type.width == 32 else np.float64)


def _intrinsic(op: Any, *operands: Array) -> Array:
    name = ir.StringAttr(op.attributes["intrin"]).value
    assert name in ("llvm.sqrt.f32", "llvm.sqrt.f64"), f"no meaning is given for {name}"
    return np.sqrt(*operands)


# --------------------------------------------------------------------------------- affine maps
def _affine_apply(op: Any, *operands: Array) -> Array:
    affine_map = ir.AffineMapAttr(op.attributes["map"]).value
    dims, symbols = operands[: affine_map.n_dims], operands[affine_map.n_dims :]
    (result,) = affine_map.results
    return _affine(result, dims, symbols)


def _affine(x: Any, dims: Any, symbols: Any) -> Array:
    match x:
        case ir.AffineConstantExpr():
            return np.asarray(x.value, dtype=np.int64)
        case ir.AffineDimExpr():
            return dims[x.position]
        case ir.AffineSymbolExpr():
            return symbols[x.position]
    assert type(x) in _AFFINE, f"no meaning is given for the affine expression {x}"
    return _AFFINE[type(x)](_affine(x.lhs, dims, symbols), _affine(x.rhs, dims, symbols))


def _positive_divisor(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def compute(a: Array, b: Array) -> Array:
        assert np.all(b > 0), "affine division by what is not positive"
        return f(a, b)

    return compute


_AFFINE: dict[Any, Callable[[Array, Array], Array]] = {
    ir.AffineAddExpr: _sum,
    ir.AffineMulExpr: _product,
    ir.AffineModExpr: _positive_divisor(np.mod),
    ir.AffineFloorDivExpr: _positive_divisor(np.floor_divide),
    ir.AffineCeilDivExpr: _positive_divisor(lambda a, b: -(-a // b)),
}

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "affine.apply": _affine_apply,
    "arith.addi": _plain(_sum),
    "arith.andi": _plain(np.bitwise_and),
    "arith.ceildivsi": _plain(lambda a, b: -(-a // b)),
    "arith.ceildivui": _on_unsigned(lambda a, b: a // b + (a % b != 0)),
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.divsi": _plain(_towards_zero),
    "arith.divui": _on_unsigned(np.floor_divide),
    "arith.extsi": lambda op, x: -x if _width(op.operands[0].type) == 1 else x,
    "arith.extui": _extended,
    "arith.floordivsi": _plain(np.floor_divide),
    "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer,
    "arith.index_cast": _plain(np.array),
    "arith.index_castui": _extended,
    "arith.maxsi": _plain(np.maximum),
    "arith.maxui": _on_unsigned(np.maximum),
    "arith.minsi": _plain(np.minimum),
    "arith.minui": _on_unsigned(np.minimum),
    "arith.muli": _plain(_product),
    "arith.ori": _plain(np.bitwise_or),
    "arith.remsi": _plain(np.fmod),
    "arith.remui": _on_unsigned(np.mod),
    "arith.select": _plain(lambda condition, a, b: np.where(condition != 0, a, b)),
    "arith.shli": _shift(_shift_left),
    "arith.shrsi": _shift(np.right_shift),
    "arith.shrui": _shift(lambda x, by: (_unsigned(x) >> _unsigned(by)).view(np.int64)),
    "arith.sitofp": _to_float,
    "arith.subi": _plain(_difference),
    "arith.trunci": _plain(np.array),
    "arith.uitofp": _to_float,
    "arith.xori": _plain(np.bitwise_xor),
    "llvm.call_intrinsic": _intrinsic,
}
