"""Affine functions of an index: a sum of indices, each times a size, and a number.

They are the coordinates of windows (`algebra.windows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lego_mlir.algebra.blocks import Sizes
from lego_mlir.algebra.sizes import factor_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, construct, polynomial, substitute
from lego_mlir.index import symbols as symbols_of
from lego_mlir.index.nodes import plain


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine function of a window's index.

    Attributes:
        coefficients: one for each dimension of the window.
        constant: what is added.
    """

    coefficients: Sizes
    constant: Int

    def at(self, index: Sequence[Any]) -> Any:
        """Return the value at an index: numbers, arrays or expressions."""
        terms = zip(self.coefficients, index, strict=True)
        return sum((x if c == 1 else c * x for c, x in terms if c != 0), start=self.constant)

    def text(self, names: Sequence[str]) -> str:
        """Return the notation of the function."""
        terms: list[tuple[str, str]] = []
        for c, name in zip((*self.coefficients, self.constant), (*names, ""), strict=True):
            if c == 0:
                continue
            is_negative = isinstance(c, int) and c < 0
            size = -c if is_negative else c
            factors = [factor_text(size)] if size != 1 or not name else []
            terms.append(
                ("-" if is_negative else "+", "*".join([*factors, *([name] * bool(name))]))
            )
        if len(terms) > 1 and terms[0][0] == "-" and self.constant != 0:
            terms.insert(0, terms.pop())  # 9 - x
        text = "".join(f" {sign} {term}" for sign, term in terms)
        return (text[3:] if text.startswith(" +") else text.strip().replace("- ", "-", 1)) or "0"

    def substitute(self, values: Mapping[Sym, Int]) -> Affine:
        """Return the function with symbolic sizes replaced."""
        coefficients = tuple(substitute(c, values) for c in self.coefficients)
        return Affine(coefficients, substitute(self.constant, values))


def affine(x: Any, names: Sequence[str]) -> Affine:
    """Return an expression as an affine function of the symbols with these names, from 0 on.

    Raises:
        LegoError: it is none.
    """
    if isinstance(x, bool) or not isinstance(x, int | Expr):
        raise LegoError(f"Window: a coordinate is an expression of indices, not {x!r}")
    coefficients: list[Int] = [0] * len(names)
    constant, terms = polynomial.parts(plain(x))
    total: Int = constant
    for mono, number in terms.items():
        where = [k for k, (atom, _) in enumerate(mono) if _is_index(atom, names)]
        rest = tuple(pair for k, pair in enumerate(mono) if k not in where)
        factor = polynomial.term(number, rest) if rest else number
        inner = {s.name for atom, _ in rest for s in symbols_of(atom)}
        if inner & set(names) or len(where) > 1 or any(mono[k][1] > 1 for k in where):
            raise LegoError(
                f"Window: {x!r} is not affine in {', '.join(names)}",
                hint="a coordinate is a sum of indices, each times a size, and a number; for other "
                "views take GroupBy, TileBy or a permutation",
            )
        if where:
            k = names.index(cast("Sym", mono[where[0]][0]).name)
            coefficients[k] = construct.add(coefficients[k], factor)
        else:
            total = construct.add(total, factor)
    return Affine(tuple(coefficients), total)


def _is_index(atom: Expr, names: Sequence[str]) -> bool:
    return isinstance(atom, Sym) and atom.name in names and atom.lo == 0 and atom.hi is None
