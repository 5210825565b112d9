"""The producer of a ring: the loop over k that fetches a product's operands into the slots.

    for k {
      wait empty[slot];  expect full[slot], bytes
      a[slot] = load A[m, k];  b[slot] = load B[k, n]
    }

Where the payload chooses a tile among several, by an scf.index_switch, so does the producer: all of
them go to the same slot. What blocks of a cluster have in common is marked to be fetched together.
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
from lego_mlir.mlir.transforms.copies_to_tma import MULTICAST
from lego_mlir.mlir.warp_specialized.consumer import bound_stages
from lego_mlir.mlir.warp_specialized.ring_buffer import RingBuffer, RingPosition


@dataclass(frozen=True)
class Producer:
    """The thread that fetches.

    Attributes:
        main_loop: whose operands.
        ring: that they go through.
        buffers: by what loads an operand its slots: their layout, and the memory.
        multicast: of A and of B whether the blocks of a cluster have the tile in common.
        cluster: blocks of a cluster.
    """

    main_loop: MainLoop
    ring: RingBuffer
    buffers: Mapping[Any, tuple[Layout, Any]]
    multicast: tuple[bool, bool]
    cluster: int

    def fetch(self, values: Mapping[Any, Any], start: RingPosition) -> RingPosition:
        """The loop over k; where it leaves the ring.

        Args:
            values: what stands for the kernel's values.
            start: where it enters the ring.
        """
        old = self.main_loop.loop
        body = old.regions[0].blocks[0]
        bounds = [values.get(v, v) for v in list(old.operands)[:3]]
        loop = scf.ForOp(*bounds, [start.stage, start.parity])
        bound_stages(loop.operation, self.ring.stages, 0)
        # Unrolled, it would take more registers than a producer has, and win nothing.
        keep_rolled(loop.operation)
        inner = {**values, body.arguments[0]: loop.induction_variable}
        operands = (self.main_loop.a, self.main_loop.b)
        with ir.InsertionPoint(loop.body):
            position = RingPosition(*loop.inner_iter_args)
            self.ring.wait_empty(position)
            self.ring.expect(position, sum(map(_bytes, operands)))
            for op in backward_slice([v for f in operands for v in f.used_values], body):
                clone(op, inner)
            for operand, is_multicast in zip(operands, self.multicast, strict=True):
                if operand.is_switch:
                    self._load_switch(operand, inner, position)
                    continue
                stored = self._load(operand, operand.tiles[0], inner, position)
                if is_multicast:
                    n = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.cluster)
                    stored.attributes[MULTICAST] = n
            following = self.ring.next(position)
            scf.YieldOp([following.stage, following.parity])
        return RingPosition(*loop.results)

    def _load(
        self, operand: LoadedOperand, tile: Tile, values: Mapping[Any, Any], at: RingPosition
    ) -> Any:
        """Load a tile into a slot; the store."""
        layout, buffer = self.buffers[operand.op]
        index = [None if i is None else values.get(i, i) for i in tile.index]
        sizes = tuple((name, values.get(size, size)) for name, size in tile.sizes)
        with tile.op.location:
            value = load(tile.layout, values.get(tile.buffer, tile.buffer), index, sizes)
            return store(value, layout, buffer, [at.stage, *[None] * len(tile.whole)])

    def _load_switch(
        self, operand: LoadedOperand, values: Mapping[Any, Any], at: RingPosition
    ) -> None:
        """Load the tile that is chosen into a slot."""
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
