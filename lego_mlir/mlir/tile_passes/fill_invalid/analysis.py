"""Which elements of each tile are valid: the conditions, from loads to where tiles are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.index import Int, construct, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.indices.index_reader import IndexReader
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import index_of, read_sizes, with_read_sizes
from lego_mlir.mlir.tile_ir.operations import is_pointwise, slice_of
from lego_mlir.mlir.tile_ir.types import is_tile, shape_of
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import (
    EVERYWHERE,
    Bound,
    Domain,
    JoinedParts,
    Mask,
    Merged,
    Shape,
    Some,
    Stretched,
    Viewed,
    along,
    is_everywhere,
    proven,
)

_CONTROL_FLOW = ("scf.for", "scf.if", "scf.while")


class Validity:
    """The conditions on the valid elements of every tile of a kernel.

    Args:
        kernel: not changed.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._reader = IndexReader()
        read_sizes(kernel.launch, kernel.layouts, self._reader)
        self._domains: dict[Any, Domain] = {}
        self._block(kernel.body)

    def of(self, value: Any) -> Domain:
        """Return the conditions on a tile, without those that add nothing."""
        found: set[Any] = set()
        for condition in self._domains.get(value, EVERYWHERE):
            if not is_everywhere(frozenset([condition])):
                found |= _simplified(condition) if isinstance(condition, Merged) else {condition}
        return frozenset(found)

    def bounds(self, op: Any) -> list[Bound]:
        """Return the bounds of what a load or store of a tile accesses that are not proven.

        There is no element past the end of a dimension along which the tile extends, and none where
        partial tiles pad.
        """
        layout = self._kernel.layouts.of(op)
        index = index_of(op, layout)
        layout = with_read_sizes(op, layout, self._reader)
        dims = {layout_dim: k for k, layout_dim in enumerate(slice_of(op))}
        shape = shape_of(op.results[0] if op.name == dialect.LOAD else op.operands[0])
        found = [
            self._bound([(index[dim], 1)], [(k, 1)], layout.dims[dim]) for dim, k in dims.items()
        ]
        if layout.is_padded:
            found += self._padding(op, layout, index, dims)
        once = [k for k, n in enumerate(shape) if n == 1]
        found = [bound.at_first(once) for bound in found]
        return [bound for bound in found if not bound.is_proven(shape)]

    def _padding(
        self, op: Any, layout: Layout, index: Sequence[Any], dims: dict[int, int]
    ) -> list[Bound]:
        """Return the bounds of the tensor's coordinates that partial tiles pad."""
        view = layout.view
        assert view is not None
        if view.skew is not None:
            raise self._kernel.source.error(
                f"'{op.name}' of a tile through the skewed layout '{layout}'",
                op.location,
                hint="skewed tiles belong to kernels of threads; a tile may begin anywhere",
            )
        rank = len(view.tiles[0])
        found = []
        for k, size in enumerate(layout.tensor_shape):
            stride, addends, terms = 1, [], []
            for level in reversed(range(len(view.tiles))):
                dim = level * rank + k
                addends.append((index[dim], stride))
                if dim in dims:
                    terms.append((dims[dim], stride))
                if level:
                    stride *= int(view.tiles[level][k])
            whole = construct.mul(stride, view.tiles[0][k])
            if construct.sub(whole, size) != 0:
                found.append(self._bound(addends, terms, size))
        return found

    def _mask(self, mask: Any) -> Bound | Mask:
        """Return the condition of a tile of truth values; a bound like a load's, if it is one."""
        if not dialect.made_by(mask, tiles.IN_RANGE):
            return Mask(mask)
        op = mask.owner
        limit = tiles.limit_of(op)
        size = tiles.size_of(op) if limit is None else self._reader.read(limit)
        return self._bound([(op.operands[0], 1)], [(tiles.dim_of(op), 1)], size)

    def _bound(
        self, addends: Sequence[tuple[Any, int]], terms: Sequence[tuple[int, int]], size: Int
    ) -> Bound:
        origin: Int = 0
        found: list[tuple[Any, int]] = []
        for value, factor in addends:
            term = construct.mul(factor, self._reader.read(value))
            origin = construct.add(origin, term)
            # A number is the same inside and outside of a loop, which its constant is not.
            found.append((None, term) if isinstance(term, int) else (value, factor))
        values = {s: self._reader.values[s] for s in symbols(size)}
        return Bound(tuple(sorted(terms)), origin, size, tuple(found), values)

    # Operation by operation.
    def _block(self, block: Any) -> None:
        for each in block.operations:
            self._operation(each.operation)

    def _operation(self, op: Any) -> None:
        match op.name:
            case "scf.for":
                self._for(op)
            case "scf.if":
                self._if(op)
            case "scf.while":
                self._while(op)
            case dialect.INV | dialect.APPLY:
                self._read_layout(op)
            case _:
                for number, result in enumerate(op.results):
                    if is_tile(result):
                        found = self._result(op, number)
                        self._domains[result] = proven(found, shape_of(result))
        if op.name in _CONTROL_FLOW and op.parent.name == "gpu.launch":
            self._leave(op)

    def _leave(self, op: Any) -> None:
        """Simplify the conditions on results: outside of all control flow none is left open."""
        for result in op.results:
            match list(self._domains.get(result, EVERYWHERE)):
                case [Merged() as merged]:
                    self._domains[result] = _simplified(merged)

    def _read_layout(self, op: Any) -> None:
        """Let the reader see through a layout whose sizes are known."""
        layout = self._kernel.layouts.of(op)
        if layout.symbols or layout.functions or layout.is_partial or layout.window is not None:
            return
        values = [self._reader.read(x) for x in op.operands]
        found = layout.inv(*values) if op.name == dialect.INV else (layout.apply(*values),)
        for result, x in zip(op.results, found, strict=True):
            self._reader.define(result, x)

    def _operand(self, op: Any, number: int = 0) -> Domain:
        return self._domains.get(op.operands[number], EVERYWHERE)

    def _all(self, op: Any) -> Domain:
        """Return the conditions on all operands together."""
        return EVERYWHERE.union(*(self._domains.get(x, EVERYWHERE) for x in op.operands))

    def _result(self, op: Any, number: int) -> Domain:
        """Return the conditions on a result of an operation without control flow."""
        source = shape_of(op.operands[0]) if len(op.operands) and is_tile(op.operands[0]) else ()
        match op.name:
            case dialect.LOAD:
                return frozenset(self.bounds(op))
            case tiles.RESTRICT:
                return self._all(op) | {self._mask(op.operands[1])}
            case tiles.BROADCAST:
                return stretched(self._operand(op), source, shape_of(op.results[0]))
            case tiles.TRANSPOSE | tiles.RESHAPE:
                return _moved(op, self._operand(op), source)
            case tiles.SPLIT:
                return _split(op, number, self._operand(op), source)
            case tiles.JOIN:
                parts = tuple(self._domains.get(x, EVERYWHERE) for x in op.operands)
                same = len(set(parts)) == 1
                is_simple = all(isinstance(c, Bound) for c in parts[0])
                return parts[0] if same and is_simple else frozenset([JoinedParts(parts)])
            case tiles.REDUCE | tiles.REDUCE_WITH:
                return some_along(self._all(op), tiles.dim_of(op), source)
            case tiles.SORT_WITH:
                domain = self._all(op)
                return domain - along(domain, tiles.dim_of(op), source)
            case tiles.DOT:
                return self._dot(op)
            case tiles.TAKE:
                return self._operand(op, 1)
            case tiles.SCAN | tiles.SCAN_WITH | tiles.CONVERT | tiles.GATHER:
                return self._all(op)
        return self._all(op) if is_pointwise(op) else EVERYWHERE

    def _dot(self, op: Any) -> Domain:
        """Return where a row of the one operand, and a column of the other one, has elements."""
        a, b, _ = op.operands
        result = shape_of(op.results[0])
        rows = some_along(self._operand(op, 0), 1, shape_of(a))
        columns = some_along(self._operand(op, 1), 0, shape_of(b))
        return (
            stretched(rows, (result[0], 1), result)
            | stretched(columns, (1, result[1]), result)
            | self._operand(op, 2)
        )

    # Control flow.
    def _merge(self, op: Any, *values: Any) -> Merged:
        """Give tiles that are one value in control flow the same conditions."""
        merged = Merged(op)
        for value in values:
            if is_tile(value):
                self._domains[value] = frozenset([merged])
        return merged

    def _for(self, op: Any) -> None:
        body = op.regions[0].blocks[0]
        carried = list(op.operands)[3:]
        inside = list(body.arguments)[1:]
        merged = [self._merge(op, x, y) for x, y in zip(inside, op.results, strict=True)]
        self._turn(op, merged, carried)
        # What every turn keeps is known in the body, too, also to what is derived of it there.
        kept = [(m, _simplified(m)) for m in merged]
        settled = [found for m, found in kept if found and m not in found]
        if settled:
            for x, y, (_, found) in zip(inside, op.results, kept, strict=True):
                if is_tile(x):
                    self._domains[x] = self._domains[y] = found
            self._turn(op, merged, carried)

    def _turn(self, op: Any, merged: Sequence[Merged], carried: Sequence[Any]) -> None:
        """Find the conditions in the body of a loop, and of what one turn yields."""
        body = op.regions[0].blocks[0]
        self._block(body)
        for m, first, last in zip(merged, carried, _end(body).operands, strict=True):
            m.alternatives[:] = [self._domains.get(x, EVERYWHERE) for x in (first, last)]

    def _if(self, op: Any) -> None:
        blocks = [block for region in op.regions for block in region.blocks]
        for block in blocks:
            self._block(block)
        for number, result in enumerate(op.results):
            merged = self._merge(op, result)
            ends = [_end(block).operands[number] for block in blocks]
            merged.alternatives.extend([self._domains.get(x, EVERYWHERE) for x in ends])
            # Unlike a loop's, they do not depend on one another.
            self._domains[result] = _simplified(merged)

    def _while(self, op: Any) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        carried = [self._merge(op, x) for x in before.arguments]
        passed = [self._merge(op, x, y) for x, y in zip(after.arguments, op.results, strict=True)]
        self._block(before)
        self._block(after)
        for m, first, last in zip(carried, op.operands, _end(after).operands, strict=True):
            m.alternatives.extend([self._domains.get(x, EVERYWHERE) for x in (first, last)])
        for m, value in zip(passed, list(_end(before).operands)[1:], strict=True):
            m.alternatives.append(self._domains.get(value, EVERYWHERE))


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _simplified(merged: Merged) -> Domain:
    """Return the conditions that all alternatives have, if they are known where these merge."""
    own = frozenset([merged])
    if is_everywhere(own):
        return EVERYWHERE
    different = {alternative - own for alternative in merged.alternatives}
    if len(different) == 1:
        (same,) = different
        if not any(_is_inside(condition, merged.op) for condition in same):
            return same
    return own


