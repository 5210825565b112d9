"""Sums of multiples of values, as one `affine.apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.index.nodes import Mono, Poly
from lego_mlir.mlir.bindings import ir


def is_affine(poly: Poly) -> bool:
    """Return whether a polynomial is affine in its atoms: no term multiplies two of them."""
    return all(_degree(mono) == 1 for mono, _ in poly.terms)


def _degree(mono: Mono) -> int:
    return sum(power for _, power in mono)


def apply(constant: int, terms: Sequence[tuple[int, Any]]) -> Any:
    """Build `constant + sum(coefficient * value)` at the current insertion point.

    Raises:
        LegoError: a number does not fit 64 bits.
    """
    for number in (constant, *(coefficient for coefficient, _ in terms)):
        if not -(1 << 63) <= number < 1 << 63:
            raise LegoError(f"the index {number} does not fit 64 bits", hint="use smaller sizes")
    total = ir.AffineConstantExpr.get(constant)
    for position, (coefficient, _) in enumerate(terms):
        total = ir.AffineDimExpr.get(position) * coefficient + total
    the_map = ir.AffineMap.get(len(terms), 0, [total])
    return ir.Operation.create(
        "affine.apply",
        results=[ir.IndexType.get()],
        operands=[value for _, value in terms],
        attributes={"map": ir.AffineMapAttr.get(the_map)},
    ).result
