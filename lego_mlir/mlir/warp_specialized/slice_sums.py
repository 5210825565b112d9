"""The sum of a tile over CTAs that compute slices of K, through the L2 cache.

    %total = "lego.sum_slices"(%sum, %tile, %slice, %sums, %arrivals) {slices = 5}
    …                                           the epilogue

becomes, for the consumer threads of every CTA,

    add the own accumulators to those in memory (red)
    barrier of the consumers
    one thread:  old = atom.add.acq_rel arrivals[tile], 1, which all threads get
    barrier of the consumers
    if old is 4 {  load the sums, and store zeros in their place and in arrivals[tile]
                   …  }

Threads of the same id hold the same elements of the tile in every CTA. So elements go from thread
to thread, four at a time, and nobody needs their position in the tile. The layout of the sums has
the dimensions tile, slice (one if all add to the same), quad, thread and element: 16 bytes of
adjacent threads are adjacent.

The barriers and the atomic operation order all of it: what a thread adds comes before its CTA's
arrival, which is a release, and that of the last CTA is an acquire. Both buffers hold zeros again
when the kernel ends. With programmatic dependent launch the next kernel's consumers begin after its
producer has waited for this kernel.

Sums are added in the order in which CTAs come, so the last bits of floats may differ from launch to
launch. With `in_order` each CTA stores its accumulators in a place of its own, by ordinary stores,
and the last CTA adds them in the order of slices. These hold no zeros.

Source: PTX ISA 8.5 (causality order), 9.7.13.5 (atom), 9.7.13.6 (red, with vectors from sm_90 on).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lego_mlir.algebra import OrderBy, Row, size_symbol
from lego_mlir.hardware.limits import MMA_COLUMNS, MMA_ROWS, WARP_THREADS, WARPGROUP_WARPS
from lego_mlir.index import Int
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import arith, ir, memref, scf, vector
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.fragments.thread_fragment import FragmentValue, as_values
from lego_mlir.mlir.fragments.warps import Thread
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Sizes, alloc, apply, constant
from lego_mlir.mlir.tiles.pointers import beyond, element_bytes, i32_constant
from lego_mlir.mlir.tiles.structure import keep_rolled

_QUAD = 4
"""Elements that are moved at once: 16 bytes."""

_BARRIER = 9
"""The named barrier of all consumers; warpgroups have those from 1 on, one each."""

_GLOBAL = 1
"""LLVM's address space of global memory on NVPTX."""


def find(launch: Any) -> Any:
    """Return the kernel's lego.sum_slices, `None` if it has none."""
    return next((op for op in operations_in(launch) if op.name == dialect.SUM_SLICES), None)


