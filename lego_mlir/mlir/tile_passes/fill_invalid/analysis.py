"""Which elements of each tile are valid: the conditions, from loads to where tiles are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        places = list(zip(list(body.arguments)[1:], op.results, strict=True))

        def turn() -> list[Domain]:
            self._block(body)
            return self._domains_of(_end(body).operands)

        merged = self._loop(op, places, self._domains_of(carried), turn)
        # What every turn keeps is known in the body, too, also to what is derived of it there.
        kept = {k: simplified(m) for k, m in merged.items()}
        if any(found and merged[k] not in found for k, found in kept.items()):
            self._give(places, kept)
            for k, last in enumerate(turn()):
                if k in merged:
                    merged[k].alternatives[-1] = last

    def _loop(
        self,
        op: Any,
        places: Sequence[tuple[Any, ...]],
        first: Sequence[Domain],
        turn: Callable[[], list[Domain]],
    ) -> dict[int, Merged]:
        """Find the conditions in the body of a loop.

        A carried tile that begins with conditions has just these in every iteration if the body
        gives it the same ones again. The others have merged conditions.

        Args:
            op: the loop.
            places: of each carried value, what it is in the loop and behind it.
            first: the conditions that each begins with.
            turn: finds the conditions in the body, and returns those of what it hands on.

        Returns:
            The merged conditions, by the numbers of the values.
        """
        merged: dict[int, Merged] = {}
        given = dict(enumerate(first))
        while True:
            self._give(places, given)
            last = turn()
            changed = [k for k, x in enumerate(last) if k not in merged and x != first[k]]
            if not changed:
                break
            for k in changed:
                merged[k] = Merged(op)
                given[k] = frozenset([merged[k]])
        for k, m in merged.items():
            m.alternatives[:] = [first[k], last[k]]
        return merged

    def _give(self, places: Sequence[tuple[Any, ...]], domains: Mapping[int, Domain]) -> None:
        for k, domain in domains.items():
            for value in places[k]:
                if is_tile(value):
                    self._domains[value] = domain

    def _domains_of(self, values: Sequence[Any]) -> list[Domain]:
        return [self._domains.get(x, EVERYWHERE) for x in values]

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

        def turn() -> list[Domain]:
            self._block(before)
            passed = dict(enumerate(self._domains_of(list(_end(before).operands)[1:])))
            self._give(list(zip(after.arguments, op.results, strict=True)), passed)
            self._block(after)
            return self._domains_of(_end(after).operands)

        self._loop(op, [(x,) for x in before.arguments], self._domains_of(op.operands), turn)


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation
