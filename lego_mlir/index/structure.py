"""The structure of index expressions: operands, symbols, and an order that depends on nothing else.

What is computed of a node is kept in the node.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.index.nodes import Expr, Int, Mono, Mul, Poly, Sym, WithForm


def order(x: Int) -> tuple[Any, ...]:
    """Return a sort key for `x` that depends on its structure alone, never on addresses."""
    if isinstance(x, int):
        return (-1, x)
    if x._order is None:
        match x:
            case Sym(name, lo, hi, divisors):
                known = tuple(sorted(order(d) for d in divisors))
                top = () if hi is None else order(hi)
                key: tuple[Any, ...] = (x.rank, name, lo is None, lo or 0, top, known)
            case Poly(constant, terms):
                key = (x.rank, len(terms), tuple((mono_order(m), c) for m, c in terms), constant)
            case _:
                key = (x.rank, *(order(getattr(x, f)) for f in x.__match_args__))
        object.__setattr__(x, "_order", key)
        return key
    return x._order


def mono_order(mono: Mono) -> tuple[Any, ...]:
    """Return the order of monomials within a sum: by their atoms, then by their powers."""
    return tuple((order(atom), power) for atom, power in mono)


def children(x: Expr) -> tuple[Int, ...]:
    """Return the operands of a node; for a polynomial its atoms."""
    match x:
        case Sym():
            return ()
        case Poly(_, terms):
            return tuple(atom for mono, _ in terms for atom, _ in mono)
        case WithForm(_, form):
            return (form,)
        case _:
            return tuple(getattr(x, f) for f in x.__match_args__)


def symbols(x: Int) -> frozenset[Sym]:
    """Return all variables of an expression."""
    if isinstance(x, int):
        return frozenset()
    if x._symbols is None:
        object.__setattr__(x, "_symbols", _symbols_of(x))
    assert x._symbols is not None
    return x._symbols


def _symbols_of(x: Expr) -> frozenset[Sym]:
    if isinstance(x, Sym):
        return frozenset((x,))
    return frozenset[Sym]().union(*(symbols(child) for child in children(x)))


def is_expanded(x: Int) -> bool:
    """Return whether there is no product of sums in `x`."""
    if isinstance(x, int):
        return True
    if x._is_expanded is None:
        found = not isinstance(x, Mul) and all(map(is_expanded, children(x)))
        object.__setattr__(x, "_is_expanded", found)
    return bool(x._is_expanded)
