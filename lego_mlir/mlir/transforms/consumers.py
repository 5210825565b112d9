"""The consumers of a ring: the loop over k of a product whose operands a producer fetches.

The first step stands before the loop: its sums begin at zero there, and not in registers that the
loop carries. A slot is released one step after it is read, so that a product may still be under way
while the next one begins:

    wait full[0];  sum = contract a[0], b[0], 0
    for k = 1 .. {  wait full[k];  sum = contract a[k], b[k], sum;  wait for the product before;
                    release k - 1 }
    wait for the last product;  release the last

What a deferred epilogue has to store of the tile before, it stores in the first steps, a chunk in
each, while their products are under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir.bindings import arith, ir, nvvm, scf
from lego_mlir.mlir.reader import BOUNDS
from lego_mlir.mlir.transforms.products import Product
from lego_mlir.mlir.transforms.rings import Position, Ring
from lego_mlir.mlir.transforms.structure import copied, needed_for
from lego_mlir.mlir.transforms.tiles import load


@dataclass(frozen=True)
class Consumers:
    """The warpgroups that multiply.

    Attributes:
        product: what they compute.
        ring: that its operands come through.
        rooms: by the operand's load its slots: their layout, and the memory.
        signals: whether this thread is the one of its warpgroup, or in a cluster the one for a
            block of it, that releases slots.
        block: in a cluster the rank of that block, an i32.
    """

    product: Product
    ring: Ring
    rooms: Mapping[Any, tuple[Layout, Any]]
    signals: Any
    block: Any

    def multiply(
        self,
        values: dict[Any, Any],
        start: Position,
        deferred: Sequence[Callable[[], None]] = (),
    ) -> Position:
        """The loop over k; where it leaves the ring.

        Args:
            values: what stands for the kernel's values; the loop's results are added.
            start: where it enters the ring.
            deferred: what the first steps do beside, one after another.
        """
        old = self.product.loop
        lower, upper, stride, *sums = (values.get(v, v) for v in old.operands)
        here, k, before = start, lower, None
        for number in range(max(1, len(deferred))):
            sums = self._step(values, here, k, sums)
            if number < len(deferred):
                deferred[number]()
            if before is not None:
                nvvm.wgmma_wait_group_sync_aligned(1)
                self._release(before)
            before, here = here.slot, self.ring.next(here)
            k = arith.AddIOp(k, stride).result
        loop = scf.ForOp(k, upper, stride, [*sums, here.slot, here.parity, before])
        bound_slots(loop.operation, self.ring.slots, len(sums), len(sums) + 2)
        *parts, slot, parity, previous = loop.inner_iter_args
        with ir.InsertionPoint(loop.body):
            here = Position(slot, parity)
            parts = self._step(values, here, loop.induction_variable, parts)
            nvvm.wgmma_wait_group_sync_aligned(1)
            self._release(previous)
            following = self.ring.next(here)
            scf.YieldOp([*parts, following.slot, following.parity, slot])
        *results, slot, parity, previous = loop.results
        nvvm.wgmma_wait_group_sync_aligned(0)
        self._release(previous)
        values.update(zip(old.results, results, strict=True))
        return Position(slot, parity)

    def _step(
        self, values: Mapping[Any, Any], at: Position, k: Any, sums: Sequence[Any]
    ) -> list[Any]:
        """One step: the sums after it."""
        body = self.product.loop.regions[0].blocks[0]
        inner = {**values, **dict(zip(body.arguments, [k, *sums], strict=True))}
        self.ring.wait_full(at)
        operands = (self.product.a, self.product.b)
        for tile in operands:
            layout, room = self.rooms[tile.op]
            with tile.op.location:
                inner[tile.value] = load(layout, room, [at.slot, *[None] * len(tile.whole)])
        *_, end = list(body.operations)
        for op in needed_for(list(end.operands), body):
            if op not in [tile.op for tile in operands]:
                copied(op, inner)
        return [inner[v] for v in end.operands]

    def _release(self, slot: Any) -> None:
        """Say that the warpgroup has done with a slot, to every block that fills it."""
        guard = scf.IfOp(self.signals)
        with ir.InsertionPoint(guard.then_block):
            self.ring.release(slot, self.block)
            scf.YieldOp([])


def bound_slots(loop: Any, count: int, *places: int) -> None:
    """Tell what range the slots have among the values that a loop carries."""
    bounds = [count if k in places else 0 for k in range(len(loop.results))]
    loop.attributes[BOUNDS] = ir.DenseI64ArrayAttr.get(bounds)
