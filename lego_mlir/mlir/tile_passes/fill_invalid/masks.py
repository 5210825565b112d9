"""Tiles of i1 that hold conditions, built before the operation that needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.index import construct
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.emit.arith import Printer
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import tile_type
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import (
    Bound,
    Condition,
    Domain,
    JoinedParts,
    Mask,
    Shape,
    Some,
    Stretched,
    Viewed,
    is_everywhere,
    strongest,
)


class Masks:
    """Builds the tiles of a kernel's conditions; one in a block serves all that follow it.

    Args:
        kernel: for errors.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._built: dict[Any, Any] = {}
        self._keys: dict[Condition, tuple[str, ...]] = {}

    def all_of(self, domain: Domain, shape: Shape, at: Any) -> Any:
        """Return a tile of whether all conditions hold; the insertion point is before `at`.

        Raises:
            LegoError: a condition differs from one turn of a loop to another.
        """
        given = frozenset(c for c in domain if not is_everywhere(frozenset([c])))
        ordered = self._ordered(strongest(given))
        found = None
        for condition in ordered:
            mask = self._mask(condition, shape, at)
            found = mask if found is None else self._both(found, mask, at)
        return found

    def _ordered(self, domain: Domain) -> list[Condition]:
        """Return conditions in one order, whatever a set's is."""
        return sorted(domain, key=self._key) if len(domain) > 1 else list(domain)

    def _key(self, condition: Condition) -> tuple[str, ...]:
        """Return a condition's key, made once: to print a value numbers those of the module."""
        if condition not in self._keys:
            self._keys[condition] = _order(condition)
        return self._keys[condition]

    def _both(self, a: Any, b: Any, at: Any) -> Any:
        return self._once(("and", a, b), at, lambda: arith.AndIOp(a, b).result)

    def _once(self, key: Any, at: Any, build: Callable[[], Any]) -> Any:
        """Return what `build` makes, or made before in this block."""
        key = (at.block, key)
        if key not in self._built:
            self._built[key] = build()
        return self._built[key]

    def _mask(self, condition: Condition, shape: Shape, at: Any) -> Any:
        if isinstance(condition, Mask):
            return condition.value
        return self._once((condition, shape), at, lambda: self._new(condition, shape, at))

    def _new(self, condition: Condition, shape: Shape, at: Any) -> Any:
        kind = tile_type(shape, _i1())
        match condition:
            case Bound():
                return self._bound(condition, shape, at)
            case Stretched(conditions=inner, source=source):
                return tiles.broadcast(kind, self.all_of(inner, source, at))
            case Some(conditions=inner, source=source, dim=dim):
                return tiles.reduce(kind, self.all_of(inner, source, at), "or", dim)
            case Viewed(conditions=inner, source=source, op=op, number=number):
                mask = self.all_of(inner, source, at)
                match op.name:
                    case tiles.TRANSPOSE:
                        return tiles.transpose(kind, mask, tiles.order_of(op))
                    case tiles.RESHAPE:
                        return tiles.reshape(kind, mask)
                return tiles.split(kind, mask, source[-1])[number]
            case JoinedParts(parts=parts):
                part = shape[:-1]
                return tiles.join(kind, [self._part(each, part, at) for each in parts])
        raise self._kernel.source.error(
            f"'{at.name}' ignores the invalid elements of a tile, and which those are changes "
            "between the iterations or branches of the control flow that it comes from",
            at.location,
            hint="make all elements valid before they are carried: lego.fill, in Python lg.fill, "
            "gives the others a number",
        )

    def _part(self, domain: Domain, shape: Shape, at: Any) -> Any:
        if domain:
            return self.all_of(domain, shape, at)
        kind = tile_type(shape, _i1())
        return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, _true())).result

    def _bound(self, bound: Bound, shape: Shape, at: Any) -> Any:
        kind = tile_type(shape, _i1())
        origin = self._once(("origin", bound.addends), at, lambda: _sum(bound.addends))
        if [stride for _, stride in bound.terms] == [1]:
            dim = bound.terms[0][0]
            size, limit = bound.size, None
            if not isinstance(size, int):
                size, limit = _UNBOUNDED, self._limit(bound, at)
            return tiles.in_range(kind, origin, dim, size, limit=limit, divisor=_divisor(bound))
        if not bound.terms:
            return tiles.full(kind, arith.CmpIOp(_SLT, origin, self._limit(bound, at)).result)
        return _compared(bound, origin, self._limit(bound, at), shape)

    def _limit(self, bound: Bound, at: Any) -> Any:
        """Return the limit of a bound as an index value."""
        return self._once(("size", bound.size), at, lambda: Printer(bound.values).print(bound.size))


