"""Copies of tiles: loads whose only use is a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir import dialect
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, tile_of

PURE = (
    "arith.",
    "affine.",
    dialect.INV,
    dialect.APPLY,
    dialect.MASK,
    dialect.DIM,
    dialect.SIZE,
    dialect.TABLE,
    dialect.PICK,
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.subview",
)
"""Prefixes of the names of operations that compute indices or select and view buffers, and do not
access memory that changes."""


@dataclass(frozen=True, slots=True)
class TileCopy:
    """A lego.load of a tile and the lego.store in the same block that is its only use.

    Attributes:
        read: the source tile.
        written: the target tile.
    """

    read: Tile
    written: Tile

    @property
    def fills_shared(self) -> bool:
        """Whether it copies from global to shared memory."""
        return self.written.is_shared and not self.read.is_shared


def copies_among(step: TransformStep, operations: Iterable[Any]) -> Iterator[TileCopy]:
    """Yield the copies of tiles whose loads are among `operations`."""
    for op in operations:
        uses = list(op.results[0].uses) if op.name == dialect.LOAD else []
        if len(uses) != 1 or uses[0].owner.operation.name != dialect.STORE:
            continue
        store = uses[0].owner.operation
        read = tile_of(op, step.pass_context)
        if read.whole and store.block == op.block and _may_move(op, store):
            yield TileCopy(read, tile_of(store, step.pass_context))


def _may_move(load: Any, store: Any) -> bool:
    """Return whether the load can move to the store: no operation between them may write."""
    block = [op.operation for op in load.block.operations]
    between = block[block.index(load) + 1 : block.index(store)]
    return all(op.name.startswith((*PURE, dialect.LOAD)) for op in between)
