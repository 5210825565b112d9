"""The producer of a ring buffer: the K loop that loads the operands into stages.

    for k {
      wait empty[stage];  expect full[stage], bytes
      a[stage] = load A[m, k];  b[stage] = load B[k, n]
    }

If the payload selects a tile among several by an scf.index_switch, so does the producer: all go to
the same stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir.bindings import ir, scf
from lego_mlir.mlir.modules import named_attributes
from lego_mlir.mlir.tiles.accesses import Tile, load, store
from lego_mlir.mlir.tiles.main_loop import INDEX_SWITCH, LoadedOperand, MainLoop
from lego_mlir.mlir.tiles.pointers import element_bytes
from lego_mlir.mlir.tiles.structure import backward_slice, clone, keep_rolled
from lego_mlir.mlir.warp_specialized.consumer import bound_stages
from lego_mlir.mlir.warp_specialized.ring_buffer import RingBuffer, RingPosition


@dataclass(frozen=True)
class Producer:
    """The producer thread.

    Attributes:
        main_loop: the main loop of the payload.
        ring: the ring buffer of its operands.
        buffers: the layout and memory of each operand's stages, by the operand's load.
    """

    main_loop: MainLoop
    ring: RingBuffer
    buffers: Mapping[Any, tuple[Layout, Any]]

    def fetch(self, values: Mapping[Any, Any], start: RingPosition) -> RingPosition:
        """Make the K loop, and return its final ring position.

        Args:
            values: the new values of the payload's values.
            start: its first ring position.
        """
        old = self.main_loop.loop
        body = old.regions[0].blocks[0]
        bounds = [values.get(v, v) for v in list(old.operands)[:3]]
        loop = scf.ForOp(*bounds, [start.stage, start.parity])
        bound_stages(loop.operation, self.ring.stages, 0)
        # Unrolling would need more registers than a producer has, for no gain.
        keep_rolled(loop.operation)
        inner = {**values, body.arguments[0]: loop.induction_variable}
        operands = (self.main_loop.a, self.main_loop.b)
        with ir.InsertionPoint(loop.body):
            position = RingPosition(*loop.inner_iter_args)
            self.ring.wait_empty(position)
            self.ring.expect(position, sum(map(_bytes, operands)))
            for op in backward_slice([v for f in operands for v in f.used_values], body):
                clone(op, inner)
            for operand in operands:
                if operand.is_switch:
                    self._load_switch(operand, inner, position)
                else:
                    self._load(operand, operand.tiles[0], inner, position)
            following = self.ring.next(position)
            scf.YieldOp([following.stage, following.parity])
        return RingPosition(*loop.results)

    def _load(
        self, operand: LoadedOperand, tile: Tile, values: Mapping[Any, Any], at: RingPosition
    ) -> None:
        """Load a tile into a stage."""
        layout, buffer = self.buffers[operand.op]
        index = [None if i is None else values.get(i, i) for i in tile.index]
        sizes = tuple((name, values.get(size, size)) for name, size in tile.sizes)
        with tile.op.location:
            value = load(tile.layout, values.get(tile.buffer, tile.buffer), index, sizes)
            store(value, layout, buffer, [at.stage, *[None] * len(tile.whole)])

    def _load_switch(
        self, operand: LoadedOperand, values: Mapping[Any, Any], at: RingPosition
    ) -> None:
        """Load the selected tile into a stage."""
        with operand.op.location:
            choice = ir.Operation.create(
                INDEX_SWITCH,
                operands=[values.get(v, v) for v in operand.op.operands],
                attributes=named_attributes(operand.op),
                regions=len(operand.tiles),
            )
        for region, old, tile in zip(
            choice.regions, operand.op.regions, operand.tiles, strict=True
        ):
            inner = dict(values)
            with ir.InsertionPoint(region.blocks.append()), tile.op.location:
                for op in backward_slice(list(tile.op.operands), old.blocks[0]):
                    clone(op, inner)
                self._load(operand, tile, inner, at)
                scf.YieldOp([])


def _bytes(operand: LoadedOperand) -> int:
    return prod(operand.shape) * element_bytes(operand.element)
