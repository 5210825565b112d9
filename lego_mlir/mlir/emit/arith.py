"""Index expressions as `arith` (and, where they are affine, `affine`) operations.

The printer is an algebra of `index.fold`: one method for each kind of node. It uses what is proven:

- a power of two divides by a shift and leaves a remainder by a mask, whatever the sign;
- other divisions are unsigned where the range shows that nothing is negative, else floor
  divisions;
- each value is computed outside of every loop that it does not depend on. A sum is split for
  that: what does not change within the loop is added up before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index.extraction.factor import Product, Sum, Tree, factor, without_constant
from lego_mlir.index.fold import Algebra
from lego_mlir.index.nodes import (
    Bits,
    Expr,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Mono,
    Mul,
    Poly,
    Sym,
    Where,
    Xor,
)
from lego_mlir.index.ranges import bounds, is_nonnegative, is_positive
from lego_mlir.index.structure import symbols
from lego_mlir.mlir.bindings import arith, ir, llvm
from lego_mlir.mlir.emit import affine
from lego_mlir.mlir.emit.operations import constant, make


@dataclass(frozen=True, slots=True)
class Printed:
    """Expressions that are printed already: the value of each, and its value as a condition."""

    values: dict[Int, Any] = field(default_factory=dict)
    conditions: dict[Int, Any] = field(default_factory=dict)

    def copy(self) -> Printed:
        """Return a copy, which may be added to."""
        return Printed(dict(self.values), dict(self.conditions))


class Printer(Algebra[Any]):
    """Prints expressions at one position in the code.

    Args:
        values: the SSA value of each symbol.
        points: insertion points from outermost to innermost; the last is the position itself. Empty
            means: wherever the current insertion point is.
        level: how deep a symbol's value is defined, as a position in `points`.
        printed: what may be used at the position; what is printed is added to it.
    """

    def __init__(
        self,
        values: Mapping[Sym, Any],
        points: Sequence[Any] = (),
        level: Callable[[Sym], int] = lambda s: 0,
        printed: Printed | None = None,
    ) -> None:
        super().__init__()
        self._values = values
        self._points = points
        self._level_of_symbol = level
        self._printed = Printed() if printed is None else printed
        self._index = ir.IndexType.get()

    def print(self, x: Int) -> Any:
        """Print `x`; return its value, of type index."""
        values = self._printed.values
        if x not in values:
            values[x] = self.constant(x) if isinstance(x, int) else self.interpret(x)
        return values[x]

    def __call__(self, x: Int) -> Any:
        """Print `x`: an algebra's results are shared in `printed`, beyond this printer."""
        return self.print(x)

    def symbol(self, x: Sym) -> Any:
        return self._values[x]

    def mul(self, x: Mul) -> Any:
        return self._op(x, "arith.muli", x.a, x.b)

    def bits(self, x: Bits) -> Any:
        return self._op(x, "arith.andi", x.x, x.mask)

    def xor(self, x: Xor) -> Any:
        return self._op(x, "arith.xori", x.a, x.b)

    def minimum(self, x: Min) -> Any:
        signed = not (is_nonnegative(x.a) and is_nonnegative(x.b))
        return self._op(x, "arith.minsi" if signed else "arith.minui", x.a, x.b)

    def maximum(self, x: Max) -> Any:
        signed = not (is_nonnegative(x.a) and is_nonnegative(x.b))
        return self._op(x, "arith.maxsi" if signed else "arith.maxui", x.a, x.b)

    def less(self, x: Less) -> Any:
        return self._select(x, x, 1, 0)

    def where(self, x: Where) -> Any:
        return self._select(x, x.condition, x.a, x.b)

    # Sums and products.
    def poly(self, x: Poly) -> Any:
        """Sum each loop level's terms and add them to the sum of the outer levels.

        The addition is arith's: MLIR would compose one affine.apply into the other, and with it
        move the work back into the loop.
        """
        one_level = len({self._level_of(mono) for mono, _ in x.terms}) == 1
        if one_level and not affine.is_affine(x) and (base := without_constant(x)) is not None:
            value, constant = self.print(base), self.print(x.constant)
            with self._point(self._level(x)):
                return self.build("arith.addi", value, constant)
        terms = sorted(x.terms, key=lambda term: self._level_of(term[0]))
        total: Any = None
        for level, group in groupby(terms, key=lambda term: self._level_of(term[0])):
            part = Poly(x.constant if total is None else 0, tuple(group))
            value = self._affine(part, level) if affine.is_affine(x) else self._factored(part)
            with self._point(level):
                total = value if total is None else self.build("arith.addi", total, value)
        return total

    def _affine(self, part: Poly, level: int) -> Any:
        operands = [(c, self.print(mono[0][0])) for mono, c in part.terms]
        if len(operands) == 1 and operands[0][0] == 1 and part.constant == 0:
            return operands[0][1]
        with self._point(level):
            return affine.apply(part.constant, operands)

    def _factored(self, part: Poly) -> Any:
        return self._tree(factor(part))[0]

    def _tree(self, tree: Tree) -> tuple[Any, int]:
        """Return a factored sum's value and loop level; outer levels are combined first."""
        match tree:
            case Sum(terms):
                parts = [(sign, *self._tree(t)) for sign, t in terms]
                (sign, total, level), *rest = sorted(parts, key=lambda p: (p[2], -p[0]))
                if sign < 0:
                    with self._point(level):
                        total = self.build("arith.subi", self.print(0), total)
                for sign, value, at in rest:
                    level = max(level, at)
                    with self._point(level):
                        total = self.build("arith.addi" if sign > 0 else "arith.subi", total, value)
                return total, level
            case Product(factors):
                (product, level), *others = sorted(map(self._tree, factors), key=lambda f: f[1])
                for value, at in others:
                    level = max(level, at)
                    with self._point(level):
                        product = self.build("arith.muli", product, value)
                return product, level
            case _:
                return self.print(tree), self._level(tree)

    # Divisions.
    def floordiv(self, x: FloorDiv) -> Any:
        num, den = x.num, x.den
        shift = _log2(den)
        if shift is not None:  # an arithmetic shift rounds down, as floor division does
            op = "arith.shrui" if is_nonnegative(num) else "arith.shrsi"
            return self._op(x, op, num, shift)
        unsigned = is_nonnegative(num) and is_positive(den)
        return self._op(x, "arith.divui" if unsigned else "arith.floordivsi", num, den)

    def mod(self, x: Mod) -> Any:
        num, den = x.num, x.den
        if _log2(den) is not None:  # two's complement makes the mask right for negatives too
            assert isinstance(den, int)
            return self._op(x, "arith.andi", num, den - 1)
        if is_nonnegative(num) and is_positive(den):
            return self._op(x, "arith.remui", num, den)
        n, d = self.print(num), self.print(den)
        with self._point(self._level(x)):
            quotient = self.build("arith.floordivsi", n, d)
            return self.build("arith.subi", n, self.build("arith.muli", quotient, d))

    # The rest.
    def condition(self, x: Int) -> Any:
        """Print `x != 0`, of type i1; a conjunction is `where(a, b, 0)`."""
        conditions = self._printed.conditions
        if x not in conditions:
            conditions[x] = self._condition(x)
        return conditions[x]

    def _condition(self, x: Int) -> Any:
        match x:
            case int():
                with self._point(0):
                    return arith.ConstantOp(ir.IntegerType.get_signless(1), int(x != 0)).result
            case Where(c, a, 0):
                both = self.condition(c), self.condition(a)
                with self._point(self._level(x)):
                    return self.build("arith.andi", *both)
            case Less(a, b):
                unsigned = is_nonnegative(a) and is_nonnegative(b)
                predicate = arith.CmpIPredicate.ult if unsigned else arith.CmpIPredicate.slt
                compared = self.print(a), self.print(b)
            case _:
                predicate = arith.CmpIPredicate.ne
                compared = self.print(x), self.print(0)
        with self._point(self._level(x)):
            return self.build(partial(arith.CmpIOp, predicate), *compared)

    def _select(self, x: Expr, condition: Int, a: Int, b: Int) -> Any:
        chosen = self.condition(condition), self.print(a), self.print(b)
        with self._point(self._level(x)):
            return self.build("arith.select", *chosen)

    def isqrt(self, x: ISqrt) -> Any:
        """Build the integer root by floating point and one step up or down: exact for a < 2**52."""
        n = self.print(x.x)
        _, hi = bounds(x.x)
        small = hi is not None and hi < 1 << 24  # then single precision holds it exactly
        element = ir.IntegerType.get_signless(32 if small else 64)
        index, integer = n.type, like(n.type, element)
        real = like(n.type, ir.F32Type.get() if small else ir.F64Type.get())
        one = self.print(1)
        with self._point(self._level(x)):
            wide = arith.UIToFPOp(real, arith.IndexCastUIOp(integer, n).result).result
            # Not math.sqrt, which becomes a call into libdevice.
            name = ir.StringAttr.get(_square_root(real))
            approximate = llvm.CallIntrinsicOp(real, name, [wide], [], []).results
            root = arith.FPToUIOp(integer, approximate).result
            r = arith.IndexCastUIOp(index, root).result
            above = partial(arith.CmpIOp, arith.CmpIPredicate.ugt)
            too_big = self.build(above, self.build("arith.muli", r, r), n)
            lower = self.build("arith.subi", r, one)
            r = self.build("arith.select", too_big, lower, r)
            next_one = self.build("arith.addi", r, one)
            square = self.build("arith.muli", next_one, next_one)
            fits = self.build(partial(arith.CmpIOp, arith.CmpIPredicate.ule), square, n)
            return self.build("arith.select", fits, next_one, r)

    def _op(self, x: Expr, op: Any, a: Int, b: Int) -> Any:
        lhs, rhs = self.print(a), self.print(b)
        with self._point(self._level(x)):
            return self.build(op, lhs, rhs)

    def constant(self, x: int) -> Any:
        if not -(1 << 63) <= x < 1 << 63:
            raise LegoError(f"the index {x} does not fit 64 bits", hint="use smaller sizes")
        with self._point(0):
            return constant(self._index, x)

    def build(self, op: Any, *operands: Any) -> Any:
        """Build one elementwise operation on operands of one shape; return its value.

        Args:
            op: the name of an operation whose result is of its last operand's type, or what builds
                another one.
            operands: its operands.
        """
        if isinstance(op, str):
            return make(op, operands[-1].type, *operands)
        return op(*operands).result

    # Positions.
    def _level(self, x: Int) -> int:
        return max((self._level_of_symbol(s) for s in symbols(x)), default=0)

    def _level_of(self, mono: Mono) -> int:
        return max((self._level(atom) for atom, _ in mono), default=0)

    def _point(self, level: int) -> Any:
        return self._points[level] if self._points else nullcontext()


def like(kind: Any, element: Any) -> Any:
    """Return the type with the shape of `kind`, a scalar or a vector, and these elements."""
    if isinstance(kind, ir.VectorType):
        return ir.VectorType.get(kind.shape, element)
    return element


def _square_root(real: Any) -> str:
    """Return the name of LLVM's square root of a floating-point type or a vector of one."""
    if isinstance(real, ir.VectorType):
        return f"llvm.sqrt.v{real.shape[0]}{real.element_type}"
    return f"llvm.sqrt.{real}"


def _log2(x: Int) -> int | None:
    if isinstance(x, int) and x > 0 and x & (x - 1) == 0:
        return x.bit_length() - 1
    return None
