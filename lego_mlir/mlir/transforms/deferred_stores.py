"""A tile's result stored while the next tile is multiplied.

The result, where it goes, and whether there is one, are values that the loop over tiles carries. In
the next tile each chunk is a store of its own, and the last tile's chunks follow the loop:

    scf.if %is_there { "lego.store"(%before, %c, %m, %n) {..., chunk = 0 : i64} }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from lego_mlir.mlir.bindings import arith, ir, scf
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.transforms.operation import Step
from lego_mlir.mlir.transforms.tiles import SHARED, tile_of

CHUNK = "chunk"
"""The attribute of a store: the number of the chunk of the tile that is due there. The other chunks
have stores of their own."""


class DeferredStore:
    """The store of a tile's result, put off.

    Args:
        step: for errors.
        op: the lego.store.
        groups: warpgroups, each of which stores its part of the tile.

    Attributes:
        op: the lego.store.
        count: chunks of a warpgroup's part.
        bounds: what the loop's values for it stay below; 0 where nothing is known.
    """

    def __init__(self, step: Step, op: Any, groups: int) -> None:
        self.op = op
        self._step = step
        tile = tile_of(op, step.setting)
        chunk = step.setting.layouts(op.attributes[SHARED], op.location)
        sizes = [n for n in chunk.dims if isinstance(n, int)]
        self.count = prod(tile.shape) // prod(sizes) // groups
        self._indices = list(op.operands)[2:]
        limits = [n for n, i in zip(tile.layout.dims, tile.index, strict=True) if i is not None]
        self.bounds = (0, *(n if isinstance(n, int) else 0 for n in limits), 0)

    def initial(self) -> list[Any]:
        """What the loop carries into the first tile: no result."""
        kind = ir.VectorType(self.op.operands[0].type)
        element = kind.element_type
        zero = ir.FloatAttr.get if isinstance(element, ir.FloatType) else ir.IntegerAttr.get
        splat = ir.DenseElementsAttr.get_splat(kind, zero(element, 0))
        i1, index = ir.IntegerType.get_signless(1), ir.IndexType.get()
        nowhere = [arith.ConstantOp(index, 0).result for _ in self._indices]
        return [arith.ConstantOp(i1, 0).result, *nowhere, arith.ConstantOp(kind, splat).result]

    def carried(self, values: Mapping[Any, Any]) -> list[Any]:
        """What it carries on from a tile: its result."""
        i1 = ir.IntegerType.get_signless(1)
        where = [values.get(v, v) for v in self._indices]
        return [arith.ConstantOp(i1, 1).result, *where, values[self.op.operands[0]]]

    def chunks(self, before: Sequence[Any]) -> list[Callable[[], None]]:
        """The stores of the result before, if there is one, chunk by chunk."""
        is_there, *where = before

        def store(number: int) -> None:
            guard = scf.IfOp(is_there)
            with ir.InsertionPoint(guard.then_block):
                self._store(where, number)
                scf.YieldOp([])

        return [partial(store, number) for number in range(self.count)]

    def flush(self, carried: Sequence[Any]) -> None:
        """The store of the last result, behind the loop."""
        _, *where = carried
        for number in range(self.count):
            self._store(where, number)

    def _store(self, carried: Sequence[Any], number: int) -> None:
        *indices, value = carried
        attributes = named_attributes(self.op)
        attributes[CHUNK] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        ir.Operation.create(
            "lego.store",
            operands=[value, self.op.operands[1], *indices],
            attributes=attributes,
            loc=self.op.location,
        )
