"""The overlapped epilogue: a tile is stored during the next tile's main loop.

The loop over tiles carries the tile's value, its indices, and whether there is one. The next tile
stores each chunk by a store of its own; the last tile's chunks follow the loop:

    %limit = arith.select %is_there, %chunks, %c0
    ...
    %is_due = arith.cmpi ult, %number, %limit
    scf.if %is_due {
      scf.index_switch %number
      case 0 { "lego.store"(%before, %c, %m, %n) {..., chunk = 0 : i64} }
      case 1 { "lego.store"(%before, %c, %m, %n) {..., chunk = 1 : i64} }
      ...
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf, ub
from lego_mlir.mlir.launch_sizes.known import known_value
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import tile_of
from lego_mlir.mlir.tiles.main_loop import INDEX_SWITCH


class OverlappedEpilogue:
    """The store of a tile that overlaps with the next main loop.

    Args:
        step: the transform step, for errors.
        op: the lego.store.
        groups: the warpgroups, each of which stores its rows of the tile.

    Attributes:
        op: the lego.store.
        count: the chunks of a warpgroup.
        bounds: the upper bounds of the values that the loop carries, 0 if unknown.
    """

    def __init__(self, step: TransformStep, op: Any, groups: int) -> None:
        self.op = op
        self._step = step
        tile = tile_of(op, step.pass_context)
        chunk = step.pass_context.layouts(op.attributes[dialect.SHARED], op.location)
        sizes = [n for n in chunk.dims if isinstance(n, int)]
        self.count = prod(tile.shape) // prod(sizes) // groups
        limits = [n for n, i in zip(tile.layout.dims, tile.index, strict=True) if i is not None]
        operands = list(op.operands)[2:]
        self._indices, self._sizes = operands[: len(limits)], operands[len(limits) :]
        if any(known_value(size) is None for size in self._sizes):
            raise step.error(
                "an overlapped epilogue stores to a tensor whose sizes the launch knows",
                op,
                hint=step.option("overlap_epilogue", 0),
            )
        self.bounds = (0, *(n if isinstance(n, int) else 0 for n in limits), 0)

    def initial(self) -> list[Any]:
        """Return the values that the loop carries into its first iteration: no tile."""
        kind = self.op.operands[0].type
        i1, index = ir.IntegerType.get_signless(1), ir.IndexType.get()
        nowhere = [arith.ConstantOp(index, 0).result for _ in self._indices]
        return [arith.ConstantOp(i1, 0).result, *nowhere, ub.PoisonOp(kind).result]

    def carried(self, values: Mapping[Any, Any]) -> list[Any]:
        """Return the values that the loop carries to the next iteration: this tile."""
        i1 = ir.IntegerType.get_signless(1)
        where = [values.get(v, v) for v in self._indices]
        return [arith.ConstantOp(i1, 1).result, *where, values[self.op.operands[0]]]

    def before(self, carried: Sequence[Any]) -> PreviousTileEpilogue:
        """Return the stores of the previous tile from the values that the loop carries."""
        is_there, *where = carried
        index = ir.IndexType.get()
        none, all_chunks = (arith.ConstantOp(index, n).result for n in (0, self.count))
        limit = arith.SelectOp(is_there, all_chunks, none).result
        return PreviousTileEpilogue(self, limit, where)

    def flush(self, carried: Sequence[Any]) -> None:
        """Store the last tile after the loop."""
        _, *where = carried
        for number in range(self.count):
            self.store(where, number)

    def store(self, carried: Sequence[Any], number: int) -> None:
        """Store one chunk of a tile from its indices and value."""
        *indices, value = carried
        attributes = named_attributes(self.op)
        attributes[dialect.CHUNK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        where = [*indices, *self._sizes]
        dialect.store(value, self.op.operands[1], where, attributes, self.op.location)


@dataclass(frozen=True, slots=True)
class PreviousTileEpilogue:
    """The stores of the previous tile, if there is one, chunk by chunk.

    Attributes:
        epilogue: the overlapped epilogue.
        limit: the number of chunks, an index; 0 if there is no previous tile.
        where: the tile's indices, and its value.
    """

    epilogue: OverlappedEpilogue
    limit: Any
    where: Sequence[Any]

    def store(self, number: Any) -> None:
        """Store the chunk whose number, an index, this is, if it exists."""
        *chosen, last = range(self.epilogue.count)
        guard = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, number, self.limit).result)
        with ir.InsertionPoint(guard.then_block):
            choice = ir.Operation.create(
                INDEX_SWITCH,
                operands=[number],
                attributes={"cases": ir.DenseI64ArrayAttr.get(chosen)},
                regions=self.epilogue.count,
            )
            for region, chunk in zip(choice.regions, (last, *chosen), strict=True):
                with ir.InsertionPoint(region.blocks.append()):
                    self.epilogue.store(self.where, chunk)
                    scf.YieldOp([])
            scf.YieldOp([])