class SliceSums:
    """The lowering of one lego.sum_slices.

    Args:
        step: the transform step, for errors.
        launch: the kernel.
        op: the lego.sum_slices.
        thread: the thread's position in its warpgroup.
        group: the thread's warpgroup.
        groups: the warpgroups, which divide the tile's rows.

    Raises:
        LegoError: the buffer of the sums does not hold whole tiles.
    """

    def __init__(
        self, step: TransformStep, launch: Any, op: Any, thread: Thread, group: Any, groups: int
    ) -> None:
        self._op = op
        kind = ir.VectorType(op.operands[0].type)
        rows, columns = kind.shape
        self._quads = OrderBy(
            Row(rows // (groups * WARPGROUP_WARPS * MMA_ROWS), columns // MMA_COLUMNS)
        )
        self._threads = groups * WARPGROUP_WARPS * WARP_THREADS
        sums = ir.MemRefType(op.operands[3].type)
        self._in_order = dialect.IN_ORDER in op.attributes
        self._slices = int(ir.IntegerAttr(op.attributes[dialect.SLICES]).value)
        places = self._slices if self._in_order else 1
        of_tile = rows * columns * places
        first, *others = sums.shape
        is_open = sums.is_dynamic_dim(0)
        held = int(np.prod(others)) * (1 if is_open else first)
        if held % of_tile or sums.element_type != kind.element_type:
            raise step.error(f"the sums of tiles of {kind} do not fit {sums}", op)
        self._open = size_symbol("tiles") if is_open else None
        tiles: Int = held // of_tile if self._open is None else self._open
        self._sums = OrderBy(Row(tiles, places, self._quads.size, self._threads, _QUAD))
        self._element = kind.element_type
        self._vector = ir.VectorType.get([_QUAD], self._element)
        self._size = element_bytes(self._element)
        self._place = [group, thread.warp[0], thread.lane]
        self._in_cta = OrderBy(Row(groups, WARPGROUP_WARPS, WARP_THREADS))
        i32 = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint.at_block_begin(launch.regions[0].blocks[0]), op.location:
            self._arrived = alloc(OrderBy(Row(1)), i32)
        self._guard: Any = None

    def __call__(self, accumulator: FragmentValue) -> FragmentValue:
        """Make the operations at the sum, and return the fragment of the total.

        What follows in the block belongs to the last CTA; `guard_rest` puts it under its condition.
        """
        _, tile, k_slice, sums, arrivals = self._op.operands
        thread = apply(self._in_cta, self._place)
        own = self._first(sums, [tile, k_slice if self._in_order else 0, 0, thread, 0])
        for row, column, at in self._each(own):
            values = self._quad(accumulator, row, column)
            if self._in_order:
                quad = vector.FromElementsOp(self._vector, values).result
                _made("llvm.store", [], [quad, at], self._aligned())
            else:
                self._add(at, values)
        self._wait()
        is_first = arith.CmpIOp(arith.CmpIPredicate.eq, thread, constant(0)).result
        counter = self._pointer(arrivals, tile, 4)
        elected = scf.IfOp(is_first)
        with ir.InsertionPoint(elected.then_block):
            memref.StoreOp(_arrive(counter), self._arrived, [constant(0)])
            scf.YieldOp([])
        self._wait()
        old = memref.LoadOp(self._arrived, [constant(0)]).result
        last = i32_constant(self._slices - 1)
        is_last = arith.CmpIOp(arith.CmpIPredicate.eq, old, last).result
        self._guard = scf.IfOp(is_last)
        with ir.InsertionPoint(self._guard.then_block):
            scf.YieldOp([])
        if self._in_order:
            quads = self._summed(lambda k: self._first(sums, [tile, k, 0, thread, 0]))
        else:
            quads = [self._loaded(at) for _, _, at in self._each(own)]
            self._clear(own)
        pairs = {}
        for (row, column), total in zip(np.ndindex(*self._quads.dims), quads, strict=True):
            pairs[2 * row, column] = (total[0], total[1])
            pairs[2 * row + 1, column] = (total[2], total[3])
        again = scf.IfOp(is_first)
        with ir.InsertionPoint(again.then_block):
            _made("llvm.store", [], [i32_constant(0), counter])
            scf.YieldOp([])
        return FragmentValue(pairs, (True, True))

    def _summed(self, first_of: Callable[[Any], Any]) -> list[list[Any]]:
        """Add the quads of all slices in order, in a loop: unrolled it would take more registers.

        Args:
            first_of: computes the pointer to the first quad of a slice from its number.
        """
        start = [self._loaded(at) for _, _, at in self._each(first_of(constant(0)))]
        flat = [value for quad in start for value in quad]
        slices = scf.ForOp(constant(1), constant(self._slices), constant(1), flat)
        keep_rolled(slices.operation)
        with ir.InsertionPoint(slices.body):
            totals = list(slices.inner_iter_args)
            added = []
            for number, (_, _, at) in enumerate(self._each(first_of(slices.induction_variable))):
                quad = totals[number * _QUAD : (number + 1) * _QUAD]
                added += [_added(x, y) for x, y in zip(quad, self._loaded(at), strict=True)]
            scf.YieldOp(added)
        results = list(slices.results)
        return [results[k : k + _QUAD] for k in range(0, len(results), _QUAD)]

    def _first(self, sums: Any, index: Sequence[Any]) -> Any:
        """Return the pointer to the quad of an index in the layout of the sums."""
        known: Sizes = ()
        if self._open is not None:
            known = ((self._open.name, memref.DimOp(sums, constant(0)).result),)
        return self._pointer(sums, apply(self._sums, index, known), self._size)

    def _loaded(self, at: Any) -> list[Any]:
        """Load four elements."""
        quad = _made("llvm.load", [self._vector], [at], self._aligned())
        return [vector.ExtractOp(quad, [], [k]).result for k in range(_QUAD)]

    def _clear(self, first: Any) -> None:
        """Store zeros in the place of the thread's sums."""
        splat = ir.DenseElementsAttr.get_splat(self._vector, _zero(self._element))
        zeros = arith.ConstantOp(self._vector, splat).result
        for _, _, at in self._each(first):
            _made("llvm.store", [], [zeros, at], self._aligned())

    def guard_rest(self) -> None:
        """Move the operations after the sum, up to the block's end, under its condition."""
        guard = self._guard.operation
        operations = [op.operation for op in guard.block.operations]
        end = list(self._guard.then_block.operations)[-1].operation
        for op in operations[operations.index(guard) + 1 : -1]:
            op.move_before(end)

    def _each(self, first: Any) -> Iterator[tuple[int, int, Any]]:
        """Yield the row and column of each of the thread's quads, and the pointer to its sum."""
        for row, column in np.ndindex(*self._quads.dims):
            number = self._quads.apply(row, column)
            distance = self._sums.apply(0, 0, number, 0, 0) - self._sums.apply(0, 0, 0, 0, 0)
            yield row, column, beyond(first, int(distance) * self._size)

    def _quad(self, accumulator: FragmentValue, row: int, column: int) -> list[Any]:
        """Return a thread's elements of a fragment of 16×8: two in each half."""
        return [x for half in (0, 1) for x in as_values(accumulator.at(2 * row + half, column))]

    def _add(self, at: Any, values: list[Any]) -> None:
        """Add four values to those in memory."""
        if isinstance(self._element, ir.FloatType):
            text = "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};"
            _assembly(text, "l,f,f,f,f,~{memory}", [at, *values])
            return
        for k, value in enumerate(values):
            text = "red.relaxed.gpu.global.add.s32 [$0], $1;"
            _assembly(text, "l,r,~{memory}", [beyond(at, k * self._size), value])

    def _wait(self) -> None:
        nvvm.barrier(i32_constant(_BARRIER), i32_constant(self._threads))

    def _pointer(self, buffer: Any, element: Any, size: int) -> Any:
        """Return the pointer to an element of a buffer in global memory."""
        i64 = ir.IntegerType.get_signless(64)
        start = memref.ExtractAlignedPointerAsIndexOp(buffer).result
        distance = arith.MulIOp(element, constant(size)).result
        address = arith.IndexCastOp(i64, arith.AddIOp(start, distance).result).result
        return _made("llvm.inttoptr", [ir.Type.parse(f"!llvm.ptr<{_GLOBAL}>")], [address])

    def _aligned(self) -> dict[str, Any]:
        i64 = ir.IntegerType.get_signless(64)
        return {"alignment": ir.IntegerAttr.get(i64, _QUAD * self._size)}


def _arrive(counter: Any) -> Any:
    """Count an arrival, and return how many came before; it orders all accesses of the CTA."""
    i32 = ir.IntegerType.get_signless(32)
    text = "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;"
    return _assembly(text, "=r,l,~{memory}", [counter], [i32])


def _assembly(text: str, constraints: str, operands: list[Any], results: Any = ()) -> Any:
    """Make an instruction that LLVM neither moves nor drops."""
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(constraints),
        "has_side_effects": ir.UnitAttr.get(),
    }
    return _made("llvm.inline_asm", list(results), operands, attributes)


def _added(x: Any, y: Any) -> Any:
    add = arith.AddFOp if isinstance(x.type, ir.FloatType) else arith.AddIOp
    return add(x, y).result


def _zero(kind: Any) -> Any:
    if isinstance(kind, ir.FloatType):
        return ir.FloatAttr.get(kind, 0.0)
    return ir.IntegerAttr.get(kind, 0)


def _made(name: str, results: Any, operands: Any, attributes: Any = None) -> Any:
    """Make an operation and return its result, if it has one."""
    op = ir.Operation.create(name, results=results, operands=operands, attributes=attributes or {})
    return op.results[0] if results else None
