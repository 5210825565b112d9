"""Sizes: positive integers, known or symbolic, and the checks every block makes on them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, cast

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, bounds, construct, substitute, symbols
from lego_mlir.index.integers import is_numpy_integer
from lego_mlir.index.nodes import FloorDiv, Max, Min, Mod, Mono, Poly
from lego_mlir.index.polynomial import divides
from lego_mlir.index.work import charge


def size_symbol(name: str, multiple_of: Iterable[Int] = ()) -> Sym:
    """Return a symbolic size: at least 1, and a multiple of what is named.

    >>> M = size_symbol("M", multiple_of=[128])
    >>> 128 * (M // 128) is M
    True

    Raises:
        LegoError: the name cannot stand in a layout's text and in a program.
    """
    if not (name.isascii() and name.isidentifier()):
        raise LegoError(
            f"{name!r} is no name of a size",
            hint="names have ASCII letters, digits and _, and do not begin with a digit",
        )
    return Sym(name, 1, None, _essential(multiple_of))


def _essential(divisors: Iterable[Int]) -> frozenset[Int]:
    """Return the divisors that do not divide another one of them."""
    facts = {_without_sign(d) for d in divisors}
    charge(len(facts) ** 2)
    implied = {d for d in facts for e in facts if divides(d, e) and not divides(e, d)}
    return frozenset(facts - implied)


def _without_sign(divisor: Int) -> Int:
    """Return which of a divisor and its opposite states that either divides: T, not -T."""
    match divisor:
        case int():
            return abs(divisor)
        case Poly(_, ((_, coefficient), *_)) if coefficient < 0:
            return construct.mul(-1, divisor)
    return divisor


def as_size(x: Any, owner: str) -> Int:
    """Return `x` as the size of a dimension.

    Args:
        x: a positive integer, a size symbol or an expression of such; SymPy's are converted.
        owner: the block that the error names.

    Raises:
        LegoError: `x` is no integer, zero or negative; a symbol of SymPy's is not declared
            positive.
    """
    if is_sympy(x):
        x = _from_sympy(x, owner)
    if is_numpy_integer(x):
        x = int(x)
    if isinstance(x, bool) or not isinstance(x, int | Expr):
        raise LegoError(
            f"{owner}: a size is a positive integer or a symbol, not {x!r}",
            hint="sizes are integers; M // 128 is one, M / 128 is not",
        )
    _, hi = bounds(x)
    if hi is not None and hi < 1:
        raise LegoError(f"{owner}: a size must be at least 1, not {x!r}")
    return x


def _from_sympy(x: Any, owner: str) -> Int:
    """Return a size that is SymPy's; `M/BM` in it says that M is a multiple of BM.

    Its symbols have to be declared positive integers: those come back as they were, where an
    unassuming symbol would come back as another one of the same name.
    """
    from lego_mlir.index.sympy_bridge import from_sympy, stated_divisors, symbol

    for s in sorted(x.free_symbols, key=str):
        if not (s.is_integer and s.is_positive):
            raise LegoError(
                f"{owner}: the size symbol '{s}' is not declared a positive integer",
                hint=f"sympy.Symbol('{s}', integer=True, positive=True)",
            )
    known: dict[Any, Int] = {s: symbol(s) for s in x.free_symbols}
    stated = {
        s: size_symbol(s.name, [from_sympy(d, known) for d in divisors])
        for s, divisors in stated_divisors(x).items()
    }
    return from_sympy(x, {**known, **stated})


def as_sizes(xs: Any, owner: str) -> tuple[Int, ...]:
    """Return a non-empty tuple of sizes."""
    if isinstance(xs, str) or not isinstance(xs, Iterable):
        raise LegoError(f"{owner}: expected a list of sizes, not {xs!r}")
    sizes = tuple(as_size(x, owner) for x in xs)
    if not sizes:
        raise LegoError(f"{owner}: at least one dimension is needed")
    return sizes


def unified(sizes: Iterable[Int]) -> dict[Sym, Int]:
    """Return the symbols to replace, so that symbols of one name know what divides any of them.

    `M` of `Row(M, K)` and the `M` of `M/BM`, which BM divides, are one size of a layout.

    Args:
        sizes: all sizes of a layout.
    """
    found: dict[tuple[Any, ...], set[Sym]] = {}
    for s in {s for n in sizes for s in symbols(n)}:
        found.setdefault((s.name, s.lo, s.hi), set()).add(s)
    if all(len(variants) == 1 for variants in found.values()):
        return {}
    made: dict[tuple[Any, ...], Sym] = {}

    def whole(s: Sym) -> Sym:
        key = (s.name, s.lo, s.hi)
        if key not in made:
            made[key] = Sym(*key)  # a fact that names its own symbol sees this one
            divisors = {d for variant in found.get(key, {s}) for d in variant.divisors}
            facts = [substitute(d, {x: whole(x) for x in symbols(d)}) for d in divisors]
            made[key] = Sym(*key, _essential(facts))
        return made[key]

    return {s: whole(s) for variants in found.values() for s in variants}


def cofactor(size: Int, symbol: Sym) -> Int | None:
    """Return what a symbol is multiplied by in a size; `None` if it is no factor of the size.

    >>> M, N = size_symbol("M"), size_symbol("N")
    >>> cofactor(200 * M * N, M)
    200*N
    """
    factor = construct.floordiv(size, symbol)
    is_free = symbol not in symbols(factor)
    return factor if is_free and construct.mul(factor, symbol) == size else None


def ceildiv(a: Any, b: Any) -> Any:
    """Return `a / b` rounded up: how many tiles of size `b` cover `a` elements.

    Args:
        a: an integer, a NumPy array, a size symbol or expression, or SymPy's.
        b: the same; positive.

    Raises:
        LegoError: `b` is a number below 1.
    """
    if isinstance(b, int) and b < 1:
        raise LegoError(f"ceildiv: a tile has at least 1 element, not {b}")
    return (a + (b - 1)) // b


def size_text(x: Int) -> str:
    """Return a size as a layout's text has it, with `/` where a division is exact."""
    rounded_up = _operands_of_ceildiv(x)
    if rounded_up is not None:
        a, b = rounded_up
        return f"ceildiv({size_text(a)}, {size_text(b)})"
    match x:
        case FloorDiv(num, den):
            sign = "/" if divides(den, num) else "//"
            return f"{factor_text(num)}{sign}{factor_text(den)}"
        case Mod(num, den):
            return f"{factor_text(num)}%{factor_text(den)}"
        case Min(a, b) | Max(a, b):
            return f"{'min' if isinstance(x, Min) else 'max'}({size_text(a)}, {size_text(b)})"
        case Poly(constant, terms):
            summands = [_term_text(c, mono) for mono, c in terms]
            summands += [str(constant)] if constant else []
            return " + ".join(summands).replace("+ -", "- ")
    return repr(x)


def _term_text(coefficient: int, mono: Mono) -> str:
    match mono:
        case ((atom, 1),) if coefficient == 1:
            return size_text(atom)
    factors = [factor_text(atom) for atom, power in mono for _ in range(power)]
    sign, scale = "-" if coefficient < 0 else "", abs(coefficient)
    return sign + "*".join([str(scale)] * (scale != 1) + factors)


def factor_text(x: Int) -> str:
    """Return a size as an operand of a product has it: a sum in brackets."""
    text = size_text(x)
    call = isinstance(x, Min | Max) or _operands_of_ceildiv(x) is not None
    return text if call or text.isidentifier() or text.isdigit() else f"({text})"


def _operands_of_ceildiv(x: Int) -> tuple[Int, Int] | None:
    """Return the operands of `x` as `ceildiv(a, b)`; `None` if it reads better as it is."""
    match x:
        case FloorDiv(Poly(constant, _) as num, int() as den) if constant == den - 1:
            return construct.sub(num, constant), den  # (a + b - 1) // b
        case Poly(1, ((((FloorDiv(num, den), 1),), 1),)) if isinstance(den, Expr):
            return construct.add(num, 1), den  # (a - 1) // b + 1, its normal form
    return None


def sizes_text(sizes: Iterable[Int]) -> str:
    """Return a list of sizes as a layout's text has it."""
    return f"[{', '.join(size_text(n) for n in sizes)}]"


def product(sizes: Iterable[Int]) -> Int:
    """Return the number of elements of a space with these sizes."""
    return reduce(construct.mul, sizes, cast("Int", 1))


def is_sympy(x: Any) -> bool:
    """Return whether `x` is SymPy's, without importing SymPy."""
    sympy = sys.modules.get("sympy")
    return sympy is not None and isinstance(x, sympy.Basic)


def check_same_size(
    left: str,
    left_size: Int,
    right: str,
    right_size: Int,
    hint: Callable[[], str | None] = lambda: None,
) -> None:
    """Raise LegoError unless two spaces have equally many elements.

    Args:
        left: the text of one space.
        left_size: its number of elements.
        right: the text of the other.
        right_size: its number of elements.
        hint: a hint for sizes that are known and differ.

    Raises:
        LegoError: they differ, or are symbolic and not the same expression; names both.
    """
    difference = construct.sub(left_size, right_size)
    if isinstance(difference, int) and difference == 0:
        return
    if isinstance(left_size, int) and isinstance(right_size, int):
        message = f"{left} has {left_size} elements, {right} has {right_size}"
        raise LegoError(message, hint=hint())
    raise LegoError(
        f"{left} has {left_size!r} elements, {right} has {right_size!r}: not known to be equal",
        hint="write M/128 in a layout's text, or size_symbol('M', multiple_of=[128]) in Python, "
        "where 128 divides M; the outermost tiles may be ceildiv(M, 128) where it does not",
    )


def bound_values(
    known_symbols: Sequence[Sym], sizes: Mapping[str, int], owner: str
) -> dict[Sym, Int]:
    """Return the value of each symbol of a layout that `sizes` names.

    Raises:
        LegoError: no such symbol, no positive integer, or a size that does not divide.
    """
    names = dict.fromkeys(s.name for s in known_symbols)
    for name in sizes:
        if name not in names:
            known = ", ".join(names) or "none"
            raise LegoError(f"bind: '{owner}' has no symbol '{name}' (it has: {known})")
    numbers = {name: as_size(n, f"bind({name})") for name, n in sizes.items()}
    values = {s: numbers[s.name] for s in known_symbols if s.name in numbers}
    for s, value in values.items():
        for d in s.divisors:
            bound = substitute(d, values)
            if isinstance(bound, int) and isinstance(value, int) and value % bound:
                known = repr(d) if repr(d) == repr(bound) else f"{d!r} = {bound}"
                raise LegoError(f"bind: {s.name} = {value} is no multiple of {known}")
    return values
