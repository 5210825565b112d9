"""The consumers of a ring buffer: the main loop over operands that a producer loads.

A stage is released one iteration after it is read, so that the wgmma of an iteration overlaps with
that of the next. The accumulator starts at zero by a predicate of the first iteration's
instructions, not by zeros in registers:

    for k {  wait full[k];  sum = contract a[k], b[k], (k is the first ? 0 : sum)
             wait for the previous wgmma;  release k - 1, if there is one }
    wait for the last wgmma;  release the last stage

A small accumulator has its first iteration before the loop, which saves the predicate. A large one
has a single copy of the iteration, since each copy takes the assembler long.

    wait full[0];  sum = contract a[0], b[0], 0
    for k = 1 .. {  wait full[k];  sum = contract a[k], b[k], sum;  wait for the previous wgmma;
                    release k - 1 }

With `promote = n` tensor cores accumulate n iterations at a time, from zero, and threads add these
partial sums in f32. Hopper's tensor cores keep few bits of sums of 8-bit floats, so that errors of
long sums would show (`sim.numerics.fp8_accumulation`). It doubles the accumulator's registers:

    for k = 0, n, .. {
      p = contract a[k], b[k], 0;  for j = k + 1 .. k + n {  p = contract a[j], b[j], p }
      wait for the last wgmma;  sum = sum + p
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from lego_mlir.algebra import Layout
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, scf, ub
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.tiles.accesses import load
from lego_mlir.mlir.tiles.main_loop import MainLoop
from lego_mlir.mlir.tiles.structure import backward_slice, clone, is_zero, keep_rolled
from lego_mlir.mlir.warp_specialized.ring_buffer import RingBuffer, RingPosition

_LARGE_ACCUMULATOR = 128
"""Elements of a thread from which on there is one copy of an iteration: 256 columns of wgmma."""


class _Bounds(NamedTuple):
    """The bounds of a K loop."""

    lower: Any
    upper: Any
    stride: Any


@dataclass(frozen=True)
class Consumers:
    """The consumer warpgroups.

    Attributes:
        main_loop: the main loop of the payload.
        ring: the ring buffer of its operands.
        buffers: the layout and memory of each operand's stages, by the operand's load.
        signals: whether this thread releases stages: one of a warpgroup does.
        promote: the iterations that tensor cores accumulate before threads do; 0 for all.
        is_divisible: whether the iterations are a multiple of `promote`.
    """

    main_loop: MainLoop
    ring: RingBuffer
    buffers: Mapping[Any, tuple[Layout, Any]]
    signals: Any
    promote: int = 0
    is_divisible: bool = False

    def multiply(self, values: dict[Any, Any], start: RingPosition) -> RingPosition:
        """Make the main loop, and return its final ring position.

        Args:
            values: the new values of the payload's values; the loop's results are added.
            start: its first ring position.
        """
        old = self.main_loop.loop
        lower, upper, stride, *accumulators = (values.get(v, v) for v in old.operands)
        bounds = _Bounds(lower, upper, stride)
        if self.promote:
            results, end = self._accumulate_promoted(values, start, bounds, accumulators)
        else:
            results, end = self._accumulate(values, start, bounds, accumulators)
        values.update(zip(old.results, results, strict=True))
        return end

    def _accumulate_promoted(
        self,
        values: Mapping[Any, Any],
        start: RingPosition,
        bounds: _Bounds,
        accumulators: Sequence[Any],
    ) -> tuple[list[Any], RingPosition]:
        """Add up sums of `promote` iterations each; return them and the ring position."""
        count = arith.ConstantOp(ir.IndexType.get(), self.promote).result
        reach = arith.MulIOp(bounds.stride, count).result
        zeros = [_zeros(value.type) for value in accumulators]
        loop = scf.ForOp(
            bounds.lower, bounds.upper, reach, [*accumulators, start.stage, start.parity]
        )
        bound_stages(loop.operation, self.ring.stages, len(accumulators))
        *totals, stage, parity = loop.inner_iter_args
        with ir.InsertionPoint(loop.body):
            k = loop.induction_variable
            upper = arith.AddIOp(k, reach).result
            if not self.is_divisible:
                upper = arith.MinUIOp(upper, bounds.upper).result
            part_bounds = _Bounds(k, upper, bounds.stride)
            partials, end = self._accumulate(
                values, RingPosition(stage, parity), part_bounds, zeros
            )
            totals = [
                arith.AddFOp(total, x).result for total, x in zip(totals, partials, strict=True)
            ]
            scf.YieldOp([*totals, end.stage, end.parity])
        *results, stage, parity = loop.results
        return results, RingPosition(stage, parity)

    def _accumulate(
        self,
        values: Mapping[Any, Any],
        start: RingPosition,
        bounds: _Bounds,
        accumulators: Sequence[Any],
    ) -> tuple[list[Any], RingPosition]:
        """Accumulate on tensor cores; return the accumulators and the ring position."""
        lower, upper, stride = bounds
        if not self.promote and self._has_large_accumulator():
            return self._accumulate_in_loop(values, start, bounds, accumulators)
        accumulators = self._iteration(values, start, lower, accumulators)
        if self.promote == 1:
            self._finish(start.stage)
            return accumulators, self.ring.next(start)
        k = arith.AddIOp(lower, stride).result
        here = self.ring.next(start)
        loop = scf.ForOp(k, upper, stride, [*accumulators, here.stage, here.parity, start.stage])
        bound_stages(loop.operation, self.ring.stages, len(accumulators), len(accumulators) + 2)
        *partials, stage, parity, previous = loop.inner_iter_args
        with ir.InsertionPoint(loop.body):
            here = RingPosition(stage, parity)
            partials = self._iteration(values, here, loop.induction_variable, partials)
            nvvm.wgmma_wait(1)
            self._release(previous)
            following = self.ring.next(here)
            scf.YieldOp([*partials, following.stage, following.parity, stage])
        *results, stage, parity, previous = loop.results
        self._finish(previous)
        return results, RingPosition(stage, parity)

    def _accumulate_in_loop(
        self,
        values: Mapping[Any, Any],
        start: RingPosition,
        bounds: _Bounds,
        accumulators: Sequence[Any],
    ) -> tuple[list[Any], RingPosition]:
        """Accumulate with one copy of an iteration."""
        begins = all(is_zero(value) for value in accumulators)
        i1 = ir.IntegerType.get_signless(1)
        no, yes = (arith.ConstantOp(i1, n).result for n in (0, 1))
        carried = (
            [ub.PoisonOp(value.type).result for value in accumulators] if begins else accumulators
        )
        loop = scf.ForOp(*bounds, [*carried, start.stage, start.parity, start.stage, yes, no])
        bound_stages(loop.operation, self.ring.stages, len(accumulators), len(accumulators) + 2)
        keep_rolled(loop.operation)
        *partials, stage, parity, previous, is_first, signals = loop.inner_iter_args
        with ir.InsertionPoint(loop.body):
            k = loop.induction_variable
            if begins:
                pairs = zip(accumulators, partials, strict=True)
                partials = [arith.SelectOp(is_first, zeros, x).result for zeros, x in pairs]
            here = RingPosition(stage, parity)
            partials = self._iteration(values, here, k, partials)
            nvvm.wgmma_wait(1)
            self._release(previous, signals)
            following = self.ring.next(here)
            scf.YieldOp([*partials, following.stage, following.parity, stage, no, self.signals])
        *results, stage, parity, previous, _, _ = loop.results
        self._finish(previous)
        return results, RingPosition(stage, parity)

    def _has_large_accumulator(self) -> bool:
        """Return whether another copy of an iteration would take the assembler long."""
        tile = ir.VectorType(self.main_loop.contract.results[0].type)
        threads = self.main_loop.warp_count * WARP_THREADS
        return bool(prod(tile.shape) >= _LARGE_ACCUMULATOR * threads)

    def _iteration(
        self, values: Mapping[Any, Any], at: RingPosition, k: Any, accumulators: Sequence[Any]
    ) -> list[Any]:
        """Make one iteration, and return the new accumulators."""
        body = self.main_loop.loop.regions[0].blocks[0]
        inner = {**values, **dict(zip(body.arguments, [k, *accumulators], strict=True))}
        self.ring.wait_full(at)
        operands = (self.main_loop.a, self.main_loop.b)
        for tile in operands:
            layout, buffer = self.buffers[tile.op]
            with tile.op.location:
                inner[tile.value] = load(layout, buffer, [at.stage, *[None] * len(tile.shape)])
        *_, end = list(body.operations)
        for op in backward_slice(list(end.operands), body, [tile.op for tile in operands]):
            clone(op, inner)
        return [inner[v] for v in end.operands]

    def _finish(self, stage: Any) -> None:
        """Wait for the last wgmma of a sum, and release its stage."""
        nvvm.wgmma_wait(0)
        self._release(stage)

    def _release(self, stage: Any, signals: Any = None) -> None:
        """Release a stage to the producer.

        Args:
            stage: the stage, an index.
            signals: whether this thread does so, by default `self.signals`.
        """
        guard = scf.IfOp(self.signals if signals is None else signals)
        with ir.InsertionPoint(guard.then_block):
            self.ring.release(stage)
            scf.YieldOp([])


def _zeros(kind: Any) -> Any:
    """Return a tile of zeros."""
    zero = ir.FloatAttr.get(ir.VectorType(kind).element_type, 0.0)
    return arith.ConstantOp(kind, ir.DenseElementsAttr.get_splat(kind, zero)).result


def bound_stages(loop: Any, count: int, *positions: int) -> None:
    """Declare that the values that a loop carries at `positions` are stages below `count`."""
    bounds = [count if k in positions else 0 for k in range(len(loop.results))]
    loop.attributes[dialect.BOUNDS] = ir.DenseI64ArrayAttr.get(bounds)
