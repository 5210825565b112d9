"""How conditions on a tile become conditions on another one, which an operation makes of it."""

from __future__ import annotations

from typing import Any

from lego_mlir.index import construct
from lego_mlir.mlir.tile_ir.types import shape_of
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import (
    Bound,
    Domain,
    Shape,
    Some,
    Stretched,
    Viewed,
    along,
    new_dims,
    proven,
)


def some_along(domain: Domain, dim: int, shape: Shape) -> Domain:
    """Return the conditions on a reduction: that some element along a dimension is valid.

    Bounds hold of the first element if they do of any. With another condition that differs along
    the dimension, all that do are taken together.
    """
    different = along(domain, dim, shape)
    kept = domain - different
    reduced = (*shape[:dim], 1, *shape[dim + 1 :])
    if any(not isinstance(c, Bound) for c in different):
        return kept | {Some(different, shape, dim)}
    first = frozenset(c.at_first((dim,)) for c in different if isinstance(c, Bound))
    return proven(kept | first, reduced)


def stretched(domain: Domain, source: Shape, shape: Shape) -> Domain:
    """Return the conditions on a tile whose dimensions of size 1 are repeated to a shape."""
    if source == shape:
        return domain
    repeated = {d for d, (n, m) in enumerate(zip(source, shape, strict=True)) if n != m}
    found: set[Any] = set()
    others: set[Any] = set()
    for c in domain:
        if isinstance(c, Bound):
            found.add(c.at_first(repeated))
        else:
            others.add(c)
    if others:
        found.add(Stretched(frozenset(others), source))
    return frozenset(found)


def moved(op: Any, domain: Domain, source: Shape) -> Domain:
    """Return the conditions on a transposed or reshaped tile."""
    dims = new_dims(op, source, shape_of(op.results[0]))
    found: set[Any] = set()
    others: set[Any] = set()
    for c in domain:
        if isinstance(c, Bound) and dims is not None:
            found.add(c.renumbered(dims))
        else:
            others.add(c)
    if others:
        found.add(Viewed(frozenset(others), source, op))
    return frozenset(found)


def split(op: Any, number: int, domain: Domain, source: Shape) -> Domain:
    """Return the conditions on one of the parts along the last dimension."""
    last = len(source) - 1
    found: set[Any] = set()
    others: set[Any] = set()
    for c in domain:
        if not isinstance(c, Bound):
            others.add(c)
            continue
        step = sum(stride for d, stride in c.terms if d == last) * number
        kept = tuple((d, stride) for d, stride in c.terms if d != last)
        origin = construct.add(c.origin, step)
        found.add(Bound(kept, origin, c.size, (*c.addends, (None, step)), c.values))
    if others:
        found.add(Viewed(frozenset(others), source, op, number))
    return frozenset(found)
