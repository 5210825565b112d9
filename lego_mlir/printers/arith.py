"""Index expressions as `arith` (and, where they are affine, `affine`) operations.

The printer is one recursive `match` from expression to operation. It uses what is proven:

- a power of two divides by a shift and leaves a remainder by a mask, whatever the sign;
- other divisions are unsigned where the range shows that nothing is negative, else floor
  divisions;
- each value is computed outside of every loop that it does not depend on. A sum is split for
  that: what does not change within the loop is added up before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any

from lego_mlir.index.factor import Product, Sum, Tree, factor
from lego_mlir.index.nodes import (
    Expr,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Poly,
    Sym,
    Where,
    Xor,
    symbols,
)
from lego_mlir.index.ranges import bounds, is_nonnegative, is_positive
from lego_mlir.mlir.bindings import arith, ir, llvm
from lego_mlir.printers import affine


class Printer:
    """Prints expressions of one place in the code.

    Args:
        values: the SSA value of each symbol.
        points: insertion points from outermost to innermost; the last is the place itself. Empty
            means: wherever the current insertion point is.
        level: how deep a symbol's value is defined, as a position in `points`.
    """

    def __init__(
        self,
        values: Mapping[Sym, Any],
        points: Sequence[Any] = (),
        level: Callable[[Sym], int] = lambda s: 0,
    ) -> None:
        self._values = values
        self._points = points
        self._level_of_symbol = level
        self._done: dict[Expr, Any] = {}

    def print(self, x: Int) -> Any:
        """The value of `x`, of type index."""
        if isinstance(x, int):
            return self._constant(x)
        if x not in self._done:
            self._done[x] = self._print(x)
        return self._done[x]

    def _print(self, x: Expr) -> Any:
        match x:
            case Sym():
                return self._values[x]
            case Poly() if affine.is_affine(x):
                return self._affine(x)
            case Poly():
                return self._tree(factor(x))
            case FloorDiv(num, den):
                return self._floordiv(x, num, den)
            case Mod(num, den):
                return self._mod(x, num, den)
            case Xor(a, b):
                return self._op(x, arith.XOrIOp, a, b)
            case Min(a, b):
                signed = not (is_nonnegative(a) and is_nonnegative(b))
                return self._op(x, arith.MinSIOp if signed else arith.MinUIOp, a, b)
            case Max(a, b):
                signed = not (is_nonnegative(a) and is_nonnegative(b))
                return self._op(x, arith.MaxSIOp if signed else arith.MaxUIOp, a, b)
            case ISqrt(a):
                return self._isqrt(x, a)
            case Less():
                return self._select(x, x, 1, 0)
            case Where(condition, a, b):
                return self._select(x, condition, a, b)
        raise AssertionError(f"no printer for {type(x).__name__}")

    # Sums and products.
    def _affine(self, x: Poly) -> Any:
        """One affine.apply a loop level, each added to what the level outside of it has summed.

        The addition is arith's: MLIR would compose one affine.apply into the other, and with it
        move the work back into the loop.
        """
        terms = sorted(((mono[0][0], c) for mono, c in x.terms), key=lambda t: self._level(t[0]))
        total: Any = None
        for level, group in groupby(terms, key=lambda t: self._level(t[0])):
            operands = [(c, self.print(atom)) for atom, c in group]
            constant = x.constant if total is None else 0
            with self._point(level):
                if len(operands) == 1 and operands[0][0] == 1 and constant == 0:
                    part = operands[0][1]
                else:
                    part = affine.apply(constant, operands)
                total = part if total is None else arith.AddIOp(total, part).result
        return total

    def _tree(self, tree: Tree) -> Any:
        match tree:
            case Sum(terms):
                (sign, first), *rest = terms
                total = self._tree(first)
                if sign < 0:
                    total = self._binary(arith.SubIOp, self._constant(0), total)
                for sign, t in rest:
                    op = arith.AddIOp if sign > 0 else arith.SubIOp
                    total = self._binary(op, total, self._tree(t))
                return total
            case Product(factors):
                product = self._tree(factors[0])
                for f in factors[1:]:
                    product = self._binary(arith.MulIOp, product, self._tree(f))
                return product
            case _:
                return self.print(tree)

    # Divisions.
    def _floordiv(self, x: Expr, num: Int, den: Int) -> Any:
        shift = _log2(den)
        if shift is not None:  # an arithmetic shift rounds down, as floor division does
            op = arith.ShRUIOp if is_nonnegative(num) else arith.ShRSIOp
            return self._op(x, op, num, shift)
        unsigned = is_nonnegative(num) and is_positive(den)
        return self._op(x, arith.DivUIOp if unsigned else arith.FloorDivSIOp, num, den)

    def _mod(self, x: Expr, num: Int, den: Int) -> Any:
        if _log2(den) is not None:  # two's complement makes the mask right for negatives too
            assert isinstance(den, int)
            return self._op(x, arith.AndIOp, num, den - 1)
        if is_nonnegative(num) and is_positive(den):
            return self._op(x, arith.RemUIOp, num, den)
        n, d = self.print(num), self.print(den)
        with self._point(self._level(x)):
            quotient = arith.FloorDivSIOp(n, d).result
            return arith.SubIOp(n, arith.MulIOp(quotient, d).result).result

    # The rest.
    def _condition(self, x: Int) -> Any:
        """`x != 0`, of type i1."""
        if isinstance(x, Less):
            unsigned = is_nonnegative(x.a) and is_nonnegative(x.b)
            predicate = arith.CmpIPredicate.ult if unsigned else arith.CmpIPredicate.slt
            a, b = self.print(x.a), self.print(x.b)
        else:
            predicate, a, b = arith.CmpIPredicate.ne, self.print(x), self._constant(0)
        with self._point(self._level(x)):
            return arith.CmpIOp(predicate, a, b).result

    def _select(self, x: Expr, condition: Int, a: Int, b: Int) -> Any:
        chosen = self._condition(condition), self.print(a), self.print(b)
        with self._point(self._level(x)):
            return arith.SelectOp(*chosen).result

    def _isqrt(self, x: Expr, a: Int) -> Any:
        """The root in double precision, then one step up or down: exact for a < 2**52."""
        n = self.print(a)
        index, i64, f64 = ir.IndexType.get(), ir.IntegerType.get_signless(64), ir.F64Type.get()
        one = self._constant(1)
        with self._point(self._level(x)):
            wide = arith.UIToFPOp(f64, arith.IndexCastUIOp(i64, n).result).result
            root = arith.FPToUIOp(i64, llvm.SqrtOp(wide).res).result
            r = arith.IndexCastUIOp(index, root).result
            too_big = arith.CmpIOp(arith.CmpIPredicate.ugt, arith.MulIOp(r, r).result, n).result
            r = arith.SelectOp(too_big, arith.SubIOp(r, one).result, r).result
            next_one = arith.AddIOp(r, one).result
            square = arith.MulIOp(next_one, next_one).result
            fits = arith.CmpIOp(arith.CmpIPredicate.ule, square, n).result
            return arith.SelectOp(fits, next_one, r).result

    def _op(self, x: Expr, op: Any, a: Int, b: Int) -> Any:
        lhs, rhs = self.print(a), self.print(b)
        with self._point(self._level(x)):
            return op(lhs, rhs).result

    def _binary(self, op: Any, lhs: Any, rhs: Any) -> Any:
        """A step of a factored tree, at the place itself: its parts need not be expressions."""
        with self._point(len(self._points) - 1):
            return op(lhs, rhs).result

    def _constant(self, value: int) -> Any:
        with self._point(0):
            return arith.ConstantOp(ir.IndexType.get(), value).result

    # Places.
    def _level(self, x: Int) -> int:
        return max((self._level_of_symbol(s) for s in symbols(x)), default=0)

    def _point(self, level: int) -> Any:
        return self._points[level] if self._points else nullcontext()


def widest(x: Int) -> int | None:
    """The greatest magnitude among the values that printing `x` computes; `None` if unbounded."""
    worst = 0
    stack: list[Int] = [x]
    seen: set[Int] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        lo, hi = bounds(node)
        if lo is None or hi is None:
            return None
        worst = max(worst, abs(lo), abs(hi))
        match node:
            case int() | Sym():
                continue
            case Poly(constant, terms):
                # Every partial sum lies between the sum of all negative and of all positive terms.
                parts = [Poly(0, ((mono, c),)) for mono, c in terms]
                ends = [bounds(p) for p in parts]
                if any(lo is None or hi is None for lo, hi in ends):
                    return None
                spread = sum(max(abs(lo or 0), abs(hi or 0)) for lo, hi in ends)
                worst = max(worst, spread + abs(constant))
                stack.extend(atom for mono, _ in terms for atom, _ in mono)
            case ISqrt(a):
                worst = max(worst, (bounds(a)[1] or 0) * 2 + 4)
                stack.append(a)
            case _:
                stack.extend(getattr(node, f) for f in node.__match_args__)
    return worst


def _log2(x: Int) -> int | None:
    if isinstance(x, int) and x > 0 and x & (x - 1) == 0:
        return x.bit_length() - 1
    return None
