"""Which elements of each tile are valid: the conditions, from loads to where tiles are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import is_pointwise
from lego_mlir.mlir.tile_ir.types import is_tile, shape_of
from lego_mlir.mlir.tile_passes.fill_invalid.bounds import Bounds
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import (
    EVERYWHERE,
    Bound,
    Domain,
    JoinedParts,
    Merged,
    along,
    is_everywhere,
    proven,
)
from lego_mlir.mlir.tile_passes.fill_invalid.merging import simplified
from lego_mlir.mlir.tile_passes.fill_invalid.transfer import moved, some_along, split, stretched

_CONTROL_FLOW = ("scf.for", "scf.if", "scf.while")


class Validity:
    """The conditions on the valid elements of every tile of a kernel.

    Args:
        kernel: not changed.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._bounds = Bounds(kernel)
        self._domains: dict[Any, Domain] = {}
        self._block(kernel.body)

    def of(self, value: Any) -> Domain:
        """Return the conditions on a tile, without those that add nothing."""
        found: set[Any] = set()
        for condition in self._domains.get(value, EVERYWHERE):
            if not is_everywhere(frozenset([condition])):
                found |= simplified(condition) if isinstance(condition, Merged) else {condition}
        return frozenset(found)

    def bounds(self, op: Any) -> list[Bound]:
        """Return the bounds of what a load or store of a tile accesses that are not proven."""
        return self._bounds.of_access(op)

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
                self._bounds.read_layout(op)
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
                    self._domains[result] = simplified(merged)

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
                return self._all(op) | {self._bounds.of_mask(op.operands[1])}
            case tiles.BROADCAST:
                return stretched(self._operand(op), source, shape_of(op.results[0]))
            case tiles.TRANSPOSE | tiles.RESHAPE:
                return moved(op, self._operand(op), source)
            case tiles.SPLIT:
                return split(op, number, self._operand(op), source)
            case tiles.JOIN:
                parts = tuple(self._domains.get(x, EVERYWHERE) for x in op.operands)
                same = len(set(parts)) == 1
                is_simple = all(isinstance(c, Bound) for c in parts[0])
                return parts[0] if same and is_simple else frozenset([JoinedParts(parts)])
            case tiles.REDUCE | tiles.REDUCE_WITH:
                return some_along(self._all(op), tiles.dim_of(op), source)
            case tiles.REDUCE_SCATTER:
                return self._bounds.of_slice(op, self.of(op.operands[0]))
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
        kept = [(m, simplified(m)) for m in merged]
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
            self._domains[result] = simplified(merged)

    def _while(self, op: Any) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        carried = [self._merge(op, x) for x in before.arguments]
        self._block(before)
        passed = list(_end(before).operands)[1:]
        for value, x, y in zip(passed, after.arguments, op.results, strict=True):
            self._domains[x] = self._domains[y] = self._domains.get(value, EVERYWHERE)
        self._block(after)
        for m, first, last in zip(carried, op.operands, _end(after).operands, strict=True):
            m.alternatives.extend([self._domains.get(x, EVERYWHERE) for x in (first, last)])


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation
