"""Factoring: the shape in which a polynomial costs the fewest operations.

Polynomials are kept expanded so that terms cancel. Before they become instructions, what several
terms share is pulled out again, greedily, the most shared first:

    BM*K*m + K*i + BK*k + j   ->   K*(BM*m + i) + BK*k + j
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from lego_mlir.index import polynomial, structure
from lego_mlir.index.nodes import Expr, Int, Mono, Poly

Tree: TypeAlias = "int | Expr | Sum | Product"
"""A factored polynomial; every other expression is its own leaf."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms to be added (+1) or subtracted (-1), the added ones first."""

    terms: tuple[tuple[int, Tree], ...]


@dataclass(frozen=True, slots=True)
class Product:
    """Factors to be multiplied; a constant comes last."""

    factors: tuple[Tree, ...]


_Terms: TypeAlias = "list[tuple[Mono, int]]"


def factor(poly: Poly) -> Tree:
    """Return `poly` as nested sums and products."""
    return _sum(poly.constant, list(poly.terms))


def without_constant(poly: Poly) -> Int | None:
    """Return `poly` less its constant, where adding that afterwards costs no more.

    `i + j`, `i + j + 1` and `i + j + 2` then have the sum in common.
    """
    if poly.constant and any(c > 0 for _, c in poly.terms):
        return polynomial.build(0, dict(poly.terms))
    return None


def _sum(constant: int, terms: _Terms) -> Tree:
    summands: list[tuple[int, Tree]] = []
    while (shared := _most_shared(terms)) is not None:
        if isinstance(shared, int):
            group = [(mono, c // shared) for mono, c in terms if abs(c) == shared]
            terms = [(mono, c) for mono, c in terms if abs(c) != shared]
            if all(c < 0 for _, c in group):
                inner = _sum(0, [(mono, -c) for mono, c in group])
                summands.append((-1, _product(inner, shared)))
                continue
        else:
            group = [(_without(mono, shared), c) for mono, c in terms if _has(mono, shared)]
            terms = [(mono, c) for mono, c in terms if not _has(mono, shared)]
        alone = sum(c for mono, c in group if not mono)
        inner = _sum(alone, [(mono, c) for mono, c in group if mono])
        summands.append((1, _product(inner, shared)))
    for mono, c in terms:
        atoms = [atom for atom, power in mono for _ in range(power)]
        scale = [abs(c)] if abs(c) != 1 else []
        factors: list[Tree] = [*atoms, *scale]
        summands.append((1 if c > 0 else -1, _product(*factors)))
    if constant:
        summands.append((1 if constant > 0 else -1, abs(constant)))
    ordered = sorted(summands, key=lambda term: -term[0])
    if len(ordered) == 1 and ordered[0][0] == 1:
        return ordered[0][1]
    return Sum(tuple(ordered))


def _product(*factors: Tree) -> Tree:
    flat: list[Tree] = []
    for f in factors:
        flat += f.factors if isinstance(f, Product) else (f,)
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def _most_shared(terms: _Terms) -> Expr | int | None:
    """Return the atom or coefficient that most terms have, if at least two do."""
    counts: Counter[Expr | int] = Counter()
    for mono, c in terms:
        counts.update({atom for atom, _ in mono})
        if abs(c) != 1:
            counts[abs(c)] += 1
    shared = [(n, x) for x, n in counts.items() if n > 1]
    if not shared:
        return None
    return max(shared, key=lambda item: (item[0], structure.order(item[1])))[1]


def _has(mono: Mono, atom: Expr) -> bool:
    return any(a is atom for a, _ in mono)


def _without(mono: Mono, atom: Expr) -> Mono:
    return tuple((a, p - (a is atom)) for a, p in mono if a is not atom or p > 1)