_UNBOUNDED = (1 << 31) - 1
"""What no index of a tile reaches; whatever divides the limit counts as dividing it."""

_MOST_DIVISOR = 16
"""Neighbours that are compared together, at most: registers are accessed by no wider vectors."""


def _divisor(bound: Bound) -> int:
    """Return a power of two that is known to divide the origin and the size of a bound."""
    divisor = _MOST_DIVISOR
    while any(construct.mod(x, divisor) != 0 for x in (bound.origin, bound.size)):
        divisor //= 2
    return divisor


_SLT = 2
"""The number of arith.cmpi's signed `<`."""


def _compared(bound: Bound, origin: Any, limit: Any, shape: Shape) -> Any:
    """Build the comparison of a coordinate that is a sum over several dimensions."""
    is_short = isinstance(bound.size, int) and bound.size < 1 << 30
    element = ir.IntegerType.get_signless(32 if is_short else 64)
    kind = tile_type(shape, element)
    index = tile_type(shape, ir.IntegerType.get_signless(32))
    total = tiles.full(kind, arith.IndexCastOp(element, origin).result)
    for dim, stride in bound.terms:
        step = tiles.iota(index, dim)
        step = step if kind == index else arith.ExtSIOp(kind, step).result
        total = arith.AddIOp(total, arith.MulIOp(step, _splat(kind, stride)).result).result
    most = (
        _splat(kind, bound.size)
        if isinstance(bound.size, int)
        else tiles.full(kind, arith.IndexCastOp(element, limit).result)
    )
    return arith.CmpIOp(_SLT, total, most).result


def _sum(addends: tuple[tuple[Any, int], ...]) -> Any:
    """Build the sum of index values, each times a number."""
    total = None
    for value, factor in addends:
        if value is None:
            term = arith.ConstantOp(ir.IndexType.get(), factor).result
        elif factor == 1:
            term = value
        else:
            number = arith.ConstantOp(ir.IndexType.get(), factor).result
            term = arith.MulIOp(value, number).result
        total = term if total is None else arith.AddIOp(total, term).result
    return total


def _splat(kind: Any, number: int) -> Any:
    element = ir.ShapedType(kind).element_type
    attribute = ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(element, number))
    return arith.ConstantOp(kind, attribute).result


def _order(condition: Condition) -> tuple[str, ...]:
    """Return a key by which conditions stand in one order, whatever a set's is."""
    match condition:
        case Bound():
            return "0", f"{condition.terms} {condition.origin} {condition.size}"
        case Mask(value=value):
            return "1", str(value)
        case Viewed(op=op, number=number, conditions=inner):
            return "2", str(op), str(number), *_orders(inner)
        case Stretched(conditions=inner) | Some(conditions=inner):
            return "3", type(condition).__name__, *_orders(inner)
        case JoinedParts(parts=parts):
            return "4", *(key for part in parts for key in _orders(part))
    return "5", str(condition.op)


def _orders(domain: Domain) -> list[str]:
    return [key for keys in sorted(map(_order, domain)) for key in keys]


def _i1() -> Any:
    return ir.IntegerType.get_signless(1)


def _true() -> Any:
    return ir.IntegerAttr.get(_i1(), 1)