def _is_inside(condition: Any, op: Any) -> bool:
    """Return whether a condition needs a value that is made inside of an operation."""
    match condition:
        case Bound(addends=addends):
            return any(value is not None and _is_made_in(value, op) for value, _ in addends)
        case Mask(value=value):
            return _is_made_in(value, op)
        case Merged(op=merging):
            return _is_within(merging, op)
        case JoinedParts(parts=parts):
            return any(_is_inside(c, op) for part in parts for c in part)
    return any(_is_inside(c, op) for c in condition.conditions)


def _is_made_in(value: Any, op: Any) -> bool:
    owner = value.owner
    return _is_within(owner.owner if isinstance(value, ir.BlockArgument) else owner, op)


def _is_within(at: Any, op: Any) -> bool:
    """Return whether an operation is another one, or inside of it."""
    while at is not None:
        if at.operation == op:
            return True
        at = at.operation.parent
    return False


# How conditions on a tile become conditions on another one.
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


def _moved(op: Any, domain: Domain, source: Shape) -> Domain:
    """Return the conditions on a transposed or reshaped tile."""
    dims = _new_dims(op, source, shape_of(op.results[0]))
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


def _new_dims(op: Any, source: Shape, shape: Shape) -> dict[int, int] | None:
    """Return the number of each dimension in the result, but for those of size 1 in a reshape.

    It is `None` of a reshape that does more than add and remove dimensions of size 1.
    """
    if op.name == tiles.TRANSPOSE:
        return {d: k for k, d in enumerate(tiles.order_of(op))}
    before = [d for d, n in enumerate(source) if n > 1]
    after = [d for d, n in enumerate(shape) if n > 1]
    if [source[d] for d in before] != [shape[d] for d in after]:
        return None
    return dict(zip(before, after, strict=True))


def _split(op: Any, number: int, domain: Domain, source: Shape) -> Domain:
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
