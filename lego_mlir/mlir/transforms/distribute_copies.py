"""`transform_lego.distribute_copies`: distribute copies of tiles over the threads of a CTA.

    %x = "lego.load"(%a, %m, %k) {layout = #A, slice = array<i64: 2, 3>}     // 128x64 f16, global
    "lego.store"(%x, %s, %stage) {layout = #S, slice = array<i64: 1, 2>}      // shared

becomes, in each of 128 threads, eight copies of 16 bytes

    %row, %column = "lego.inv"(%thread) {layout = #chunks}                   // Row(128, 8)
    %start = "lego.apply"(%m, %k, %row, %column, ...) {layout = #A, its rows in chunks}
    %end = "lego.apply"(%stage, %row, %column, ...) {layout = #S, its rows in chunks}
    nvgpu.device_async_copy %a[%start], %s[%end], 8 {bypassL1}
    nvgpu.device_async_copy %a[%start + 4096], %s[%end + 1024], 8 {bypassL1}
    ...

`analysis.copies` derives from both layouts which thread copies which chunk, and chunk widths.
Padding of partial tiles is not read; it is 0 in shared memory. If no commit follows an asynchronous
copy, the next barrier waits for it. If there is no asynchronous copy, as from shared memory or of
fewer than 4 bytes, chunks pass through registers.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.analysis.copy_plan import CopiedTile, CopyPlan, plan_copy
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.emit import nvvm
from lego_mlir.mlir.lowering.buffers import FlatBuffers, alignment_of
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep, transform
from lego_mlir.mlir.scopes import scope_of
from lego_mlir.mlir.tiles.copies import TileCopy, copies_among
from lego_mlir.mlir.tiles.kernels import flat_thread_id, kernels_of, thread_count
from lego_mlir.mlir.tiles.thread_copies import ThreadCopies

_WIDTHS = (16, 8, 4, 2)
"""Bytes of an access, the widest first."""

_LEAST_ASYNC = 4
"""Bytes of the narrowest asynchronous copy (PTX ISA, cp.async)."""


@transform("distribute_copies")
def distribute_copies(step: TransformStep) -> list[list[Any]]:
    """Distribute every copy of a tile, a load that is only stored, over the threads."""
    for kernel in kernels_of(step):
        flat = FlatBuffers(step.pass_context.source)
        for copy in list(copies_among(step, operations_in(kernel))):
            read, written = copy.read, copy.written
            plan, size = _plan(step, kernel, copy), _bytes_of(read.element)
            with ir.InsertionPoint(written.op), written.op.location:
                copies = ThreadCopies(read, written, plan, flat_thread_id(step, kernel))
                if size is not None and _is_async(step, copy, plan.width * size):
                    source, target = (
                        flat(tile.buffer, scope_of(tile.op), tile.op) for tile in (read, written)
                    )
                    copies.asynchronous(source, target, size)
                else:
                    copies.through_registers()
            step.erase(written.op)
            step.erase(read.op)
        _wait_at_barriers(kernel.regions[0].blocks[0])
    return []


def _plan(step: TransformStep, kernel: Any, copy: TileCopy) -> CopyPlan:
    """Plan which thread copies which chunk."""
    size = _bytes_of(copy.read.element) or max(_WIDTHS)
    source, target = (
        CopiedTile(tile.layout, tile.whole, alignment_of(tile.buffer, scope_of(tile.op)))
        for tile in (copy.read, copy.written)
    )
    lead = target if copy.read.is_shared else source
    widths = (*(n // size for n in _WIDTHS if n > size), 1)
    return plan_copy(source, target, size, thread_count(step, kernel), lead=lead, widths=widths)


def _bytes_of(element: Any) -> int | None:
    """Return the size in bytes of an element type that vectors in memory may have, else `None`."""
    match element:
        case ir.IntegerType() | ir.FloatType() if element.width in (8, 16, 32, 64):
            return int(element.width) // 8
    return None


def _is_async(step: TransformStep, copy: TileCopy, width: int) -> bool:
    """Return whether a copy in chunks of `width` bytes can be asynchronous."""
    return (
        copy.fills_shared
        and step.pass_context.target.capability >= (8, 0)
        and width >= _LEAST_ASYNC
        and dialect.OTHER not in copy.read.op.attributes
    )


_ASYNC, _COMMIT = "nvgpu.device_async_copy", "nvvm.cp.async.commit.group"
_REPEATED = ("scf.for", "scf.while")


def _wait_at_barriers(block: Any, pending: bool = False) -> bool:
    """Make the next barrier wait for asynchronous copies that are in no group.

    Args:
        block: the block to rewrite.
        pending: whether there are such copies at its beginning.

    Returns:
        Whether there are such copies at its end.
    """
    for op in [o.operation for o in block.operations]:
        if op.name == _ASYNC:
            pending = True
        elif op.name == _COMMIT:
            pending = False
        elif pending and op.name == "gpu.barrier":
            _wait_before(op)
            pending = False
        for inner in (b for region in op.regions for b in region.blocks):
            pending = _wait_at_barriers(inner, pending)
    last = [o.operation for o in block.operations][-1]
    if pending and last.parent.name in _REPEATED:
        _wait_before(last)
        return False
    return pending


def _wait_before(op: Any) -> None:
    with ir.InsertionPoint(op), op.location:
        nvvm.commit_copies()
        nvvm.wait_for_copies(0)
