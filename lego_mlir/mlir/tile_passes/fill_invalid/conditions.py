"""Conditions on the index of an element, whose conjunction says which elements of a tile are valid.

A `Bound` compares a coordinate with a size, which a range of the index may prove. A `Mask` is a
tile of i1. The others say how a condition on one tile becomes one on another.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lego_mlir.index import Int, Sym, construct
from lego_mlir.index.proofs import prover
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import shape_of

Shape: TypeAlias = tuple[int, ...]

_PERMUTING = (tiles.TRANSPOSE, tiles.RESHAPE)


@dataclass(frozen=True, slots=True)
class Bound:
    """Whether `origin + sum(stride * index[dim])` is below `size`.

    Attributes:
        terms: dimensions of the tile, each with a stride of at least 1, in ascending order.
        origin: the coordinate of the first element.
        size: the exclusive limit.
        addends: SSA values, each with a factor, and a number with `None`, whose sum is the origin.
        values: the SSA values of the symbols of `size`, which only the launch knows.
    """

    terms: tuple[tuple[int, int], ...]
    origin: Int
    size: Int
    addends: tuple[tuple[Any, int], ...] = field(compare=False)
    values: Mapping[Sym, Any] = field(default_factory=dict, compare=False)

    def is_proven(self, shape: Shape) -> bool:
        """Return whether it holds for all elements of a tile."""
        reach = sum(stride * (shape[dim] - 1) for dim, stride in self.terms)
        return prover.is_less(construct.add(self.origin, reach), self.size)

    def at_first(self, dims: Container[int]) -> Bound:
        """Return the bound of the first element along some dimensions."""
        terms = tuple((d, stride) for d, stride in self.terms if d not in dims)
        return Bound(terms, self.origin, self.size, self.addends, self.values)

    def renumbered(self, dims: Mapping[int, int]) -> Bound:
        """Return the bound with other numbers of dimensions; those without one are left out."""
        terms = tuple(sorted((dims[d], stride) for d, stride in self.terms if d in dims))
        return Bound(terms, self.origin, self.size, self.addends, self.values)

    def follows_from(self, other: Bound) -> bool:
        """Return whether it holds wherever another one does."""
        theirs = dict(other.terms)
        if any(stride > theirs.get(dim, 0) for dim, stride in self.terms):
            return False
        slack = construct.sub(
            construct.sub(self.size, self.origin), construct.sub(other.size, other.origin)
        )
        return prover.is_nonnegative(slack)


@dataclass(frozen=True, slots=True)
class Mask:
    """Whether an element of a tile of i1 is true."""

    value: Any


@dataclass(frozen=True, slots=True)
class Viewed:
    """The conditions on a tile of which another one is a view.

    Attributes:
        conditions: on the source.
        source: its shape.
        op: the view, which is built anew on the conditions.
        number: of the view's results, which one.
    """

    conditions: Domain
    source: Shape
    op: Any
    number: int = 0


@dataclass(frozen=True, slots=True)
class Stretched:
    """The conditions on a tile whose dimensions of size 1 are repeated."""

    conditions: Domain
    source: Shape


@dataclass(frozen=True, slots=True)
class Some:
    """Whether all conditions hold of some element along a dimension, which has size 1 then."""

    conditions: Domain
    source: Shape
    dim: int


@dataclass(frozen=True, slots=True)
class JoinedParts:
    """The conditions on each of the tiles that are joined."""

    parts: tuple[Domain, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The conditions on a tile that control flow makes out of several.

    Attributes:
        op: the scf.for, scf.if or scf.while.
        alternatives: the conditions on each of them; those of what a loop yields come last.
    """

    op: Any
    alternatives: list[Domain] = field(default_factory=list)


Condition: TypeAlias = Bound | Mask | Viewed | Stretched | Some | JoinedParts | Merged
Domain: TypeAlias = frozenset[Condition]
"""Conditions that all hold of a valid element; none: all elements are valid."""

EVERYWHERE: Domain = frozenset()


