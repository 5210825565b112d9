"""The operations of one thread in a tile's copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lego_mlir.analysis.copy_plan import ChunkedTile, CopyPlan
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, nvgpu, scf
from lego_mlir.mlir.tiles import accesses
from lego_mlir.mlir.tiles.accesses import Tile

_BYPASSING = 16
"""The size in bytes of the asynchronous copies that bypass L1 (PTX ISA, cp.async)."""

_MOST_UNROLLED = 32
"""The most asynchronous copies of a tile by a thread that are unrolled."""

_MOST_CHUNKS, _MOST_BYTES = 8, 64
"""The most chunks and bytes that a thread has in registers."""


@dataclass(frozen=True)
class ThreadCopies:
    """The copies of one thread, made at the current insertion point.

    Attributes:
        read: the source tile.
        written: the target tile.
        plan: which thread copies which chunk.
        thread: the linear thread id.
    """

    read: Tile
    written: Tile
    plan: CopyPlan
    thread: Any

    def asynchronous(self, source: Any, target: Any, size: int) -> None:
        """Make asynchronous copies.

        Args:
            source: the source buffer, of one dimension.
            target: the target buffer, of one dimension.
            size: the size of an element in bytes.
        """
        plan, token = self.plan, ir.Type.parse("!nvgpu.device.async.token")

        def copy(start: Any, end: Any, existing: Any) -> None:
            nvgpu.DeviceAsyncCopyOp(
                target,
                [end],
                source,
                [start],
                plan.width,
                srcElements=existing,
                bypassL1=plan.width * size == _BYPASSING or None,
                results=[token],
            )

        def copy_at(number: Any) -> None:
            copy(*self._offsets(number), self._existing(number))

        if plan.steps > _MOST_UNROLLED:
            self._in_loop(1, lambda numbers: copy_at(numbers[0]))
            self._last(lambda: copy_at(self._number(plan.full_steps)))
            return
        near, far = plan.source_distances, plan.target_distances
        starts = sorted({step for step, _ in (*near, *far)})
        bases = {step: self._offsets(self._number(step)) for step in starts}
        for step in range(plan.steps):
            (a, distance), (b, further) = near[step], far[step]
            start, end = _moved(bases[a][0], distance), _moved(bases[b][1], further)
            existing = self._existing(self._number(step)) if self._may_be_padding else None
            if step < plan.full_steps:
                copy(start, end, existing)
            else:
                self._last(partial(copy, start, end, existing))

    def through_registers(self) -> None:
        """Make loads and stores of several chunks at a time."""
        full, size = self.plan.full_steps, getattr(self.read.element, "width", 64) // 8
        most = min(_MOST_CHUNKS, _MOST_BYTES // (self.plan.width * max(1, size)), full)
        batch = next((n for n in range(most, 0, -1) if full % n == 0), 0)
        if batch == full:
            self._move([self._number(step) for step in range(full)])
        else:
            self._in_loop(batch, self._move)
        self._last(lambda: self._move([self._number(full)]))

    def _move(self, numbers: Sequence[Any]) -> None:
        source, target = self.plan.source, self.plan.target
        within = None if self.plan.width > 1 else 0
        moved = []
        for number in numbers:
            chunk = accesses.inv(self.plan.chunks, number)
            index = source.index(self.read.index, chunk, within)
            value = accesses.load(source.split.layout, self.read.buffer, index, self.read.sizes)
            if dialect.OTHER in self.read.op.attributes:
                value.owner.attributes[dialect.OTHER] = self.read.op.attributes[dialect.OTHER]
            moved.append((chunk, value))
        for chunk, value in moved:
            index = target.index(self.written.index, chunk, within)
            written = replace(self.written, layout=target.split.layout)
            if written.rows is None:
                accesses.store(value, written.layout, written.buffer, index, written.sizes)
                continue
            row = written.row([0 if i is None else i for i in index])
            guard = scf.IfOp(written.is_within(row, row))
            with ir.InsertionPoint(guard.then_block):
                accesses.store(value, written.layout, written.buffer, index, written.sizes)
                scf.YieldOp([])

    def _offsets(self, number: Any) -> tuple[Any, Any]:
        """Compute the offsets of a chunk in the source and the target."""
        chunk = accesses.inv(self.plan.chunks, number)
        start, end = (
            accesses.apply(side.split.layout, side.index(tile.index, chunk), tile.sizes)
            for side, tile in self._sides
        )
        return start, end

    def _existing(self, number: Any) -> Any:
        """Compute how many elements of a chunk exist; `None` if always all."""
        if not self._may_be_padding:
            return None
        source = self.plan.source
        index = source.index(self.read.index, accesses.inv(self.plan.chunks, number))
        exists = accesses.mask(source.split.layout, index, self.read.sizes)
        all_of_it, none = accesses.constant(self.plan.width), accesses.constant(0)
        return arith.SelectOp(exists, all_of_it, none).result

    @property
    def _may_be_padding(self) -> bool:
        return self.plan.source.side.layout.is_partial

    @property
    def _sides(self) -> tuple[tuple[ChunkedTile, Tile], ...]:
        return (self.plan.source, self.read), (self.plan.target, self.written)

    def _number(self, step: int) -> Any:
        """Compute the number of the chunk that the thread copies in a step."""
        return _moved(self.thread, step * self.plan.threads)

    def _in_loop(self, batch: int, make: Callable[[Sequence[Any]], None]) -> None:
        """Make a loop over the full steps, `batch` of them in an iteration."""
        threads = self.plan.threads
        bounds = (0, self.plan.full_steps * threads, batch * threads)
        loop = scf.ForOp(*(accesses.constant(n) for n in bounds))
        with ir.InsertionPoint(loop.body):
            first = arith.AddIOp(loop.induction_variable, self.thread).result
            make([_moved(first, step * threads) for step in range(batch)])
            scf.YieldOp([])

    def _last(self, make: Callable[[], None]) -> None:
        """Make the last step, in which only some threads have a chunk, if there is one."""
        plan = self.plan
        if plan.steps == plan.full_steps:
            return
        there = accesses.constant(plan.count - plan.full_steps * plan.threads)
        guard = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, self.thread, there).result)
        with ir.InsertionPoint(guard.then_block):
            make()
            scf.YieldOp([])


def _moved(offset: Any, distance: int) -> Any:
    """Add a distance to an offset."""
    return arith.AddIOp(offset, accesses.constant(distance)).result if distance else offset
