"""Index values as sums of multiples of ids and loop variables, and what such a sum tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lego_mlir.mlir.bindings import ir


@dataclass(frozen=True, slots=True)
class Linear:
    """A constant and multiples of leaves."""

    constant: int = 0
    terms: Mapping[Any, int] = field(default_factory=dict)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return the sum of this and a multiple of another."""
        terms = dict(self.terms)
        for leaf, c in other.terms.items():
            terms[leaf] = terms.get(leaf, 0) + factor * c
        kept = {leaf: c for leaf, c in terms.items() if c}
        return Linear(self.constant + factor * other.constant, kept)


def linear(value: Any, leaf: Callable[[Any], Linear | None]) -> Linear | None:
    """Return a value as a linear sum; `None` where it is none.

    Args:
        value: an index value.
        leaf: what a value is that is not computed from others.
    """
    known = leaf(value)
    if known is not None or isinstance(value, ir.BlockArgument):
        return known
    op = value.owner
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
        return Linear(op.attributes["value"].value)
    if op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    a, b = (linear(x, leaf) for x in op.operands)
    if a is None or b is None:
        return None
    match op.name:
        case "arith.addi":
            return a.plus(b)
        case "arith.subi":
            return a.plus(b, -1)
    for x, y in ((a, b), (b, a)):
        if not x.terms:
            return Linear().plus(y, x.constant)
    return None


def determines(terms: Mapping[Any, int], sizes: Mapping[Any, int | None]) -> bool:
    """Return whether a sum tells all its leaves, as digits tell what a number is made of.

    Args:
        terms: the factor of each leaf.
        sizes: how many values each leaf has, from 0 on; `None` for any number.
    """
    reach = 0
    digits = sorted(terms.items(), key=lambda term: abs(term[1]))
    for position, (leaf, c) in enumerate(digits):
        size = sizes[leaf]
        if abs(c) <= reach or (size is None and position + 1 < len(digits)):
            return False
        reach += abs(c) * ((size or 1) - 1)
    return True
