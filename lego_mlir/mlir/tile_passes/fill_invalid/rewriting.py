"""The pass: each operation that ignores invalid elements gets tiles in which none matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.identities import identity, zero
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.types import element_of, is_tile, shape_of
from lego_mlir.mlir.tile_passes.fill_invalid.analysis import Validity
from lego_mlir.mlir.tile_passes.fill_invalid.conditions import EVERYWHERE, Domain, along
from lego_mlir.mlir.tile_passes.fill_invalid.masks import Masks
from lego_mlir.mlir.tile_passes.fill_invalid.merging import not_dropped

_VIEWS = (tiles.BROADCAST, tiles.TRANSPOSE, tiles.RESHAPE, tiles.CONVERT, tiles.SPLIT)


@dataclass(frozen=True, slots=True)
class Need:
    """What an operation needs of an operand.

    Attributes:
        op: the operation.
        number: of the operand.
        domain: the conditions on the elements that keep their number.
        filler: the attribute of the number that the others are.
    """

    op: Any
    number: int
    domain: Domain
    filler: Any


def fill_invalid(kernel: TileKernel) -> None:
    """Make what operations ignore explicit, in place.

    Raises:
        LegoError: a reduction or scan by a function gives no identity, or which elements are
            invalid changes between the turns of a loop.
    """
    if dialect.FILLED in kernel.launch.attributes:
        return
    _Filling(kernel).run()
    kernel.launch.attributes[dialect.FILLED] = ir.UnitAttr.get()


class _Filling:
    """The rewriting of one kernel."""

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._validity = Validity(kernel)
        self._masks = Masks(kernel)
        self._filled: dict[Any, Any] = {}

    def run(self) -> None:
        operations = list(operations_in(self._kernel.launch))
        needs = {op: self._needs(op) for op in operations}
        self._set_others([need for found in needs.values() for need in found])
        for op, found in needs.items():  # in order: a mask serves what comes after it
            for need in found:
                self._fill(need)
            self._restrict(op)
        for op in reversed(operations):
            if op.name in (tiles.RESTRICT, tiles.FILL):
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()

    # What operations need.
    def _needs(self, op: Any) -> list[Need]:
        match op.name:
            case tiles.REDUCE | tiles.SCAN:
                domain = self._combined(op, self._validity.of(op.operands[0]))
                filler = identity(tiles.kind_of(op), element_of(op.operands[0]))
                return self._need(op, [(0, domain, filler)])
            case tiles.REDUCE_WITH | tiles.SCAN_WITH | tiles.SORT_WITH:
                return self._needs_of_function(op)
            case tiles.DOT:
                a, b, _ = op.operands
                return self._need(
                    op,
                    [
                        (0, self._along(op, a, 1), zero(element_of(a))),
                        (1, self._along(op, b, 0), zero(element_of(b))),
                    ],
                )
            case tiles.FILL:
                domain = self._validity.of(op.operands[0])
                return self._need(op, [(0, domain, tiles.value_of(op))])
            case tiles.TAKE:
                return self._need(
                    op,
                    [
                        (k, self._validity.of(x), zero(element_of(x)))
                        for k, x in enumerate(op.operands)
                    ],
                )
        return []

    def _need(self, op: Any, operands: Sequence[tuple[int, Domain, Any]]) -> list[Need]:
        return [Need(op, k, domain, filler) for k, domain, filler in operands if domain]

    def _combined(self, op: Any, domain: Domain) -> Domain:
        """Return the conditions on what is combined along the dimension of an operation."""
        if prod(shape_of(op.results[0])) == 1:
            return domain  # its number is seen even if it is that of no element
        return along(domain, tiles.dim_of(op), shape_of(op.operands[0]))

    def _along(self, op: Any, operand: Any, dim: int) -> Domain:
        domain = self._validity.of(operand)
        if prod(shape_of(op.results[0])) == 1:
            return domain
        return along(domain, dim, shape_of(operand))

    def _needs_of_function(self, op: Any) -> list[Need]:
        """Return the needs of a reduction or scan by a function.

        Raises:
            LegoError: it has no identity.
        """
        together = EVERYWHERE.union(*(self._validity.of(x) for x in op.operands))
        domain = self._combined(op, together)
        fillers = tiles.identity_of(op)
        if domain and fillers is None:
            kinds = ", ".join(f"... : {element_of(x)}" for x in op.operands)
            raise self._kernel.source.error(
                f"'{op.name}' combines the elements of a tile {list(shape_of(op.operands[0]))} of "
                "which some are invalid, and it does not say what stands for them",
                op.location,
                hint=f"give a number for each tile that changes nothing: identity = [{kinds}], in "
                "Python identity=...; or take tiles that divide the tensor",
            )
        each = zip(op.operands, fillers or [], strict=False)
        return self._need(op, [(k, domain, filler) for k, (_, filler) in enumerate(each)])

    # Filling.
    def _set_others(self, needs: Sequence[Need]) -> None:
        """Set `other` of the loads whose tiles all need the same number."""
        wanted: dict[Any, list[Any]] = {}
        for need in needs:
            value = need.op.operands[need.number]
            load = _load_of(value)
            if load is not None and need.domain <= self._validity.of(value):
                wanted.setdefault(load, []).append(need.filler)
        for load, fillers in wanted.items():
            # Elements outside of a window's tensor are valid, so they keep their number.
            is_window = self._kernel.layouts.of(load).window is not None
            is_free = dialect.OTHER not in load.attributes and not is_window
            if is_free and all(filler == fillers[0] for filler in fillers):
                load.attributes[dialect.OTHER] = fillers[0]

    def _holds(self, value: Any, need: Need) -> bool:
        """Return whether the elements that a need is about hold its number already."""
        load = _load_of(value)
        if load is not None:
            other = load.attributes.get(dialect.OTHER) or zero(element_of(value))
            return need.domain <= self._validity.of(value) and other == need.filler
        if isinstance(value, ir.BlockArgument) or value.owner.name != tiles.REDUCE:
            return False
        kind, element = tiles.kind_of(value.owner), element_of(value)
        is_filled = prod(shape_of(value)) == 1  # then all of what it ignores is
        return is_filled and identity(kind, element) == need.filler

    def _fill(self, need: Need) -> None:
        value, op = need.op.operands[need.number], need.op
        if self._holds(value, need):
            return
        key = op.block, value, need.domain, need.filler
        with ir.InsertionPoint(op), op.location:
            if key not in self._filled:
                mask = self._masks.all_of(need.domain, shape_of(value), op)
                splat = ir.DenseElementsAttr.get_splat(value.type, need.filler)
                filler = arith.ConstantOp(value.type, splat).result
                self._filled[key] = arith.SelectOp(mask, value, filler).result
        op.operands[need.number] = self._filled[key]

    # Stores, and accesses by index.
    def _restrict(self, op: Any) -> None:
        """Give a store, scatter or gather the lego.restrict that it needs."""
        match op.name:
            case dialect.STORE if is_tile(op.operands[0]):
                bounds = self._validity.bounds(op)
                self._put(op, 0, not_dropped(self._validity.of(op.operands[0]), bounds))
            case tiles.SCATTER:
                self._put(op, 0, self._of_tiles(op))
            case tiles.GATHER:
                self._put(op, 1, self._of_tiles(op))

    def _of_tiles(self, op: Any) -> Domain:
        """Return where all tiles that an operation takes are valid."""
        found = (self._validity.of(x) for x in op.operands if is_tile(x))
        return EVERYWHERE.union(*found)

    def _put(self, op: Any, number: int, domain: Domain) -> None:
        if not domain:
            return
        value = op.operands[number]
        with ir.InsertionPoint(op), op.location:
            mask = self._masks.all_of(domain, shape_of(value), op)
            while not isinstance(value, ir.BlockArgument) and value.owner.name == tiles.RESTRICT:
                value = value.owner.operands[0]
            kept = tiles.restrict(value, mask)
        op.operands[number] = kept


def _load_of(value: Any) -> Any:
    """Return the load that a tile is a view of, `None` if there is none."""
    while not isinstance(value, ir.BlockArgument):
        op = value.owner
        if op.name == dialect.LOAD:
            return op.operation
        if op.name not in _VIEWS:
            return None
        value = op.operands[0]
    return None
