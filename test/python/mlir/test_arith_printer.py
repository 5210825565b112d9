"""The operations that the printer builds compute the expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.index import Sym, bounds, evaluate, isqrt, maximum, minimum, where
from lego_mlir.index.nodes import Int
from lego_mlir.index.width import widest
from lego_mlir.mlir.bindings import func, ir
from lego_mlir.mlir.context import Source, new_context
from lego_mlir.mlir.emit.arith import Printer
from lego_mlir.mlir.lowering.indices.permutation_functions import read_function

SOURCE = Source("test", "")
SYMBOLS = [Sym("a", 0, 63), Sym("b", -17, 40), Sym("c", 1, 9), Sym("d", None, None)]


def printed(x: Int) -> tuple[Any, Any]:
    """A module with a function of a, b, c, d that computes `x`, and the function."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        index = ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            op = func.FuncOp("f", ir.FunctionType.get([index] * len(SYMBOLS), [index]))
            entry = op.add_entry_block()
            with ir.InsertionPoint(entry):
                values = dict(zip(SYMBOLS, entry.arguments, strict=True))
                func.ReturnOp([Printer(values).print(x)])
        module.operation.verify()
        return module, op.operation


def points() -> dict[str, Any]:
    """Values of the symbols within their ranges, at random and at the ends."""
    draw = np.random.default_rng(1)
    values = {}
    for s in SYMBOLS:
        lo, hi = bounds(s)
        lo, hi = -1000 if lo is None else lo, 1000 if hi is None else hi
        values[s.name] = np.append(draw.integers(lo, hi + 1, 500), [lo, hi])
    return values


def operations(x: Int) -> list[str]:
    _, op = printed(x)
    return [o.operation.name for o in op.regions[0].blocks[0].operations]


leaves = st.sampled_from([*SYMBOLS, 0, 1, 2, 5, 32, -3])


def combine(children: Any) -> Any:
    pair = st.tuples(children, children)
    divisor = st.sampled_from([1, 2, 3, 8, 12, 32, SYMBOLS[2]])
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]),
        pair.map(lambda p: p[0] - p[1]),
        pair.map(lambda p: p[0] * p[1]),
        st.tuples(children, divisor).map(lambda p: p[0] // p[1]),
        st.tuples(children, divisor).map(lambda p: p[0] % p[1]),
        pair.map(lambda p: minimum(p[0], p[1])),
        pair.map(lambda p: maximum(p[0], p[1])),
        pair.map(lambda p: p[0] ^ p[1]),
        st.tuples(pair, children, children).map(lambda p: where(p[0][0] < p[0][1], p[1], p[2])),
    )


@given(st.recursive(leaves, combine, max_leaves=8))
def test_printed_code_computes_the_expression(x: Int) -> None:
    module, op = printed(x)
    values = points()
    got = read_function(op, SOURCE)(*values.values())
    assert np.all(got == evaluate(x, values)), f"{x!r}\n{module}"


@given(st.recursive(leaves, combine, max_leaves=8))
def test_widest_bounds_every_intermediate_value(x: Int) -> None:
    """`widest` decides that 32 bits will do: no operation may exceed it."""
    limit = widest(x)
    if limit is None:
        return
    _, op = printed(x)
    env: dict[Any, Any] = dict(
        zip(op.regions[0].blocks[0].arguments, points().values(), strict=True)
    )
    from lego_mlir.mlir.lowering.indices.permutation_functions import evaluate

    for o in op.regions[0].blocks[0].operations:
        if o.operation.name == "func.return":
            break
        value = evaluate(o.operation, [env[i] for i in o.operation.operands], SOURCE)
        env[o.operation.results[0]] = value
        if isinstance(o.operation.results[0].type, ir.IndexType):
            assert np.max(np.abs(value)) <= max(limit, 63), f"{x!r}: {o}"


A, B, C, D = SYMBOLS


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (A // 8, ["arith.shrui"]),
        (B // 8, ["arith.shrsi"]),
        (A % 8, ["arith.andi"]),
        (B % 8, ["arith.andi"]),
        (A // 3, ["arith.divui"]),
        (B // 3, ["arith.floordivsi"]),
        (A % 3, ["arith.remui"]),
        (A // C, ["arith.divui"]),
        (B % 3, ["arith.floordivsi", "arith.muli", "arith.subi"]),
        (A * 5 + B * 2 - 7, ["affine.apply"]),
        (A * C, ["arith.muli"]),
        (A * C + B * C, ["arith.addi", "arith.muli"]),
        (A ^ C, ["arith.xori"]),
        (minimum(A, C), ["arith.minui"]),
        (minimum(A, B), ["arith.minsi"]),
        (A, []),
    ],
    ids=str,
)
def test_an_expression_becomes_the_cheapest_operations(x: Int, expected: list[str]) -> None:
    """Ranges choose the operation: unsigned where nothing is negative, shifts for powers of two."""
    written = [name for name in operations(x) if name not in ("arith.constant", "func.return")]
    assert sorted(written) == sorted(expected)


def test_a_square_root_is_printed() -> None:
    assert "llvm.call_intrinsic" in operations(isqrt(A))
