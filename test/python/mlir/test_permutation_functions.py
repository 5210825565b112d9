"""Permutation functions compute what MLIR defines, on integers, arrays and symbols."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from lego_mlir.index import Sym, evaluate
from lego_mlir.mlir.context import Source, new_context, parse
from lego_mlir.mlir.lowering.indices.permutation_functions import read_function

RANGE = range(-9, 10)
MODULUS = 1 << 64


def unsigned(x: int) -> int:
    return x % MODULUS


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


SIGNED: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    **{f"s{name}": f for name, f in SIGNED.items()},
    **{
        f"u{name}": lambda a, b, f=f: f(unsigned(a), unsigned(b))  # type: ignore[misc]
        for name, f in SIGNED.items()
    },
}
BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.minui": lambda a, b: min(a, b, key=unsigned),
    "arith.maxui": lambda a, b: max(a, b, key=unsigned),
    "arith.divsi": toward_zero,
    "arith.remsi": lambda a, b: a - toward_zero(a, b) * b,
    "arith.floordivsi": lambda a, b: a // b,
}


def read(body: str) -> tuple[Any, Any]:
    """A module, and its function of %a and %b that ends in %r."""
    text = f"""
    func.func @f(%a: index, %b: index) -> index {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      {body}
      return %r : index
    }}
    """
    source = Source("functions.mlir", text)
    module = parse(source, new_context())
    return module, read_function(module.body.operations[0].operation, source)


def check(body: str, meaning: Callable[[int, int], int], without: tuple[int, ...] = ()) -> None:
    """Compare at all points of the range, on integers, on arrays and on symbols."""
    module, f = read(body)
    assert module is not None  # lives as long as its function
    points = [(a, b) for a, b in product(RANGE, RANGE) if b not in without]
    expected = [meaning(a, b) for a, b in points]
    assert [int(f(a, b)) for a, b in points] == expected
    a, b = np.array(points).T
    assert list(f(a, b)) == expected
    expression = f(Sym("a", -9, 9), Sym("b", -9, 9))
    assert list(evaluate(expression, {"a": a, "b": b})) == expected


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_compute_mlirs_result(name: str) -> None:
    """Of negative numbers too: `i - 5 <u 3` is the usual test for a range."""
    check(
        f"%c = arith.cmpi {name}, %a, %b : index\n%r = arith.select %c, %c1, %c0 : index",
        lambda a, b: int(COMPARISONS[name](a, b)),
    )


@pytest.mark.parametrize("name", BINARY)
def test_arithmetic_computes_mlirs_result(name: str) -> None:
    divides = name.endswith(("divsi", "remsi"))
    check(f"%r = {name} %a, %b : index", BINARY[name], (0,) if divides else ())


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("andi", lambda p, q: p and q),
        ("ori", lambda p, q: p or q),
        ("xori", lambda p, q: p != q),
        ("cmpi eq,", lambda p, q: p == q),
        ("cmpi ult,", lambda p, q: p < q),
        ("cmpi slt,", lambda p, q: -p < -q),
        ("cmpi sge,", lambda p, q: -p >= -q),
    ],
)
def test_connectives_compute_mlirs_result(name: str, meaning: Callable[[bool, bool], bool]) -> None:
    """Of two comparisons; as a signed number of one bit, true is -1."""
    check(
        "%p = arith.cmpi slt, %a, %c1 : index\n%q = arith.cmpi sge, %b, %c0 : index\n"
        f"%c = arith.{name} %p, %q : i1\n%r = arith.select %c, %a, %b : index",
        lambda a, b: a if meaning(a < 1, b >= 0) else b,
    )


@pytest.mark.parametrize(("name", "true"), [("index_cast", -1), ("index_castui", 1)])
def test_a_condition_as_an_index(name: str, true: int) -> None:
    check(
        f"%p = arith.cmpi slt, %a, %b : index\n%r = arith.{name} %p : i1 to index",
        lambda a, b: true * (a < b),
    )
