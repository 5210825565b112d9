"""Rings of which each thread reads what it has copied itself.

    "lego.copy_async"(%ring, %n, %a, %i) {engine = "cp.async", ...}     thread t: 4t to 4t + 3
    %t = "lego.wait"(%ring, %n)
    %x = "lego.convert"(%t) : ... -> tensor<1x2048xf32, #D>             the same, in registers

Such rings need no barrier: what a thread waits for are its own copies, and a stage that it has read
is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout, Place
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.tile_ir.types import is_shared_tile, is_tile, layout_of
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.lower_pipelines.thread_copies import check_thread_copy


def private_rings(accesses: Accesses, rings: Iterable[Any]) -> set[Any]:
    """Return the rings of which each thread reads only what it copies by cp.async.

    Args:
        accesses: of the kernel.
        rings: those whose copies are made by cp.async.
    """
    return {ring for ring in rings if _is_private(accesses, ring)}


def _is_private(accesses: Accesses, ring: Any) -> bool:
    users = [use.owner.operation for use in ring.uses]
    copies = [op for op in users if op.name == pipelines.COPY_ASYNC]
    waits = [op for op in users if op.name == pipelines.WAIT]
    try:
        copied = {_of_threads(check_thread_copy(accesses, op)[0]) for op in copies}
    except LegoError:
        return False
    read = {_read(use.owner.operation) for op in waits for use in op.results[0].uses}
    return len(copied) == 1 and read == copied


def _read(op: Any) -> Any:
    """Return which threads read which elements of a tile by an operation, if that is known."""
    is_conversion = op.name == tiles.CONVERT and is_tile(op.results[0])
    if not is_conversion or is_shared_tile(op.results[0]):
        return None
    layout = layout_of(op.results[0])
    return None if layout is None else _of_threads(layout)


def _of_threads(layout: DistributedLayout) -> Any:
    """Return which CTA, warp and lane has which elements."""
    return layout.shape, layout.places[: Place.REGISTER]