def flattened(domain: Domain) -> list[Condition]:
    """Return the conditions, with the alternatives of merged ones in place of these."""
    return list(_flattened(domain, set()))


def _flattened(domain: Domain, seen: set[Merged]) -> Iterator[Condition]:
    for condition in domain:
        if not isinstance(condition, Merged):
            yield condition
        elif condition not in seen:
            seen.add(condition)
            for alternative in condition.alternatives:
                yield from _flattened(alternative, seen)


def is_everywhere(domain: Domain) -> bool:
    """Return whether all elements are valid: there is no bound and no mask among the conditions.

    A condition that only depends on itself, as of a value that a loop carries, always holds.
    """
    return not any(_sources(domain, set()))


def _sources(domain: Domain, seen: set[Merged]) -> Iterator[Condition]:
    """Yield the bounds and masks that conditions come from."""
    for condition in _flattened(domain, seen):
        match condition:
            case Viewed(conditions=inner) | Stretched(conditions=inner) | Some(conditions=inner):
                yield from _sources(inner, seen)
            case JoinedParts(parts=parts):
                for part in parts:
                    yield from _sources(part, seen)
            case _:
                yield condition


def depends(condition: Condition, dim: int, shape: Shape) -> bool:
    """Return whether a condition may differ along a dimension of a tile of this shape."""
    if shape[dim] == 1:
        return False
    match condition:
        case Bound(terms=terms):
            return any(d == dim for d, _ in terms)
        case Stretched(source=source):
            return source[dim] > 1
        case Merged():
            found = flattened(frozenset([condition]))
            return any(depends(each, dim, shape) for each in found)
    return True


def along(domain: Domain, dim: int, shape: Shape) -> Domain:
    """Return the conditions that may differ along a dimension."""
    return frozenset(c for c in domain if depends(c, dim, shape))


def proven(domain: Domain, shape: Shape) -> Domain:
    """Return the conditions without those that are proven to hold."""
    return frozenset(c for c in domain if not (isinstance(c, Bound) and c.is_proven(shape)))


def strongest(domain: Domain) -> Domain:
    """Return the conditions without bounds that follow from others."""
    kept = list(domain)
    for condition in domain:
        others = [c for c in kept if isinstance(c, Bound) and c is not condition]
        if isinstance(condition, Bound) and any(condition.follows_from(c) for c in others):
            kept.remove(condition)
    return frozenset(kept)


def new_dims(op: Any, source: Shape, shape: Shape) -> dict[int, int] | None:
    """Return the number of each dimension in the result, but for those of size 1 in a reshape.

    It is `None` of a reshape that does more than add and remove dimensions of size 1.

    Args:
        op: a lego.transpose or lego.reshape.
        source: the shape of its operand.
        shape: the shape of its result.
    """
    if op.name == tiles.TRANSPOSE:
        return {d: k for k, d in enumerate(tiles.order_of(op))}
    before = [d for d, n in enumerate(source) if n > 1]
    after = [d for d, n in enumerate(shape) if n > 1]
    if [source[d] for d in before] != [shape[d] for d in after]:
        return None
    return dict(zip(before, after, strict=True))


def is_dropped(condition: Condition, bounds: Sequence[Bound]) -> bool:
    """Return whether a condition holds wherever all bounds of a store do."""
    match condition:
        case Bound():
            return any(condition.follows_from(bound) for bound in bounds)
        case Merged():
            found = flattened(frozenset([condition]))
            return all(is_dropped(each, bounds) for each in found)
        case Stretched(conditions=inner, source=source):
            once = [d for d, n in enumerate(source) if n == 1]
            first = [c.at_first(once) if isinstance(c, Bound) else c for c in flattened(inner)]
            return all(is_dropped(each, bounds) for each in first)
        case Viewed(conditions=inner, source=source, op=op) if op.name in _PERMUTING:
            dims = new_dims(op, source, shape_of(op.results[0]))
            if dims is None:
                return False
            before = {now: dim for dim, now in dims.items()}
            there = [bound.renumbered(before) for bound in bounds]
            return all(is_dropped(each, there) for each in flattened(inner))
    return False
