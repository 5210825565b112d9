"""Proofs by Z3: the last resort, where intervals and bounds do not tell.

A claim is that expressions are 0, or not negative, for all values of their symbols within what
the symbols carry: range and divisors. The negation is handed to Z3, under a limit that counts
its steps and not seconds, so the same input has the same answer on every machine. What cannot be
decided within it is answered by "unknown", and a counter-example is evaluated before it is
believed.

Quotients by a constant are Z3's own. Those by a symbol get a quotient and a remainder of their
own, `x = d*q + r` with r between 0 and d, which is what nonlinear reasoning can use. Exclusive ors
of bounded numbers are decided bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lego_mlir.index import ranges
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import (
    Expr,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Mul,
    Poly,
    Spelled,
    Sym,
    Where,
    Xor,
)
from lego_mlir.index.structure import children

RLIMIT = 4_000_000
"""Z3's steps for a proof on request: a few seconds at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the solver found.

    Attributes:
        holds: whether the claim is true; `None` where that stays unknown.
        counterexample: if it is false, a value for each symbol, by name.
    """

    holds: bool | None
    counterexample: dict[str, int] | None = None


def prove(
    zero: Iterable[Int] = (), nonnegative: Iterable[Int] = (), rlimit: int = RLIMIT
) -> Answer:
    """Return whether all of `zero` are 0 and all of `nonnegative` at least 0, at every point.

    Args:
        zero: expressions claimed to be 0.
        nonnegative: expressions claimed not to be negative.
        rlimit: Z3's resource limit.
    """
    zero, nonnegative = list(zero), list(nonnegative)
    import z3

    context = z3.Context()
    width = _bit_width([*zero, *nonnegative])
    translation = _Translation(z3, context) if width is None else _Bits(z3, context, width)
    try:
        broken = [translation(x) != 0 for x in zero] + [translation(x) < 0 for x in nonnegative]
    except _OutOfReachError:
        return Answer(None)
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", rlimit)
    solver.add(*translation.facts, z3.Or(*broken, context))
    verdict = solver.check()
    if verdict == z3.unsat:
        return Answer(True)
    if verdict != z3.sat:
        return Answer(None)
    model = solver.model()
    point = {
        s.name: translation.number(model.eval(value, model_completion=True))
        for s, value in translation.symbols.items()
    }
    if len(point) == len(translation.symbols) and _breaks(point, zero, nonnegative):
        return Answer(False, point)
    return Answer(None)


def _breaks(point: dict[str, int], zero: list[Int], nonnegative: list[Int]) -> bool:
    try:
        return any(evaluate(x, point) for x in zero) or any(
            evaluate(x, point) < 0 for x in nonnegative
        )
    except (ZeroDivisionError, ValueError):  # the claim means nothing there
        return False


class _OutOfReachError(Exception):
    """An expression that is not spelled out for Z3."""


class _Translation(Algebra[Any]):
    """Index expressions as Z3 terms, with the facts that their symbols and quotients bring."""

    def __init__(self, z3: Any, context: Any) -> None:
        super().__init__()
        self.z3 = z3
        self.context = context
        self.facts: list[Any] = []
        self.symbols: dict[Sym, Any] = {}

    def constant(self, x: int) -> Any:
        return self.z3.IntVal(x, self.context)

    def number(self, value: Any) -> int:
        """Return the integer that a term of a model is."""
        return value.as_long()  # type: ignore[no-any-return]

    def fresh(self) -> Any:
        return self.z3.FreshInt("v", self.context)

    def poly(self, x: Poly) -> Any:
        total = self(x.constant)
        for mono, coefficient in x.terms:
            term = self(coefficient)
            for atom, power in mono:
                for _ in range(power):
                    term = term * self(atom)
            total = total + term
        return total

    def mul(self, x: Mul) -> Any:
        return self(x.a) * self(x.b)

    def floordiv(self, x: FloorDiv) -> Any:
        if _positive_int(x.den):
            return self.quotient(x.num, x.den)
        return self.divide(x.num, x.den)[0]

    def mod(self, x: Mod) -> Any:
        if _positive_int(x.den):
            return self.rest(x.num, x.den)
        return self.divide(x.num, x.den)[1]

    def xor(self, x: Xor) -> Any:
        if _are_conditions(x.a, x.b):
            return self.z3.If(self(x.a) != self(x.b), self(1), self(0))
        return self.bitwise_xor(x.a, x.b)

    def minimum(self, x: Min) -> Any:
        return self.z3.If(self(x.a) <= self(x.b), self(x.a), self(x.b))

    def maximum(self, x: Max) -> Any:
        return self.z3.If(self(x.a) >= self(x.b), self(x.a), self(x.b))

    def isqrt(self, x: ISqrt) -> Any:
        n, root = self(x.x), self.fresh()
        exact = self.z3.And(root >= 0, root * root <= n, n < (root + 1) * (root + 1))
        self.facts.append(self.z3.Implies(n >= 0, exact))  # elsewhere it is not defined
        return root

    def less(self, x: Less) -> Any:
        return self.z3.If(self(x.a) < self(x.b), self(1), self(0))

    def where(self, x: Where) -> Any:
        return self.z3.If(self(x.condition) != 0, self(x.a), self(x.b))

    def spelled(self, x: Spelled) -> Any:
        return self(x.value)

    def symbol(self, x: Sym) -> Any:
        # By name and number: symbols of one name may differ in what they carry.
        value = self.variable(f"{x.name}.{len(self.symbols)}")
        self.symbols[x] = self.folded[x] = value
        if x.lo is not None:
            self.facts.append(value >= x.lo)
        if x.hi is not None:
            self.facts.append(value <= self(x.hi))
        for d in x.divisors:
            self.facts.append(
                self.rest(x, d) == 0 if _positive_int(d) else value == self(d) * self.fresh()
            )
        return value

    def variable(self, name: str) -> Any:
        return self.z3.Int(name, self.context)

    def quotient(self, num: Int, den: Int) -> Any:
        """Divide by a positive constant: Z3's division is Euclid's, which then rounds down."""
        return self(num) / self(den)

    def rest(self, num: Int, den: Int) -> Any:
        return self(num) % self(den)

    def divide(self, num: Int, den: Int) -> tuple[Any, Any]:
        """Return quotient and remainder, with facts that hold if the divisor is not 0."""
        quotient, rest = FloorDiv(num, den), Mod(num, den)
        if quotient not in self.folded or rest not in self.folded:
            n, d, q, r = self(num), self(den), self.fresh(), self.fresh()
            self.facts.append(self.z3.Implies(d != 0, n == d * q + r))
            self.facts.append(self.z3.Implies(d > 0, self.z3.And(r >= 0, r < d)))
            if not ranges.is_positive(den):
                self.facts.append(self.z3.Implies(d < 0, self.z3.And(r <= 0, r > d)))
            self.folded[quotient], self.folded[rest] = q, r
        return self.folded[quotient], self.folded[rest]

    def bitwise_xor(self, a: Int, b: Int) -> Any:
        raise _OutOfReachError  # see _Bits


class _Bits(_Translation):
    """Translation to bit vectors in two's complement, wide enough that no result wraps.

    For expressions with an exclusive or: bit by bit among integers, it is beyond Z3.
    """

    def __init__(self, z3: Any, context: Any, width: int) -> None:
        super().__init__(z3, context)
        self.width = width

    def constant(self, x: int) -> Any:
        return self.z3.BitVecVal(x, self.width, self.context)

    def number(self, value: Any) -> int:
        return value.as_signed_long()  # type: ignore[no-any-return]

    def variable(self, name: str) -> Any:
        return self.z3.BitVec(name, self.width, self.context)

    def fresh(self) -> Any:
        raise _OutOfReachError  # it has no bounds, and might wrap

    def quotient(self, num: Int, den: Int) -> Any:
        n, d = self(num), self(den)
        if isinstance(den, int) and den & (den - 1) == 0:
            return n >> (den.bit_length() - 1)  # an arithmetic shift rounds down
        up = self.z3.UDiv(n, d)
        if ranges.is_nonnegative(num):
            return up
        return self.z3.If(n >= 0, up, ~self.z3.UDiv(~n, d))  # -1 - (-1 - n) // d

    def rest(self, num: Int, den: Int) -> Any:
        return self(num) - self(den) * self.quotient(num, den)

    def bitwise_xor(self, a: Int, b: Int) -> Any:
        return self(a) ^ self(b)


def _bit_width(xs: list[Int]) -> int | None:
    """Return the bits that hold every part of expressions, where an exclusive or is one of them."""
    found: set[Expr] = set()
    todo = [x for x in xs if isinstance(x, Expr)]
    while todo:
        x = todo.pop()
        if x not in found:
            found.add(x)
            todo += [c for c in (*children(x), *_bounds_of(x)) if isinstance(c, Expr)]
    if not any(isinstance(x, Xor) and not _are_conditions(x.a, x.b) for x in found):
        return None
    most = 0
    parts: list[Int] = [*found, *xs]
    for part in parts:
        lo, hi = ranges.bounds(part)
        if lo is None or hi is None:
            return None
        most = max(most, abs(lo), abs(hi))
    return most.bit_length() + 2


def _are_conditions(a: Int, b: Int) -> bool:
    """Return whether both are 0 or 1, so that their exclusive or is a comparison."""
    return all(ranges.bounds(x) in ((0, 0), (0, 1), (1, 1)) for x in (a, b))


def _bounds_of(x: Expr) -> tuple[Int, ...]:
    return (*([] if x.hi is None else [x.hi]), *x.divisors) if isinstance(x, Sym) else ()


def _positive_int(x: Int) -> bool:
    return isinstance(x, int) and x > 0
